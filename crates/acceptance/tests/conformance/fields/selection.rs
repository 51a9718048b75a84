//! Fields that lie in the frame: exact, masked, left out, and on frames without their header.

use super::rows::{ROWS, Row, needs};
use crate::harness::{Bench, Suite, entry, output};
use crate::oracle::{Extension, Frame, Framing, Payload, Sample};
use openflow::{Match, OxmField};

/// The cases.
pub fn cases(suite: &mut Suite) {
    for row in ROWS {
        for (sample, framing, frame) in row.frames() {
            let name = |kind| {
                format!("match::{kind}::{}::{}::{}", row.name, sample.name(), framing.name())
            };
            let of = frame.clone();
            suite.case(name("exact"), move |bench| exact(bench, row, &of));
            if row.maskable {
                let of = frame.clone();
                suite.case(name("masked"), move |bench| masked(bench, row, &of));
            }
            suite.case(name("absent"), move |bench| absent(bench, row, &frame));
        }
        for sample in Sample::ALL {
            header_missing(suite, row, sample);
        }
    }
    vlan(suite);
    extension_headers(suite);
}

/// Exactly `hits` are selected by the match, of both lists.
fn selects(bench: &mut Bench, fields: Match, hits: &[Frame], misses: &[Frame]) {
    bench.add(&entry(1, fields, vec![output(2)]));
    for hit in hits {
        let bytes = hit.bytes();
        bench.send(1, &bytes).is_only(2, &bytes);
    }
    for miss in misses {
        bench.send(1, &miss.bytes()).is_nothing();
    }
}

fn exact(bench: &mut Bench, row: Row, frame: &Frame) {
    let value = frame.get(row.field).unwrap();
    let fields = needs(row.field, frame).with(row.field, value);
    let misses = [row.flipped(value, row.full()), row.flipped(value, 1)];
    let misses = misses.map(|value| frame.with(row.field, value));
    selects(bench, fields, std::slice::from_ref(frame), &misses);
}

fn masked(bench: &mut Bench, row: Row, frame: &Frame) {
    let (value, mask) = (frame.get(row.field).unwrap(), row.some_bits());
    let fields = needs(row.field, frame).with_masked(row.field, value & mask, mask);
    let hit = frame.with(row.field, row.flipped(value, !mask));
    let lowest = mask & mask.wrapping_neg();
    let misses = [mask, lowest].map(|bits| frame.with(row.field, row.flipped(value, bits)));
    selects(bench, fields, &[frame.clone(), hit], &misses);
}

/// A field that is not named is a wildcard: every value of it is selected.
fn absent(bench: &mut Bench, row: Row, frame: &Frame) {
    let value = frame.get(row.field).unwrap();
    let other = frame.with(row.field, row.flipped(value, row.full()));
    selects(bench, needs(row.field, frame), &[frame.clone(), other], &[]);
}

/// A frame without the field's header is not selected, whatever the value.
fn header_missing(suite: &mut Suite, row: Row, sample: Sample) {
    let Some((_, _, with)) = row.frames().next() else { return };
    for framing in Framing::ALL {
        let without = framing.around(sample);
        if without.get(row.field).is_some() || !is_worth(row, sample, framing) {
            continue;
        }
        let name = format!("match::no_header::{}::{}::{}", row.name, sample.name(), framing.name());
        let with = with.clone();
        suite.case(name, move |bench| {
            let value = with.get(row.field).unwrap();
            let fields = needs(row.field, &with).with(row.field, value);
            selects(bench, fields, &[with], &[without]);
        });
    }
}

/// One sample for each header that may stand in the place of the field's.
fn is_worth(row: Row, sample: Sample, framing: Framing) -> bool {
    use Sample::{Arp, Ipv4Icmp, Ipv4Tcp, Ipv4Udp, Ipv6Icmp, Ipv6Solicit, Ipv6Udp};
    let samples = [Arp, Ipv4Tcp, Ipv4Udp, Ipv4Icmp, Ipv6Udp, Ipv6Icmp, Ipv6Solicit];
    let of_tags = matches!(row.field, OxmField::VlanVid | OxmField::VlanPcp);
    let framings = [Framing::Untagged, Framing::Mpls, Framing::Pbb];
    framings.contains(&framing)
        && samples.contains(&sample)
        && (!of_tags || Sample::IP.contains(&sample))
}

