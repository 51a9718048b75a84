//! Set-field of every field that has a place in the frame (§7.2.5.8), with the checksums that cover it.

use super::{Place, becomes_what_the_oracle_says};
use crate::fields::{ROWS, Row, needs};
use crate::harness::{Bench, Suite};
use crate::oracle::Frame;
use openflow::{Action, Match, Oxm, OxmField};

/// The cases.
pub fn cases(suite: &mut Suite) {
    for row in ROWS.into_iter().filter(|row| row.settable) {
        for (sample, framing, frame) in row.frames() {
            for place in Place::ALL {
                let name = format!(
                    "set_field::{}::{}::{}::{}",
                    row.name,
                    sample.name(),
                    framing.name(),
                    place.name()
                );
                let frame = frame.clone();
                suite.case(name, move |bench| set(bench, place, row, &frame));
            }
        }
    }
}

/// To the other value of every bit, to the lowest and the highest, and to the one that is there.
fn set(bench: &mut Bench, place: Place, row: Row, frame: &Frame) {
    let old = frame.get(row.field).unwrap();
    for value in [row.flipped(old, row.full()), lowest(row), row.flipped(0, row.full()), old] {
        let value = if row.field == OxmField::VlanVid { value | 0x1000 } else { value };
        let actions = [Action::SetField(Oxm::exact(row.field, value))];
        becomes_what_the_oracle_says(bench, place, promised(row, frame), &actions, frame);
        bench.clear();
    }
}

/// What the match must promise: the field's prerequisite, and for a VLAN id that there is a tag (`OFPBAC_MATCH_INCONSISTENT`).
fn promised(row: Row, frame: &Frame) -> Match {
    match row.field {
        OxmField::VlanVid => Match::default().with_masked(row.field, 0x1000, 0x1000),
        _ => needs(row.field, frame),
    }
}

/// An Ethernet type below 0x600 would be a length.
fn lowest(row: Row) -> u128 {
    if row.field == OxmField::EthType { 0x600 } else { 0 }
}
