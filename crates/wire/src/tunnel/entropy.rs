//! A number for each inner flow, so that the network between tunnel ends can tell flows apart (RFC 7348 §5, source port).

use super::network;
use crate::parse::chunk;
use crate::{Field, Key, eth_type, ip, ip_proto};

/// Odd, its bits without a pattern (the golden ratio's).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Both halves of the product, so that every bit of `word` reaches every bit of the state.
fn mixed(state: u64, word: u64) -> u64 {
    let product = u128::from(state ^ word) * u128::from(SPREAD);
    (product >> 64) as u64 ^ product as u64
}

/// The same for all frames of a flow, in both directions alike only by chance. Fragments of a datagram have one, for their ports are not looked
/// at, and so have messages of ICMP, which has none.
pub fn entropy(head: &[u8]) -> u32 {
    let packet = network(head).and_then(|at| ip::packet(head, at));
    let Some(packet) = &packet else {
        return number(head.chunks(8).take(2).map(word));
    };
    let addresses = if packet.version == 4 { 12..20 } else { 8..40 };
    let bytes = head.get(packet.at + addresses.start..packet.at + addresses.end);
    let has_ports = !packet.is_fragment && !is_icmp(packet.proto);
    let ports = packet.l4.filter(|_| has_ports).and_then(|l4| chunk(head, l4));
    let ports = ports.map_or(0, |&ports| u32::from_be_bytes(ports));
    let addresses = bytes.unwrap_or_default().chunks_exact(8).map(word);
    number(addresses.chain([packet.proto.into(), ports.into()]))
}

/// The number of the frames of such a key: IPv4 or IPv6 with TCP, UDP or ICMP, no fragments.
pub fn entropy_of(key: &Key) -> u32 {
    let get = |field| key.get(field) as u64;
    let proto = get(Field::IpProto) as u8;
    let ports = if is_icmp(proto) { 0 } else { get(Field::TpSrc) << 16 | get(Field::TpDst) };
    let rest = [proto.into(), ports];
    if get(Field::EthType) as u16 != eth_type::IPV6 {
        let addresses = get(Field::Ipv4Src) << 32 | get(Field::Ipv4Dst);
        return number([addresses].into_iter().chain(rest));
    }
    let addresses = [Field::Ipv6Src, Field::Ipv6Dst].map(|field| key.get(field));
    let words = addresses.into_iter().flat_map(|wide| [(wide >> 64) as u64, wide as u64]);
    number(words.chain(rest))
}

fn is_icmp(proto: u8) -> bool {
    matches!(proto, ip_proto::ICMP | ip_proto::ICMPV6)
}

/// Up to eight bytes.
fn word(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

fn number(words: impl Iterator<Item = u64>) -> u32 {
    (words.fold(SPREAD, mixed) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{Frame, Ipv4, Ipv6, Tcp};
    use std::collections::HashMap;

    fn udp(port: u16, len: usize) -> Vec<u8> {
        let frame = Frame::ethernet([2; 6], [4; 6]).ipv4(Ipv4::default());
        frame.udp(port, 53).payload(&vec![7; len]).finish()
    }

    #[test]
    fn a_flow_has_one_number_and_flows_spread_over_all_remainders() {
        assert_eq!(entropy(&udp(1000, 20)), entropy(&udp(1000, 900)));
        let mut slots = HashMap::new();
        (0..3200).for_each(|port| *slots.entry(entropy(&udp(port, 20)) % 32).or_insert(0) += 1);
        let (least, most) = (slots.values().min().unwrap(), slots.values().max().unwrap());
        assert!(slots.len() == 32 && *least > 60 && *most < 145, "{least} to {most} of 100");
    }

    #[test]
    fn a_key_has_the_number_of_its_frames() {
        let of = |frame: Vec<u8>| {
            let (key, _) = crate::parse(&crate::Head::copy_of(&frame), 1);
            (entropy(&frame), entropy_of(&key))
        };
        let link = || Frame::ethernet([2; 6], [4; 6]).vlan(0x8100, 5);
        let (v4, v6) = (link().ipv4(Ipv4::default()), link().ipv6(Ipv6::default()));
        let frames = [
            v4.clone().udp(7, 9).finish(),
            v4.clone().tcp(Tcp::default()).finish(),
            v4.clone().icmp(8, 0).payload(&[1, 2, 3, 4]).finish(),
            v6.clone().udp(7, 9).finish(),
            v6.icmpv6(128, 0).payload(&[1, 2, 3, 4]).finish(),
        ];
        for (whole, of_key) in frames.map(of) {
            assert_eq!(whole, of_key);
        }
        let other = v4.icmp(8, 0).payload(&[9; 8]).finish();
        assert_eq!(of(other).0, of(link().ipv4(Ipv4::default()).icmp(8, 0).finish()).0);
    }

    #[test]
    fn fragments_of_a_datagram_have_one_number() {
        let fragment = |offset| {
            let header = Ipv4 { fragment: offset, ..Ipv4::default() };
            Frame::ethernet([2; 6], [4; 6]).ipv4(header).udp(offset, 2).payload(&[0; 8]).finish()
        };
        assert_eq!(entropy(&fragment(0x2000)), entropy(&fragment(0x0010)));
    }

    #[test]
    fn what_is_not_ip_has_the_number_of_its_addresses() {
        assert_eq!(entropy(&[1; 40]), entropy(&[1; 17]));
        assert_ne!(entropy(&[1; 40]), entropy(&[2; 40]));
        assert_eq!(entropy(&[]), entropy(&[]));
    }
}
