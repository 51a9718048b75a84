//! One port for many other ends, over IPv4 and IPv6: where rules say, and from everyone.

use super::*;
use port::{Ends, Opener, Share};
use std::sync::Arc;

const NEAR_V6: &str = "2001:db8::1";
const FAR_V6: &str = "2001:db8::2";

fn ip(address: &str) -> IpAddr {
    address.parse().expect("an address")
}

/// Three hosts: `s`, joined to `b` by IPv4 and to `a` by IPv6.
fn three(test: &str) -> Option<Lab> {
    let lab = hosts(test)?;
    lab.veth("a");
    for (place, interface, address) in [("s", "porta", NEAR_V6), ("a", "eth0", FAR_V6)] {
        lab.ip(place, &format!("addr add {address}/64 dev {interface} nodad"));
        lab.ip(place, &format!("link set {interface} up"));
    }
    Some(lab)
}

/// A tunnel of the host `s` whose other ends rules choose, and the numbers of `b` and `a`.
struct Hub {
    opener: Opener,
    port: OpenPort,
    ends: Share,
    b: u16,
    a: u16,
}

impl Hub {
    fn new(lab: &Lab, change: Value) -> Self {
        let all = Arc::new(Ends::default());
        let opener = Opener::new(1).with_ends(all.clone());
        let ends = Share::new(all);
        let port = opener.open(&hub(lab, change)).expect("a tunnel");
        let [b, a] = [FAR, FAR_V6].map(|end| ends.name(ip(end)).expect("a number"));
        Self { opener, port, ends, b, a }
    }

    /// Sends frames in one call, each to an end.
    fn send(&mut self, frames: &[(&[u8], u16)]) -> Drops {
        let tx = frames.iter().map(|&(bytes, tun_dst)| {
            let (head, body) = bytes.split_at(bytes.len().min(wire::HEAD_MAX));
            let (body, offload) = (Body::private(body), Offload::default());
            TxFrame { head, body, offload, tunnel_id: 7, tun_dst }
        });
        let mut drops = Drops::default();
        self.port.tx[0].tx(&tx.collect::<Vec<_>>(), &mut drops);
        drops
    }

    /// What came of that many frames: who sent each under which VNI, and the frame.
    fn received(&mut self, count: usize) -> Vec<(u16, u32, Vec<u8>)> {
        senders(&mut self.port, count)
    }
}

fn hub(lab: &Lab, change: Value) -> PortSpec {
    let all = with(&spec(lab, "s", 7), json!({"remote": "flow", "key": "flow"}));
    with(&all, change)
}

/// An ordinary end on another host.
fn far(lab: &Lab, place: &str, remote: &str) -> OpenPort {
    port::open(&lab.tunnel(place, remote, 7), 1).expect("a tunnel")
}

/// What came of so many frames by any of the port's queues: who sent each under which VNI, and the frame.
fn senders(port: &mut OpenPort, count: usize) -> Vec<(u16, u32, Vec<u8>)> {
    let (mut came, mut drops, mut batch) = (Vec::new(), Drops::default(), RxBatch::default());
    while came.len() < count {
        let readiness = port.rx.iter().map(|rx| rx.readiness());
        let mut waiting: Vec<_> =
            readiness.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        let patience = Timespec { tv_sec: 5, tv_nsec: 0 };
        let told = poll(&mut waiting, Some(&patience)).expect("poll");
        assert_ne!(told, 0, "{} of {count} frames came", came.len());
        drop(waiting);
        for rx in &mut port.rx {
            batch.clear();
            rx.rx(&mut batch, &mut drops).expect("the sockets work");
            let slots = batch.frames().iter();
            came.extend(slots.map(|slot| (slot.tun_src, slot.tunnel_id, bytes(slot, rx.as_ref()))));
            rx.release();
        }
    }
    assert!(drops.is_empty());
    came
}

