//! Values to bytes: every length and checksum anew.

use super::frame::{Arp, Extension, Frame, Icmp, Ip, Nd, Payload, Shim, Tag, Tcp, Transport};
use super::sums::{crc32c, internet};

/// What applications say: an odd number of bytes, so that checksums must pad.
const TEXT: &[u8] = b"suiro conformance";

const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;

impl Frame {
    /// The frame as it travels, without FCS.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = [mac(self.dst), mac(self.src)].concat();
        self.tags.iter().for_each(|tag| out.extend(tag.bytes()));
        out.extend(self.eth_type().to_be_bytes());
        self.shims.iter().for_each(|shim| out.extend(shim.bytes()));
        out.extend(self.payload.bytes());
        out
    }
}

fn mac(address: u64) -> [u8; 6] {
    let [_, _, mac @ ..] = address.to_be_bytes();
    mac
}

impl Tag {
    fn bytes(self) -> [u8; 4] {
        let control = u16::from(self.pcp) << 13 | self.vid;
        (u32::from(self.tpid) << 16 | u32::from(control)).to_be_bytes()
    }
}

impl Shim {
    fn bytes(self) -> [u8; 4] {
        let low = u32::from(self.tc) << 9 | u32::from(self.bottom) << 8 | u32::from(self.ttl);
        (self.label << 12 | low).to_be_bytes()
    }
}

impl Payload {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Ip(ip) => ip.bytes(),
            Self::Arp(arp) => arp.bytes(),
            Self::Pbb(pbb) => {
                let control = u32::from(pbb.pcp) << 29 | pbb.isid;
                [control.to_be_bytes().to_vec(), pbb.customer.bytes()].concat()
            }
        }
    }
}

impl Arp {
    fn bytes(&self) -> Vec<u8> {
        let mut out = vec![0, 1, 8, 0, 6, 4];
        out.extend(self.op.to_be_bytes());
        out.extend(mac(self.sha));
        out.extend(self.spa.to_be_bytes());
        out.extend(mac(self.tha));
        out.extend(self.tpa.to_be_bytes());
        out
    }
}

impl Ip {
    fn bytes(&self) -> Vec<u8> {
        let transport = self.transport.bytes(&self.pseudo());
        if self.version == 4 { self.ipv4(&transport) } else { self.ipv6(&transport) }
    }

    /// Addresses and protocol for the pseudo-header (RFC 9293 §3.1, RFC 8200 §8.1); the sums add the length.
    fn pseudo(&self) -> Vec<u8> {
        let width = if self.version == 4 { 4 } else { 16 };
        let [src, dst] = [self.src, self.last_hop()].map(u128::to_be_bytes);
        let mut out = [&src[16 - width..], &dst[16 - width..]].concat();
        out.extend([0, self.transport.proto()]);
        out
    }

    /// The final destination: with segments left, the last address of the routing header (RFC 8200 §8.1).
    fn last_hop(&self) -> u128 {
        let routing = self.extensions.iter().find(|Extension(number, _)| *number == ROUTING);
        match routing.and_then(|Extension(_, body)| body.split_last_chunk::<16>()) {
            Some(([_, left, ..], address)) if *left > 0 => u128::from_be_bytes(*address),
            _ => self.dst,
        }
    }

    fn ipv4(&self, transport: &[u8]) -> Vec<u8> {
        let header = 20 + self.options.len();
        let (offset, more) = self.fragment.unwrap_or((0, false));
        let mut out = vec![0x40 | (header / 4) as u8, self.dscp << 2 | self.ecn];
        out.extend(((header + transport.len()) as u16).to_be_bytes());
        out.extend(0x1234_u16.to_be_bytes());
        out.extend((u16::from(more) << 13 | offset).to_be_bytes());
        out.extend([self.ttl, self.proto(), 0, 0]);
        out.extend((self.src as u32).to_be_bytes());
        out.extend((self.dst as u32).to_be_bytes());
        out.extend(&self.options);
        let sum = internet(&[&out]);
        out[10..12].copy_from_slice(&sum.to_be_bytes());
        out.extend(transport);
        out
    }

    fn ipv6(&self, transport: &[u8]) -> Vec<u8> {
        let (first, chain) = self.chain();
        let class = u32::from(self.dscp << 2 | self.ecn);
        let mut out = (6 << 28 | class << 20 | self.flow_label).to_be_bytes().to_vec();
        out.extend(((chain.len() + transport.len()) as u16).to_be_bytes());
        out.extend([first, self.ttl]);
        out.extend(self.src.to_be_bytes());
        out.extend(self.dst.to_be_bytes());
        out.extend(chain);
        out.extend(transport);
        out
    }

