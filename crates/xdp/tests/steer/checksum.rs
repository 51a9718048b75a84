//! Checksums that a sender on this host left open: finished for another core, left alone on this one.

use crate::lab::{Lab, enter, inside, options, pin};
use place::steering::{Target, Unmatched};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;
use testbed::unbroken;
use wire::build::{Frame, Ipv4, Ipv6, Tcp};
use xdp::steer::{Attached, Entry, Match, Options, Rehearsal, Steered};

const XDP_PASS: u32 = 2;
const XDP_REDIRECT: u32 = 4;
const DATAGRAMS: u32 = 2000;
const STREAM: usize = 8 << 20;
/// Nothing here takes as long.
const PATIENCE: Duration = Duration::from_secs(5);

/// Everything to that core.
fn all_to(core: u16) -> Entry {
    Entry {
        matching: Match::fields(1, []),
        target: Target::Core(place::CoreId(core)),
        is_priority: false,
        wants_own_core: false,
        vm: None,
    }
}

/// The near end, all of whose frames go to that core.
fn attach(lab: &mut Lab, core: u16) -> Attached {
    let mut attached =
        lab.attach(&Options { unmatched: Unmatched::Stay, queue: 16384, ..options() });
    attached.insert(&[all_to(core)]).expect("it fits");
    attached.settle_now().expect("the kernel obliges");
    attached
}

fn counts(attached: &Attached) -> HashMap<Steered, u64> {
    let counts = attached.counts().expect("the kernel obliges");
    counts.into_iter().map(|(what, count)| (what, count.frames)).collect()
}

/// What a frame is of: IP version, tag, transport, and whether all that is in a tunnel.
#[derive(Clone, Copy, Debug)]
struct Shape {
    is_v6: bool,
    is_tagged: bool,
    is_tcp: bool,
    tunnel: Option<bool>,
}

fn ip(frame: Frame, is_v6: bool) -> Frame {
    if is_v6 { frame.ipv6(Ipv6::default()) } else { frame.ipv4(Ipv4::default()) }
}

impl Shape {
    /// Up to the transport header in front of the tunnel, if there is one.
    fn outside(self, ports: (u16, u16)) -> Frame {
        let frame = Frame::ethernet([2; 6], [4; 6]);
        let frame = if self.is_tagged { frame.vlan(0x8100, 5) } else { frame };
        match self.tunnel {
            Some(is_outer_v6) => ip(frame, is_outer_v6).udp(ports.0 ^ 1, 4789),
            None => frame,
        }
    }

    fn frame(self, ports: (u16, u16), payload: &[u8]) -> Frame {
        let frame = self.outside(ports);
        let frame = match self.tunnel {
            Some(_) => frame.vxlan(7).inner_ethernet([6; 6], [8; 6]),
            None => frame,
        };
        let frame = ip(frame, self.is_v6);
        let frame = match self.is_tcp {
            true => frame.tcp(Tcp { src: ports.0, dst: ports.1, ..Tcp::default() }),
            false => frame.udp(ports.0, ports.1),
        };
        frame.payload(payload)
    }

    /// The finished frame with its innermost checksum open; what is around it counts the finished one, as the kernel's does.
    fn open_inside(self, ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
        let frame = self.frame(ports, payload);
        let mut bytes = frame.clone().finish();
        let (open, partial) = frame.finish_partial().expect("it has a transport header");
        let field = usize::from(partial.start + partial.offset);
        bytes[field..field + 2].copy_from_slice(&open[field..field + 2]);
        bytes
    }

    /// The finished frame with the checksum in front of its tunnel open.
    fn open_outside(self, ports: (u16, u16), finished: &[u8]) -> Vec<u8> {
        let outside = self.outside(ports);
        let len = outside.clone().finish().len();
        outside.payload(&finished[len..]).finish_partial().expect("it has a transport header").0
    }
}

fn shapes() -> impl Strategy<Value = Shape> {
    (any::<bool>(), any::<bool>(), any::<bool>(), any::<Option<bool>>())
        .prop_map(|(is_v6, is_tagged, is_tcp, tunnel)| Shape { is_v6, is_tagged, is_tcp, tunnel })
}

/// Runs the program on core 0.
fn see(rehearsal: &Rehearsal, frame: &[u8]) -> (u32, Vec<u8>) {
    std::thread::scope(|scope| {
        let runner = scope.spawn(|| {
            pin(0);
            rehearsal.see(frame).expect("the kernel obliges")
        });
        runner.join().expect("it ran")
    })
}

