//! The flow control field of suiro's extension, `docs/reference/openflow-extension.md`: the whole ToS byte, matched and set in real frames.

use super::needs;
use crate::harness::{Bench, Suite, entry, output};
use crate::oracle::{Frame, Framing, Sample};
use openflow::{Action, Match, Oxm, OxmField};

/// The cases.
pub fn cases(suite: &mut Suite) {
    for sample in Sample::IP {
        for framing in Framing::ALL {
            let frame = framing.around(sample);
            if frame.get(OxmField::IpDscp).is_none() {
                continue; // what is below MPLS shims and I-TAGs is not seen
            }
            let name = |what: &str| format!("fcf::{what}::{}::{}", sample.name(), framing.name());
            let of = frame.clone();
            suite.case(name("match"), move |bench| select(bench, &of));
            suite.case(name("set"), move |bench| set(bench, &frame));
        }
    }
}

/// The frame with this byte.
fn with(frame: &Frame, byte: u128) -> Vec<u8> {
    frame.with(OxmField::IpDscp, byte >> 2).with(OxmField::IpEcn, byte & 3).bytes()
}

fn ip(frame: &Frame) -> Match {
    needs(OxmField::Fcf, frame)
}

/// Machine 3 by the seven upper bits, and any priority by the lowest.
fn select(bench: &mut Bench, frame: &Frame) {
    bench.add(&entry(1, ip(frame).with_masked(OxmField::Fcf, 6, 0xfe), vec![output(2)]));
    for (byte, is_hit) in [(6, true), (7, true), (8, false), (0x86, false)] {
        let bytes = with(frame, byte);
        let outcome = bench.send(1, &bytes);
        if is_hit { outcome.is_only(2, &bytes) } else { outcome.is_nothing() }
    }
}

/// The whole byte, then its lowest bit alone.
fn set(bench: &mut Bench, frame: &Frame) {
    let bytes = with(frame, 0xf4);
    for (priority, oxm, becomes) in
        [(1, Oxm::exact(OxmField::Fcf, 0x0b), 0x0b), (2, Oxm::masked(OxmField::Fcf, 1, 1), 0xf5)]
    {
        bench.add(&entry(priority, ip(frame), vec![Action::SetField(oxm), output(2)]));
        bench.send(1, &bytes).is_only(2, &with(frame, becomes));
    }
}
