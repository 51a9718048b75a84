//! Storms of fragments, outside of a tunnel and inside: what else it carries loses nothing, memory stays bounded, and what is lost is counted.
//!
//! suiro sends no fragments of outer packets; those of other tunnel ends are put together by the kernel before a tunnel's socket sees them, and what
//! the kernel keeps for that is bounded (`ipfrag_high_thresh`). Fragments inside are frames like others.

use crate::pair::{Kind, Pair};
use crate::paths::within;
use acceptance::{Place, privileged, sh, until};
use rustix::net::{AddressFamily, SendFlags, SocketType, ipproto, sendto, socket};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

/// Fragments of the underlay's storm, and of a guest's, who is slower.
const OUTSIDE: u32 = 300_000;
const INSIDE: u32 = 100_000;
/// Bytes that the kernel may hold beyond its limit: the fragment that each core was just adding.
const OVERSHOOT: u64 = 128 << 10;
/// Growth of the node's memory that is none: 16 MiB.
const NO_GROWTH_KIB: u64 = 16 << 10;

/// Tunnels that are tried.
const KINDS: [Kind; 3] = [
    Kind { is_v6: false, is_sealed: false },
    Kind { is_v6: true, is_sealed: false },
    Kind { is_v6: false, is_sealed: true },
];

/// Fragments of UDP datagrams between two addresses, sent from one namespace.
struct Source {
    socket: OwnedFd,
    from: IpAddr,
    to: IpAddr,
}

/// Where a fragment is in its datagram.
#[derive(Clone, Copy)]
struct Part {
    id: u32,
    /// In bytes, a multiple of 8.
    offset: u16,
    more: bool,
}

impl Source {
    fn new(netns: &str, from: &str, to: &str) -> Self {
        let (from, to): (IpAddr, IpAddr) = (from.parse().unwrap(), to.parse().unwrap());
        let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        // Of this protocol the packet's header is ours.
        let socket = within(netns, || socket(family, SocketType::RAW, Some(ipproto::RAW)).unwrap());
        Self { socket, from, to }
    }

    fn send(&self, part: Part, payload: &[u8]) {
        let packet = [&self.header(part, payload.len())[..], payload].concat();
        // A device that is full says so: the storm goes on.
        let _ = sendto(&self.socket, &packet, SendFlags::empty(), &SocketAddr::new(self.to, 0));
    }

    /// IPv4's header (RFC 791 §3.1), or IPv6's with the fragment header (RFC 8200 §4.5).
    fn header(&self, Part { id, offset, more }: Part, len: usize) -> Vec<u8> {
        const TTL: u8 = 64;
        const UDP: u8 = 17;
        const FRAGMENT: u8 = 44;
        match (self.from, self.to) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let ([id1, id2], place) =
                    ((id as u16).to_be_bytes(), (offset / 8) | (u16::from(more) << 13));
                let [len, place] = [20 + len as u16, place].map(u16::to_be_bytes);
                // The kernel writes the checksum.
                let fixed = [0x45, 0, len[0], len[1], id1, id2, place[0], place[1], TTL, UDP, 0, 0];
                [&fixed[..], &from.octets(), &to.octets()].concat()
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let (len, place) =
                    ((8 + len as u16).to_be_bytes(), (offset | u16::from(more)).to_be_bytes());
                let fixed = [0x60, 0, 0, 0, len[0], len[1], FRAGMENT, TTL];
                let fragment = [&[UDP, 0, place[0], place[1]][..], &id.to_be_bytes()].concat();
                [&fixed[..], &from.octets(), &to.octets(), &fragment].concat()
            }
            _ => unreachable!("addresses of one family"),
        }
    }

    /// So many fragments of which no datagram becomes whole, each with 64 bytes: first ones and the same once more, overlapping; middle and last
    /// ones without a first.
    fn storm(&self, count: u32, port: u16) {
        let mut payload = [0x5a; 64];
        payload[..8].copy_from_slice(&udp(port, 1000));
        for number in 0..count {
            let id = number + 1;
            let part = |offset, more| Part { id, offset, more };
            match number % 4 {
                0 => self.send(part(0, true), &payload),
                1 => self.send(Part { id: id - 1, offset: 8, more: true }, &payload),
                2 => self.send(part(1024, true), &payload),
                _ => self.send(part(2048, false), &payload),
            }
        }
    }

    /// A datagram in two fragments.
    fn whole(&self, id: u32, port: u16, bytes: &[u8]) {
        let mut datagram = [&udp(port, bytes.len())[..], bytes].concat();
        let sum = self.checksum(&datagram);
        datagram[6..8].copy_from_slice(&sum.to_be_bytes());
        let (first, rest) = datagram.split_at(40);
        self.send(Part { id, offset: 0, more: true }, first);
        self.send(Part { id, offset: 40, more: false }, rest);
    }

    /// UDP's (RFC 768; RFC 8200 §8.1), over a datagram whose own is still 0.
    fn checksum(&self, datagram: &[u8]) -> u16 {
        let octets = |address: IpAddr| match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        let pseudo = [&[0, 17][..], &(datagram.len() as u16).to_be_bytes()].concat();
        let all = [&octets(self.from)[..], &octets(self.to), &pseudo, datagram].concat();
        let word =
            |pair: &[u8]| u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u64::from(low));
        let mut sum: u64 = all.chunks(2).map(word).sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        if sum == 0xffff { 0xffff } else { !(sum as u16) }
    }
}

