//! A parse as deep as the snapshot says is as good as a full one.

use super::*;
use wire::build::{Frame, Ipv4, Tcp};
use wire::{Depth, parse_on};

/// What becomes of each packet: its place, its ports and its bytes.
#[derive(Default, PartialEq, Debug)]
struct Sent(Vec<(usize, Vec<PortNo>, Vec<u8>)>);

impl Sink for Sent {
    fn output(&mut self, index: usize, packet: &Packet<'_>, ports: &[PortNo], _: Then) {
        self.0.push((index, ports.to_vec(), packet.head.bytes().to_vec()));
    }
    fn packet_in(&mut self, index: usize, packet: &Packet<'_>, _: PacketIn) {
        self.0.push((index, vec![0], packet.head.bytes().to_vec()));
    }
    fn lose(&mut self, index: usize, _: &Packet<'_>, reason: DropReason) {
        self.0.push((index, vec![], reason.name().into()));
    }
}

fn frames() -> Vec<Vec<u8>> {
    let ethernet = |n| Frame::ethernet([2, 0, 0, 0, 0, n], [2, 0, 0, 0, 1, n]);
    let fragment = Ipv4 { fragment: 0x2000, ..Ipv4::default() };
    vec![
        ethernet(1).ipv4(Ipv4::default()).udp(5, 53).payload(&[0; 20]).finish(),
        ethernet(2).vlan(0x8100, 7).ipv4(Ipv4::default()).tcp(Tcp::default()).finish(),
        ethernet(3).ipv4(Ipv4 { ttl: 1, ..Ipv4::default() }).tcp(Tcp::default()).finish(),
        ethernet(4).vlan(0x88a8, 9).vlan(0x8100, 7).ipv4(fragment).udp(5, 53).finish(),
        ethernet(5).ipv6(wire::build::Ipv6::default()).tcp(Tcp::default()).finish(),
    ]
}

fn set(field: Field, value: u128) -> Action {
    Action::SetField { field, of: None, value, mask: field.full() }
}

fn edit_strategy() -> impl Strategy<Value = Action> {
    prop_oneof![
        Just(set(Field::EthSrc, 0x0a0b_0c0d_0e0f)),
        Just(set(Field::VlanVid, 0x1055)),
        Just(set(Field::TunnelId, 3)),
        Just(set(Field::TunDst, 3)),
        Just(set(Field::Ipv4Dst, 0x0b00_0001)),
        Just(set(Field::TpDst, 99)),
        Just(Action::PushVlan(0x8100)),
        Just(Action::PopVlan),
        Just(Action::DecNwTtl),
        Just(Action::SetQueue(2)),
    ]
}

const FIELDS: [Field; 9] = [
    Field::InPort,
    Field::EthDst,
    Field::EthType,
    Field::VlanVid,
    Field::Ipv4Dst,
    Field::IpFrag,
    Field::IpProto,
    Field::TpDst,
    Field::Ipv6Dst,
];

/// What fields of deeper layers must be matched with.
const PREREQUISITES: [Field; 2] = [Field::EthType, Field::IpProto];

/// A rule on one field, which some frame has as it says.
fn rule_strategy() -> impl Strategy<Value = FlowMod> {
    let output = prop_oneof![Just(Output::Normal), (2_u32..5).prop_map(Output::Port)];
    (
        prop::sample::select(&FIELDS[..]),
        0..frames().len(),
        vec(edit_strategy(), 0..3),
        output,
        1_u16..4,
    )
        .prop_map(|(field, frame, mut apply, output, priority)| {
            let (key, _) = wire::parse(&Head::copy_of(&frames()[frame]), 1);
            let (mut of, mut mask) = (Key::default(), Key::default());
            let deep =
                !matches!(field, Field::InPort | Field::EthDst | Field::EthType | Field::VlanVid);
            for field in [field].into_iter().chain(PREREQUISITES.into_iter().filter(|_| deep)) {
                of.set(field, key.get(field));
                mask.set(field, field.full());
            }
            apply.push(Action::Output(output));
            let instructions = Instructions { apply, ..Instructions::default() };
            FlowMod { key: of, mask, priority, instructions, ..FlowMod::default() }
        })
}

fn packet(head: &mut Head, depth: Depth) -> Packet<'_> {
    let (mut key, mut layers) = (Key::default(), Layers::default());
    key.set(Field::InPort, 1);
    parse_on(head, depth, &mut key, &mut layers);
    let frame_len = head.bytes().len() as u32;
    Packet { head, key, layers, offload: Offload::default(), frame_len, queue: 0 }
}

fn sent(snapshot: &Snapshot, depth: Depth) -> Sent {
    let mut heads: Vec<Head> = frames().iter().map(|frame| Head::copy_of(frame)).collect();
    let mut packets: Vec<Packet<'_>> = heads.iter_mut().map(|head| packet(head, depth)).collect();
    let mut packets: Vec<&mut Packet<'_>> = packets.iter_mut().collect();
    let mut sink = Sent::default();
    process(snapshot, &mut cache(), &mut packets, Nanos(0), &mut sink);
    sink
}

proptest! {
    #[test]
    fn as_deep_as_the_snapshot_says_is_deep_enough(
        rules in vec(rule_strategy(), 1..5),
        drop_fragments: bool,
        bridge: bool,
    ) {
        let mut pipeline = Pipeline::new(Limits::default(), &Serials::default());
        pipeline.set_ports((1..5).map(PortState::up).collect());
        let fragments = if drop_fragments { FragMode::Drop } else { FragMode::Normal };
        let miss = if bridge { Miss::Normal } else { Miss::Drop };
        pipeline.set_config(SwitchConfig { fragments, miss, ..SwitchConfig::default() });
        for rule in &rules {
            let _edits_what_it_does_not_match = pipeline.flow_mod(rule, Nanos(0));
        }
        let snapshot = pipeline.snapshot();
        prop_assert_eq!(sent(&snapshot, snapshot.depth()), sent(&snapshot, Depth::Full));
    }
}
