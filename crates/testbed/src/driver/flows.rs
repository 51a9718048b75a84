//! Which flow each packet belongs to, and what its addresses are.
//!
//! Flows come in random order from a table, so that a switch's caches see what an attacker or a busy host would send. Both
//! directions use one table from different places. All of it is a function of the packet's number, so that a receiver can tell
//! what it must get.

use std::sync::Arc;

/// Slots of the table for few flows; more than the rings hold.
const SHORT: usize = 4096;

/// MAC addresses on each side in [`Pattern::Macs`].
pub const MACS: u32 = 1000;

/// Prefixes of 24 bits on each side in [`Pattern::Prefixes`].
pub const PREFIXES: u32 = 10_000;

/// Which fields of a packet depend on its flow.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// Source address and port; the destination is one address of the other side.
    Addresses,
    /// As many source MAC addresses, each talking to one of the other side; and the source port.
    Macs,
    /// A destination in each of many prefixes, and the source port.
    Prefixes,
    /// What one rule of many matches, and noise elsewhere.
    Masks(Arc<[MaskRule]>),
}

/// Bits that a rule compares, and their values, for a packet that side 0 sends; side 1 differs in the first byte of both addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MaskRule {
    /// IPv4 source, value and mask.
    pub source: (u32, u32),
    /// IPv4 destination, value and mask.
    pub destination: (u32, u32),
}

/// Fields of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fields {
    /// Last two bytes of the MAC addresses.
    pub destination_mac: u16,
    /// Likewise.
    pub source_mac: u16,
    /// IPv4 source.
    pub source: u32,
    /// IPv4 destination.
    pub destination: u32,
    /// UDP source port.
    pub source_port: u16,
    /// UDP destination port.
    pub destination_port: u16,
}

/// The first byte of the addresses of a side: 10 or 20.
pub const fn network(side: u8) -> u32 {
    (10 + 10 * side as u32) << 24
}

impl Fields {
    /// Of a flow of packets that `side` sends.
    #[inline(always)]
    pub fn of(pattern: &Pattern, side: u8, flow: u32) -> Self {
        let (own, other) = (network(side), network(1 - side));
        let fields = Self {
            destination_mac: 1,
            source_mac: 1,
            source: own | 1,
            destination: other | 1,
            source_port: (1024 + (flow >> 16)) as u16,
            destination_port: 9,
        };
        match pattern {
            Pattern::Addresses => Self { source: own | (flow & 0xffff), ..fields },
            Pattern::Macs => {
                let station = flow % MACS;
                let peer = (station * 7 + 3) % MACS;
                let source_port = (1024 + flow / MACS) as u16;
                Self {
                    source_mac: station as u16,
                    destination_mac: peer as u16,
                    source: own | station << 8 | 1,
                    destination: other | peer << 8 | 1,
                    source_port,
                    ..fields
                }
            }
            Pattern::Prefixes => {
                let (prefix, host) = (flow % PREFIXES, flow / PREFIXES);
                Self { destination: other | prefix << 8 | host, ..fields }
            }
            Pattern::Masks(rules) => masked(rules, side, flow, fields),
        }
    }
}

fn masked(rules: &[MaskRule], side: u8, flow: u32, fields: Fields) -> Fields {
    let rule = &rules[flow as usize % rules.len()];
    // Knuth's multiplicative hash: the noise of neighbouring flows has nothing in common.
    let noise = flow.wrapping_mul(0x9e37_79b1);
    let within = |(value, mask): (u32, u32), noise: u32| value & mask | noise & !mask & 0x00ff_ffff;
    Fields {
        source: network(side) | within(rule.source, noise >> 8),
        destination: network(1 - side) | within(rule.destination, noise.rotate_left(13)),
        source_port: flow as u16,
        destination_port: (9 + (flow >> 16)) as u16,
        ..fields
    }
}

/// `count` rules of as many masks, all prefixes, of which a packet matches one: each leaves a secret pair of addresses at another
/// pair of bits (tuple-space explosion).
pub fn prefix_rules(count: usize) -> Arc<[MaskRule]> {
    const SECRET: u32 = 0x004d_1234;
    let leave = |bits: u32| {
        let mask = (u32::MAX << (24 - bits)) & 0x00ff_ffff;
        ((SECRET ^ 1 << (24 - bits)) & mask, mask)
    };
    let pairs = (1..=22).flat_map(|source| (1..=23).map(move |destination| (source, destination)));
    pairs
        .take(count)
        .map(|(source, destination)| MaskRule {
            source: leave(source),
            destination: leave(destination),
        })
        .collect()
}

/// `count` rules of as many masks of scattered bits, in the two fields that OpenFlow 1.3 lets one mask so.
pub fn scattered_rules(count: usize) -> Arc<[MaskRule]> {
    let mut random = Random(0x5eed);
    let mut half = || random.draw() & random.draw();
    (0..count)
        .map(|_| {
            let source = (half() as u32 & 0x00ff_ffff, half() as u32 & 0x00ff_ffff);
            let destination = (half() as u32 & 0x00ff_ffff, half() as u32 & 0x00ff_ffff);
            let only = |(value, mask)| (value & mask, mask);
            MaskRule { source: only(source), destination: only(destination) }
        })
        .collect()
}

/// xorshift64*: the order needs to be unpredictable for a cache, not for a person.
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// One below `limit`.
    pub fn below(&mut self, limit: u32) -> u32 {
        (((self.draw() >> 32) * u64::from(limit)) >> 32) as u32
    }
}

/// `count` flows in random order; each once if there are many. The length is a power of two.
pub fn order(count: u32) -> Arc<[u32]> {
    let mut random = Random(u64::from(count) | 1 << 40);
    let length = (count as usize).max(SHORT).next_power_of_two();
    let mut table: Vec<u32> = (0..length)
        .map(|n| if n < count as usize { n as u32 } else { random.below(count) })
        .collect();
    for last in (1..table.len()).rev() {
        table.swap(last, random.below(last as u32 + 1) as usize);
    }
    table.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_flow_is_in_the_table_and_no_other() {
        for count in [1, 10, 1000, 5000] {
            let table = order(count);
            assert!(table.len().is_power_of_two());
            let seen: HashSet<u32> = table.iter().copied().collect();
            assert_eq!(seen.len(), count as usize);
            assert!(seen.iter().all(|&flow| flow < count));
        }
    }

    #[test]
    fn flows_of_a_pattern_differ() {
        let patterns = [
            Pattern::Addresses,
            Pattern::Macs,
            Pattern::Prefixes,
            Pattern::Masks(prefix_rules(506)),
            Pattern::Masks(scattered_rules(506)),
        ];
        for pattern in patterns {
            let of = |flow| format!("{:?}", Fields::of(&pattern, 0, flow));
            let seen: HashSet<String> = (0..50_000).map(|flow| of(flow * 20)).collect();
            assert_eq!(seen.len(), 50_000, "{pattern:?}");
        }
    }

    #[test]
    fn a_packet_matches_one_prefix_rule_and_there_are_as_many_masks_as_rules() {
        let rules = prefix_rules(506);
        let masks: HashSet<(u32, u32)> =
            rules.iter().map(|rule| (rule.source.1, rule.destination.1)).collect();
        assert_eq!(masks.len(), 506);
        for flow in 0..2000 {
            let fields = Fields::of(&Pattern::Masks(rules.clone()), 1, flow);
            let hits = |rule: &&MaskRule| {
                fields.source & rule.source.1 == rule.source.0
                    && fields.destination & rule.destination.1 == rule.destination.0
            };
            assert_eq!(rules.iter().filter(hits).count(), 1);
        }
    }
}