    /// The first next-header value, and the extension headers.
    fn chain(&self) -> (u8, Vec<u8>) {
        let mut headers: Vec<(u8, Vec<u8>)> = Vec::new();
        for Extension(number, body) in &self.extensions {
            let units = (body.len() + 2) / 8 - 1;
            // An authentication header counts in words (RFC 4302 §2.2).
            let len = if *number == 51 { (body.len() + 2) / 4 - 2 } else { units };
            headers.push((*number, [&[0, len as u8], &body[..]].concat()));
        }
        if let Some((offset, more)) = self.fragment {
            let place = offset << 3 | u16::from(more);
            headers.push((FRAGMENT, [&[0, 0][..], &place.to_be_bytes(), &[0, 0, 0, 9]].concat()));
        }
        let mut next = self.proto();
        for (number, header) in headers.iter_mut().rev() {
            header[0] = next;
            next = *number;
        }
        (next, headers.into_iter().flat_map(|(_, header)| header).collect())
    }
}

impl Transport {
    fn bytes(&self, pseudo: &[u8]) -> Vec<u8> {
        match self {
            Self::Tcp(tcp) => tcp.bytes(pseudo),
            Self::Udp(src, dst, has_sum) => udp([*src, *dst], *has_sum, pseudo),
            Self::Sctp(src, dst) => sctp([*src, *dst]),
            Self::Icmpv4(icmp) => icmp.bytes(&[]),
            Self::Icmpv6(icmp) => icmp.bytes(pseudo),
            Self::Nd(nd) => nd.bytes(pseudo),
            Self::Ip(ip) => ip.bytes(),
            Self::Rest(_) => TEXT.to_vec(),
        }
    }
}

impl Tcp {
    fn bytes(self, pseudo: &[u8]) -> Vec<u8> {
        let mut out = [self.src, self.dst].map(u16::to_be_bytes).concat();
        out.extend([0, 0, 0, 1, 0, 0, 0, 2]); // sequence, acknowledgement
        out.extend((0x6000 | self.flags).to_be_bytes()); // six words: one of options
        out.extend([0x20, 0, 0, 0, 0, 0]); // window, checksum, urgent
        out.extend([2, 4, 5, 0xb4]); // maximum segment size
        out.extend(TEXT);
        seal(&mut out, 16, pseudo);
        out
    }
}

fn udp(ports: [u16; 2], has_sum: bool, pseudo: &[u8]) -> Vec<u8> {
    let mut out = ports.map(u16::to_be_bytes).concat();
    out.extend(((8 + TEXT.len()) as u16).to_be_bytes());
    out.extend([0, 0]);
    out.extend(TEXT);
    if has_sum {
        seal(&mut out, 6, pseudo);
        if out[6..8] == [0, 0] {
            out[6..8].fill(0xff); // RFC 768: 0 would mean that there is none
        }
    }
    out
}

fn sctp(ports: [u16; 2]) -> Vec<u8> {
    let mut out = ports.map(u16::to_be_bytes).concat();
    out.extend([0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 0]); // verification tag, checksum
    out.extend([11, 0, 0, 4]); // COOKIE ACK
    let sum = crc32c(&out);
    out[8..12].copy_from_slice(&sum.to_le_bytes());
    out
}

impl Icmp {
    fn bytes(self, pseudo: &[u8]) -> Vec<u8> {
        let mut out = vec![self.kind, self.code, 0, 0, 0, 7, 0, 1]; // identifier, sequence
        out.extend(TEXT);
        seal(&mut out, 2, pseudo);
        out
    }
}

impl Nd {
    fn bytes(self, pseudo: &[u8]) -> Vec<u8> {
        let mut out = vec![self.icmp.kind, self.icmp.code, 0, 0, 0, 0, 0, 0];
        out.extend(self.target.to_be_bytes());
        out.extend([self.option, 1]);
        out.extend(mac(self.address));
        seal(&mut out, 2, pseudo);
        out
    }
}

/// Writes the checksum at `at` over the pseudo-header, which is completed by the length, and the segment. An empty pseudo-header stays empty.
fn seal(segment: &mut [u8], at: usize, pseudo: &[u8]) {
    let len = (segment.len() as u16).to_be_bytes();
    let len = if pseudo.is_empty() { &[][..] } else { &len };
    let sum = internet(&[pseudo, len, segment]);
    segment[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}
