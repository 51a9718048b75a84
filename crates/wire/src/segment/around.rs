//! The tunnels around the packet that is cut: a guest's own VXLAN, Geneve, GRE or IP in IP, or one of them in another.
//!
//! The mark of a large frame speaks of the packet inside: its checksum begins there, and its kind is the inner one's (Linux
//! `virtio_net_hdr_from_skb`). So the tunnel need not be known: what lies between its header and the packet inside is repeated as it is.
//!
//! A tunnel's UDP checksum covers the whole inner packet, and yet takes only headers to compute: what the inner checksum covers will sum to the
//! complement of its pseudo-header once it is done (Linux calls it local checksum offload).

use super::{TunnelBy, TunnelHeaders, UdpTunnel, put, word};
use crate::checksum::{fold, sum};
use crate::ip::{self, IpPacket};
use crate::nested::{self, SHIM, TUNNELS, UDP};
use crate::parse::chunk;
use crate::tunnel::Gre;
use crate::{Offload, eth_type, ip_proto};

/// Bytes of headers.
const ETHERNET: usize = 14;
const IPV4: usize = 20;
const IPV6: usize = 40;

/// GRE's flags of a checksum and of a sequence number (RFC 2784, RFC 2890): both differ from segment to segment.
const GRE_OF_ITS_OWN: u8 = 0x90;

/// The packets around another, outermost first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Around([Option<Outer>; TUNNELS]);

/// One of them.
#[derive(Clone, Copy, Debug)]
struct Outer {
    ip: usize,
    l4: usize,
    is_v6: bool,
    is_udp: bool,
    /// Of a UDP header that has a checksum: the pseudo-header's sum without its length.
    pseudo: Option<u64>,
}

impl Around {
    /// The packets from `outer` on around the one whose transport `offload` says to begin elsewhere, and that one.
    pub(super) fn find(
        head: &[u8],
        outer: IpPacket,
        total_len: usize,
        offload: &Offload,
    ) -> Option<(Self, IpPacket)> {
        let start = usize::from(offload.checksum?.start);
        let (mut around, mut packet) = (Self::default(), outer);
        for place in &mut around.0 {
            if packet.l4 == Some(start) {
                break;
            }
            let inner = nested::inside(head, &packet)
                .filter(|inner| inner.l4.is_some_and(|l4| l4 <= start))
                .or_else(|| ending_at(head, packet.l4?, start))?;
            *place = Some(Outer::of(head, &packet, &inner)?);
            packet = inner;
        }
        let is_it = packet.l4 == Some(start) && packet.end == Some(total_len);
        (is_it && packet.carries(offload.gso)).then_some((around, packet))
    }

    /// The only one, if it is a UDP tunnel's and the packet that is cut is at `inner_ip`.
    pub(super) fn udp(&self, inner_ip: usize) -> Option<UdpTunnel> {
        let [Some(outer), None] = self.0 else { return None };
        outer.is_udp.then_some(UdpTunnel {
            outer_l4: outer.l4 as u16,
            inner_ip: inner_ip as u16,
            is_v6: outer.is_v6,
            has_checksum: outer.pseudo.is_some(),
        })
    }

    /// Its headers, if it is the only one, right behind the Ethernet header, and has nothing unusual: no tags, options or extension headers.
    pub(super) fn headers(&self, head: &[u8], inner_ip: usize) -> Option<TunnelHeaders> {
        let [Some(outer), None] = self.0 else { return None };
        let len = if outer.is_v6 { IPV6 } else { IPV4 };
        let is_usual = outer.ip == ETHERNET && outer.l4 == ETHERNET + len && outer.pseudo.is_none();
        let (by, has_ethernet) = outer.carries(head, inner_ip).filter(|_| is_usual)?;
        let is_inner_v6 = head.get(inner_ip)? >> 4 == 6;
        let (is_v6, len) = (outer.is_v6, inner_ip - ETHERNET);
        Some(TunnelHeaders { len, is_v6, is_inner_v6, by, has_ethernet })
    }

