//! Tunnels: what comes out, what is refused, and who gets what.

#[path = "tunnels/ends.rs"]
mod ends;
#[path = "tunnels/flows.rs"]
mod flows;
mod lab;
#[path = "tunnels/long.rs"]
mod long;

use api::PortSpec;
use lab::{Lab, datagram, with};
use port::{Body, BodyAt, Drops, OpenError, OpenPort, RxBatch, RxQueue, Slot, TxFrame};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, ipproto, recv, socket_with};
use serde_json::{Value, json};
use std::net::{IpAddr, UdpSocket};
use std::thread;
use wire::build::{Frame, Ipv4, Tcp};
use wire::tunnel::Vxlan;
use wire::{DropReason, Gso, Offload, PartialChecksum};

const NEAR: &str = "192.0.2.1";
const FAR: &str = "192.0.2.2";

/// Two hosts: the namespaces `s` and `b`, joined by a veth with an MTU of 1500.
fn hosts(test: &str) -> Option<Lab> {
    let lab = Lab::new(test)?;
    lab.veth("b");
    for (place, interface, address) in [("s", "portb", NEAR), ("b", "eth0", FAR)] {
        lab.ip(place, &format!("addr add {address}/24 dev {interface}"));
        lab.ip(place, &format!("link set {interface} up"));
    }
    Some(lab)
}

fn spec(lab: &Lab, place: &str, vni: u32) -> PortSpec {
    lab.tunnel(place, if place == "s" { FAR } else { NEAR }, vni)
}

fn end(lab: &Lab, place: &str, vni: u32) -> OpenPort {
    port::open(&spec(lab, place, vni), 1).expect("a tunnel")
}

/// The frames that come until there are so many, and what was lost meanwhile.
fn received(port: &mut OpenPort, count: usize) -> (Vec<Vec<u8>>, Drops) {
    let (mut frames, mut drops, mut batch) = (Vec::new(), Drops::default(), RxBatch::default());
    let rx = port.rx[0].as_mut();
    while frames.len() < count {
        let patience = Timespec { tv_sec: 5, tv_nsec: 0 };
        let ready =
            poll(&mut [PollFd::from_borrowed_fd(rx.readiness(), PollFlags::IN)], Some(&patience));
        assert_ne!(ready.expect("poll"), 0, "{} of {count} frames came", frames.len());
        batch.clear();
        rx.rx(&mut batch, &mut drops).expect("the sockets work");
        frames.extend(batch.frames().iter().map(|slot| bytes(slot, rx)));
        rx.release();
    }
    (frames, drops)
}

fn bytes(slot: &Slot, rx: &dyn RxQueue) -> Vec<u8> {
    let mut bytes = slot.head.bytes().to_vec();
    if let BodyAt::Port { at, len } = slot.body {
        rx.body(at, len).append_to(&mut bytes);
    }
    bytes
}

fn send(port: &mut OpenPort, frame: &[u8], offload: Offload) -> Drops {
    let mut drops = Drops::default();
    let (head, body) = frame.split_at(frame.len().min(wire::HEAD_MAX));
    port.tx[0].tx(
        &[TxFrame { head, body: Body::private(body), offload, tunnel_id: 0, tun_dst: 0 }],
        &mut drops,
    );
    drops
}

fn lost(drops: &Drops) -> Vec<(DropReason, u64)> {
    drops.iter().collect()
}

fn udp(len: usize, tos: u8) -> Vec<u8> {
    let header = Ipv4 { tos, ..Ipv4::default() };
    Frame::ethernet([2; 6], [4; 6]).ipv4(header).udp(1, 2).payload(&vec![0x5a; len]).finish()
}

#[test]
fn a_frame_comes_out_as_it_went_in() {
    let Some(lab) = hosts("whole") else { return };
    let (mut near, mut far) = (end(&lab, "s", 7), end(&lab, "b", 7));
    assert_eq!(near.facts.mtu, 1450);
    for len in [0, 18, 200, 300, 1422] {
        let frame = udp(len, 0);
        assert!(send(&mut near, &frame, Offload::default()).is_empty());
        assert_eq!(received(&mut far, 1).0, [frame]);
    }
    assert_eq!(
        lost(&send(&mut near, &udp(1423, 0), Offload::default())),
        [(DropReason::TooBig, 1)]
    );
}