/// A UDP header without a checksum.
fn udp(port: u16, len: usize) -> [u8; 8] {
    let [from, to, len] = [4000, port, 8 + len as u16].map(u16::to_be_bytes);
    [from[0], from[1], to[0], to[1], len[0], len[1], 0, 0]
}

/// Bytes of fragments that a host's kernel keeps.
fn kept(place: &Place, is_v6: bool) -> u64 {
    let file = if is_v6 { "/proc/net/sockstat6" } else { "/proc/net/sockstat" };
    let text = within(&place.netns, || {
        std::fs::read_to_string(file.replace("/proc/", "/proc/thread-self/")).unwrap()
    });
    let line = text.lines().find(|line| line.starts_with("FRAG")).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// Memory of a node.
fn memory_kib(place: &Place) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", place.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Does `work` while guests exchange datagrams of so many bytes, of which none may be lost; returns how many they were.
fn beside(pair: &Pair, len: usize, work: impl FnOnce()) -> u64 {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let flow = scope.spawn(|| pair.exchange(len, &done));
        work();
        done.store(true, Relaxed);
        flow.join().unwrap()
    })
}

/// Whether a datagram that the other end sent in two fragments is put together for the tunnel.
fn is_put_together(pair: &Pair, kind: Kind, source: &Source, id: u32) -> bool {
    // Of VNI 7, or of the SPI that is received.
    let bytes = if kind.is_sealed { [0, 0, 0x10, 1] } else { [8, 0, 0, 0] };
    let bytes = [&bytes[..], &[0, 0, 7, 0], &[0; 60]].concat();
    let kernel = |counter: &str| pair.kernel(1, &kind.counter(counter));
    let (asked, before) = (kernel("ReasmReqds"), kernel("ReasmOKs"));
    source.whole(id, kind.port(), &bytes);
    until("both fragments are there", || kernel("ReasmReqds") >= asked + 2);
    kernel("ReasmOKs") > before
}

