//! Fields that are not in the frame: ports, metadata, tunnel id, tunnel addresses.

use crate::harness::{Bench, Suite, entry, output};
use crate::oracle::{Framing, Sample};
use openflow::{Action, FlowMod, Instruction, Match, Oxm, OxmField, TableId};

/// The cases.
pub fn cases(suite: &mut Suite) {
    for sample in Sample::IP {
        for framing in Framing::ALL {
            let bytes = framing.around(sample).bytes();
            let name = |what: &str| format!("match::{what}::{}::{}", sample.name(), framing.name());
            for field in [OxmField::InPort, OxmField::InPhyPort] {
                let frame = bytes.clone();
                let what = if field == OxmField::InPort { "in_port" } else { "in_phy_port" };
                suite.case(name(&format!("exact::{what}")), move |bench| {
                    ports(bench, field, &frame)
                });
            }
            let frame = bytes.clone();
            suite.case(name("absent::in_port"), move |bench| {
                bench.add(&entry(1, Match::default(), vec![output(4)]));
                for port in [1, 2, 3] {
                    bench.send(port, &frame).is_only(4, &frame);
                }
            });
            for (what, to, fields, hits) in ends() {
                let frame = bytes.clone();
                suite.case(name(what), move |bench| {
                    let set = vec![Action::SetField(to)];
                    through_two_tables(
                        bench,
                        vec![Instruction::ApplyActions(set)],
                        fields,
                        hits,
                        &frame,
                    );
                });
            }
            for (what, first) in [("metadata", metadata()), ("tunnel_id", tunnel_id())] {
                let field =
                    if what == "metadata" { OxmField::Metadata } else { OxmField::TunnelId };
                for (kind, fields, hits) in wide(field) {
                    let (frame, first) = (bytes.clone(), first.clone());
                    suite.case(name(&format!("{kind}::{what}")), move |bench| {
                        through_two_tables(bench, first, fields, hits, &frame);
                    });
                }
            }
        }
    }
}

/// suiro has no port on top of another, so the physical port is the port (table 11).
fn ports(bench: &mut Bench, field: OxmField, frame: &[u8]) {
    for port in [1, 3] {
        let mut fields = Match::default().with(OxmField::InPort, port);
        if field == OxmField::InPhyPort {
            fields = fields.with(field, port);
        }
        bench.add(&entry(1, fields, vec![output(4)]));
    }
    bench.send(1, frame).is_only(4, frame);
    bench.send(2, frame).is_nothing();
    bench.send(3, frame).is_only(4, frame);
}

/// A value of 64 bits with something in every byte.
const VALUE: u64 = 0x8123_4567_89ab_cdef;

fn metadata() -> Vec<Instruction> {
    vec![Instruction::WriteMetadata { value: VALUE, mask: u64::MAX }]
}

fn tunnel_id() -> Vec<Instruction> {
    let set = Action::SetField(Oxm::exact(OxmField::TunnelId, VALUE.into()));
    vec![Instruction::ApplyActions(vec![set])]
}

/// Matches on a field of [`VALUE`], and whether they select it.
fn wide(field: OxmField) -> Vec<(&'static str, Match, bool)> {
    let value = u128::from(VALUE);
    let mask = 0xff00_ff00_00ff_00ff;
    let exact = |value| Match::default().with(field, value);
    let masked = |value| Match::default().with_masked(field, value & mask, mask);
    vec![
        ("exact", exact(value), true),
        ("exact_other", exact(value ^ 1 << 63), false),
        ("masked", masked(value), true),
        ("masked_other", masked(value ^ 1), false),
        ("absent", Match::default(), true),
    ]
}

/// Where a set-field says that a frame shall go, a match on a tunnel's address, and whether it selects the frame.
fn ends() -> Vec<(&'static str, Oxm, Match, bool)> {
    let [v4, v6] = [0xc000_0202, 0x2001_0db8 << 96 | 2];
    let to_v4 = || Oxm::exact(OxmField::TunIpv4Dst, v4);
    let to_v6 = || Oxm::exact(OxmField::TunIpv6Dst, v6);
    let with = |field, value| Match::default().with(field, value);
    vec![
        ("exact::tun_dst", to_v4(), with(OxmField::TunIpv4Dst, v4), true),
        ("exact_other::tun_dst", to_v4(), with(OxmField::TunIpv4Dst, v4 + 1), false),
        ("exact::tun_ipv6_dst", to_v6(), with(OxmField::TunIpv6Dst, v6), true),
        ("exact_other::tun_ipv6_dst", to_v6(), with(OxmField::TunIpv4Dst, v4), false),
        ("absent::tun_dst", to_v6(), Match::default(), true),
        // No frame here came by a tunnel.
        ("exact::tun_src", to_v4(), with(OxmField::TunIpv4Src, 0), true),
        ("exact_other::tun_src", to_v4(), with(OxmField::TunIpv4Src, v4), false),
        ("exact::tun_ipv6_src", to_v6(), with(OxmField::TunIpv6Src, v6), false),
    ]
}

fn through_two_tables(
    bench: &mut Bench,
    mut first: Vec<Instruction>,
    fields: Match,
    hits: bool,
    frame: &[u8],
) {
    first.push(Instruction::GotoTable(TableId(1)));
    bench.add(&FlowMod { priority: 1, instructions: first, ..FlowMod::default() });
    bench.add(&FlowMod { table: TableId(1), ..entry(1, fields, vec![output(2)]) });
    let outcome = bench.send(1, frame);
    if hits { outcome.is_only(2, frame) } else { outcome.is_nothing() }
}
