//! The headers outside a tunnel's UDP datagram, written and read without a kernel: Ethernet, IPv4 or IPv6, UDP.

use crate::checksum::{fold, pseudo_ipv4, pseudo_ipv6, sum};
use crate::parse::chunk;
use crate::{Gso, Offload, PartialChecksum, eth_type, ip_proto};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

const ETHERNET: usize = 14;
const UDP: usize = 8;
/// Of a header without options.
const IPV4: usize = 20;
const IPV6: usize = 40;
/// Where UDP keeps its checksum.
const UDP_CHECKSUM: u16 = 6;
/// "Don't fragment" (RFC 791 §3.1).
const DF: [u8; 2] = [0x40, 0];

/// What the headers of all packets from one end to another have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outer {
    /// MAC address of the next hop.
    pub mac: [u8; 6],
    /// MAC address of this end's interface.
    pub from_mac: [u8; 6],
    /// This end.
    pub from: IpAddr,
    /// The other end, of the same family.
    pub to: IpAddr,
    /// Its UDP port.
    pub port: u16,
    /// TTL or hop limit.
    pub ttl: u8,
    /// Whether UDP has a checksum.
    pub checksum: bool,
}

impl Outer {
    /// Most bytes of the headers.
    pub const MAX_LEN: usize = ETHERNET + IPV6 + UDP;

    /// Bytes of the headers.
    pub fn len(&self) -> usize {
        ETHERNET + if self.to.is_ipv4() { IPV4 } else { IPV6 } + UDP
    }

    /// Never: see clippy's `len_without_is_empty`.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Bytes that they add to the packets of an underlay, whose MTU does not count Ethernet's header.
    pub fn overhead(&self) -> usize {
        self.len() - ETHERNET
    }

    /// Writes the headers of `payload` bytes to the beginning of `out`; what is still to be done to the frame. With a `segment` the payload is
    /// that of datagrams of so many bytes each, the last perhaps fewer, and the frame a large one (USO).
    ///
    /// A packet is never fragmented, so that its identification means nothing and is 0 (RFC 6864 §4.1).
    ///
    /// # Panics
    /// If there is no room, or the payload is longer than a datagram's.
    pub fn write(
        &self,
        out: &mut [u8],
        (from_port, ds): (u16, u8),
        payload: usize,
        segment: Option<u16>,
    ) -> Offload {
        let out = &mut out[..self.len()];
        let udp_len = u16::try_from(UDP + payload).expect("a datagram has 16 bits of length");
        out[..6].copy_from_slice(&self.mac);
        out[6..12].copy_from_slice(&self.from_mac);
        let pseudo = match (self.from, self.to) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                out[12..14].copy_from_slice(&eth_type::IPV4.to_be_bytes());
                self.write_v4(&mut out[ETHERNET..], (from, to), udp_len, ds);
                pseudo_ipv4(from.to_bits(), to.to_bits(), ip_proto::UDP, udp_len.into())
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                out[12..14].copy_from_slice(&eth_type::IPV6.to_be_bytes());
                self.write_v6(&mut out[ETHERNET..], (from, to), udp_len, ds);
                pseudo_ipv6(from.to_bits(), to.to_bits(), ip_proto::UDP, udp_len.into())
            }
            _ => panic!("the ends of a tunnel are of one family"),
        };
        let start = out.len() - UDP;
        let words = [from_port, self.port, udp_len, if self.checksum { fold(pseudo) } else { 0 }];
        for (place, word) in out[start..].chunks_exact_mut(2).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        let partial = PartialChecksum { start: start as u16, offset: UDP_CHECKSUM };
        Offload {
            checksum: self.checksum.then_some(partial),
            gso: if segment.is_some() { Gso::Udp } else { Gso::None },
            gso_size: segment.unwrap_or(0),
            ..Offload::default()
        }
    }

    fn write_v4(&self, out: &mut [u8], (from, to): (Ipv4Addr, Ipv4Addr), udp_len: u16, ds: u8) {
        let total = udp_len.saturating_add(IPV4 as u16);
        let header = &mut out[..IPV4];
        header[..2].copy_from_slice(&[0x45, ds]);
        header[2..4].copy_from_slice(&total.to_be_bytes());
        header[4..6].fill(0);
        header[6..8].copy_from_slice(&DF);
        header[8..12].copy_from_slice(&[self.ttl, ip_proto::UDP, 0, 0]);
        header[12..16].copy_from_slice(&from.octets());
        header[16..20].copy_from_slice(&to.octets());
        let checksum = !fold(sum(header));
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
    }

    fn write_v6(&self, out: &mut [u8], (from, to): (Ipv6Addr, Ipv6Addr), udp_len: u16, ds: u8) {
        let header = &mut out[..IPV6];
        header[..4].copy_from_slice(&(0x6000_0000 | u32::from(ds) << 20).to_be_bytes());
        header[4..6].copy_from_slice(&udp_len.to_be_bytes());
        header[6..8].copy_from_slice(&[ip_proto::UDP, self.ttl]);
        header[8..24].copy_from_slice(&from.octets());
        header[24..40].copy_from_slice(&to.octets());
    }
}

