//! A small world of frames and rules, so that they meet.

use super::NOW;
use crate::action::{Action, Instructions, Output, PortNo, Transport};
use crate::config::{FragMode, Limits, Miss, SwitchConfig};
use crate::flow_mod::FlowMod;
use crate::group::{Bucket, GroupKind, GroupMod};
use crate::meter::{Band, BandKind, MeterConfig, MeterMod, MeterUnit};
use crate::{Pipeline, PortState, Serials};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::fmt::{self, Debug, Formatter};
use std::net::Ipv4Addr;
use wire::build::{Arp, Frame, Ipv4, Ipv6, Tcp};
use wire::{Field, Key};

/// Tables of the pipelines.
const TABLES: u8 = 4;
/// Stations.
const MACS: [u64; 5] = [2, 4, 6, 0xffff_ffff_ffff, 0x0180_c200_000e];

/// A frame and the port that it comes in by.
pub type Arrival = (Vec<u8>, PortNo);

fn mac(at: usize) -> [u8; 6] {
    let [_, _, mac @ ..] = MACS[at].to_be_bytes();
    mac
}

fn ip(at: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, at & 1, at)
}

pub fn an_arrival() -> impl Strategy<Value = Arrival> {
    (a_frame(), prop_oneof![6 => 1u32..=3, 1 => 4u32..=9])
}

fn a_frame() -> impl Strategy<Value = Vec<u8>> {
    let link = (0usize..5, 0usize..3, vec((0u16..3, 0u16..2), 0..3));
    (link, 0u8..9, (0u8..4, 0u8..4, 0u16..3, 0u16..3), 0u8..4).prop_map(
        |((dst, src, tags), kind, (from, to, tp_src, tp_dst), tos)| {
            let mut frame = Frame::ethernet(mac(dst), mac(src));
            for (vid, pcp) in tags {
                frame = frame.vlan(0x8100, pcp << 13 | vid);
            }
            if kind == 6 || kind == 7 {
                frame = frame.mpls(16 + u32::from(to), 1, 64);
            }
            let fragment = if kind == 4 { 0x2000 } else { u16::from(kind == 5) * 7 };
            let v4 =
                Ipv4 { src: ip(from), dst: ip(to), tos: tos << 3, fragment, ..Ipv4::default() };
            match kind {
                0 | 7 => frame.ipv4(v4).udp(tp_src, tp_dst),
                1 | 4 | 5 => frame.ipv4(v4).tcp(Tcp { src: tp_src, dst: tp_dst, ..Tcp::default() }),
                2 => frame.ipv4(v4).icmp(tp_src as u8, tp_dst as u8),
                3 => {
                    frame.arp(Arp { op: 1, sha: mac(src), spa: ip(from), tha: mac(0), tpa: ip(to) })
                }
                6 => frame.ipv6(Ipv6::default()).udp(tp_src, tp_dst),
                _ => frame.ipv6(Ipv6::default()).icmpv6(128, 0),
            }
            .payload(b"suiro")
            .finish()
        },
    )
}

/// A field with a value that frames have.
fn a_value() -> impl Strategy<Value = (Field, u128)> {
    let address = |at: u8| u128::from(u32::from(ip(at)));
    prop_oneof![
        (Just(Field::InPort), 1u128..=3),
        (Just(Field::EthDst), select(MACS.to_vec()).prop_map(u128::from)),
        (Just(Field::EthSrc), select(MACS[..3].to_vec()).prop_map(u128::from)),
        (Just(Field::EthType), select(vec![0x0800, 0x0806, 0x8847, 0x86dd])),
        (Just(Field::VlanVid), select(vec![0, 0x1000, 0x1001, 0x1002])),
        (Just(Field::VlanPcp), 0u128..2),
        (Just(Field::IpProto), select(vec![6, 17, 1])),
        (Just(Field::IpDscp), 0u128..8),
        (Just(Field::IpFrag), 0u128..4),
        (Just(Field::Ipv4Src), (0u8..4).prop_map(address)),
        (Just(Field::Ipv4Dst), (0u8..4).prop_map(address)),
        (Just(Field::TpSrc), 0u128..3),
        (Just(Field::TpDst), 0u128..3),
        (Just(Field::MplsLabel), 16u128..20),
        (Just(Field::Metadata), 0u128..3),
    ]
}

