//! `suiro bench slices`: a large slice and many slices, from the file to links that are proved; the large one beside Mininet.
//!
//! Mininet joins each host by one port and proves nothing: 200 hosts stand for 200 ports, and what is compared is building and ending. Its processor time
//! has that of Open vSwitch, its start included. OVN is not measured.

use super::Common;
use crate::domain::scale;
use crate::report::{Peer, Report, Row, Spread};
use anyhow::Result;
use testbed::machine::placement_class;
use testbed::peer::mininet;

/// Runs it.
pub fn run(common: &Common, report: &mut Report) -> Result<()> {
    let [mut ready, mut processor, mut memory, mut gone]: [Vec<f64>; 4] = Default::default();
    let [mut whole, mut all, mut their_whole, mut their_all]: [Vec<f64>; 4] = Default::default();
    let (mut middle, mut longest) = (Vec::new(), Vec::new());
    for round in 1..=common.rounds {
        let large = scale::large(round)?;
        let many = scale::many(round)?;
        let beside = scale::beside()?;
        eprintln!("round {round}/{}  {large:?}, Mininet {beside:?}", common.rounds);
        eprintln!("  ten slices {many:.2?} s");
        ready.push(large.ready_s);
        processor.push(large.processor_s);
        memory.push(large.memory_mib);
        gone.push(large.gone_s);
        whole.push(large.ready_s + large.gone_s);
        all.push(large.whole_processor_s);
        their_whole.push(beside.whole_s);
        their_all.push(beside.processor_s);
        middle.push(many[(many.len() - 1) / 2]);
        longest.extend(many.last());
    }
    let one = "100 switches, 200 ports, 99 links";
    let ten = "10 slices x 10 switches, at once";
    let row = |case: String, unit, figures, theirs: Option<Vec<f64>>| {
        let ours = Spread::of(figures);
        let peer = theirs.map(|theirs| Peer {
            name: format!("Mininet {}", mininet::version()),
            spread: Spread::of(theirs),
        });
        let ratio = peer.as_ref().map(|peer| peer.spread.median / ours.median);
        Row { case, unit, cores: placement_class().into(), ours, peer, ratio, goal: None }
    };
    report.add([
        row(format!("{one}: apply to proved"), "s", ready, None),
        row(format!("{one}: processor time"), "s", processor, None),
        row(format!("{one}: memory"), "MiB", memory, None),
        row(format!("{one}: deleted"), "s", gone, None),
        row(format!("{one}: both, beside Mininet"), "s", whole, Some(their_whole)),
        row(format!("{one}: both, processor time"), "s", all, Some(their_all)),
        row(format!("{ten}: apply to proved, p50"), "s", middle, None),
        row(format!("{ten}: apply to proved, longest"), "s", longest, None),
    ])
}