/// A UDP datagram, or several of one length in a large frame, as a host finds it in a frame of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// MAC address that it was sent to.
    pub mac: [u8; 6],
    /// Who sent it.
    pub from: IpAddr,
    /// To whom.
    pub to: IpAddr,
    /// UDP ports: the sender's, and the other.
    pub ports: (u16, u16),
    /// The DS field.
    pub ds: u8,
    /// Where its payload is in the frame.
    pub payload: Range<usize>,
    /// Bytes of each datagram in it but the last, which may be shorter; 0: it is one.
    pub segment: usize,
    /// The sum of what UDP's checksum covers before the payload, if there is one to verify: `fold(sum + payload)` is `0xffff` then.
    pub sum: Option<u64>,
}

impl Datagram {
    /// The datagram in a frame of `frame_len` bytes that begins with `head`, in this state.
    ///
    /// `None` for whatever the plain way of a host's network has to look at: other protocols, tags, options, extension headers, fragments, an
    /// IPv4 header that is wrong, lengths that contradict each other, and large frames of another kind.
    pub fn find(head: &[u8], frame_len: usize, offload: &Offload) -> Option<Self> {
        let mac = *chunk(head, 0)?;
        let at = ETHERNET;
        let (from, to, ds, udp, end) = match u16::from_be_bytes(*chunk(head, 12)?) {
            eth_type::IPV4 => {
                let header: &[u8; IPV4] = chunk(head, at)?;
                let is_whole = header[6] & 0x3f == 0 && header[7] == 0;
                let is_plain = header[0] == 0x45 && header[9] == ip_proto::UDP;
                if !is_whole || !is_plain || fold(sum(header)) != 0xffff {
                    return None;
                }
                let address = |at: usize| Some(Ipv4Addr::from(*chunk::<4>(header, at)?).into());
                let len = usize::from(u16::from_be_bytes([header[2], header[3]]));
                (address(12)?, address(16)?, header[1], at + IPV4, at + len)
            }
            eth_type::IPV6 => {
                let header: &[u8; IPV6] = chunk(head, at)?;
                if header[0] >> 4 != 6 || header[6] != ip_proto::UDP {
                    return None;
                }
                let address = |at: usize| Some(Ipv6Addr::from(*chunk::<16>(header, at)?).into());
                let ds = (u16::from_be_bytes([header[0], header[1]]) >> 4) as u8;
                let len = usize::from(u16::from_be_bytes([header[4], header[5]]));
                (address(8)?, address(24)?, ds, at + IPV6, at + IPV6 + len)
            }
            _ => return None,
        };
        let header: &[u8; UDP] = chunk(head, udp)?;
        let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let partial = PartialChecksum { start: udp as u16, offset: UDP_CHECKSUM };
        let is_open = offload.checksum == Some(partial);
        let segment = match offload.gso {
            Gso::None => 0,
            Gso::Udp => usize::from(offload.gso_size),
            Gso::TcpV4 | Gso::TcpV6 => return None,
        };
        // Another checksum that is open is of what is inside: the payload may not be what UDP's checksum, if there is one, was made for.
        let is_known = is_open || offload.checksum.is_none() || word(6) == 0;
        let agrees = usize::from(word(4)) == end.checked_sub(udp)? && end <= frame_len;
        if !is_known
            || !agrees
            || word(4) < UDP as u16
            || (segment == 0) != (offload.gso == Gso::None)
        {
            return None;
        }
        let has_sum = word(6) != 0 && !is_open && !offload.verified;
        let pseudo = match (from, to) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                pseudo_ipv4(from.to_bits(), to.to_bits(), ip_proto::UDP, word(4).into())
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                pseudo_ipv6(from.to_bits(), to.to_bits(), ip_proto::UDP, word(4).into())
            }
            _ => return None,
        };
        Some(Self {
            mac,
            from,
            to,
            ports: (word(0), word(2)),
            ds,
            payload: udp + UDP..end,
            segment,
            sum: has_sum.then(|| pseudo + sum(header)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{Frame, Ipv4, Ipv6};
    use crate::checksum::complete;
    use proptest::prelude::*;

    fn outer(is_v4: bool, checksum: bool) -> Outer {
        let address = |host: u16| match is_v4 {
            true => Ipv4Addr::new(192, 0, 2, host as u8).into(),
            false => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, host).into(),
        };
        let (mac, from_mac) = ([2, 0, 0, 0, 0, 9], [2, 0, 0, 0, 0, 1]);
        Outer { mac, from_mac, from: address(1), to: address(2), port: 4789, ttl: 64, checksum }
    }

    /// The frame that the builder, which sums by itself, makes of the same.
    fn built(outer: &Outer, port: u16, ds: u8, payload: &[u8]) -> Vec<u8> {
        let link = Frame::ethernet(outer.mac, outer.from_mac);
        let frame = match (outer.from, outer.to) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => link.ipv4(Ipv4 {
                src,
                dst,
                tos: ds,
                ttl: outer.ttl,
                fragment: 0x4000,
                ..Ipv4::default()
            }),
            (IpAddr::V6(src), IpAddr::V6(dst)) => link.ipv6(Ipv6 {
                src,
                dst,
                traffic_class: ds,
                hop_limit: outer.ttl,
                ..Ipv6::default()
            }),
            _ => unreachable!("of one family"),
        };
        frame.udp(port, outer.port).payload(payload).finish()
    }

    proptest! {
        #[test]
        fn what_is_written_is_what_the_builder_makes_and_is_found_again(
            is_v4: bool, checksum: bool, port: u16, ds: u8, payload in prop::collection::vec(any::<u8>(), 0..1500)
        ) {
            let outer = outer(is_v4, checksum);
            let mut frame = vec![0xee; outer.len() + payload.len()];
            frame[outer.len()..].copy_from_slice(&payload);
            let offload = outer.write(&mut frame, (port, ds), payload.len(), None);
            let found = Datagram::find(&frame, frame.len(), &offload).unwrap();
            prop_assert_eq!((found.mac, found.from, found.to), (outer.mac, outer.from, outer.to));
            prop_assert_eq!((found.ports, found.ds, found.segment), ((port, 4789), ds, 0));
            prop_assert_eq!(&frame[found.payload], &payload[..]);
            prop_assert_eq!((offload.checksum.is_some(), found.sum), (checksum, None));
            if let Some(partial) = offload.checksum {
                complete(&mut frame, partial).unwrap();
                prop_assert_eq!(&frame, &built(&outer, port, ds, &payload));
                let found = Datagram::find(&frame, frame.len(), &Offload::default()).unwrap();
                prop_assert_eq!(fold(found.sum.unwrap() + sum(&payload)), 0xffff);
            }
        }

        #[test]
        fn whatever_bytes_come_nothing_is_found_outside_them(
            bytes in prop::collection::vec(any::<u8>(), 0..120), is_v6: bool, gso_size: u16
        ) {
            let mut bytes = bytes;
            if let Some(kind) = bytes.get_mut(12..24) {
                kind[..3].copy_from_slice(if is_v6 { &[0x86, 0xdd, 0x60] } else { &[8, 0, 0x45] });
                kind[11] = ip_proto::UDP;
            }
            let offload = Offload { gso: Gso::Udp, gso_size, ..Offload::default() };
            if let Some(found) = Datagram::find(&bytes, bytes.len(), &offload) {
                prop_assert!(found.payload.start <= found.payload.end && found.payload.end <= bytes.len());
            }
        }
    }

    #[test]
    fn a_large_frame_is_cut_into_the_datagrams_that_it_was_made_of() {
        for is_v4 in [true, false] {
            let outer = outer(is_v4, true);
            let payload: Vec<u8> = (0..2500_u32).map(|byte| byte as u8).collect();
            let mut frame = vec![0; outer.len() + payload.len()];
            frame[outer.len()..].copy_from_slice(&payload);
            let offload = outer.write(&mut frame, (7, 3), payload.len(), Some(1000));
            assert_eq!(Datagram::find(&frame, frame.len(), &offload).unwrap().segment, 1000);
            let segments = crate::segment::plan(&frame, frame.len(), &offload).unwrap();
            assert_eq!(segments.count(), 3);
            for (index, chunk) in payload.chunks(1000).enumerate() {
                let mut one = vec![0; outer.len() + chunk.len()];
                segments.write_headers(index, &mut one);
                one[outer.len()..].copy_from_slice(chunk);
                complete(&mut one, segments.checksum()).unwrap();
                let found = Datagram::find(&one, one.len(), &Offload::default()).unwrap();
                assert_eq!(fold(found.sum.unwrap() + sum(chunk)), 0xffff);
            }
        }
    }

    #[test]
    fn what_a_hosts_network_has_to_look_at_is_left_to_it() {
        let plain = built(&outer(true, true), 1, 0, &[7; 40]);
        let found = |frame: &[u8]| Datagram::find(frame, frame.len(), &Offload::default());
        assert!(found(&plain).is_some());
        // Each byte as it would be in a packet of another kind: a tag, options, a fragment, TCP, a header that is wrong, lengths.
        for (at, value) in
            [(12, 0x81), (14, 0x46), (20, 0x20), (21, 1), (23, 6), (26, 77), (17, 200), (39, 9)]
        {
            let mut other = plain.clone();
            other[at] = value;
            assert_eq!(found(&other), None, "byte {at}");
        }
        assert_eq!(found(&plain[..40]), None);
        assert_eq!(Datagram::find(&plain, plain.len() - 1, &Offload::default()), None);
        let inside = PartialChecksum { start: 90, offset: 16 };
        let open = Offload { checksum: Some(inside), ..Offload::default() };
        assert_eq!(Datagram::find(&plain, plain.len(), &open), None);
        let mut unsummed = plain.clone();
        unsummed[40..42].fill(0);
        assert!(Datagram::find(&unsummed, unsummed.len(), &open).is_some());
    }
}
