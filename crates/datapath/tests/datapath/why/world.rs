//! Random switches in a ring, and frames that meet their rules.

use flow::{
    Action, Band, BandKind, Bucket, CONTROLLER_METER, FlowMod, FragMode, GroupKind, GroupMod,
    Instructions, MeterConfig, MeterMod, MeterUnit, Miss, Output, PortNo, SwitchConfig, Transport,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::net::Ipv4Addr;
use wire::build::{Arp, Frame, Ipv4, Ipv6, Tcp};
use wire::{Field, Key};

/// Switches; switch n has vlinks at ports 1 (to the one before) and 2 (to the next).
pub const SWITCHES: u32 = 3;
/// Lines: the third port is down for its switch, the fourth receives nothing, the fifth sends nothing, the sixth is shut.
pub const LINES: [PortNo; 6] = [10, 11, 12, 13, 14, 15];
const TABLES: u8 = 3;
const MACS: [u64; 5] = [2, 4, 6, 0xffff_ffff_ffff, 0x0180_c200_000e];

/// A switch.
#[derive(Clone, Debug)]
pub struct Plan {
    pub rules: Vec<FlowMod>,
    pub groups: Vec<GroupMod>,
    pub meters: Vec<MeterMod>,
    pub config: SwitchConfig,
}

/// A frame that comes in, and the time since the one before.
#[derive(Clone, Debug)]
pub struct Arrival {
    pub switch: u32,
    pub port: PortNo,
    pub frame: Vec<u8>,
    pub pause_ns: u64,
}

fn mac(at: usize) -> [u8; 6] {
    let [_, _, mac @ ..] = MACS[at].to_be_bytes();
    mac
}

fn ip(at: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, at & 1, at)
}

pub fn an_arrival() -> impl Strategy<Value = Arrival> {
    let port = prop_oneof![8 => 10u32..=12, 1 => Just(13), 1 => Just(14), 1 => Just(15)];
    // Longer than a worker polls a queue in vain.
    let pause = prop_oneof![3 => Just(2_000_000), 1 => Just(300_000_000)];
    (1..=SWITCHES, port, a_frame(), pause).prop_map(|(switch, port, frame, pause_ns)| Arrival {
        switch,
        port,
        frame,
        pause_ns,
    })
}

fn a_frame() -> impl Strategy<Value = Vec<u8>> {
    let link = (0usize..5, 0usize..3, vec((0u16..3, 0u16..2), 0..3));
    let ends = (0u8..4, 0u8..4, 0u16..3, 0u16..3);
    let len = prop_oneof![6 => Just(5usize), 2 => 200usize..400, 1 => 1400usize..1600];
    let tos = select(vec![0u8, 10 << 2, 12 << 2, 14 << 2, 3 << 2]);
    let ttl = prop_oneof![1 => 0u8..4, 2 => Just(64)];
    (link, 0u8..9, ends, tos, ttl, len).prop_map(
        |((dst, src, tags), kind, (from, to, tp_src, tp_dst), tos, ttl, len)| {
            let mut frame = Frame::ethernet(mac(dst), mac(src));
            for (vid, pcp) in tags {
                frame = frame.vlan(0x8100, pcp << 13 | vid);
            }
            if kind == 6 || kind == 7 {
                frame = frame.mpls(16 + u32::from(to), 1, ttl);
            }
            let fragment = if kind == 4 { 0x2000 } else { u16::from(kind == 5) * 7 };
            let v4 = Ipv4 { src: ip(from), dst: ip(to), tos, ttl, fragment, ..Ipv4::default() };
            let v6 = Ipv6 { hop_limit: ttl, traffic_class: tos, ..Ipv6::default() };
            let frame = match kind {
                0 | 7 => frame.ipv4(v4).udp(tp_src, tp_dst),
                1 | 4 | 5 => frame.ipv4(v4).tcp(Tcp { src: tp_src, dst: tp_dst, ..Tcp::default() }),
                2 => frame.ipv4(v4).icmp(tp_src as u8, tp_dst as u8),
                3 => {
                    frame.arp(Arp { op: 1, sha: mac(src), spa: ip(from), tha: mac(0), tpa: ip(to) })
                }
                6 => frame.ipv6(v6).udp(tp_src, tp_dst),
                _ => frame.ipv6(v6).icmpv6(128, 0),
            };
            frame.payload(&vec![0x5a; len]).finish()
        },
    )
}

