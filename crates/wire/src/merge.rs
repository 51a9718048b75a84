//! Putting TCP segments together again (GRO), the inverse of [`crate::segment`]: cut there, what was merged here is the same frames again.
//!
//! Segments are merged that a sender cut from one: the same headers but for lengths, checksums, sequence numbers and IPv4 ids that count up, all of one
//! length but the last, PSH and FIN on the last alone, and every checksum right (or left to do, between interfaces of one host). They may be in GRE or
//! IP in IP, whose IP headers then count up as well.

use crate::checksum::{fold, sum};
use crate::ip::{self, IpPacket};
use crate::nested::{self, ip_in_frame};
use crate::parse::chunk;
use crate::segment::write_ip;
use crate::tunnel::Gre;
use crate::{Gso, HEAD_MAX, Offload, PartialChecksum, ip_proto};

/// Least payload of a segment, as [`crate::segment::plan`] has it.
const LEAST: usize = 8;
/// Where a TCP header has its checksum (RFC 9293 §3.1).
const CHECKSUM: usize = 16;

const ACK: u8 = 0x10;
const ECE: u8 = 0x40;
/// Flags that say that no segment follows.
const LAST: u8 = 0x09; // PSH, FIN

/// Whether a frame that begins with `head` is TCP, or a tunnel without UDP, behind tags, shims or an I-TAG: others begin no train.
pub fn may_begin(head: &[u8]) -> bool {
    let packet = ip_in_frame(head, 0).and_then(|at| ip::packet(head, at));
    packet.is_some_and(|packet| packet.proto == ip_proto::TCP || is_tunnel(head, &packet))
}

/// Whether all of a packet's bytes between its IP header and the packet inside are the same in all segments.
fn is_tunnel(head: &[u8], packet: &IpPacket) -> bool {
    let gre = || packet.l4.and_then(|l4| Gre::parse(head.get(l4..)?));
    match packet.proto {
        ip_proto::IPV4 | ip_proto::IPV6 => true,
        ip_proto::GRE => {
            gre().is_some_and(|(gre, _)| gre.checksum.is_none() && gre.sequence.is_none())
        }
        _ => false,
    }
}

/// An IP header, and where what follows it begins.
#[derive(Clone, Copy, Debug)]
struct Network {
    ip: usize,
    l4: usize,
    is_v6: bool,
}

impl Network {
    fn of(packet: &IpPacket) -> Option<Self> {
        Some(Self { ip: packet.at, l4: packet.l4?, is_v6: packet.version == 6 })
    }

    fn is_right(&self, frame: &[u8]) -> bool {
        self.is_v6 || fold(sum(&frame[self.ip..self.l4])) == 0xffff
    }

    /// Whether it is the header of the segment with this index, of a frame of `len` bytes.
    fn is_alike(&self, first: &[u8], next: &[u8], index: usize, len: usize) -> bool {
        let &Self { ip, l4, is_v6 } = self;
        if is_v6 {
            return word(next, ip + 4) == (len - ip - 40) as u16
                && first[ip..ip + 4] == next[ip..ip + 4]
                && first[ip + 6..l4] == next[ip + 6..l4];
        }
        word(next, ip + 2) == (len - ip) as u16
            && word(next, ip + 4) == word(first, ip + 4).wrapping_add(index as u16)
            && first[ip..ip + 2] == next[ip..ip + 2]
            && first[ip + 6..ip + 10] == next[ip + 6..ip + 10]
            && first[ip + 12..l4] == next[ip + 12..l4]
    }
}

/// Segments that follow each other.
#[derive(Clone, Copy, Debug)]
pub struct Train {
    /// Of the tunnel that they are in.
    around: Option<Network>,
    network: Network,
    /// Bytes of headers in front of each payload.
    headers: usize,
    /// Addresses and protocol.
    pseudo: u64,
    /// Payload of each segment but the last.
    size: usize,
    /// Payload of all.
    payload: usize,
    count: usize,
    /// [`LAST`] of the last one.
    last: u8,
}

impl Train {
    /// A train of this frame alone; `None` for one that no other may follow.
    pub fn begin(frame: &[u8]) -> Option<Self> {
        let packet = ip_in_frame(frame, 0).and_then(|at| ip::packet(frame, at))?;
        let train = match is_tunnel(frame, &packet) {
            true => Self::of(&nested::inside(frame, &packet)?, Some(Network::of(&packet)?), frame),
            false => Self::of(&packet, None, frame),
        };
        train.filter(|train| train.is_right(frame))
    }