#[test]
fn a_storm_of_fragments_in_the_underlay_costs_a_tunnel_nothing() {
    if !privileged() {
        return;
    }
    for kind in KINDS {
        let pair = Pair::new(kind);
        let [near, far] = kind.hosts();
        let peer = Source::new(&pair.hosts[0].netns, near, far);
        let storm = Source::new(
            &pair.hosts[0].netns,
            if kind.is_v6 { "2001:db8::66" } else { "192.0.2.66" },
            far,
        );
        assert!(beside(&pair, 100, || ()) > 0 && is_put_together(&pair, kind, &peer, 1));
        let before = memory_kib(&pair.hosts[1]);
        let innocent = beside(&pair, 100, || storm.storm(OUTSIDE, kind.port()));
        let kernel = |counter: &str| pair.kernel(1, &kind.counter(counter));
        let (asked, failed) = (kernel("ReasmReqds"), kernel("ReasmFails"));
        let (bytes, limit) = (kept(&pair.hosts[1], kind.is_v6), limit(&pair.hosts[1], kind, None));
        println!(
            "{kind:?}: {asked} fragments came, {failed} failed, {bytes} bytes kept of {limit}; beside it {innocent} datagrams each way, none lost"
        );
        assert!(asked >= u64::from(OUTSIDE) / 2 && failed >= asked / 2, "{asked} {failed}");
        assert!((limit / 2..limit + OVERSHOOT).contains(&bytes), "{bytes} of {limit}");
        assert!(memory_kib(&pair.hosts[1]) < before + NO_GROWTH_KIB);
        // What it does cost: a peer that fragments is no longer heard, until there is room.
        assert!(!is_put_together(&pair, kind, &peer, 2), "there is no room");
        self::limit(&pair.hosts[1], kind, Some(2 * limit));
        assert!(is_put_together(&pair, kind, &peer, 3), "there is room again");
    }
}

/// Bytes of fragments that a host's kernel may keep, after setting it to `new` if given.
fn limit(place: &Place, kind: Kind, new: Option<u64>) -> u64 {
    let name = if kind.is_v6 { "ipv6/ip6frag" } else { "ipv4/ipfrag" };
    within(&place.netns, || {
        let file = format!("/proc/sys/net/{name}_high_thresh");
        new.inspect(|new| std::fs::write(&file, new.to_string()).unwrap());
        std::fs::read_to_string(&file).unwrap().trim().parse().unwrap()
    })
}

#[test]
fn a_storm_of_fragments_from_a_guest_is_frames_like_others() {
    if !privileged() {
        return;
    }
    for kind in KINDS {
        let pair = Pair::new(kind);
        let guest = pair.hosts[0].guest("s");
        let storm = Source::new(&guest, "10.0.0.11", "10.0.0.12");
        sh(&["ip", "netns", "exec", &guest, "ping", "-c", "1", "-W", "5", "10.0.0.12"]);
        // The innocent flow's datagrams too are fragments: three each.
        beside(&pair, 4000, || ());
        // Frames that left by the tunnel, and how many more these are than came out of it or found no room in its socket. Those are read first: a frame that goes on its way
        // meanwhile is one more, never one less (and what came may be counted before it is counted as sent). At first some may be on their way already.
        let on_their_way = || {
            let lost = pair.kernel(1, kind.counter_of_sockets());
            let told = pair.counted(1, "tun0", "rx_frames") + lost;
            let sent = pair.counted(0, "tun0", "tx_frames");
            (sent, sent.saturating_sub(told))
        };
        let (_, before) = on_their_way();
        let innocent = beside(&pair, 4000, || storm.storm(INSIDE, 9));
        let came = pair.counted(0, "s", "rx_frames");
        println!(
            "{kind:?}: {came} of a guest's {INSIDE} fragments came; beside it {innocent} datagrams of 3 each way, none lost"
        );
        // What the guest sent faster than its port takes it, its own interface dropped.
        let told = came + dropped_by(&guest);
        assert!(came >= u64::from(INSIDE) / 10 && told >= u64::from(INSIDE), "{came} {told}");
        until("all have crossed", || {
            let (sent, missing) = on_their_way();
            missing <= before && sent > came
        });
    }
}

/// Frames for which a guest's interface had no room.
fn dropped_by(netns: &str) -> u64 {
    let show = ["-n", netns, "-j", "-s", "link", "show", "dev", "eth0"];
    let links = Command::new("ip").args(show).output().unwrap().stdout;
    let links: serde_json::Value = serde_json::from_slice(&links).unwrap();
    links[0]["stats64"]["tx"]["dropped"].as_u64().unwrap()
}