/// Table 13: the four things that a match can say of tags.
fn vlan(suite: &mut Suite) {
    let framings = [Framing::Untagged, Framing::Vlan, Framing::Qinq];
    for sample in Sample::IP {
        let frames = framings.map(|framing| framing.around(sample));
        let [untagged, vlan, qinq] = frames.clone();
        suite.case(format!("match::vlan_none::{}", sample.name()), move |bench| {
            let none = Match::default().with(OxmField::VlanVid, 0);
            selects(bench, none, &[untagged], &[vlan, qinq]);
        });
        let [untagged, vlan, qinq] = frames.clone();
        suite.case(format!("match::vlan_any::{}", sample.name()), move |bench| {
            let any = Match::default().with_masked(OxmField::VlanVid, 0x1000, 0x1000);
            let priority_tagged = vlan.with(OxmField::VlanVid, 0x1000);
            selects(bench, any, &[vlan, qinq, priority_tagged], &[untagged]);
        });
        let [untagged, vlan, _] = frames;
        suite.case(format!("match::vlan_priority_tag::{}", sample.name()), move |bench| {
            let zero = Match::default().with(OxmField::VlanVid, 0x1000);
            let priority_tagged = vlan.with(OxmField::VlanVid, 0x1000);
            selects(bench, zero, &[priority_tagged], &[untagged, vlan]);
        });
    }
}

/// `OFPIEH_*` (§7.2.3.8): a bit for each extension header that is there.
const NONEXT: u128 = 1 << 0;
const ESP: u128 = 1 << 1;
const AUTH: u128 = 1 << 2;
const DEST: u128 = 1 << 3;
const FRAG: u128 = 1 << 4;
const ROUTER: u128 = 1 << 5;
const HOP: u128 = 1 << 6;
const UNREP: u128 = 1 << 7;
const UNSEQ: u128 = 1 << 8;

fn extension_headers(suite: &mut Suite) {
    let padding = vec![1, 4, 0, 0, 0, 0];
    let header = move |number| Extension(number, padding.clone());
    let routing = Extension(43, vec![253, 0, 0, 0, 0, 0]); // experimental type, no segment left
    let auth = Extension(51, vec![0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0]);
    let chains: [(&str, u128, Vec<Extension>); 10] = [
        ("none", 0, vec![]),
        ("hop_by_hop", HOP, vec![header(0)]),
        ("destination", DEST, vec![header(60)]),
        ("routing", ROUTER, vec![routing.clone()]),
        ("authentication", AUTH, vec![auth.clone()]),
        (
            "in_order",
            HOP | DEST | ROUTER | AUTH,
            vec![header(0), header(60), routing.clone(), auth.clone()],
        ),
        ("destination_twice", DEST | ROUTER, vec![header(60), routing.clone(), header(60)]),
        ("out_of_order", ROUTER | AUTH | UNSEQ, vec![auth.clone(), routing.clone()]),
        // `OFPIEH_HOP` means the first header of the packet.
        ("hop_by_hop_later", DEST | UNSEQ, vec![header(60), header(0)]),
        ("repeated", ROUTER | UNREP, vec![routing.clone(), routing]),
    ];
    for framing in [Framing::Untagged, Framing::Vlan, Framing::Qinq] {
        for (name, bits, chain) in chains.clone() {
            let mut frame = framing.around(Sample::Ipv6Tcp);
            let Payload::Ip(ip) = &mut frame.payload else { unreachable!("an IPv6 sample") };
            ip.extensions = chain;
            let case =
                move |kind| format!("match::{kind}::ipv6_exthdr::{name}::{}", framing.name());
            suite.case(case("exact"), {
                let frame = frame.clone();
                move |bench| {
                    let fields = needs(OxmField::Ipv6Exthdr, &frame);
                    selects(bench, fields.with(OxmField::Ipv6Exthdr, bits), &[frame], &[]);
                }
            });
            suite.case(case("masked"), move |bench| {
                let fields = needs(OxmField::Ipv6Exthdr, &frame);
                // Each header's own bit says whether it is there. That the order is right, or a header twice, is said of a whole chain.
                for bit in [NONEXT, ESP, AUTH, DEST, FRAG, ROUTER, HOP] {
                    let there = fields.clone().with_masked(OxmField::Ipv6Exthdr, bit, bit);
                    let gone = fields.clone().with_masked(OxmField::Ipv6Exthdr, 0, bit);
                    let (yes, no) = if bits & bit != 0 { (there, gone) } else { (gone, there) };
                    bench.add(&entry(1, yes, vec![output(2)]));
                    bench.add(&entry(1, no, vec![output(3)]));
                    let bytes = frame.bytes();
                    bench.send(1, &bytes).is_only(2, &bytes);
                    bench.clear();
                }
            });
        }
    }
}
