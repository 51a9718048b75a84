//! The outer checksum: there or 0, plain and encrypted, over IPv4 and IPv6; and what is received without one.

use super::{Hosts, received, send, sent, udp, with};
use port::OpenPort;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, ipproto, recv, socket_with};
use serde_json::json;
use std::os::fd::OwnedFd;
use wire::build::{Frame, Ipv4, Tcp};
use wire::{Gso, Offload};

/// Hears every UDP packet that comes to `b`.
struct Wire {
    raw: OwnedFd,
    is_v6: bool,
}

impl Wire {
    fn new(hosts: &Hosts, family: usize) -> Self {
        let domain = [AddressFamily::INET, AddressFamily::INET6][family];
        let (raw, flags) = (SocketType::RAW, SocketFlags::NONBLOCK);
        let open = || socket_with(domain, raw, flags, Some(ipproto::UDP)).expect("root may");
        Self { raw: hosts.inside("b", open), is_v6: family == 1 }
    }

    /// The UDP checksums of what came since the last time.
    fn checksums(&self) -> Vec<u16> {
        let (mut packet, mut checksums) = (vec![0; 1 << 16], Vec::new());
        while recv(&self.raw, &mut packet[..], RecvFlags::empty()).is_ok() {
            // Of IPv6 a raw socket hears what is behind its header.
            let at = if self.is_v6 { 6 } else { 26 };
            checksums.push(u16::from_be_bytes([packet[at], packet[at + 1]]));
        }
        checksums
    }
}

fn end(hosts: &Hosts, place: &str, family: usize, (encrypted, checksum): (bool, bool)) -> OpenPort {
    let spec = hosts.spec(place, family);
    let spec = with(&spec, json!({"outer_checksum": checksum}));
    let plain = || with(&spec, json!({"encrypt": null}));
    let spec = if encrypted { spec.clone() } else { plain() };
    hosts.opener(place).open(&spec).expect("a tunnel")
}

/// A large segment of TCP, which leaves as several packets.
fn large() -> (Vec<u8>, Offload) {
    let frame = Frame::ethernet([2; 6], [4; 6]).ipv4(Ipv4::default()).tcp(Tcp::default());
    let (frame, checksum) = frame.payload(&[7; 4000]).finish_partial().expect("TCP has one");
    let (gso, checksum) = (Gso::TcpV4, Some(checksum));
    (frame, Offload { checksum, gso, gso_size: 1000, ..Offload::default() })
}

#[test]
fn the_outer_checksum_is_there_unless_it_is_off_and_everything_crosses_either_way() {
    let Some(hosts) = Hosts::new("sum") else { return };
    for (number, family, encrypted, checksum) in [
        (1, 0, false, true),
        (2, 0, false, false),
        (3, 1, false, true),
        (4, 1, false, false),
        (5, 0, true, true),
        (6, 0, true, false),
        (7, 1, true, false),
    ] {
        hosts.keys(&[(number, "")]);
        let [mut near, mut far] =
            ["s", "b"].map(|place| end(&hosts, place, family, (encrypted, checksum)));
        let wire = Wire::new(&hosts, family);
        sent(&mut near, &udp(1, 200));
        assert_eq!(received(&mut far, 1), (vec![udp(1, 200)], vec![]));
        let (frame, offload) = large();
        assert_eq!(send(&mut near, &frame, offload), []);
        // Put together or not, as the kernel hands it over.
        let mut bytes = 0;
        while bytes < 4000 {
            let (frames, drops) = received(&mut far, 1);
            assert_eq!(drops, []);
            bytes += frames.iter().map(|frame| frame.len() - 54).sum::<usize>();
        }
        let seen = wire.checksums();
        assert!(seen.len() >= 2 && seen.iter().all(|sum| (*sum != 0) == checksum), "{seen:?}");
        hosts.lab.close("s", near);
        hosts.lab.close("b", far);
    }
}

#[test]
fn over_ipv6_a_datagram_without_checksum_is_taken_by_who_sends_without_one() {
    let Some(hosts) = Hosts::new("sum6") else { return };
    let mut near = end(&hosts, "s", 1, (false, false));
    let refused = || {
        let text = hosts.lab.exec("b", "cat /proc/net/snmp6");
        let line =
            text.lines().find(|line| line.starts_with("Udp6InCsumErrors")).expect("it counts");
        line.split_whitespace().nth(1).expect("a number").to_owned()
    };
    assert_eq!(refused(), "0");
    let strict = end(&hosts, "b", 1, (false, true));
    sent(&mut near, &udp(1, 20));
    while refused() != "1" {
        std::thread::yield_now();
    }
    hosts.lab.close("b", strict);
    let mut far = end(&hosts, "b", 1, (false, false));
    sent(&mut near, &udp(1, 21));
    assert_eq!(received(&mut far, 1), (vec![udp(1, 21)], vec![]));
    assert_eq!(refused(), "1");
}