#[test]
fn each_frame_goes_to_the_end_that_was_chosen_and_without_one_nowhere() {
    let Some(lab) = three("ends") else { return };
    let mut hub = Hub::new(&lab, json!({}));
    assert_eq!(hub.port.facts.mode, "vxlan to the end of each flow, vni of each flow");
    assert_eq!((hub.port.facts.mtu, hub.port.facts.carrier), (1430, true));
    assert_eq!(hub.port.facts.notes, [""; 0]);
    let (mut b, mut a) = (far(&lab, "b", NEAR), far(&lab, "a", NEAR_V6));
    let frames: Vec<_> = (0..40).map(|len| udp(len, 0)).collect();
    let to = [hub.b, hub.a, Ends::NONE, hub.b, 99];
    let burst: Vec<_> = frames.iter().zip(to.iter().cycle()).map(|(f, to)| (&f[..], *to)).collect();
    assert_eq!(lost(&hub.send(&burst)), [(DropReason::TunnelEnd, 16)]);
    let of = |end| -> Vec<_> {
        burst.iter().filter(|(_, to)| *to == end).map(|(bytes, _)| bytes.to_vec()).collect()
    };
    assert_eq!(received(&mut b, 16).0, of(hub.b));
    assert_eq!(received(&mut a, 8).0, of(hub.a));
}

#[test]
fn what_anyone_sends_comes_with_its_number_or_with_none() {
    let Some(lab) = three("senders") else { return };
    let mut hub = Hub::new(&lab, json!({}));
    let (mut b, mut a) = (far(&lab, "b", NEAR), far(&lab, "a", NEAR_V6));
    for (port, len, number) in [(&mut b, 1, hub.b), (&mut a, 2, hub.a)] {
        assert!(send(port, &udp(len, 0), Offload::default()).is_empty());
        assert_eq!(hub.received(1), [(number, 7, udp(len, 0))]);
    }
    lab.ip("b", "addr add 192.0.2.9/24 dev eth0");
    let stranger = inside(&lab, "b", || UdpSocket::bind(("192.0.2.9", 0)).expect("a socket"));
    let datagram = [&Vxlan { vni: 8 }.emit()[..], &udp(3, 0)].concat();
    stranger.send_to(&datagram, (NEAR, 4789)).expect("sent");
    assert_eq!(hub.received(1), [(Ends::NONE, 8, udp(3, 0))]);
    assert_eq!(hub.ends.held(), 2, "who only sends gets no number");
    let number = hub.ends.name(ip("192.0.2.9")).expect("a number");
    stranger.send_to(&datagram, (NEAR, 4789)).expect("sent");
    assert_eq!(hub.received(1), [(number, 8, udp(3, 0))]);
}

#[test]
fn it_gets_what_no_port_with_an_end_of_its_own_has() {
    let Some(lab) = three("order") else { return };
    let mut hub = Hub::new(&lab, json!({}));
    let own = |change| hub.opener.open(&self::hub(&lab, change)).expect("a tunnel");
    let mut exact = own(json!({"remote": FAR, "key": 7}));
    let mut rest = own(json!({"remote": FAR}));
    let mut nine = own(json!({"key": 9}));
    let twice = hub.opener.open(&self::hub(&lab, json!({}))).map(drop).expect_err("it is taken");
    let said = "another port has every other VNI of every other sender";
    assert!(twice.to_string().contains(said), "{twice}");
    lab.ip("b", "addr add 192.0.2.9/24 dev eth0");
    for (from, len) in [(FAR, 0), ("192.0.2.9", 10)] {
        let socket = inside(&lab, "b", || UdpSocket::bind((from, 0)).expect("a socket"));
        for (vni, len) in [(7, len + 1), (8, len + 2), (9, len + 3)] {
            let datagram = [&Vxlan { vni }.emit()[..], &udp(len, 0)].concat();
            socket.send_to(&datagram, (NEAR, 4789)).expect("sent");
        }
    }
    assert_eq!(senders(&mut exact, 1), [(hub.b, 7, udp(1, 0))]);
    assert_eq!(senders(&mut rest, 2), [(hub.b, 8, udp(2, 0)), (hub.b, 9, udp(3, 0))]);
    assert_eq!(hub.received(2), [(0, 7, udp(11, 0)), (0, 8, udp(12, 0))]);
    assert_eq!(senders(&mut nine, 1), [(0, 9, udp(13, 0))]);
}

