//! What an interface must be to be a port, and what becomes of a port whose interface changes.

mod lab;

use api::PortKind;
use lab::Lab;
use port::{Body, Drops, OpenError, OpenPort, TxFrame};
use rustix::net::{AddressFamily, Protocol, RecvFlags, SocketType, recv, socket, sockopt};
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::time::Duration;
use wire::Offload;

const BOTH: [PortKind; 2] = [PortKind::AfPacket, PortKind::AfXdp];

/// Why an interface of the switch's namespace cannot be a port.
fn why_not(lab: &Lab, kind: PortKind, interface: &str) -> String {
    let spec = lab.on(kind, interface, "s");
    match port::open(&spec, 1).err() {
        Some(OpenError::WrongInterface { why, .. }) => why,
        other => panic!("{kind:?} on {interface}: {other:?}"),
    }
}

fn notes(port: &OpenPort) -> String {
    port.control.facts().expect("it is there").notes.join("\n")
}

#[test]
fn an_interface_that_cannot_be_a_port_is_refused_with_the_reason() {
    let Some(lab) = Lab::new("odd") else { return };
    lab.veth("a");
    lab.ip("s", "tuntap add l3 mode tun");
    lab.ip("s", "link add br0 type bridge");
    lab.ip("s", "link set porta master br0");
    lab.veth("b");
    lab.ip("s", "link add link portb name above type macvlan mode bridge");
    for kind in BOTH {
        assert!(why_not(&lab, kind, "lo").contains("loopback"));
        assert!(why_not(&lab, kind, "l3").contains("no Ethernet"));
        assert!(why_not(&lab, kind, "porta").contains("member of the bridge br0"));
        assert!(why_not(&lab, kind, "portb").contains("the macvlan above"));
    }
    assert!(why_not(&lab, PortKind::AfXdp, "above").contains("VLAN tags"));
    lab.ip("s", "link set porta nomaster");
    lab.ip("s", "link del above");
    for (kind, guest) in BOTH.into_iter().zip(["a", "b"]) {
        assert!(port::open(&lab.spec(kind, guest), 1).is_ok(), "{kind:?}: it is free");
    }
}

#[test]
fn an_interface_takes_frames_for_any_address_while_it_is_a_port() {
    let Some(lab) = Lab::new("promisc") else { return };
    lab.veth("a");
    let asked = || lab.ip("s", "-d link show dev porta");
    for kind in BOTH {
        let port = port::open(&lab.spec(kind, "a"), 1).expect("opens");
        assert!(!asked().contains("promiscuity 0"), "{kind:?}: {}", asked());
        if kind == PortKind::AfXdp {
            assert!(asked().contains("allmulti 1"), "{}", asked());
        }
        drop(port);
        assert!(asked().contains("promiscuity 0"), "{kind:?}: {}", asked());
    }
}

#[test]
fn a_port_that_its_interface_outgrows_says_so_and_opens_again_for_all_of_it() {
    let Some(lab) = Lab::new("outgrown") else { return };
    let there = lab.netns("a");
    let queues = "numrxqueues 2 numtxqueues 2";
    lab.ip(
        "s",
        &format!("link add porta {queues} type veth peer name eth0 {queues} netns {there}"),
    );
    lab.ip("a", "link set eth0 up");
    lab.exec("s", "ethtool -L porta rx 1 tx 1");
    lab.exec("a", "ethtool -L eth0 rx 1 tx 1");
    let spec = lab.spec(PortKind::AfXdp, "a");
    let port = port::open(&spec, 1).expect("opens");
    assert_eq!(port.control.outgrown(), None);
    assert!(!port.control.has_news());
    lab.exec("s", "ethtool -L porta rx 2");
    assert!(port.control.has_news(), "no event tells it");
    assert!(!port.control.has_news(), "once");
    let why = port.control.outgrown().expect("a queue has no socket");
    assert!(why.contains("2 rx queues"), "{why}");
    drop(port);
    let port = port::open(&spec, 1).expect("opens again");
    assert_eq!((port.rx.len(), port.control.outgrown()), (2, None));
    lab.ip("s", "link set porta mtu 3000");
    let why = port.control.outgrown().expect("a longer frame fits no buffer");
    assert!(why.contains("3000"), "{why}");
    drop(port);
    let port = port::open(&spec, 1).expect("opens again");
    assert_eq!((port.facts.mtu, port.control.outgrown()), (3000, None));
}