/// Key and mask of a match.
fn a_match() -> impl Strategy<Value = (Key, Key)> {
    let field = (a_value(), prop_oneof![3 => Just(u128::MAX), 1 => Just(!3)]);
    vec(field, 0..3).prop_map(|fields| {
        let (mut key, mut mask) = (Key::default(), Key::default());
        for ((field, value), bits) in fields {
            key.set(field, value & bits);
            mask.set(field, bits & field.full());
        }
        (key, mask)
    })
}

fn an_output() -> impl Strategy<Value = Action> {
    prop_oneof![
        6 => (1u32..=9).prop_map(Output::Port),
        1 => Just(Output::InPort),
        1 => Just(Output::All),
        1 => Just(Output::Flood),
        2 => Just(Output::Normal),
        1 => Just(Output::Local),
        1 => Just(Output::Controller { max_len: 128 }),
    ]
    .prop_map(Action::Output)
}

fn a_set_field() -> impl Strategy<Value = Action> {
    a_value().prop_map(|(field, value)| {
        let is_set = field.is_settable() && field != Field::EthType;
        let (field, value) = if is_set { (field, value) } else { (Field::EthDst, 4) };
        let of = *Transport::with(field).get(value as usize).unwrap_or(&Transport::Tcp);
        let of = Some(of).filter(|_| !Transport::with(field).is_empty());
        // Only a pop removes a tag.
        let value = if field == Field::VlanVid { value | 0x1000 } else { value };
        Action::SetField { field, of, value, mask: field.full() }
    })
}

fn an_edit() -> impl Strategy<Value = Action> {
    prop_oneof![
        8 => a_set_field(),
        1 => Just(Action::PushVlan(0x8100)),
        1 => Just(Action::EnsureVlan),
        2 => Just(Action::PopVlan),
        1 => Just(Action::PushMpls(0x8847)),
        1 => select(vec![0x0800, 0x8847]).prop_map(Action::PopMpls),
        1 => Just(Action::PushPbb(0x88e7)),
        1 => Just(Action::PopPbb),
        1 => Just(Action::CopyTtlOut),
        1 => Just(Action::CopyTtlIn),
        1 => (0u8..3).prop_map(Action::SetMplsTtl),
        1 => Just(Action::DecMplsTtl),
        1 => (0u8..3).prop_map(Action::SetNwTtl),
        2 => Just(Action::DecNwTtl),
        1 => (0u32..3).prop_map(Action::SetQueue),
    ]
}

fn actions(groups: u32) -> impl Strategy<Value = Vec<Action>> {
    let group = (1..=groups.max(1)).prop_map(Action::Group);
    let one = prop_oneof![3 => an_output(), 3 => an_edit(), u32::from(groups > 0) => group];
    vec(one, 0..4)
}

fn instructions(table: u8) -> impl Strategy<Value = Instructions> {
    let next = prop_oneof![1 => Just(None), 2 => (table + 1..=TABLES).prop_map(Some)];
    let meter = prop_oneof![6 => Just(None), 1 => (1u32..3).prop_map(Some)];
    let metadata = prop_oneof![3 => Just(None), 1 => (0u64..3).prop_map(|value| Some((value, 3)))];
    (meter, actions(4), proptest::bool::weighted(0.1), actions(4), metadata, next).prop_map(
        |(meter, apply, clear, write, metadata, goto)| {
            let goto = goto.filter(|&goto| goto < TABLES);
            Instructions { meter, apply, clear, write, metadata, goto, ..Instructions::default() }
        },
    )
}

pub fn a_rule() -> impl Strategy<Value = FlowMod> {
    (0..TABLES).prop_flat_map(|table| {
        (a_match(), 0u16..4, instructions(table)).prop_map(
            move |((key, mask), priority, instructions)| FlowMod {
                table: Some(table),
                key,
                mask,
                priority,
                instructions,
                may_miss_headers: true,
                ..FlowMod::default()
            },
        )
    })
}