#[test]
fn an_open_checksum_is_finished_as_the_switch_would_and_a_finished_one_stays() {
    let Some(mut lab) = Lab::new("sums") else { return };
    let attached = attach(&mut lab, 1);
    let rehearsal = attached.rehearsal().unwrap();
    // Beyond one page the frame is in pieces.
    let payloads = prop::collection::vec(any::<u8>(), 0..9000);
    // No port of a tunnel that is not looked into.
    let ports = (1..4000_u16, 1..4000_u16);
    let mut runner =
        TestRunner::new(Config { cases: 400, failure_persistence: None, ..Config::default() });
    let ran = runner.run(&(shapes(), ports, payloads), |(shape, ports, payload)| {
        let finished = shape.frame(ports, &payload).finish();
        let mut frames = vec![finished.clone(), shape.open_inside(ports, &payload)];
        if shape.tunnel.is_some() {
            frames.push(shape.open_outside(ports, &finished));
        }
        for frame in frames {
            let (action, sent) = see(&rehearsal, &frame);
            prop_assert_eq!(action, XDP_REDIRECT);
            prop_assert!(sent == finished, "{:?} of {} bytes", shape, finished.len());
        }
        Ok(())
    });
    ran.unwrap();
    assert!(counts(&attached)[&Steered::Summed] >= 400);
}

#[test]
fn a_frame_that_stays_is_left_to_the_kernel_with_its_checksum_open() {
    let Some(mut lab) = Lab::new("left") else { return };
    let attached = attach(&mut lab, 0);
    let rehearsal = attached.rehearsal().unwrap();
    let shape = Shape { is_v6: false, is_tagged: false, is_tcp: true, tunnel: None };
    let open = shape.open_inside((1, 2), b"hello");
    assert_eq!(see(&rehearsal, &open), (XDP_PASS, open));
    assert_eq!(counts(&attached)[&Steered::Summed], 0);
}

#[test]
fn frames_that_may_hide_an_open_checksum_stay_with_all_their_pieces() {
    let Some(mut lab) = Lab::new("hides") else { return };
    let attached = attach(&mut lab, 1);
    let rehearsal = attached.rehearsal().unwrap();
    let plain = || Frame::ethernet([2; 6], [4; 6]);
    let piece = |fragment| plain().ipv4(Ipv4 { id: 9, fragment, ..Ipv4::default() });
    let frames = [
        plain().ipv4(Ipv4::default()).sctp(1, 2),
        plain()
            .ipv4(Ipv4::default())
            .gre(wire::tunnel::Gre::default())
            .ipv4(Ipv4::default())
            .udp(1, 2),
        plain().ipv4(Ipv4::default()).udp(1, 8472),
        plain().ipv4(Ipv4::default()).udp(1, 6081),
        plain().ipv6(Ipv6::default()).routing(1, std::net::Ipv6Addr::LOCALHOST).udp(1, 2),
        piece(0x2000).udp(1, 8472),
        // A later piece: what stands where ports would is payload.
        piece(0x0005).udp(1, 2),
    ];
    for frame in &frames {
        let frame = frame.clone().finish();
        assert_eq!(see(&rehearsal, &frame), (XDP_PASS, frame.clone()), "{frame:02x?}");
    }
    assert_eq!(counts(&attached)[&Steered::Unsummed], frames.len() as u64);
}

/// Damaged datagrams and segments that the near end has seen.
fn damaged(lab: &Lab) -> u64 {
    let read = |file: &str| {
        inside(&lab.netns("near"), || std::fs::read_to_string(file).expect("the kernel obliges"))
    };
    let lines = read("/proc/thread-self/net/snmp");
    let column = |proto: &str| -> u64 {
        let mut rows = lines.lines().filter(|line| line.starts_with(proto));
        let (names, values) = (rows.next().expect("names"), rows.next().expect("values"));
        let at = names.split(' ').position(|name| name == "InCsumErrors").expect("it is counted");
        values.split(' ').nth(at).expect("a value").parse().expect("a number")
    };
    let v6 = read("/proc/thread-self/net/snmp6");
    let v6 = v6.lines().filter(|line| line.starts_with("Udp6InCsumErrors"));
    column("Udp:")
        + column("Tcp:")
        + v6.map(|line| line[20..].trim().parse::<u64>().expect("a number")).sum::<u64>()
}

