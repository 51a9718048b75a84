//! Random rules and frames, and what the worker makes of them: what every rung is compared with.

pub mod arrival;
pub mod play;
pub mod tunnel;

pub use play::{Left, pipeline, program, worker};

use flow::{Action, FlowMod, Instructions, Output, Transport};
use offload::Frame;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use wire::build::{Frame as Build, Ipv4, Ipv6, Tcp};
use wire::{Field, eth_type};

pub fn a_frame() -> impl Strategy<Value = Frame> {
    let tags = vec((select(vec![0x8100u16, 0x88a8]), select(vec![1u16, 2, 0x2001, 0x1002])), 0..3);
    let ip = (0u8..3, 0u8..3, 0u8..8, select(vec![0u8, 1, 2, 64]));
    (tags, 0u8..9, ip, (0u16..3, 0u16..3), any::<bool>(), 0usize..40).prop_map(
        |(tags, kind, (from, to, tos, ttl), (src, dst), partial, len)| {
            let mut frame = Build::ethernet([2, 0, 0, 0, 0, to], [2, 0, 0, 0, 0, from]);
            for (tpid, tci) in tags {
                frame = frame.vlan(tpid, tci);
            }
            let address = |at: u8| std::net::Ipv4Addr::new(10, 0, 0, at);
            let wide = |at: u8| std::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, at.into());
            let v4 = Ipv4 { src: address(from), dst: address(to), tos, ttl, ..Ipv4::default() };
            let v6 = Ipv6 {
                src: wide(from),
                dst: wide(to),
                hop_limit: ttl,
                traffic_class: tos,
                ..Ipv6::default()
            };
            let tcp = Tcp { src, dst, ..Tcp::default() };
            let frame = match kind {
                0 => frame.ipv4(v4).udp(src, dst),
                1 => frame.ipv4(v4).tcp(tcp),
                2 => frame.ipv4(v4).icmp(8, 0),
                3 => frame.ipv6(v6).tcp(tcp),
                4 => frame.ipv6(v6).udp(src, dst),
                5 => frame.ipv6(v6).icmpv6(128, 0),
                6 => frame.ipv4(Ipv4 { fragment: 0x2000, ..v4 }).udp(src, dst),
                7 => frame.ipv4(Ipv4 { options: &[1, 1, 1, 1], ..v4 }).tcp(tcp),
                _ => frame.ipv4(v4).sctp(src, dst),
            };
            let frame = frame.payload(&[len as u8; 40][..len]);
            let whole = || (frame.clone().finish(), None);
            let (bytes, partial) = match partial {
                true => frame
                    .clone()
                    .finish_partial()
                    .map_or_else(whole, |(bytes, sum)| (bytes, Some(sum))),
                false => whole(),
            };
            Frame { bytes, in_port: 1, segment: None, partial }
        },
    )
}

fn a_set() -> impl Strategy<Value = Action> {
    let fields = select(vec![
        (Field::EthDst, 48u32),
        (Field::EthSrc, 48),
        (Field::VlanVid, 12),
        (Field::VlanPcp, 3),
        (Field::IpDscp, 6),
        (Field::Ipv4Src, 32),
        (Field::Ipv4Dst, 32),
        (Field::Ipv6Src, 128),
        (Field::Ipv6Dst, 128),
        (Field::TpSrc, 16),
        (Field::TpDst, 16),
        (Field::IpEcn, 2),
    ]);
    let mask = prop_oneof![3 => Just(u128::MAX), 1 => any::<u128>()];
    (fields, prop_oneof![any::<u128>(), 0u128..3], mask, any::<bool>()).prop_map(
        |((field, bits), value, mask, tcp)| {
            let value = value & field.full() & u128::MAX >> (128 - bits);
            let value = if field == Field::VlanVid { value | 0x1000 } else { value };
            let of = (!Transport::with(field).is_empty()).then_some(if tcp {
                Transport::Tcp
            } else {
                Transport::Udp
            });
            Action::SetField {
                field,
                of,
                value,
                mask: if field == Field::VlanVid { field.full() } else { mask & field.full() },
            }
        },
    )
}

fn an_action() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => a_set(),
        1 => select(vec![0x8100, 0x88a8]).prop_map(Action::PushVlan),
        1 => Just(Action::EnsureVlan),
        2 => Just(Action::PopVlan),
        2 => Just(Action::DecNwTtl),
        1 => (0u32..4).prop_map(Action::SetQueue),
    ]
}

/// Rules of two tables: the second sees what the first did.
pub fn rules() -> impl Strategy<Value = Vec<FlowMod>> {
    (vec(an_action(), 0..5), vec(an_action(), 0..4), any::<bool>()).prop_map(
        |(mut first, mut second, one)| {
            let rule = |table, instructions| FlowMod {
                table: Some(table),
                instructions,
                may_miss_headers: true,
                ..FlowMod::default()
            };
            second.push(Action::Output(Output::Port(2)));
            if one {
                first.append(&mut second);
                return vec![rule(0, Instructions { apply: first, ..Instructions::default() })];
            }
            vec![
                rule(0, Instructions { apply: first, goto: Some(1), ..Instructions::default() }),
                rule(1, Instructions { apply: second, ..Instructions::default() }),
            ]
        },
    )
}

/// A frame as a hostile guest sends it: cut, lengthened, some bytes changed, its payload and sums anything. Its checksum is not partial.
pub fn a_broken_frame() -> impl Strategy<Value = Frame> {
    let whole = a_frame().prop_filter("no partial checksum", |frame| frame.partial.is_none());
    let changes = prop_oneof![3 => Just(Vec::new()), 1 => vec((0usize..80, any::<u8>()), 1..4)];
    let len = prop_oneof![4 => Just(0isize), 1 => -40isize..40];
    let segment = prop_oneof![4 => Just(None), 1 => select(vec![8u16, 1400, 1460]).prop_map(Some)];
    (whole, changes, len, any::<[u8; 2]>(), segment).prop_map(
        |(mut frame, changes, len, sum, segment)| {
            // The last bytes are the payload's: sums are about anything.
            let end = frame.bytes.len();
            frame.bytes[end - 2..].copy_from_slice(&sum);
            for (at, byte) in changes {
                frame.bytes.get_mut(at).into_iter().for_each(|old| *old = byte);
            }
            let len = end.saturating_add_signed(len).max(least(&frame.bytes));
            frame.bytes.resize(len, sum[0]);
            frame.segment = segment;
            frame
        },
    )
}

/// Shorter ones the kernel does not run programs on: without a whole network header.
fn least(bytes: &[u8]) -> usize {
    let word =
        |at: usize| bytes.get(at..at + 2).map_or(0, |two| u16::from_be_bytes([two[0], two[1]]));
    let tags = (12..).step_by(4).take_while(|&at| eth_type::is_vlan(word(at))).count();
    let at = 12 + 4 * tags;
    let header = match word(at) {
        eth_type::IPV4 => 20,
        eth_type::IPV6 => 40,
        _ => 0,
    };
    at + 2 + header
}
