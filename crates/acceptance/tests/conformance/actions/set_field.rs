//! Set-field of every field that has a place in the frame (§7.2.5.8), with the checksums that cover it; and of every field where the
//! frame lacks it and nothing had to promise it: then nothing is written, least of all to another protocol's header.

use super::{Place, becomes_what_the_oracle_says, indirect};
use crate::fields::{ROWS, Row, needs};
use crate::harness::{Bench, Suite, entry, output};
use crate::oracle::{Frame, Framing, Sample, act};
use openflow::{Action, GroupId, Match, Oxm, OxmField, PortNo};

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
        if lacking(row, Framing::Untagged).next().is_none() {
            continue; // every frame has it
        }
        let mut absent = |place: &str, test: fn(&mut Bench, Row)| {
            suite.case(format!("set_field::{}::absent::{place}", row.name), move |bench| {
                test(bench, row);
            });
        };
        absent("packet_out", absent_in_packet_outs);
        absent("bucket", absent_in_a_bucket);
        absent("behind_a_pop", absent_behind_a_pop);
    }
}

/// The frames in this framing that lack the field.
fn lacking(row: Row, framing: Framing) -> impl Iterator<Item = Frame> {
    let frames = Sample::ALL.into_iter().map(move |sample| framing.around(sample));
    frames.filter(move |frame| frame.get(row.field).is_none())
}

/// The field to a value of ones.
fn to_ones(row: Row) -> Action {
    Action::SetField(Oxm::exact(row.field, row.full()))
}

fn absent_in_packet_outs(bench: &mut Bench, row: Row) {
    for frame in [Framing::Untagged, Framing::Mpls].into_iter().flat_map(|f| lacking(row, f)) {
        let actions = vec![to_ones(row), output(2)];
        let outcome = bench.packet_out(PortNo::CONTROLLER, actions, &frame.bytes());
        outcome.is_only(2, &frame.bytes());
    }
}

fn absent_in_a_bucket(bench: &mut Bench, row: Row) {
    indirect(bench, vec![to_ones(row), output(2)]);
    bench.add(&entry(1, Match::default(), vec![Action::Group(GroupId(1))]));
    for frame in [Framing::Untagged, Framing::Mpls].into_iter().flat_map(|f| lacking(row, f)) {
        bench.send(1, &frame.bytes()).is_only(2, &frame.bytes());
    }
}

/// No match can promise what is behind an I-TAG, so whatever may be there may be set.
fn absent_behind_a_pop(bench: &mut Bench, row: Row) {
    let fields = Match::default().with(OxmField::EthType, 0x88e7);
    bench.add(&entry(1, fields, vec![Action::PopPbb, to_ones(row), output(2)]));
    for frame in Sample::ALL.map(|sample| Framing::Pbb.around(sample)) {
        let mut wanted = frame.clone();
        act(&mut wanted, &Action::PopPbb).unwrap();
        if wanted.get(row.field).is_none() {
            bench.send(1, &frame.bytes()).is_only(2, &wanted.bytes());
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