    /// Where the outermost UDP header begins, if it has a checksum.
    pub(super) fn summed_udp(&self) -> Option<usize> {
        self.0[0].filter(|outer| outer.pseudo.is_some()).map(|outer| outer.l4)
    }

    /// Makes of the outermost headers of segment 0 those of one packet of `out.len()` bytes, with a checksum still to complete.
    pub(super) fn write_train(&self, out: &mut [u8]) {
        let Some(Outer { ip, l4, is_v6, pseudo, .. }) = self.0[0] else { return };
        let (end, len) = (out.len(), out.len() - l4);
        write_ip(is_v6, (ip, l4), (0, end), out);
        put(out, l4 + 4, len as u16);
        put(out, l4 + 6, fold(pseudo.unwrap_or_default() + len as u64));
    }

    /// Writes what differs in a segment of `end` bytes with IPv4 ids greater by `id`, whose innermost transport is at `inner.0` and has that pseudo-header.
    pub(super) fn write(&self, (id, end): (usize, usize), inner: (usize, u16), out: &mut [u8]) {
        // From the inside out: the outer checksum covers the others.
        for outer in self.0.iter().rev().flatten() {
            outer.write((id, end), inner, out);
        }
    }
}

impl Outer {
    fn of(head: &[u8], packet: &IpPacket, inner: &IpPacket) -> Option<Self> {
        let l4 = packet.l4.filter(|_| !packet.is_fragment)?;
        let is_udp = packet.proto == ip_proto::UDP;
        let pseudo = match packet.proto {
            ip_proto::UDP => {
                let has_checksum = chunk::<8>(head, l4)?[6..] != [0, 0];
                let pseudo = packet.addresses.map(|sum| sum + u64::from(packet.proto));
                if has_checksum { Some(pseudo?) } else { None }
            }
            ip_proto::GRE if chunk::<4>(head, l4)?[0] & GRE_OF_ITS_OWN == 0 => None,
            ip_proto::IPV4 | ip_proto::IPV6 if inner.at == l4 => None,
            _ => return None,
        };
        Some(Self { ip: packet.at, l4, is_v6: packet.version == 6, is_udp, pseudo })
    }

    /// What is between its IP header and the one at `inner_ip`, and whether that ends with an Ethernet header without tags.
    fn carries(&self, head: &[u8], inner_ip: usize) -> Option<(TunnelBy, bool)> {
        let between = inner_ip - self.l4;
        let ends_in_ethernet = || {
            let kind = u16::from_be_bytes(*chunk(head, inner_ip - 2)?);
            Some(matches!(kind, eth_type::IPV4 | eth_type::IPV6))
        };
        if between == 0 {
            return Some((TunnelBy::Ip, false));
        }
        if self.is_udp {
            let has_ethernet = between >= UDP + SHIM + ETHERNET && ends_in_ethernet()?;
            return has_ethernet.then_some((TunnelBy::Udp, true));
        }
        let (gre, len) = Gre::parse(head.get(self.l4..)?)?;
        match (gre.protocol, between - len) {
            (eth_type::IPV4 | eth_type::IPV6, 0) => Some((TunnelBy::Gre, false)),
            (nested::ETHERNET, ETHERNET) if ends_in_ethernet()? => Some((TunnelBy::Gre, true)),
            _ => None,
        }
    }

    fn write(&self, (id, end): (usize, usize), (start, inner): (usize, u16), out: &mut [u8]) {
        write_ip(self.is_v6, (self.ip, self.l4), (id, end), out);
        if !self.is_udp {
            return;
        }
        let len = end - self.l4;
        put(out, self.l4 + 4, len as u16);
        put(out, self.l4 + 6, 0);
        if let Some(pseudo) = self.pseudo {
            let checksum =
                !fold(pseudo + len as u64 + sum(&out[self.l4..start]) + u64::from(!inner));
            // 0 would say that there is none (RFC 768).
            put(out, self.l4 + 6, if checksum == 0 { 0xffff } else { checksum });
        }
    }
}

