//! DSCP remarking (OpenFlow 1.3.5 §5.7.1, RFC 2597), of IPv4 and IPv6, untagged and behind VLAN tags.

use super::{DROP, band, only_meter, packets, remark};
use crate::harness::{Bench, Suite};
use openflow::MeterId;
use std::time::Instant;

/// AF11 to AF13: drop precedence low, medium, high.
const AF: [u8; 3] = [10, 12, 14];

/// The IPv4 header of a datagram without payload worth mentioning, with this traffic class; RFC 791.
fn ipv4(class: u8) -> Vec<u8> {
    let mut header = [0x45, class, 0, 40, 0, 1, 0, 0, 64, 253, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    let words = header.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    header[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    [&[0x08, 0x00][..], &header, &[7; 20]].concat()
}

/// An IPv6 header with this traffic class and a flow label; RFC 8200.
fn ipv6(class: u8) -> Vec<u8> {
    let first = 6_u32 << 28 | u32::from(class) << 20 | 0xabcde;
    let mut header = first.to_be_bytes().to_vec();
    header.extend([0, 20, 253, 64]);
    header.extend([0xfd; 32]);
    [&[0x86, 0xdd][..], &header, &[7; 20]].concat()
}

/// A frame with this behind its addresses.
fn frame(tags: &[u8], packet: &[u8]) -> Vec<u8> {
    let addresses = [2, 0, 0, 0, 0, 0xee, 2, 0, 0, 0, 0, 0xdd];
    let mut frame = [&addresses, tags, packet].concat();
    frame.resize(frame.len().max(60), 0);
    frame
}

/// Sends frames of one traffic class, of which a bucket of 2 remarks all but the first ones; returns the last that came out.
fn last(bench: &mut Bench, sent: &[u8]) -> Vec<u8> {
    let outcome = bench.send_all(1, &vec![sent.to_vec(); 8]);
    assert_eq!(outcome.frames.len(), 8);
    assert_eq!(outcome.frames[0].1, sent, "the burst passes as it is");
    outcome.frames[7].1.clone()
}

const TAGS: [(&str, &[u8]); 3] = [
    ("untagged", &[]),
    ("in_a_vlan", &[0x81, 0, 0x20, 7]),
    ("in_two_vlans", &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6]),
];

type Packet = fn(u8) -> Vec<u8>;

/// The cases.
pub fn cases(suite: &mut Suite) {
    let packets_of: [(&str, Packet); 2] = [("ipv4", ipv4), ("ipv6", ipv6)];
    for (version, packet) in packets_of {
        for (framing, tags) in TAGS {
            let name =
                format!("meters::a_remark_band_raises_the_drop_precedence_of_{version}_{framing}");
            suite.case(name, move |bench| {
                only_meter(bench, packets(), &[band(remark(1), 1, 2)]);
                // ECN is not DSCP: its bits stay.
                let sent = frame(tags, &packet(AF[0] << 2 | 0b10));
                assert_eq!(last(bench, &sent), frame(tags, &packet(AF[1] << 2 | 0b10)));
            });
        }
    }
    suite.case("meters::a_remark_raises_by_its_level_and_no_further_than_the_highest", |bench| {
        for (level, from, to) in [(2, 0, 2), (1, 1, 2), (2, 1, 2), (1, 2, 2), (9, 0, 2)] {
            only_meter(bench, packets(), &[band(remark(level), 1, 2)]);
            let sent = frame(&[], &ipv4(AF[from] << 2));
            let wanted = frame(&[], &ipv4(AF[to] << 2));
            assert_eq!(last(bench, &sent), wanted, "level {level} from {from}");
            bench.clear();
        }
    });
    suite.case("meters::a_remark_leaves_classes_without_a_drop_precedence_alone", |bench| {
        only_meter(bench, packets(), &[band(remark(1), 1, 2)]);
        // Default, expedited forwarding, a class selector.
        for dscp in [0, 46, 8] {
            let sent = frame(&[], &ipv4(dscp << 2));
            let outcome = bench.send_all(1, &vec![sent.clone(); 8]);
            assert!(outcome.frames.iter().all(|(_, frame)| *frame == sent), "DSCP {dscp}");
        }
    });
    suite.case("meters::of_two_bands_the_highest_rate_exceeded_decides", |bench| {
        let start = Instant::now();
        let bands = [band(remark(1), 1, 2), band(DROP, 2, 6)];
        only_meter(bench, packets(), &bands);
        let (low, medium) = (frame(&[], &ipv4(AF[0] << 2)), frame(&[], &ipv4(AF[1] << 2)));
        let outcome = bench.send_all(1, &vec![low.clone(); 20]);
        let of = |wanted: &[u8]| {
            outcome.frames.iter().filter(|(_, frame)| frame == wanted).count() as u64
        };
        let (kept, remarked) = (of(&low), of(&medium));
        super::assert_passed(kept, 2, 1.0, start);
        super::assert_passed(kept + remarked, 6, 2.0, start);
        let stats = bench.meter(MeterId(1));
        let counted: Vec<u64> = stats.bands.iter().map(|band| band.packets).collect();
        assert_eq!(counted, [remarked, 20 - kept - remarked]);
        assert_eq!(stats.input.packets, 20);
    });
}