#[test]
fn a_large_segment_crosses_in_pieces_and_comes_out_whole() {
    let Some(lab) = hosts("cut") else { return };
    let (mut near, mut far) = (end(&lab, "s", 7), end(&lab, "b", 7));
    let payload: Vec<u8> = (0..30_000).map(|at| (at % 251) as u8).collect();
    let frame = Frame::ethernet([2; 6], [4; 6]).ipv4(Ipv4::default()).tcp(Tcp::default());
    let (frame, checksum) = frame.payload(&payload).finish_partial().expect("TCP has a checksum");
    let offload =
        Offload { checksum: Some(checksum), gso: Gso::TcpV4, gso_size: 1400, ..Offload::default() };
    assert!(send(&mut near, &frame, offload).is_empty());
    assert_eq!(received(&mut far, 1).0, [frame]);
}

#[test]
fn of_a_frame_whose_state_is_a_lie_nothing_leaves_with_the_next_one() {
    let Some(lab) = hosts("lie") else { return };
    let (mut near, mut far) = (end(&lab, "s", 7), end(&lab, "b", 7));
    let state = |start| Offload {
        checksum: Some(PartialChecksum { start, offset: 6 }),
        ..Offload::default()
    };
    assert_eq!(lost(&send(&mut near, &udp(60, 0), state(5000))), [(DropReason::BadOffload, 1)]);
    assert!(send(&mut near, &udp(61, 0), state(34)).is_empty());
    let (frames, _) = received(&mut far, 1);
    assert_eq!((frames.len(), frames[0].len()), (1, udp(61, 0).len()));
}

#[test]
fn each_port_gets_what_comes_from_its_end_under_its_vni_and_nobody_the_rest() {
    let Some(lab) = hosts("vni") else { return };
    let opener = port::Opener::new(1);
    let mut seven = opener.open(&spec(&lab, "b", 7)).expect("a tunnel");
    let mut nine = opener.open(&spec(&lab, "b", 9)).expect("a second one on the same UDP port");
    let twice = opener.open(&spec(&lab, "b", 9)).map(drop).expect_err("VNI 9 is taken");
    assert!(twice.to_string().contains("another port has VNI 9"), "{twice}");
    let socket = inside(&lab, "s", || UdpSocket::bind((NEAR, 0)).expect("a socket"));
    let datagram = |vni, frame: &[u8]| [&Vxlan { vni }.emit()[..], frame].concat();
    for (vni, len) in [(8, 1), (7, 2), (9, 3), (0xff_ffff, 4), (7, 5)] {
        socket.send_to(&datagram(vni, &udp(len, 0)), (FAR, 4789)).expect("sent");
    }
    for garbage in [&[][..], &[8; 7], &[0; 40], &[0xff; 8]] {
        socket.send_to(garbage, (FAR, 4789)).expect("sent");
    }
    let (frames, drops) = received(&mut seven, 2);
    assert_eq!((frames, lost(&drops)), (vec![udp(2, 0), udp(5, 0)], vec![]));
    assert_eq!(received(&mut nine, 1).0, [udp(3, 0)]);
    let notes = nine.control.facts().expect("facts").notes;
    assert!(notes.iter().any(|note| note.starts_with("6 datagrams came")), "{notes:?}");
}

#[test]
fn congestion_on_the_way_gets_inside_or_the_frame_is_dropped() {
    let Some(lab) = hosts("ecn") else { return };
    let mut far = end(&lab, "b", 7);
    let socket = inside(&lab, "s", || UdpSocket::bind((NEAR, 0)).expect("a socket"));
    rustix::net::sockopt::set_ip_tos(&socket, 3).expect("congestion experienced");
    for inner in [0, 1, 2, 3] {
        let datagram = [&Vxlan { vni: 7 }.emit()[..], &udp(inner, inner as u8)].concat();
        socket.send_to(&datagram, (FAR, 4789)).expect("sent");
    }
    let (frames, drops) = received(&mut far, 3);
    assert_eq!(frames, [1, 2, 3].map(|len| udp(len, 3)));
    assert_eq!(lost(&drops), [(DropReason::Ecn, 1)]);
}

/// As a worker does, which ends a round only if it brought frames.
#[test]
fn a_tunnel_whose_rounds_bring_nothing_but_losses_goes_on_receiving() {
    let Some(lab) = hosts("losses") else { return };
    let mut far = end(&lab, "b", 7);
    let socket = inside(&lab, "s", || UdpSocket::bind((NEAR, 0)).expect("a socket"));
    rustix::net::sockopt::set_ip_tos(&socket, 3).expect("congestion experienced");
    let send = |inner: u8| {
        let datagram = [&Vxlan { vni: 7 }.emit()[..], &udp(8, inner)].concat();
        socket.send_to(&datagram, (FAR, 4789)).expect("sent");
    };
    let (mut drops, mut batch) = (Drops::default(), RxBatch::default());
    for round in 1..=20 {
        send(0);
        let rx = far.rx[0].as_mut();
        let patience = Timespec { tv_sec: 5, tv_nsec: 0 };
        let wait = &mut [PollFd::from_borrowed_fd(rx.readiness(), PollFlags::IN)];
        assert_ne!(poll(wait, Some(&patience)).expect("poll"), 0, "round {round}");
        batch.clear();
        assert_eq!(rx.rx(&mut batch, &mut drops).expect("the sockets work"), 0);
        assert_eq!(lost(&drops), [(DropReason::Ecn, round)]);
    }
    send(2);
    assert_eq!(received(&mut far, 1).0, [udp(8, 3)]);
}

