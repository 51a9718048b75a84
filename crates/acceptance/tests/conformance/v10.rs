//! OpenFlow 1.0.0 on frames: the twelve-tuple and the actions, from bytes written by hand (§5.2.3, §5.2.4, §5.3.3).

pub mod bytes;

use crate::harness::{Bench, Node, Session, Suite};
use crate::oracle::{Frame, Framing, Sample, act};
use bytes::{Field, Ofp10, flow_mod};
use openflow::{
    Action, FragmentMode, Message, OxmField, PacketInReason, PortConfig, PortFeatures, PortMod,
    PortNo, SwitchConfig, Version,
};

/// What 1.0 knows; SCTP, whose ports its actions leave alone; and IPv6, whose class and ports they write as IPv4's.
const SAMPLES: [Sample; 6] = [
    Sample::Arp,
    Sample::Ipv4Tcp,
    Sample::Ipv4Udp,
    Sample::Ipv4Icmp,
    Sample::Ipv4Sctp,
    Sample::Ipv6Tcp,
];

/// The cases.
pub fn cases(suite: &mut Suite) {
    for framing in [Framing::Untagged, Framing::Vlan, Framing::Qinq] {
        for sample in SAMPLES {
            let frame = framing.around(sample);
            for field in Field::of(&frame) {
                let name =
                    format!("v10::match::{}::{}::{}", field.name, sample.name(), framing.name());
                let frame = frame.clone();
                on_both(suite, name, move |bench, session| selects(bench, session, field, &frame));
            }
            for (name, action, wanted) in edits(&frame) {
                let name = format!("v10::action::{name}::{}::{}", sample.name(), framing.name());
                let frame = frame.clone();
                on_both(suite, name, move |bench, session| {
                    let to_2 = Ofp10::output(2);
                    add(session, &flow_mod(&[], &[action, to_2].concat()));
                    bench.send(1, &frame.bytes()).is_only(2, &wanted.bytes());
                });
            }
            let bytes = frame.bytes();
            let name = format!("v10::action::enqueue::{}::{}", sample.name(), framing.name());
            on_both(suite, name, move |bench, session| {
                add(session, &flow_mod(&[], &Ofp10::enqueue(3, 0)));
                bench.send(1, &bytes).is_only(3, &bytes);
            });
            for (name, port, ports) in OUTPUTS {
                let name = format!("v10::output::{name}::{}::{}", sample.name(), framing.name());
                let bytes = frame.bytes();
                on_both(suite, name, move |bench, session| {
                    add(session, &flow_mod(&[], &Ofp10::output(port)));
                    let wanted: Vec<_> = ports.iter().map(|port| (*port, &bytes)).collect();
                    bench.send(1, &bytes).is_exactly(&wanted);
                });
            }
        }
    }
    controller(suite);
    silent_port(suite);
}

/// A case with a second controller, which speaks 1.0.
fn on_both(
    suite: &mut Suite,
    name: String,
    test: impl FnOnce(&mut Bench, &mut Session) + Send + 'static,
) {
    suite.on_node(name, move |node: &Node| {
        let mut bench = node.take();
        let mut session = Session::open(&node.socket(&bench.switch), Version::V1_0);
        test(&mut bench, &mut session);
        node.give_back(bench);
    });
}

/// A flow-mod that must be taken.
#[track_caller]
fn add(session: &mut Session, flow_mod: &[u8]) {
    assert_eq!(session.try_bytes(flow_mod.to_vec()), crate::harness::Answer::Done);
}

/// Reserved ports of 1.0 (§5.2.1), and where a frame from port 1 goes by them.
const OUTPUTS: [(&str, u16, &[u32]); 7] = [
    ("ordinary", 3, &[3]),
    ("its_own_port", 1, &[]),
    ("in_port", 0xfff8, &[1]),
    ("normal", 0xfffa, &[2, 3, 4]),
    ("flood", 0xfffb, &[2, 3, 4]),
    ("all", 0xfffc, &[2, 3, 4]),
    ("local_without_one", 0xfffe, &[]),
];

/// Exactly the frames with the field's value are selected, of two that differ in it.
fn selects(bench: &mut Bench, session: &mut Session, field: Field, frame: &Frame) {
    add(session, &flow_mod(&field.needed(frame), &Ofp10::output(2)));
    bench.send(1, &frame.bytes()).is_only(2, &frame.bytes());
    match field.other(frame) {
        Some(other) => bench.send(1, &other.bytes()).is_nothing(),
        None => bench.send(3, &frame.bytes()).is_nothing(),
    }
}

