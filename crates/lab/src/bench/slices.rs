//! `suiro bench slices`: a large slice and many slices, from the file to links that are proved.

use super::Common;
use crate::domain::scale;
use crate::report::{Report, Row, Spread};
use anyhow::Result;
use testbed::machine::placement_class;

/// Runs it.
pub fn run(common: &Common, report: &mut Report) -> Result<()> {
    let [mut ready, mut processor, mut memory, mut gone]: [Vec<f64>; 4] = Default::default();
    let (mut middle, mut longest) = (Vec::new(), Vec::new());
    for round in 1..=common.rounds {
        let large = scale::large(round)?;
        let many = scale::many(round)?;
        eprintln!("round {round}/{}  {large:?}, ten slices {many:.2?} s", common.rounds);
        ready.push(large.ready_s);
        processor.push(large.processor_s);
        memory.push(large.memory_mib);
        gone.push(large.gone_s);
        middle.push(many[(many.len() - 1) / 2]);
        longest.extend(many.last());
    }
    let one = "100 switches, 200 ports, 99 links";
    let ten = "10 slices x 10 switches, at once";
    let rows = [
        (format!("{one}: apply to proved"), "s", ready),
        (format!("{one}: processor time"), "s", processor),
        (format!("{one}: memory"), "MiB", memory),
        (format!("{one}: deleted"), "s", gone),
        (format!("{ten}: apply to proved, p50"), "s", middle),
        (format!("{ten}: apply to proved, longest"), "s", longest),
    ];
    report.add(rows.into_iter().map(|(case, unit, figures)| Row {
        case,
        unit,
        cores: placement_class().into(),
        ours: Spread::of(figures),
        peer: None,
        ratio: None,
        goal: None,
    }))
}
