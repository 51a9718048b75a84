//! The rule sets and the traffic of issue M3.

use super::rng::{Rng, mix};
use crate::{Action, FlowMod, Instructions, Output};
use wire::{Field, Key};

/// Flows where a case says "1M".
const MILLION: usize = 1_000_000;
/// Distinct masks of the attack cases, two entries each.
const MASKS: usize = 506;

/// A rule set with its traffic.
pub struct Case {
    /// As printed.
    pub name: &'static str,
    /// Makes both.
    pub(super) build: fn(&mut Rng) -> (Vec<FlowMod>, Traffic),
}

/// Flow number → key.
pub struct Traffic {
    pub(super) flows: usize,
    /// Keys that are sent once beforehand.
    pub(super) before: Vec<Key>,
    pub(super) key: Box<dyn Fn(u64) -> Key>,
}

impl Traffic {
    fn of(flows: usize, key: impl Fn(u64) -> Key + 'static) -> Self {
        Self { flows, before: Vec::new(), key: Box::new(key) }
    }
}

/// Every case, cheapest first.
pub const CASES: &[Case] = &[
    Case { name: "1 rule, 1 flow", build: |_| five_tuples(1) },
    Case { name: "1k rules, 1k flows", build: |_| five_tuples(1000) },
    Case { name: "100k rules, 100k flows", build: |_| five_tuples(100_000) },
    Case { name: "1M rules, 1M flows", build: |_| five_tuples(MILLION) },
    Case { name: "1 wildcard rule, 1M flows", build: |_| wildcard() },
    Case { name: "1k MACs, 1M flows", build: |_| macs() },
    Case { name: "1k learned MACs (NORMAL), 1M flows", build: |_| normal() },
    Case { name: "10k prefixes, rewrite, TTL, 1M flows", build: prefixes },
    Case { name: "506 prefix masks, 1M attack flows", build: prefix_attack },
    Case { name: "506 other masks, 1M attack flows", build: other_attack },
];

