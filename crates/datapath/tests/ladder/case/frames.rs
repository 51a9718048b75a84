//! Random frames: batches that are all alike, that differ in little, and that are hostile.

use crate::line::Wired;
use crate::random::Random;
use std::net::Ipv4Addr;
use wire::build::{Arp, Frame, Ipv4, Ipv6, Tcp};
use wire::{Gso, Offload, PartialChecksum};

/// Stations.
pub const MACS: [u64; 4] = [0x0200_0000_0001, 0x0200_0000_0002, 0x0200_0000_0003, 0x0200_0000_0004];

/// The host of this number.
pub fn address(number: u64) -> Ipv4Addr {
    Ipv4Addr::new(10, (number % 3) as u8, 0, number as u8)
}

/// A frame, and the tunnel id under which it comes if its port is a tunnel.
pub struct Arriving {
    pub frame: Wired,
    pub tunnel_id: u32,
}

/// How the frames of a case differ.
pub struct Mix {
    kind: u64,
    len: u64,
}

impl Mix {
    pub fn new(random: &mut Random, is_plain: bool) -> Self {
        let kind = random.below(if is_plain { 4 } else { 5 });
        Self { kind, len: random.of(&[1, 60, 300, 1600]) }
    }

    /// So many frames.
    pub fn batch(&self, random: &mut Random, count: u64) -> Vec<Arriving> {
        let flow = random.below(24);
        (0..count).map(|number| self.one(random, flow, number)).collect()
    }

    fn one(&self, random: &mut Random, flow: u64, number: u64) -> Arriving {
        let len = random.below(self.len) as usize;
        let any = random.below(24);
        let frame = match self.kind {
            0 => udp(flow, 1000, 64).into(),
            1 => udp(flow, 1000 + number as u16, len).into(),
            2 => udp(any, 1000, len).into(),
            3 if random.one_in(200) => hostile(random, any),
            3 => udp(any, 1000, len).into(),
            _ => hostile(random, any),
        };
        Arriving { frame, tunnel_id: random.below(3) as u32 }
    }
}

fn mac(number: u64) -> [u8; 6] {
    let bytes = MACS[number as usize % MACS.len()].to_be_bytes();
    bytes[2..].try_into().unwrap()
}

fn udp(to: u64, port: u16, payload: usize) -> Vec<u8> {
    let header = Ipv4 { dst: address(to), ..Ipv4::default() };
    let body: Vec<u8> = (0..payload).map(|at| (at as u8).wrapping_add(port as u8)).collect();
    Frame::ethernet(mac(to), mac(to / 4 + 1))
        .ipv4(header)
        .udp(port, 2000 + port % 4)
        .payload(&body)
        .finish()
}

/// A frame of any kind, cut, changed, or with a state that may contradict it.
fn hostile(random: &mut Random, to: u64) -> Wired {
    let ethernet = Frame::ethernet(mac(to), mac(random.below(4)));
    let body = vec![to as u8; random.below(1700) as usize];
    let header = Ipv4 { dst: address(to), ttl: random.of(&[0, 1, 2, 64]), ..Ipv4::default() };
    let fragment = random.of(&[0x2000, 0x0010, 0x2010]);
    let mut bytes = match random.below(8) {
        0 => {
            let (spa, tpa) = (address(to), address(to + 1));
            ethernet.arp(Arp { op: 1, sha: mac(to), spa, tha: [0; 6], tpa }).finish()
        }
        1 => ethernet.vlan(0x8100, 7).ipv4(header).tcp(Tcp::default()).payload(&body).finish(),
        2 => ethernet.ipv6(Ipv6::default()).udp(1, 2000).payload(&body).finish(),
        3 => ethernet.ipv4(Ipv4 { fragment, ..header }).udp(1, 2001).payload(&body).finish(),
        4 => Frame::ethernet([0x01, 0x80, 0xc2, 0, 0, 0], mac(to)).finish(),
        5 => Frame::ethernet([0xff; 6], mac(to)).ipv4(header).icmp(8, 0).payload(&body).finish(),
        6 => udp(to, 1000, 20),
        _ => ethernet.ipv4(header).tcp(Tcp::default()).payload(&body).finish(),
    };
    if random.one_in(3) {
        let at = random.below(bytes.len().min(60) as u64) as usize;
        bytes[at] = random.below(256) as u8;
    }
    if random.one_in(4) {
        bytes.truncate(random.below(64) as usize);
    }
    let offload = if random.one_in(4) { state(random) } else { Offload::default() };
    Wired { bytes, offload }
}

fn state(random: &mut Random) -> Offload {
    let (start, offset) = (random.of(&[14, 34, 200]), random.of(&[6, 16]));
    Offload {
        checksum: random.one_in(2).then_some(PartialChecksum { start, offset }),
        gso: random.of(&[Gso::None, Gso::TcpV4]),
        gso_size: random.of(&[0, 536, 1448]),
        ..Offload::default()
    }
}