#[test]
fn with_an_address_of_its_own_it_goes_over_that_family_alone() {
    let Some(lab) = three("family") else { return };
    let mut hub = Hub::new(&lab, json!({"local": NEAR_V6}));
    let mut a = far(&lab, "a", NEAR_V6);
    let frame = udp(18, 0);
    let drops = hub.send(&[(&frame, hub.b), (&frame, hub.a)]);
    assert_eq!(lost(&drops), [(DropReason::TunnelEnd, 1)]);
    assert_eq!(received(&mut a, 1).0, [frame]);
    assert_eq!(lab.exec("s", "ss -Hun4 -a"), "", "IPv4's UDP port is left to others");
}

#[test]
fn each_end_has_a_path_of_its_own() {
    let Some(lab) = three("paths") else { return };
    let mut hub = Hub::new(&lab, json!({"mss_clamp": true}));
    lab.ip("s", &format!("route replace {FAR}/32 dev portb mtu 1400"));
    lab.ip("s", &format!("route replace {FAR_V6}/128 dev porta mtu 1380"));
    let syn = |mss: usize| {
        let [high, low] = (mss as u16).to_be_bytes();
        let header = Tcp { flags: 2, options: &[2, 4, high, low], ..Tcp::default() };
        Frame::ethernet([2; 6], [4; 6]).ipv4(Ipv4::default()).tcp(header).finish()
    };
    for (end, mut far, mtu) in
        [(hub.b, far(&lab, "b", NEAR), 1350), (hub.a, far(&lab, "a", NEAR_V6), 1310)]
    {
        let (long, fits) = (udp(mtu - 27, 0), udp(mtu - 28, 0));
        assert_eq!(lost(&hub.send(&[(&long, end)])), [(DropReason::TooBig, 1)]);
        let answer = wire::too_big::answer(&long, mtu + 14).expect("an answer");
        assert_eq!(hub.received(1), [(end, 7, answer)], "as if that end had said so");
        assert!(hub.send(&[(&fits, end), (&syn(1460), end)]).is_empty());
        assert_eq!(received(&mut far, 2).0, [fits, syn(mtu - 40)]);
        assert!(send(&mut far, &syn(1460), Offload::default()).is_empty());
        assert_eq!(hub.received(1), [(end, 7, syn(mtu - 40))]);
    }
    hub.port.control.set_mtu(1200).expect("any");
    let long = udp(1173, 0);
    let drops = hub.send(&[(&long, hub.b), (&long, hub.a)]);
    assert_eq!(lost(&drops), [(DropReason::TooBig, 2)], "the MTU asked for is all ends'");
}

#[test]
fn linux_is_an_end_too_over_ipv6() {
    let Some(lab) = three("linux") else { return };
    let mut hub = Hub::new(&lab, json!({}));
    let vxlan = format!("type vxlan id 7 local {FAR_V6} remote {NEAR_V6} dstport 4789");
    lab.ip("a", &format!("link add vx0 address 02:00:00:00:00:02 {vxlan}"));
    lab.ip("a", "link set vx0 up");
    lab.ip("a", "addr add 10.9.0.2/24 dev vx0");
    lab.ip("a", "neigh replace 10.9.0.1 lladdr 02:00:00:00:00:01 dev vx0");
    let [here, there] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];
    let header = Ipv4 { src: [10, 9, 0, 1].into(), dst: [10, 9, 0, 2].into(), ..Ipv4::default() };
    let ping = Frame::ethernet(there, here).ipv4(header).icmp(8, 0).payload(&[0x5a; 40]).finish();
    assert!(hub.send(&[(&ping, hub.a)]).is_empty());
    // What else the guest of that kernel says is no matter.
    let is_reply = |frame: &[u8]| frame[12..14] == [8, 0] && frame[23] == 1 && frame[34] == 0;
    let reply = loop {
        let came = hub.received(1);
        assert!(came.iter().all(|(from, vni, _)| (*from, *vni) == (hub.a, 7)));
        if let Some((_, _, reply)) = came.into_iter().find(|(_, _, frame)| is_reply(frame)) {
            break reply;
        }
    };
    assert_eq!((&reply[..6], &reply[6..12]), (&here[..], &there[..]));
}