/// Datagrams with numbers, and a stream of bytes, from core 0 of the far end to an address of the near end; all must come, in order.
fn talk(lab: &Lab, to: IpAddr) {
    let (near, far) = (lab.netns("near"), lab.netns("far"));
    inside(&near, || {
        let udp = UdpSocket::bind((to, 0)).expect("the address is ours");
        set_socket_recv_buffer_size_force(&udp, 64 << 20).expect("root may");
        udp.set_read_timeout(Some(PATIENCE)).expect("the kernel obliges");
        let tcp = TcpListener::bind((to, 0)).expect("the address is ours");
        let (datagrams, stream) =
            (udp.local_addr().expect("it is bound"), tcp.local_addr().expect("it is bound"));
        std::thread::scope(|scope| {
            scope.spawn(move || {
                enter(&far);
                pin(0);
                send(datagrams, stream);
            });
            let mut buffer = vec![0; 1 << 16];
            for number in 0..DATAGRAMS {
                let len = unbroken(|| udp.recv(&mut buffer)).expect("it comes");
                assert_eq!((len, &buffer[..4]), (1000, &number.to_be_bytes()[..]), "{to}");
            }
            let (mut stream, _) = tcp.accept().expect("it comes");
            stream.set_read_timeout(Some(PATIENCE)).expect("the kernel obliges");
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).expect("it comes");
            assert!(bytes.len() == STREAM && bytes.iter().all(|&byte| byte == 0xa5), "{to}");
        });
    });
}

fn send(datagrams: SocketAddr, stream: SocketAddr) {
    let any = if datagrams.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
    // Connected first: while neighbours are unknown, the sender's own stack reorders.
    let mut connection = TcpStream::connect(stream).expect("it listens");
    connection.set_write_timeout(Some(PATIENCE)).expect("the kernel obliges");
    let socket = UdpSocket::bind(any).expect("the kernel obliges");
    for number in 0..DATAGRAMS {
        let mut datagram = [7; 1000];
        datagram[..4].copy_from_slice(&number.to_be_bytes());
        socket.send_to(&datagram, datagrams).expect("the kernel obliges");
    }
    connection.write_all(&[0xa5; STREAM]).expect("it reads");
}

/// Addresses of the near end: of the veth itself, and of VXLAN tunnels over IPv4 and IPv6, with and without a checksum outside.
fn addresses(lab: &Lab) -> Vec<IpAddr> {
    for (place, here, there) in [("near", 1, 2), ("far", 2, 1)] {
        let ip = |line: &str| drop(lab.ip(place, line));
        for interface in ["default", "eth0"] {
            lab.set_ipv6(place, interface, true);
        }
        ip(&format!("addr add fd09::{here}/64 dev eth0 nodad"));
        let (v4, v6) = (format!("10.9.0.{there}"), format!("fd09::{there}"));
        ip(&format!("link add x1 type vxlan id 1 remote {v4} dstport 4789 dev eth0 noudpcsum"));
        ip(&format!("link add x2 type vxlan id 2 remote {v4} dstport 4789 dev eth0 udpcsum"));
        ip(&format!(
            "link add x3 type vxlan id 3 remote {v6} dstport 4789 dev eth0 udp6zerocsumtx udp6zerocsumrx"
        ));
        for (number, device) in ["x1", "x2", "x3"].into_iter().enumerate() {
            ip(&format!("addr add 10.10.{number}.{here}/24 dev {device}"));
            ip(&format!("addr add fd0a:{number}::{here}/64 dev {device} nodad"));
            ip(&format!("link set {device} up"));
        }
    }
    let tunnels =
        (0..3).flat_map(|number| [format!("10.10.{number}.1"), format!("fd0a:{number}::1")]);
    let all = ["10.9.0.1".to_owned(), "fd09::1".to_owned()].into_iter().chain(tunnels);
    all.map(|text| text.parse().expect("an address")).collect()
}

#[test]
fn a_veth_as_it_comes_loses_nothing_on_its_way_to_another_core() {
    for mtu in [1500, 9000] {
        let Some(mut lab) = Lab::new(&format!("veth{mtu}")) else { return };
        lab.ip("near", &format!("link set eth0 mtu {mtu}"));
        lab.ip("far", &format!("link set eth0 mtu {mtu}"));
        let addresses = addresses(&lab);
        let attached = attach(&mut lab, 1);
        addresses.iter().for_each(|&address| talk(&lab, address));
        let counts = counts(&attached);
        println!("MTU {mtu}: {counts:?}, {} damaged", damaged(&lab));
        assert_eq!(damaged(&lab), 0);
        let least = addresses.len() as u64 * u64::from(DATAGRAMS);
        assert!(counts[&Steered::Sent] > least && counts[&Steered::Summed] > least, "{counts:?}");
        assert_eq!(counts[&Steered::QueueFull], 0);
    }
}
