//! A number for each inner flow, so that the network between tunnel ends can tell flows apart (RFC 7348 §5, source port).

use super::network;
use crate::ip;
use crate::parse::chunk;

/// Odd, its bits without a pattern (the golden ratio's).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Both halves of the product, so that every bit of `word` reaches every bit of the state.
fn mixed(state: u64, word: u64) -> u64 {
    let product = u128::from(state ^ word) * u128::from(SPREAD);
    (product >> 64) as u64 ^ product as u64
}

/// The same for all frames of a flow, in both directions alike only by chance. Fragments of a datagram have one, for their ports are not looked at.
pub fn entropy(head: &[u8]) -> u32 {
    let mut state = SPREAD;
    let mut add = |word: u64| state = mixed(state, word);
    let packet = network(head).and_then(|at| ip::packet(head, at));
    match &packet {
        Some(packet) => {
            let addresses = if packet.version == 4 { 12..20 } else { 8..40 };
            let bytes = head.get(packet.at + addresses.start..packet.at + addresses.end);
            for word in bytes.unwrap_or_default().chunks_exact(8) {
                add(word.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)));
            }
            add(u64::from(packet.proto));
            let ports = packet.l4.filter(|_| !packet.is_fragment).and_then(|l4| chunk(head, l4));
            add(ports.map_or(0, |&ports| u64::from(u32::from_be_bytes(ports))));
        }
        None => head.chunks(8).take(2).for_each(|word| {
            add(word.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)));
        }),
    }
    (state >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{Frame, Ipv4};
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