#[test]
fn what_has_no_effect_on_an_xdp_port_is_said() {
    let Some(lab) = Lab::new("said") else { return };
    lab.veth("a");
    let port = port::open(&lab.spec(PortKind::AfXdp, "a"), 1).expect("opens");
    assert!(notes(&port).contains("tcpdump"), "{}", notes(&port));
    assert!(!notes(&port).contains("qdisc"), "{}", notes(&port));
    lab.exec("s", "tc qdisc add dev porta root tbf rate 20mbit burst 64kb latency 50ms");
    assert!(port.control.has_news(), "no event tells it");
    assert!(notes(&port).contains("its qdisc tbf has no effect"), "{}", notes(&port));
    lab.exec("s", "tc qdisc del dev porta root");
    assert!(port.control.has_news());
    assert!(!notes(&port).contains("qdisc"), "{}", notes(&port));
}

/// An experimental EtherType (IEEE 802), which no kernel sends by itself.
const TYPE: [u8; 2] = [0x88, 0xb5];
const EVERY_TYPE: u32 = (libc::ETH_P_ALL as u16).to_be() as u32;

/// What a capture in the switch's namespace reads from, both directions.
fn capture(lab: &Lab) -> OwnedFd {
    let every = NonZeroU32::new(EVERY_TYPE).map(Protocol::from_raw);
    let open = || socket(AddressFamily::PACKET, SocketType::RAW, every).expect("root may");
    let capture = std::thread::scope(|scope| lab.inside(scope, "s", open).join().expect("ends"));
    let patience = Some(Duration::from_secs(10));
    sockopt::set_socket_timeout(&capture, sockopt::Timeout::Recv, patience).expect("a timeout");
    capture
}

fn send(port: &mut OpenPort, count: usize) {
    let frame = [&[0xff; 6][..], &[2, 0, 0, 0, 0, 1], &TYPE, &[0; 46]].concat();
    let frame = TxFrame {
        head: &frame,
        body: Body::default(),
        offload: Offload::default(),
        tunnel_id: 0,
        tun_dst: 0,
    };
    let sent = port.tx[0].tx(&vec![frame; count], &mut Drops::default());
    assert_eq!(sent.frames, count as u64);
}

#[test]
fn what_a_packet_port_sends_is_captured_and_obeys_a_qdisc_that_comes_later() {
    let Some(lab) = Lab::new("taps") else { return };
    lab.veth("a");
    let mut port = port::open(&lab.spec(PortKind::AfPacket, "a"), 1).expect("opens");
    let capture = capture(&lab);
    send(&mut port, 3);
    let (mut seen, mut buffer) = (0, [0; 2048]);
    while seen < 3 {
        let (len, _) = recv(&capture, &mut buffer[..], RecvFlags::empty()).expect("three frames");
        seen += usize::from(len >= 14 && buffer[12..14] == TYPE);
    }
    for qdisc in ["pfifo", "tbf rate 20mbit burst 64kb latency 50ms"] {
        lab.exec("s", &format!("tc qdisc replace dev porta root {qdisc}"));
        send(&mut port, 5);
        let shown = lab.exec("s", "tc -s qdisc show dev porta root");
        let packets = shown.split(" pkt").next().and_then(|text| text.rsplit(' ').next());
        assert!(packets.is_some_and(|count| count.parse::<u32>().unwrap() >= 5), "{shown}");
    }
}