/// The IP packet behind an outer header's end whose transport begins at `start`, whatever lies between.
fn ending_at(head: &[u8], after: usize, start: usize) -> Option<IpPacket> {
    // An IPv4 header's first byte says its length; an IPv6 one without extensions has 40 bytes.
    let v4 = (5..=15).map(|words| (start.checked_sub(4 * words), 0x40 | words as u8, 0xff));
    let places = v4.chain([(start.checked_sub(40), 0x60, 0xf0)]);
    let found = places.filter_map(|(at, first, mask)| {
        let at = at.filter(|&at| at >= after)?;
        let packet = (head.get(at)? & mask == first).then(|| ip::packet(head, at))??;
        (packet.l4 == Some(start)).then_some(packet)
    });
    found.into_iter().next()
}

/// Length, identification (greater by `id`) and header checksum of an IP header at `ip` whose transport is at `l4`, in a segment of `end` bytes.
pub(crate) fn write_ip(
    is_v6: bool,
    (ip, l4): (usize, usize),
    (id, end): (usize, usize),
    out: &mut [u8],
) {
    if is_v6 {
        return put(out, ip + 4, (end - ip - 40) as u16);
    }
    let id = word(out, ip + 4).wrapping_add(id as u16);
    put(out, ip + 2, (end - ip) as u16);
    put(out, ip + 4, id);
    put(out, ip + 10, 0);
    let checksum = !fold(sum(&out[ip..l4]));
    put(out, ip + 10, checksum);
}

#[cfg(test)]
mod tests {
    use crate::checksum::{complete, fold, pseudo_ipv4, pseudo_ipv6, sum};
    use crate::segment::{is_plain, plan};
    use crate::{Gso, Offload, PartialChecksum, ip_proto};

    const PAYLOAD: usize = 2500;
    const SIZE: usize = 1000;

    fn ipv4(proto: u8, len: usize) -> Vec<u8> {
        let mut header =
            vec![0x45, 0, 0, 0, 0, 7, 0x40, 0, 64, proto, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        header[2..4].copy_from_slice(&((20 + len) as u16).to_be_bytes());
        let checksum = !fold(sum(&header));
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        header
    }

    fn ipv6(proto: u8, len: usize) -> Vec<u8> {
        let mut header = vec![0x60, 0, 0, 0, 0, 0, proto, 64];
        header[4..6].copy_from_slice(&(len as u16).to_be_bytes());
        header.extend([[0xfd; 16], [0xfe; 16]].concat());
        header
    }

    fn ip(is_v6: bool, proto: u8, len: usize) -> Vec<u8> {
        if is_v6 { ipv6(proto, len) } else { ipv4(proto, len) }
    }

    fn ethernet(is_v6: bool) -> Vec<u8> {
        let kind: [u8; 2] = if is_v6 { [0x86, 0xdd] } else { [8, 0] };
        [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1][..], &kind].concat()
    }

    /// TCP in a tunnel of this protocol, with what lies between; large.
    fn tunnel(
        outer_v6: bool,
        inner_v6: bool,
        proto: u8,
        between: &[u8],
    ) -> (Vec<u8>, Offload, usize) {
        let mut tcp = vec![0; 20];
        (tcp[12], tcp[13]) = (0x50, 0x19);
        let inner = [ip(inner_v6, ip_proto::TCP, 20 + PAYLOAD), tcp].concat();
        let len = between.len() + inner.len() + PAYLOAD;
        let outer = [ethernet(outer_v6), ip(outer_v6, proto, len)].concat();
        let start = outer.len() + between.len() + inner.len() - 20;
        let frame = [&outer[..], between, &inner, &[0x5a; PAYLOAD]].concat();
        let offload = Offload {
            checksum: Some(PartialChecksum { start: start as u16, offset: 16 }),
            gso: if inner_v6 { Gso::TcpV6 } else { Gso::TcpV4 },
            gso_size: SIZE as u16,
            ..Offload::default()
        };
        (frame, offload, outer.len())
    }