/// An Ethernet, IPv4, UDP frame of 64 bytes.
pub(super) fn frame() -> Vec<u8> {
    let mut frame = vec![0x02, 0, 0, 0, 0, 1, 0x02, 0, 0, 0, 0, 2, 0x08, 0x00];
    frame.extend([0x45, 0, 0, 50, 0, 0, 0, 0, 64, 17, 0x66, 0xb8, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([0x04, 0, 0x08, 0, 0, 30, 0, 0]);
    frame.resize(64, 0);
    frame
}

fn output(port: u32) -> Instructions {
    Instructions { apply: vec![Action::Output(Output::Port(port))], ..Instructions::default() }
}

fn full(fields: &[Field]) -> Key {
    let mut mask = Key::default();
    fields.iter().for_each(|&field| mask.set(field, field.full()));
    mask
}

fn udp(flow: u64) -> Key {
    let bits = mix(flow + 1);
    let mut key = full(&[]);
    key.set(Field::InPort, 1);
    key.set(Field::EthDst, 0x0200_0000_0001);
    key.set(Field::EthSrc, 0x0200_0000_0002);
    key.set(Field::EthType, 0x0800);
    key.set(Field::IpProto, 17);
    key.set(Field::Ipv4Src, u128::from(0x0a00_0000 | flow as u32 & 0x00ff_ffff));
    key.set(Field::Ipv4Dst, u128::from(bits as u32));
    key.set(Field::TpSrc, u128::from(bits >> 48));
    key.set(Field::TpDst, u128::from(bits >> 32 & 0xffff));
    key
}

fn five_tuples(count: usize) -> (Vec<FlowMod>, Traffic) {
    use Field::{EthType, IpProto, Ipv4Dst, Ipv4Src, TpDst, TpSrc};
    let mask = full(&[EthType, IpProto, Ipv4Src, Ipv4Dst, TpSrc, TpDst]);
    let rule = |flow| FlowMod {
        key: udp(flow),
        mask,
        instructions: output(2 + flow as u32 % 3),
        ..FlowMod::default()
    };
    ((0..count as u64).map(rule).collect(), Traffic::of(count, udp))
}

fn wildcard() -> (Vec<FlowMod>, Traffic) {
    let rule = FlowMod {
        key: udp(0),
        mask: full(&[Field::EthType]),
        instructions: output(2),
        ..FlowMod::default()
    };
    (vec![rule], Traffic::of(MILLION, udp))
}

fn station(flow: u64) -> u128 {
    u128::from(0x0200_0000_0000 | mix(flow % 1000) & 0xff_ffff_ffff)
}

fn to_station(flow: u64) -> Key {
    let mut key = udp(flow);
    key.set(Field::EthDst, station(flow));
    key.set(Field::EthSrc, station(flow / 1000));
    key
}

fn macs() -> (Vec<FlowMod>, Traffic) {
    let mask = full(&[Field::EthDst]);
    let rule = |flow| FlowMod {
        key: to_station(flow),
        mask,
        instructions: output(2 + flow as u32 % 3),
        ..FlowMod::default()
    };
    ((0..1000).map(rule).collect(), Traffic::of(MILLION, to_station))
}

/// Half of the stations send from port 1 to the other half, which have been heard behind the other ports.
fn normal() -> (Vec<FlowMod>, Traffic) {
    let instructions =
        Instructions { apply: vec![Action::Output(Output::Normal)], ..Instructions::default() };
    let heard = |target: u64| {
        let mut key = udp(target);
        key.set(Field::InPort, u128::from(2 + target % 3));
        key.set(Field::EthSrc, station(500 + target));
        key.set(Field::EthDst, station(target));
        key
    };
    let key = |flow: u64| {
        let mut key = udp(flow);
        key.set(Field::EthSrc, station(flow / 500 % 500));
        key.set(Field::EthDst, station(500 + flow % 500));
        key
    };
    let before = (0..500).map(heard).collect();
    (
        vec![FlowMod { instructions, ..FlowMod::default() }],
        Traffic { flows: MILLION, before, key: Box::new(key) },
    )
}

/// Lengths as in an Internet table: mostly /24, some shorter, a few longer.
fn prefix_length(rng: &mut Rng) -> u32 {
    match rng.below(100) {
        0..55 => 24,
        55..90 => 16 + rng.below(8) as u32,
        90..95 => 8 + rng.below(8) as u32,
        _ => 25 + rng.below(8) as u32,
    }
}

fn prefixes(rng: &mut Rng) -> (Vec<FlowMod>, Traffic) {
    let all: Vec<(u32, u32)> =
        (0..10_000).map(|_| (rng.next() as u32, prefix_length(rng))).collect();
    let rule = |(n, &(address, length)): (usize, &(u32, u32))| {
        let mut key = udp(0);
        key.set(Field::Ipv4Dst, u128::from(address));
        let mut mask = full(&[Field::EthType]);
        mask.set(Field::Ipv4Dst, u128::from(u32::MAX << (32 - length)));
        FlowMod {
            key,
            mask,
            priority: 100 + length as u16,
            instructions: route(n as u32 % 64),
            ..FlowMod::default()
        }
    };
    let rules = all.iter().enumerate().map(rule).collect();
    let key = move |flow: u64| {
        let mut key = udp(flow);
        let (address, length) = all[(mix(flow) % all.len() as u64) as usize];
        key.set(
            Field::Ipv4Dst,
            u128::from(
                address ^ (mix(flow ^ 77) as u32 & u32::MAX.checked_shr(length).unwrap_or(0)),
            ),
        );
        key
    };
    (rules, Traffic::of(MILLION, key))
}

fn route(hop: u32) -> Instructions {
    let set = |field: Field, value: u64| Action::SetField {
        field,
        of: None,
        value: u128::from(value),
        mask: field.full(),
    };
    let apply = vec![
        set(Field::EthDst, 0x0200_0000_1000 + u64::from(hop)),
        set(Field::EthSrc, 0x0200_0000_2000),
        Action::DecNwTtl,
        Action::Output(Output::Port(2 + hop % 3)),
    ];
    Instructions { apply, ..Instructions::default() }
}

/// The tuple-space explosion: entries that leave a secret source address and port at every pair of bits.
fn prefix_attack(rng: &mut Rng) -> (Vec<FlowMod>, Traffic) {
    let pairs =
        (1..=32_u32).flat_map(|address| (1..=16_u32).map(move |port| (address, port))).take(MASKS);
    let rules: Vec<FlowMod> =
        pairs.flat_map(|(address, port)| [0, 1].map(|twin| leaving(address, port, twin))).collect();
    (rules.clone(), attack(rules, rng))
}

/// An entry for what agrees with the secret up to bit `address` and `port`, and differs there.
fn leaving(address: u32, port: u32, twin: u32) -> FlowMod {
    let mut mask = full(&[Field::EthType, Field::IpProto, Field::Ipv4Dst]);
    mask.set(Field::Ipv4Src, u128::from(u32::MAX << (32 - address)));
    mask.set(Field::TpDst, u128::from(u16::MAX << (16 - port)));
    let mut key = udp(0);
    key.set(Field::Ipv4Dst, u128::from(0x0a09_0000 | twin));
    key.set(Field::Ipv4Src, u128::from(0xc0a8_1234_u32 ^ 1 << (32 - address)));
    key.set(Field::TpDst, u128::from(0x1f90_u16 ^ 1_u16 << (16 - port)));
    FlowMod {
        key,
        mask,
        priority: 1 + (address + port) as u16,
        instructions: output(2 + twin),
        ..FlowMod::default()
    }
}

/// Masks of scattered bits.
fn other_attack(rng: &mut Rng) -> (Vec<FlowMod>, Traffic) {
    let mut rules = Vec::new();
    for n in 0..MASKS {
        let mut mask = full(&[Field::EthType, Field::IpProto]);
        let scattered = |rng: &mut Rng| rng.next() & rng.next();
        mask.set(Field::Ipv4Src, u128::from(scattered(rng) as u32));
        mask.set(Field::Ipv4Dst, u128::from(scattered(rng) as u32));
        mask.set(Field::TpDst, u128::from(scattered(rng) as u16));
        for _ in 0..2 {
            let key = udp(rng.below(1 << 24));
            rules.push(FlowMod {
                key,
                mask,
                priority: n as u16,
                instructions: output(2),
                ..FlowMod::default()
            });
        }
    }
    (rules.clone(), attack(rules, rng))
}

/// Flows that each hit some entry and are random elsewhere.
fn attack(rules: Vec<FlowMod>, _: &mut Rng) -> Traffic {
    let key = move |flow: u64| {
        let rule = &rules[(mix(flow) % rules.len() as u64) as usize];
        let noise = udp(mix(flow ^ 0xabcd) >> 8);
        Key(std::array::from_fn(|i| rule.key.0[i] & rule.mask.0[i] | noise.0[i] & !rule.mask.0[i]))
    };
    Traffic::of(MILLION, key)
}
