//! The tables and the traffic that the project's promises name.

use crate::ports::LEN;
use flow::{Action, FlowMod, Instructions, Output};
use wire::{Field, Key};

/// Flows where a case says "1M".
pub const MILLION: u64 = 1_000_000;
/// Stations of the MAC cases.
pub const STATIONS: u64 = 1000;
/// Entries of the routing case.
pub const PREFIXES: u64 = 10_000;
/// Masks of the attack, two entries each.
pub const MASKS: u64 = 506;

/// Scatters numbers over 64 bits (the finisher of splitmix64).
fn mix(n: u64) -> u64 {
    let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ n >> 31
}

fn put<const N: usize>(frame: &mut [u8; LEN], at: usize, bytes: [u8; N]) {
    frame[at..at + N].copy_from_slice(&bytes);
}

fn put_address(frame: &mut [u8; LEN], at: usize, station: u64) {
    let [_, _, address @ ..] = station.to_be_bytes();
    put(frame, at, address);
}

/// An entry: fields that must be full and equal, and what is done.
fn entry(fields: &[(Field, u128)], apply: Vec<Action>) -> FlowMod {
    let (mut key, mut mask) = (Key::default(), Key::default());
    for &(field, value) in fields {
        key.set(field, value);
        mask.set(field, field.full());
    }
    FlowMod {
        key,
        mask,
        instructions: Instructions { apply, ..Instructions::default() },
        ..FlowMod::default()
    }
}

pub fn output(port: u32) -> Action {
    Action::Output(Output::Port(port))
}

pub fn set(field: Field, value: u64) -> Action {
    Action::SetField { field, of: None, value: u128::from(value), mask: field.full() }
}

/// One entry for everything.
pub fn all(apply: Vec<Action>) -> Vec<FlowMod> {
    vec![entry(&[], apply)]
}

pub fn in_port(port: u32) -> Vec<FlowMod> {
    vec![entry(&[(Field::InPort, port.into())], vec![output(2)])]
}

pub fn ipv4() -> Vec<FlowMod> {
    vec![entry(&[(Field::EthType, 0x0800)], vec![output(2)])]
}

/// The frame's transport ports and source address name the flow.
pub fn five_tuple(flow: u64, frame: &mut [u8; LEN]) {
    put(frame, 34, (flow as u16).to_be_bytes());
    put(frame, 26, ((flow >> 16) as u32 | 0x0a00_0000).to_be_bytes());
}

/// A rule for each five-tuple.
pub fn five_tuples(flows: u64) -> Vec<FlowMod> {
    (0..flows)
        .map(|flow| {
            entry(
                &[
                    (Field::EthType, 0x0800),
                    (Field::IpProto, 17),
                    (Field::Ipv4Src, u128::from(flow >> 16 | 0x0a00_0000)),
                    (Field::Ipv4Dst, 0x0a00_0002),
                    (Field::TpSrc, u128::from(flow as u16)),
                    (Field::TpDst, 2),
                ],
                vec![output(2 + flow as u32 % 3)],
            )
        })
        .collect()
}

fn station(n: u64) -> u64 {
    0x0200_0000_0000 | n
}

/// A rule for each station.
pub fn stations() -> Vec<FlowMod> {
    (0..STATIONS)
        .map(|n| entry(&[(Field::EthDst, station(n).into())], vec![output(2 + n as u32 % 3)]))
        .collect()
}

/// From any station to any other.
pub fn between_stations(flow: u64, frame: &mut [u8; LEN]) {
    put_address(frame, 0, station(flow % STATIONS));
    put_address(frame, 6, station(flow / STATIONS));
}

/// Stations that were heard at ports 2, 3, 4, sent to by as many others.
pub fn to_heard(flow: u64, frame: &mut [u8; LEN]) {
    put_address(frame, 0, station(flow % STATIONS));
    put_address(frame, 6, station(STATIONS + flow / STATIONS));
}

/// Where each of them was heard.
pub fn heard() -> impl Iterator<Item = (u64, u32)> {
    (0..STATIONS).map(|n| (station(n), 2 + n as u32 % 3))
}

/// Lengths as in an Internet table: mostly /24, some shorter, a few longer.
fn length(n: u64) -> u32 {
    match mix(n) >> 32 & 0x7f {
        0..70 => 24,
        70..116 => 16 + mix(n) as u32 % 8,
        116..122 => 8 + mix(n) as u32 % 8,
        _ => 25 + mix(n) as u32 % 8,
    }
}

/// Routes to so many next hops: both addresses rewritten, TTL one less.
pub fn routes(hops: u64) -> Vec<FlowMod> {
    let route = |n: u64| {
        let hop = n % hops;
        let apply = vec![
            set(Field::EthDst, 0x0200_0000_1000 + hop),
            set(Field::EthSrc, 0x0200_0000_2000),
            Action::DecNwTtl,
            output(2 + hop as u32 % 3),
        ];
        let length = length(n);
        let mut rule = entry(&[(Field::EthType, 0x0800)], apply);
        rule.key.set(Field::Ipv4Dst, u128::from(prefix(n)));
        rule.mask.set(Field::Ipv4Dst, u128::from(u32::MAX << (32 - length)));
        rule.priority = 100 + length as u16;
        rule
    };
    (0..PREFIXES).map(route).collect()
}

fn prefix(n: u64) -> u32 {
    (mix(n) >> 16) as u32
}

/// To an address within one of the first 24 bits of a route.
pub fn routed(flow: u64, frame: &mut [u8; LEN]) {
    put(frame, 30, (prefix(flow % PREFIXES) ^ (flow / PREFIXES) as u32).to_be_bytes());
    put(frame, 34, (flow as u16).to_be_bytes());
}

const SECRET: (u32, u16) = (0xc0a8_1234, 0x1f90);

/// The tuple-space explosion: entries that leave a secret source address and port at every pair of bits.
pub fn leaving() -> Vec<FlowMod> {
    let leave = |n: u64| {
        let (address, port) = (n / 16 + 1, n % 16 + 1);
        [0, 1].map(|twin| {
            let mut rule = entry(
                &[
                    (Field::EthType, 0x0800),
                    (Field::IpProto, 17),
                    (Field::Ipv4Dst, 0x0a09_0000 | twin),
                ],
                vec![output(2 + twin as u32)],
            );
            rule.key.set(Field::Ipv4Src, u128::from(SECRET.0 ^ 1 << (32 - address)));
            rule.key.set(Field::TpDst, u128::from(SECRET.1 ^ 1 << (16 - port)));
            rule.mask.set(Field::Ipv4Src, u128::from(u32::MAX << (32 - address)));
            rule.mask.set(Field::TpDst, u128::from(u16::MAX << (16 - port)));
            rule.priority = 1 + (address + port) as u16;
            rule
        })
    };
    (0..MASKS).flat_map(leave).collect()
}

/// A flow that hits one of them, random below the bits that its mask looks at.
pub fn left(flow: u64, frame: &mut [u8; LEN]) {
    let (n, noise) = (flow / 2 % MASKS, mix(flow));
    let (address, port) = (n / 16 + 1, n % 16 + 1);
    let source = SECRET.0 ^ 1 << (32 - address) ^ (noise as u32 & ((1 << (32 - address)) - 1));
    let target = SECRET.1 ^ 1 << (16 - port) ^ ((noise >> 32) as u16 & ((1 << (16 - port)) - 1));
    put(frame, 26, source.to_be_bytes());
    put(frame, 30, (0x0a09_0000 | flow as u32 & 1).to_be_bytes());
    put(frame, 36, target.to_be_bytes());
}