    fn vxlan(inner_v6: bool, checksum: u16) -> Vec<u8> {
        let mut udp = vec![0x30, 0x39, 0x12, 0xb5, 0, 0];
        udp.extend(checksum.to_be_bytes());
        [udp, vec![8, 0, 0, 0, 0, 0, 5, 0], ethernet(inner_v6)].concat()
    }

    fn cut(frame: &[u8], offload: &Offload) -> Vec<Vec<u8>> {
        let segments = plan(frame, frame.len(), offload).expect("it can be cut");
        let one = |index| {
            let mut out = vec![0xee; segments.header_len()];
            segments.write_headers(index, &mut out);
            out.extend_from_slice(&frame[segments.payload(index)]);
            complete(&mut out, segments.checksum()).unwrap();
            out
        };
        (0..segments.count()).map(one).collect()
    }

    /// Looks at the IP packet at `at` and its transport's checksum; returns where the transport begins.
    fn check(segment: &[u8], at: usize, proto: u8, has_sum: bool) -> usize {
        let is_v6 = segment[at] >> 4 == 6;
        let number = |at: usize| usize::from(u16::from_be_bytes([segment[at], segment[at + 1]]));
        let l4 = at + if is_v6 { 40 } else { 20 };
        let end = if is_v6 { at + 40 + number(at + 4) } else { at + number(at + 2) };
        assert_eq!(end, segment.len());
        assert!(is_v6 || fold(sum(&segment[at..l4])) == 0xffff);
        let len = segment.len() - l4;
        let number4 = |at: usize| u32::from_be_bytes(*segment[at..].first_chunk().unwrap());
        let number6 = |at: usize| u128::from_be_bytes(*segment[at..].first_chunk().unwrap());
        let pseudo = match is_v6 {
            true => pseudo_ipv6(number6(at + 8), number6(at + 24), proto, len as u32),
            false => pseudo_ipv4(number4(at + 12), number4(at + 16), proto, len as u32),
        };
        assert!(!has_sum || fold(pseudo + sum(&segment[l4..])) == 0xffff, "protocol {proto}");
        l4
    }

    #[test]
    fn each_segment_of_a_guests_own_tunnel_is_right_inside_and_outside() {
        for (outer_v6, inner_v6) in [(false, false), (false, true), (true, false), (true, true)] {
            for outer_sum in [0, 0x1234] {
                let between = vxlan(inner_v6, outer_sum);
                let (frame, offload, at) = tunnel(outer_v6, inner_v6, ip_proto::UDP, &between);
                assert!(!is_plain(&frame, &offload));
                let segments = cut(&frame, &offload);
                assert_eq!(segments.len(), 3);
                for segment in &segments {
                    let udp = check(segment, 14, ip_proto::UDP, outer_sum != 0);
                    assert_eq!(udp, at);
                    let len = u16::from_be_bytes([segment[udp + 4], segment[udp + 5]]);
                    assert_eq!(usize::from(len), segment.len() - udp);
                    assert_eq!(segment[udp + 8..udp + 30], between[8..]);
                    check(segment, udp + 30, ip_proto::TCP, true);
                }
            }
        }
    }

    #[test]
    fn gre_and_ip_in_ip_are_cut_too_and_what_counts_its_packets_is_not() {
        for (proto, between) in
            [(ip_proto::GRE, &[0x20, 0, 8, 0, 0, 0, 0, 9][..]), (ip_proto::IPV4, &[])]
        {
            let (frame, offload, at) = tunnel(false, false, proto, between);
            for segment in cut(&frame, &offload) {
                check(&segment, 14, proto, false);
                check(&segment, at + between.len(), ip_proto::TCP, true);
            }
        }
        for flags in [0x80, 0x10] {
            let between = [flags, 0, 8, 0, 0, 0, 0, 9];
            let (frame, offload, _) = tunnel(false, false, ip_proto::GRE, &between);
            assert!(plan(&frame, frame.len(), &offload).is_err());
        }
    }
}