/// Groups 1 to 4; each may send to those before it.
fn groups() -> impl Strategy<Value = Vec<GroupMod>> {
    let kinds = || {
        select(vec![
            GroupKind::All,
            GroupKind::Indirect,
            GroupKind::Select,
            GroupKind::FastFailover,
        ])
    };
    let group = move |id: u32| {
        (kinds(), vec(actions(id - 1), 1..4)).prop_map(move |(kind, lists)| {
            let count = if kind == GroupKind::Indirect { 1 } else { lists.len() };
            let bucket = |(at, actions): (u32, Vec<Action>)| Bucket {
                weight: u16::from(kind == GroupKind::Select),
                watch_port: (kind == GroupKind::FastFailover).then_some(5 - at),
                watch_group: None,
                actions,
            };
            let buckets = (0..).zip(lists.into_iter().take(count)).map(bucket).collect();
            GroupMod::Add { id, kind, buckets }
        })
    };
    (group(1), group(2), group(3), group(4)).prop_map(|(a, b, c, d)| vec![a, b, c, d])
}

fn settings() -> impl Strategy<Value = SwitchConfig> {
    let misses = vec![Miss::Drop, Miss::Normal, Miss::Orphaned, Miss::Controller];
    (select(misses), proptest::bool::weighted(0.2), any::<bool>()).prop_map(
        |(miss, drops, invalid_ttl_to_controller)| SwitchConfig {
            miss,
            fragments: if drops { FragMode::Drop } else { FragMode::Normal },
            invalid_ttl_to_controller,
            flood_copies_per_s: None,
            copies_per_s: None,
        },
    )
}

/// Ports 1 to 4 as usual, 4 floods not, 5 is down, 6 forwards not, 7 makes no packet-in of a miss, 8 does not receive; 9 is not there.
pub fn ports() -> Vec<PortState> {
    vec![
        PortState::up(1),
        PortState { local: true, ..PortState::up(2) },
        PortState::up(3),
        PortState { no_flood: true, ..PortState::up(4) },
        PortState { live: false, ..PortState::up(5) },
        PortState { no_fwd: true, ..PortState::up(6) },
        PortState { no_packet_in: true, ..PortState::up(7) },
        PortState { no_recv: true, ..PortState::up(8) },
    ]
}

/// What a switch is made of.
pub struct Plan {
    pub rules: Vec<FlowMod>,
    groups: Vec<GroupMod>,
    settings: SwitchConfig,
    /// Stations behind ports 1 to 3, if they were heard of.
    stations: Vec<bool>,
}

impl Debug for Plan {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for rule in &self.rules {
            let FlowMod { table, key, mask, priority, instructions, .. } = rule;
            writeln!(f, "table {table:?} {priority} {key:?} under {mask:?}: {instructions:?}")?;
        }
        self.groups.iter().try_for_each(|group| writeln!(f, "{group:?}"))?;
        write!(f, "{:?}, {:?}", self.settings, self.stations)
    }
}

pub fn a_plan() -> impl Strategy<Value = Plan> {
    (vec(a_rule(), 1..14), groups(), settings(), vec(any::<bool>(), 3))
        .prop_map(|(rules, groups, settings, stations)| Plan { rules, groups, settings, stations })
}

impl Plan {
    /// The switch. Meters never have enough to refuse.
    pub fn pipeline(&self) -> Pipeline {
        let mut pipeline =
            Pipeline::new(Limits { tables: TABLES, ..Limits::default() }, &Serials::default());
        pipeline.set_ports(ports());
        pipeline.set_config(self.settings);
        for group in &self.groups {
            pipeline.group_mod(group.clone(), NOW).unwrap();
        }
        for (id, kind) in [(1, BandKind::Drop), (2, BandKind::DscpRemark { level: 1 })] {
            let bands = vec![Band { rate: u32::MAX, burst: 0, kind }];
            let config = MeterConfig { unit: MeterUnit::Kbps, burst: false, stats: false, bands };
            pipeline.meter_mod(MeterMod::Add { id, config }, NOW).unwrap();
        }
        for (cookie, rule) in (1..).zip(&self.rules) {
            // What cannot be is refused.
            let _refused = pipeline.flow_mod(&FlowMod { cookie, ..rule.clone() }, NOW);
        }
        for (at, _) in self.stations.iter().enumerate().filter(|(_, known)| **known) {
            pipeline.mac_table().learn(0, MACS[at], at as u32 + 1, NOW);
        }
        pipeline
    }
}