#[test]
fn the_outer_packet_has_the_ecn_inside_and_the_dscp_that_was_asked_for() {
    let Some(lab) = hosts("dscp") else { return };
    for (dscp, outer) in [("46", 46 << 2 | 2), ("uniform", 10 << 2 | 2)] {
        let spec = with(&spec(&lab, "s", 7), json!({"dscp": dscp}));
        let mut near = port::open(&spec, 1).expect("a tunnel");
        let raw = inside(&lab, "b", || {
            let flags = SocketFlags::CLOEXEC;
            socket_with(AddressFamily::INET, SocketType::RAW, flags, Some(ipproto::UDP))
        });
        let raw = raw.expect("root may see IP headers");
        assert!(send(&mut near, &udp(18, 10 << 2 | 2), Offload::default()).is_empty());
        let mut packet = [0; 2048];
        let (len, _) = recv(&raw, &mut packet[..], RecvFlags::empty()).expect("a packet");
        assert!(len > 36 && packet[1] == outer, "TOS {:#x}", packet[1]);
        lab.close("s", near);
    }
}

#[test]
fn source_ports_tell_flows_apart_and_keep_each_together() {
    let Some(lab) = hosts("flows") else { return };
    let mut near = end(&lab, "s", 7);
    let plain = inside(&lab, "b", || UdpSocket::bind((FAR, 4789)).expect("a socket"));
    let mut ports = Vec::new();
    for port in (0..64).flat_map(|port| [port, port]) {
        let frame = Frame::ethernet([2; 6], [4; 6]).ipv4(Ipv4::default());
        let frame = frame.udp(port, 2).payload(&[0; 18]).finish();
        assert!(send(&mut near, &frame, Offload::default()).is_empty());
        let (_, from) = datagram(&plain, &mut [0; 2048]);
        ports.push(from.port());
    }
    assert!(ports.chunks(2).all(|pair| pair[0] == pair[1]));
    ports.sort_unstable();
    ports.dedup();
    assert!(ports.len() > 20, "{} source ports for 64 flows", ports.len());
}

#[test]
fn a_udp_port_that_another_tunnel_end_has_is_refused_and_free_again_after_it() {
    let Some(lab) = hosts("busy") else { return };
    lab.ip("b", &format!("link add vx0 type vxlan id 7 remote {NEAR} dstport 4789"));
    lab.ip("b", "link set vx0 up");
    let busy = port::open(&spec(&lab, "b", 7), 1).map(drop).expect_err("the kernel has it");
    assert!(matches!(busy, OpenError::Busy { .. }), "{busy}");
    assert!(busy.remedy().contains("ip -d link show type vxlan"), "{}", busy.remedy());
    lab.ip("b", "link del vx0");
    lab.close("b", end(&lab, "b", 7));
    lab.close("b", end(&lab, "b", 7));
}

#[test]
fn without_a_route_the_port_is_there_and_says_so() {
    let Some(lab) = hosts("route") else { return };
    let spec = lab.tunnel("s", "203.0.113.9", 7);
    let port = port::open(&spec, 1).expect("a tunnel");
    assert!(!port.facts.carrier);
    assert!(port.facts.notes[0].starts_with("no route to 203.0.113.9"), "{:?}", port.facts.notes);
    lab.ip("s", "route add 203.0.113.0/24 via 192.0.2.2 mtu 1400");
    let facts = port.control.facts().expect("facts");
    assert_eq!((facts.carrier, facts.mtu, facts.notes), (true, 1350, vec![]));
    lab.ip("s", "route del 203.0.113.0/24");
    lab.ip("s", "addr add 198.51.100.1/24 dev portb");
    lab.ip("s", &format!("addr del {NEAR}/24 dev portb"));
    lab.ip("s", "route add 203.0.113.0/24 via 198.51.100.2 mtu 1300");
    let facts = port.control.facts().expect("facts");
    assert_eq!((facts.carrier, facts.mtu), (true, 1250), "from another address of this host");
    assert!(facts.notes[0].contains("less than the 1280 that IPv6 needs"), "{:?}", facts.notes);
}

fn inside<T: Send>(lab: &Lab, place: &str, work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| lab.inside(scope, place, work).join().expect("done"))
}
