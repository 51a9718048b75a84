//! Ping, UDP and TCP between two guests through every pair of port kinds: nothing lost, damaged or badly summed.

mod lab;

use api::{PortKind, PortSpec, XdpMode};
use lab::{Lab, Seen, datagram, forward, with};
use port::OpenPort;
use serde_json::json;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

const BYTES: usize = 24 << 20;
const PATIENCE: Duration = Duration::from_secs(20);
const LARGE: usize = 16 * 1024;

/// Byte `at` of the stream: every position tells whether it is in its place.
fn pattern(at: usize) -> u8 {
    (at.wrapping_mul(2_654_435_761) >> 13) as u8
}

/// Sends the pattern to a listener in the other guest; returns whether it arrived whole.
fn tcp(lab: &Lab, from: &str, to: &str, address: &'static str) -> bool {
    thread::scope(|scope| {
        let (ready, listening) = channel();
        let receiver = lab.inside(scope, to, move || {
            let listener = TcpListener::bind(address).expect("the guest has the address");
            ready.send(()).expect("the test waits");
            let (mut stream, _) = listener.accept().expect("a connection");
            stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
            let mut received = Vec::with_capacity(BYTES);
            stream.read_to_end(&mut received).expect("the whole stream");
            received.len() == BYTES
                && received.iter().enumerate().all(|(at, &byte)| byte == pattern(at))
        });
        listening.recv().expect("the listener is ready");
        let sender = lab.inside(scope, from, move || {
            let mut stream = TcpStream::connect(address).expect("the other guest answers");
            let data: Vec<u8> = (0..BYTES).map(pattern).collect();
            stream.write_all(&data).expect("the stream takes everything");
        });
        sender.join().expect("the sender");
        receiver.join().expect("the receiver")
    })
}

/// Datagrams of several sizes, also fragmented, there and back.
fn udp(lab: &Lab) {
    thread::scope(|scope| {
        let (ready, listening) = channel();
        let sizes = [1, 18, 200, 300, 1472, 4000];
        let echo = lab.inside(scope, "b", move || {
            let socket = UdpSocket::bind("10.9.0.2:7000").expect("the guest has the address");
            socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
            ready.send(()).expect("the test waits");
            let mut buffer = [0; 65_536];
            for _ in sizes {
                let (len, from) = datagram(&socket, &mut buffer);
                socket.send_to(&buffer[..len], from).expect("an answer");
            }
        });
        listening.recv().expect("the echo is ready");
        let sender = lab.inside(scope, "a", move || {
            let socket = UdpSocket::bind("10.9.0.1:0").expect("the guest has the address");
            socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
            for size in sizes {
                let data: Vec<u8> = (0..size).map(pattern).collect();
                socket.send_to(&data, "10.9.0.2:7000").expect("a datagram goes");
                let mut buffer = [0; 65_536];
                let (len, _) = datagram(&socket, &mut buffer);
                assert_eq!(&buffer[..len], &data[..], "datagram of {size} bytes");
            }
        });
        sender.join().expect("the sender");
        echo.join().expect("the echo");
    });
}

/// Runs all traffic between two guests; returns what the forwarder saw.
fn exchange(lab: &Lab, left: &mut OpenPort, right: &mut OpenPort) -> Seen {
    /// Stops the forwarder also when the traffic panics.
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let stop = AtomicBool::new(false);
    let seen = thread::scope(|scope| {
        let forwarder = scope.spawn(|| forward(left, right, &stop));
        let stopper = Stop(&stop);
        lab.exec("a", "ping -c 3 -i 0.1 -W 5 10.9.0.2");
        udp(lab);
        assert!(tcp(lab, "a", "b", "10.9.0.2:7001"), "TCP from a to b");
        assert!(tcp(lab, "b", "a", "10.9.0.1:7001"), "TCP from b to a");
        drop(stopper);
        forwarder.join().expect("the forwarder")
    });
    for guest in ["a", "b"] {
        for protocol in ["Tcp", "Udp"] {
            assert_eq!(
                lab.counter(guest, protocol, "InCsumErrors"),
                0,
                "{protocol} checksums in {guest}"
            );
        }
    }
    seen
}

/// Opens both ports and runs all traffic.
fn carries(test: &str, left: PortKind, right: PortKind, mode: XdpMode) -> Option<Seen> {
    let lab = Lab::new(test)?;
    let spec = |kind, guest| match kind {
        PortKind::AfXdp => with(&lab.spec(kind, guest), json!({"xdp_mode": mode})),
        _ => lab.spec(kind, guest),
    };
    let mut left = lab.guest(&spec(left, "a"), "a", 1);
    let mut right = lab.guest(&spec(right, "b"), "b", 2);
    let seen = exchange(&lab, &mut left, &mut right);
    let drops: Vec<_> = seen
        .drops
        .iter()
        .filter(|(reason, _)| !matches!(reason.name(), "rx_full" | "tx_full"))
        .collect();
    assert!(drops.is_empty(), "lost frames: {drops:?}");
    Some(seen)
}

#[test]
fn tap_to_tap_keeps_large_segments_whole() {
    let Some(seen) = carries("tt", PortKind::Tap, PortKind::Tap, XdpMode::Auto) else { return };
    assert!(seen.longest.iter().all(|&longest| longest > LARGE), "{:?}", seen.longest);
}

