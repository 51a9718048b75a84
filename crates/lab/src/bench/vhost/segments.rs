//! Large TCP segments between two driven guests.
//!
//! Frames of 64 KiB with a virtio-net header that says how they may be cut and that their checksum is open: what Linux sends when the
//! device takes it. Open vSwitch offers that to guests only with `userspace-tso-enable`, which is off as it comes; its guests then cut by
//! themselves, so beside it stand its full Ethernet frames. The checksums that they must compute as well are not in that figure.

use super::Plan;
use super::cases::{Case, Rules};
use super::compare::{Contender, Contends, alternate};
use super::rig::Window;
use crate::report::{Peer, Row, Spread};
use anyhow::Result;
use testbed::peer::vhost::Kind;

/// As `--only` may name it.
pub const NAME: &str = "64 KiB TCP segments";

/// Payload of each segment: full Ethernet frames.
pub const PAYLOAD: u16 = 1460;

/// Bytes of the largest frame that is cut into full segments: 44 of them, and the headers.
pub const FRAME: usize = 44 * PAYLOAD as usize + 54;

/// Of the peer with TSO.
const GOAL: f64 = 1.3;

pub fn run(plan: &Plan) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for touched in [false, true] {
        let name = if touched { "64 KiB TCP segments, payload touched" } else { NAME };
        let cases = [
            Case::new(name, FRAME, Rules::Ports, 10).segments(PAYLOAD),
            Case::new(name, 1514, Rules::Ports, 10),
        ];
        let [large, small] = cases.map(|case| if touched { case.touched() } else { case });
        rows.extend(compare(plan, &large, &small)?);
    }
    Ok(rows)
}

fn compare(plan: &Plan, large: &Case, small: &Case) -> Result<Vec<Row>> {
    let mut contenders = Vec::new();
    for &kind in &plan.kinds {
        if kind == Kind::OvsDpdk {
            contenders.push(Contender::start(plan, Kind::OvsDpdkTso, large)?);
            contenders.push(Contender::start(plan, kind, small)?);
        } else {
            contenders.push(Contender::start(plan, kind, large)?);
        }
    }
    alternate(plan.rounds, &mut contenders)?;
    let mut rows = rows(large.name, &contenders);
    for contender in &mut contenders {
        rows.extend(contender.check()?);
    }
    Ok(rows)
}

/// A contender whose frames are whole segments, or what they are cut into.
pub trait Segments: Contends {
    /// Bytes of each frame.
    fn frame(&self) -> usize;
    /// Whether they are whole.
    fn is_whole(&self) -> bool;
}

impl Segments for Contender<'_> {
    fn frame(&self) -> usize {
        self.case.frame
    }

    fn is_whole(&self) -> bool {
        self.case.segment.is_some()
    }
}

/// For each class a row beside each peer, or one alone.
pub fn rows(name: &str, contenders: &[impl Segments]) -> Vec<Row> {
    let Some((ours, peers)) = contenders.split_first() else { return Vec::new() };
    let mut rows = Vec::new();
    for class in ours.windows().0.keys() {
        let Some(own) = figures(ours, class) else { continue };
        let row = |case, peer: Option<Peer>, goal| Row {
            case,
            unit: "Gbit/s",
            cores: (*class).into(),
            ours: own,
            ratio: peer.as_ref().map(|peer| own.median / peer.spread.median),
            peer,
            goal,
        };
        let beside = peers.iter().filter_map(|peer| {
            let spread = figures(peer, class)?;
            let is_whole = peer.is_whole();
            let case =
                if is_whole { name.into() } else { format!("{name}; the peer: 1514 B frames") };
            let goal = is_whole.then_some(GOAL);
            Some(row(case, Some(Peer { name: peer.kind().name(), spread }), goal))
        });
        let before = rows.len();
        rows.extend(beside);
        if rows.len() == before {
            rows.push(row(name.into(), None, None));
        }
    }
    rows
}

/// Delivered in a class, both directions together, headers included.
fn figures(of: &impl Segments, class: &str) -> Option<Spread> {
    let bits = (of.frame() * 8) as f64;
    let gbit_s = |window: &Window| window.mpps * bits / 1e3;
    Some(Spread::of(of.windows().0.get(class)?.iter().map(gbit_s).collect()))
}