/// What each action of 1.0 makes of the frame.
fn edits(frame: &Frame) -> Vec<(&'static str, Vec<u8>, Frame)> {
    let mut tagged = frame.clone();
    if tagged.tags.is_empty() {
        act(&mut tagged, &Action::PushVlan(0x8100)).unwrap(); // §5.2.4: a tag is added where there is none
    }
    let mut stripped = frame.clone();
    act(&mut stripped, &Action::PopVlan).unwrap();
    let ports = |frame: &Frame, tcp, udp, value| set(&set(frame, tcp, value), udp, value);
    vec![
        ("set_vlan_vid", Ofp10::set_16(1, 0x321), set(&tagged, OxmField::VlanVid, 0x1321)),
        ("set_vlan_pcp", Ofp10::set_8(2, 6), set(&tagged, OxmField::VlanPcp, 6)),
        ("strip_vlan", Ofp10::bare(3), stripped),
        (
            "set_dl_src",
            Ofp10::set_mac(4, 0x0200_0000_7701),
            set(frame, OxmField::EthSrc, 0x0200_0000_7701),
        ),
        (
            "set_dl_dst",
            Ofp10::set_mac(5, 0x0200_0000_7702),
            set(frame, OxmField::EthDst, 0x0200_0000_7702),
        ),
        ("set_nw_src", Ofp10::set_32(6, 0x0b01_0101), set(frame, OxmField::Ipv4Src, 0x0b01_0101)),
        ("set_nw_dst", Ofp10::set_32(7, 0x0b01_0102), set(frame, OxmField::Ipv4Dst, 0x0b01_0102)),
        // The upper six bits; ECN stays. 1.0 does not know IPv6; its class is written too, as Open vSwitch does.
        ("set_nw_tos", Ofp10::set_8(8, 0xb8), set(frame, OxmField::IpDscp, 46)),
        (
            "set_tp_src",
            Ofp10::set_16(9, 7001),
            ports(frame, OxmField::TcpSrc, OxmField::UdpSrc, 7001),
        ),
        (
            "set_tp_dst",
            Ofp10::set_16(10, 7002),
            ports(frame, OxmField::TcpDst, OxmField::UdpDst, 7002),
        ),
    ]
}

/// An action without its header does nothing.
fn set(frame: &Frame, field: OxmField, value: u128) -> Frame {
    if frame.get(field).is_some() { frame.with(field, value) } else { frame.clone() }
}

/// Who only visits hears of packets when it says how much of them.
fn wants_packet_ins() -> Message {
    let miss_send_len = u16::MAX;
    Message::SetConfig(SwitchConfig { fragments: FragmentMode::Normal, miss_send_len })
}

/// Packet-ins of 1.0: by an action and for want of a match (§5.4.1).
fn controller(suite: &mut Suite) {
    for sample in Sample::IP {
        let frame = Framing::Vlan.around(sample).bytes();
        on_both(
            suite,
            format!("v10::packet_in::by_action::{}", sample.name()),
            move |bench, session| {
                session.accept(&wants_packet_ins());
                add(session, &flow_mod(&[], &Ofp10::output_up()));
                let _ = bench.send(3, &frame);
                let (port, data) = session.wait(|message| match message {
                    Message::PacketIn(packet) if packet.data == frame => {
                        Some((packet.fields.exact(OxmField::InPort), packet.data.len()))
                    }
                    _ => None,
                });
                assert_eq!((port, data), (Some(3), frame.len()));
            },
        );
    }
}

/// A port that tells no table misses tells what an entry sends, also one that 1.3 would call a table-miss entry.
fn silent_port(suite: &mut Suite) {
    let name = "v10::packet_in::by_an_entry_that_matches_all_from_a_port_that_tells_no_misses";
    suite.on_node(name, |node: &Node| {
        let mut bench = Bench::make(node);
        let mut session = Session::open(&node.socket(&bench.switch), Version::V1_0);
        session.accept(&wants_packet_ins());
        session.accept(&Message::PortMod(PortMod {
            number: PortNo(3),
            hw_addr: bench.port(3).hw_addr,
            config: PortConfig::NO_PACKET_IN,
            mask: PortConfig::NO_PACKET_IN,
            advertise: PortFeatures::empty(),
        }));
        let frame = Framing::Untagged.around(Sample::Ipv4Udp).bytes();
        let mut lowest = flow_mod(&[], &Ofp10::output_up());
        lowest[62..64].fill(0); // its priority
        add(&mut session, &lowest);
        bench.inject(3, &frame);
        let reason = session.wait(|message| match message {
            Message::PacketIn(packet) if packet.data == frame => Some(packet.reason),
            _ => None,
        });
        assert_eq!(reason, PacketInReason::Action);
        bench.remove(node);
    });
}