    fn of(packet: &IpPacket, around: Option<Network>, frame: &[u8]) -> Option<Self> {
        let network = Network::of(packet)?;
        let (l4, pseudo) = (network.l4, packet.addresses? + u64::from(packet.proto));
        let header: &[u8; 20] = chunk(frame, l4)?;
        let headers = l4 + usize::from(header[12] >> 4) * 4;
        let is_whole =
            packet.proto == ip_proto::TCP && !packet.is_fragment && packet.end == Some(frame.len());
        let is_plain = header[12] & 0xf == 0 && header[13] & !(ECE | LAST) == ACK;
        let payload = frame.len().checked_sub(headers)?;
        // Who cuts it again looks for all headers in a frame's head.
        let fits = (l4 + 20..=HEAD_MAX).contains(&headers) && payload >= LEAST;
        let last = header[13] & LAST;
        (is_whole && is_plain && fits).then_some(Self {
            around,
            network,
            headers,
            pseudo,
            size: payload,
            payload,
            count: 1,
            last,
        })
    }

    /// From the outermost on.
    fn networks(&self) -> impl Iterator<Item = &Network> {
        self.around.iter().chain([&self.network])
    }

    /// Whether the checksums of a frame with these headers are right; the TCP one may also be left to do.
    fn is_right(&self, frame: &[u8]) -> bool {
        let segment = &frame[self.network.l4..];
        let pseudo = self.pseudo + segment.len() as u64;
        let field = u16::from_be_bytes([segment[CHECKSUM], segment[CHECKSUM + 1]]);
        let is_header_right = self.networks().all(|network| network.is_right(frame));
        is_header_right && (field == fold(pseudo) || fold(sum(segment) + pseudo) == 0xffff)
    }

    /// Whether `frame` is the next segment after those in the train, the first of which begins with `first`.
    pub fn precedes(&self, first: &[u8], frame: &[u8]) -> bool {
        let payload = frame.len().saturating_sub(self.headers);
        let outermost = self.around.unwrap_or(self.network).ip;
        let is_room = self.headers - outermost + self.payload + payload <= usize::from(u16::MAX);
        let may_follow = self.last == 0 && self.payload == self.count * self.size;
        may_follow
            && is_room
            && (1..=self.size).contains(&payload)
            && self.is_alike(&first[..self.headers], &frame[..self.headers], frame.len())
            && self.is_right(frame)
    }

    /// Whether the headers are those that cutting would have given the next segment, checksums aside.
    fn is_alike(&self, first: &[u8], next: &[u8], len: usize) -> bool {
        let mut at = 0;
        for network in self.networks() {
            let is_same_before = first[at..network.ip] == next[at..network.ip];
            if !is_same_before || !network.is_alike(first, next, self.count, len) {
                return false;
            }
            at = network.l4;
        }
        self.is_tcp_alike(&first[at..], &next[at..])
    }

    fn is_tcp_alike(&self, first: &[u8], next: &[u8]) -> bool {
        let number = u32::from(word(first, 4)) << 16 | u32::from(word(first, 6));
        let sequence = number.wrapping_add(self.payload as u32).to_be_bytes();
        next[4..8] == sequence
            && first[..4] == next[..4]
            && first[8..13] == next[8..13]
            && (first[13] ^ next[13]) & !LAST == 0
            && first[14..CHECKSUM] == next[14..CHECKSUM]
            && first[CHECKSUM + 2..] == next[CHECKSUM + 2..]
    }

    /// Takes `frame`, which it [precedes](Self::precedes); returns the bytes of headers before its payload, which goes behind the others.
    pub fn add(&mut self, frame: &[u8]) -> usize {
        self.payload += frame.len() - self.headers;
        self.count += 1;
        self.last = frame[self.network.l4 + 13] & LAST;
        self.headers
    }

    /// Bytes of the whole frame.
    pub fn len(&self) -> usize {
        self.headers + self.payload
    }

    /// Never: a train has a segment.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Makes of the first segment's headers those of the whole frame; its state, in which its checksum is left to do. A train of one stays as it is.
    pub fn finish(&self, first: &mut [u8]) -> Offload {
        if self.count == 1 {
            return Offload::default();
        }
        let (Network { l4, is_v6, .. }, end) = (self.network, self.len());
        for network in self.networks() {
            write_ip(network.is_v6, (network.ip, network.l4), (0, end), first);
        }
        first[l4 + 13] |= self.last;
        put(first, l4 + CHECKSUM, fold(self.pseudo + (end - l4) as u64));
        Offload {
            checksum: Some(PartialChecksum { start: l4 as u16, offset: CHECKSUM as u16 }),
            gso: if is_v6 { Gso::TcpV6 } else { Gso::TcpV4 },
            gso_size: self.size as u16,
            ..Offload::default()
        }
    }
}

/// The 16-bit word at `at`, inside the headers of a train.
fn word(headers: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([headers[at], headers[at + 1]])
}

fn put(headers: &mut [u8], at: usize, value: u16) {
    headers[at..at + 2].copy_from_slice(&value.to_be_bytes());
}