#[test]
fn af_packet_to_af_packet_keeps_large_segments_whole() {
    let Some(seen) = carries("pp", PortKind::AfPacket, PortKind::AfPacket, XdpMode::Auto) else {
        return;
    };
    assert!(seen.longest.iter().all(|&longest| longest > LARGE), "{:?}", seen.longest);
}

#[test]
fn tap_to_af_packet_keeps_large_segments_whole() {
    let Some(seen) = carries("tp", PortKind::Tap, PortKind::AfPacket, XdpMode::Auto) else {
        return;
    };
    assert!(seen.longest.iter().all(|&longest| longest > LARGE), "{:?}", seen.longest);
}

#[test]
fn tap_to_af_xdp_cuts_large_segments() {
    let Some(seen) = carries("tx", PortKind::Tap, PortKind::AfXdp, XdpMode::Auto) else { return };
    assert!(seen.longest[0] > LARGE && seen.longest[1] <= 1514, "{:?}", seen.longest);
}

#[test]
fn af_packet_to_af_xdp_cuts_large_segments() {
    let Some(seen) = carries("px", PortKind::AfPacket, PortKind::AfXdp, XdpMode::Auto) else {
        return;
    };
    assert!(seen.longest[0] > LARGE && seen.longest[1] <= 1514, "{:?}", seen.longest);
}

#[test]
fn af_xdp_to_af_xdp_carries_everything() {
    carries("xx", PortKind::AfXdp, PortKind::AfXdp, XdpMode::Native);
}

#[test]
fn generic_af_xdp_switches_its_peers_large_segments_off() {
    let Some(seen) = carries("gg", PortKind::AfXdp, PortKind::Tap, XdpMode::Generic) else {
        return;
    };
    assert!(seen.longest[0] <= 1514, "{:?}", seen.longest);
}

#[test]
fn segments_longer_than_ip_can_say_are_split_as_they_come() {
    let Some(lab) = Lab::new("big") else { return };
    let mut ports = ["a", "b"].map(|guest| {
        let port = lab.guest(&lab.spec(PortKind::AfPacket, guest), guest, 1);
        lab.ip(guest, "link set eth0 gso_max_size 185000 gro_max_size 185000");
        port
    });
    for (guest, address) in [("a", "fd00:9::1/64"), ("b", "fd00:9::2/64")] {
        lab.ip(guest, &format!("addr add {address} dev eth0 nodad"));
    }
    let [left, right] = &mut ports;
    let stop = AtomicBool::new(false);
    let seen = thread::scope(|scope| {
        let forwarder = scope.spawn(|| forward(left, right, &stop));
        let whole = tcp(&lab, "a", "b", "[fd00:9::2]:7001");
        stop.store(true, Ordering::Relaxed);
        assert!(whole, "TCP from a to b");
        forwarder.join().expect("the forwarder")
    });
    // The first such frame says that there are some.
    let lost: u64 = seen.drops.iter().map(|(_, lost)| lost).sum();
    assert!(lost <= 32 && seen.longest[0] > LARGE, "{:?} {:?}", seen.drops, seen.longest);
}

/// A guest, and the kernel's own VXLAN interface behind a tunnel.
fn carries_to_the_kernels_vxlan(test: &str, near: &str, far: &str) {
    let Some(lab) = Lab::new(test) else { return };
    lab.veth("b");
    for (place, interface, address) in [("s", "portb", near), ("b", "eth0", far)] {
        let nodad = if near.contains(':') { "nodad" } else { "" };
        lab.ip(place, &format!("addr add {address} dev {interface} {nodad}"));
        lab.ip(place, &format!("link set {interface} up"));
    }
    let [near, far] = [near, far].map(|address| address.split('/').next().expect("an address"));
    lab.ip(
        "b",
        &format!("link add vx0 type vxlan id 7 local {far} remote {near} dstport 4789 dev eth0"),
    );
    lab.ip("b", "addr add 10.9.0.2/24 dev vx0");
    lab.ip("b", "link set vx0 up");
    let tunnel = lab.tunnel("s", far, 7);
    let mut right = port::open(&tunnel, 1).expect("a tunnel");
    assert!(right.facts.carrier);
    let tap = PortSpec { mtu: Some(right.facts.mtu), ..lab.spec(PortKind::Tap, "a") };
    let mut left = lab.guest(&tap, "a", 1);
    let seen = exchange(&lab, &mut left, &mut right);
    let drops: Vec<_> =
        seen.drops.iter().filter(|(reason, _)| reason.name() != "rx_full").collect();
    assert!(drops.is_empty(), "lost frames: {drops:?}");
    assert!(seen.longest.iter().all(|&longest| longest > LARGE), "{:?}", seen.longest);
}

#[test]
fn a_tunnel_to_the_kernels_vxlan_over_ipv4_carries_everything() {
    carries_to_the_kernels_vxlan("v4", "192.0.2.1/24", "192.0.2.2/24");
}

#[test]
fn a_tunnel_to_the_kernels_vxlan_over_ipv6_carries_everything() {
    carries_to_the_kernels_vxlan("v6", "2001:db8::1/64", "2001:db8::2/64");
}