/// A field with a value that frames have.
fn a_value() -> impl Strategy<Value = (Field, u128)> {
    let address = |at: u8| u128::from(u32::from(ip(at)));
    prop_oneof![
        (Just(Field::InPort), select(vec![1u128, 2, 10, 11])),
        (Just(Field::EthDst), select(MACS.to_vec()).prop_map(u128::from)),
        (Just(Field::EthSrc), select(MACS[..3].to_vec()).prop_map(u128::from)),
        (Just(Field::EthType), select(vec![0x0800, 0x0806, 0x8847, 0x86dd])),
        (Just(Field::VlanVid), select(vec![0, 0x1000, 0x1001, 0x1002])),
        (Just(Field::IpProto), select(vec![6, 17, 1])),
        (Just(Field::IpDscp), select(vec![0u128, 3, 10, 12])),
        (Just(Field::Ipv4Src), (0u8..4).prop_map(address)),
        (Just(Field::Ipv4Dst), (0u8..4).prop_map(address)),
        (Just(Field::TpSrc), 0u128..3),
        (Just(Field::TpDst), 0u128..3),
        (Just(Field::MplsLabel), 16u128..20),
        (Just(Field::Metadata), 0u128..3),
    ]
}

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
        8 => select(vec![1, 2, 1, 2, 10, 11, 12, 14, 15, 99]).prop_map(Output::Port),
        1 => Just(Output::InPort),
        1 => Just(Output::All),
        1 => Just(Output::Flood),
        3 => Just(Output::Normal),
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
        6 => a_set_field(),
        1 => Just(Action::PushVlan(0x8100)),
        2 => Just(Action::PopVlan),
        1 => Just(Action::PushMpls(0x8847)),
        1 => select(vec![0x0800, 0x8847]).prop_map(Action::PopMpls),
        1 => Just(Action::PushPbb(0x88e7)),
        1 => Just(Action::PopPbb),
        1 => Just(Action::CopyTtlOut),
        1 => Just(Action::CopyTtlIn),
        1 => (0u8..3).prop_map(Action::SetNwTtl),
        1 => Just(Action::DecMplsTtl),
        3 => Just(Action::DecNwTtl),
    ]
}

fn actions(groups: u32) -> impl Strategy<Value = Vec<Action>> {
    let group = (1..=groups.max(1)).prop_map(Action::Group);
    let one = prop_oneof![4 => an_output(), 3 => an_edit(), u32::from(groups > 0) => group];
    vec(one, 0..4)
}

fn instructions(table: u8) -> impl Strategy<Value = Instructions> {
    let next = prop_oneof![1 => Just(None), 2 => (table + 1..=TABLES).prop_map(Some)];
    let meter = prop_oneof![3 => Just(None), 1 => (1u32..4).prop_map(Some)];
    let metadata = prop_oneof![3 => Just(None), 1 => (0u64..3).prop_map(|value| Some((value, 3)))];
    (meter, actions(4), proptest::bool::weighted(0.1), actions(4), metadata, next).prop_map(
        |(meter, apply, clear, write, metadata, goto)| {
            let goto = goto.filter(|&goto| goto < TABLES);
            Instructions { meter, apply, clear, write, metadata, goto, ..Instructions::default() }
        },
    )
}

fn a_rule() -> impl Strategy<Value = FlowMod> {
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

/// Groups 1 to 4; each may send to those before it. Some watch ports that are down.
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
        (kinds(), vec((actions(id - 1), select(vec![10, 11, 12])), 1..4)).prop_map(
            move |(kind, lists)| {
                let count = if kind == GroupKind::Indirect { 1 } else { lists.len() };
                let bucket = |(actions, port): (Vec<Action>, PortNo)| Bucket {
                    weight: u16::from(kind == GroupKind::Select),
                    watch_port: (kind == GroupKind::FastFailover).then_some(port),
                    watch_group: None,
                    actions,
                };
                let buckets = lists.into_iter().take(count).map(bucket).collect();
                GroupMod::Add { id, kind, buckets }
            },
        )
    };
    (group(1), group(2), group(3), group(4)).prop_map(|(a, b, c, d)| vec![a, b, c, d])
}

/// Meters that some frames find full and others empty.
fn meters() -> impl Strategy<Value = Vec<MeterMod>> {
    let kind = || prop_oneof![Just(BandKind::Drop), Just(BandKind::DscpRemark { level: 1 })];
    let band = move || {
        (select(vec![1u32, 10, 1000]), 1u32..20, kind()).prop_map(|(rate, burst, kind)| Band {
            rate,
            burst,
            kind,
        })
    };
    let meter = move |id: u32| {
        (vec(band(), 1..3), any::<bool>()).prop_map(move |(bands, by_bits)| {
            let unit = if by_bits { MeterUnit::Kbps } else { MeterUnit::Pktps };
            MeterMod::Add { id, config: MeterConfig { unit, burst: true, stats: false, bands } }
        })
    };
    (meter(1), meter(2), meter(CONTROLLER_METER), any::<bool>())
        .prop_map(|(a, b, c, all)| if all { vec![a, b, c] } else { vec![a, b] })
}

pub fn a_plan() -> impl Strategy<Value = Plan> {
    let misses = select(vec![Miss::Drop, Miss::Normal, Miss::Orphaned, Miss::Controller]);
    let config =
        (misses, proptest::bool::weighted(0.2), any::<bool>(), select(vec![None, Some(0)]))
            .prop_map(|(miss, drops, invalid_ttl_to_controller, flood_copies_per_s)| {
                SwitchConfig {
                    miss,
                    fragments: if drops { FragMode::Drop } else { FragMode::Normal },
                    invalid_ttl_to_controller,
                    flood_copies_per_s,
                    copies_per_s: None,
                }
            });
    (vec(a_rule(), 1..14), groups(), meters(), config)
        .prop_map(|(rules, groups, meters, config)| Plan { rules, groups, meters, config })
}
