//! Cutting a large TCP or UDP frame into segments that fit a destination (TSO, USO).
//!
//! [`plan`] checks a frame once; then [`Segments`] writes headers only. The caller copies headers and each segment's range of the
//! payload into its own buffer and finishes with [`crate::checksum::complete`], so that the payload is copied once.
//!
//! The rules are Linux's `tcp_gso_segment` and `__udp_gso_segment`: the IPv4 id counts up, FIN and PSH stay on the last segment only, CWR on
//! the first only (RFC 3168 §6.1.2). VLAN tags, MPLS shims and an I-TAG before the IP header are repeated on every segment, and so are tunnels'
//! headers around the packet that is cut.

mod around;
mod long;
mod train;

pub(crate) use around::write_ip;
pub use long::{remove_jumbo, split};
pub use train::Trains;

use crate::checksum::{BadOffload, fold, update_partial};
use crate::ip::{self, IpPacket, checksum_offset};
use crate::nested;
use crate::parse::{chunk, parse_ethernet};
use crate::{Gso, Key, Layers, Offload, PartialChecksum, eth_type, ip_proto};
use around::Around;
use std::ops::Range;

/// Smallest payload of a TCP segment: a sender's MSS is at least 48 and holds up to 40 bytes of options (Linux `TCP_MIN_SND_MSS`).
/// Without a bound a guest could have 64 KiB cut into 64 Ki frames.
const MIN_TCP: usize = 8;

/// Most datagrams in one large UDP frame (Linux `UDP_MAX_SEGMENTS`).
const MAX_UDP: usize = 128;

/// How one large frame is cut.
#[derive(Clone, Copy, Debug)]
pub struct Segments<'a> {
    headers: &'a [u8],
    ip: usize,
    l4: usize,
    is_v6: bool,
    is_tcp: bool,
    total_len: usize,
    size: usize,
    count: usize,
    /// How much the IPv4 ids of two that follow each other differ.
    ids: usize,
    /// The pseudo-header's sum without its length.
    pseudo: u64,
    /// The tunnels that the packet is in.
    around: Around,
}

/// Plans the segmentation of a frame of `total_len` bytes that begins with `head`, which must hold all headers.
///
/// # Errors
/// [`BadOffload`] when the offload state contradicts the headers, they do not lie in `head`, or there would be absurdly many segments.
pub fn plan<'a>(
    head: &'a [u8],
    total_len: usize,
    offload: &Offload,
) -> Result<Segments<'a>, BadOffload> {
    let outer = outermost(head).ok_or(BadOffload)?;
    let outer_at = outer.at;
    let (around, packet) = match is_inside(&outer, offload) {
        true => Around::find(head, outer, total_len, offload).ok_or(BadOffload)?,
        false => (Around::default(), outer),
    };
    let packet = Some(packet).filter(|packet| packet.carries(offload.gso)).ok_or(BadOffload)?;
    let l4 = packet.l4.ok_or(BadOffload)?;
    let is_tcp = offload.gso != Gso::Udp;
    let headers =
        headers(head, l4, is_tcp).filter(|headers| headers.len() <= total_len).ok_or(BadOffload)?;
    let payload = total_len - headers.len();
    let size = usize::from(offload.gso_size);
    let segments = Segments {
        headers,
        ip: packet.at,
        l4,
        is_v6: packet.version == 6,
        is_tcp,
        total_len,
        size,
        count: payload.div_ceil(size.max(1)).max(1),
        ids: 1,
        pseudo: pseudo_header(head, &packet, l4, offload.checksum)?,
        around,
    };
    let fits = headers.len() - outer_at + size.min(payload) <= usize::from(u16::MAX);
    let sane = if is_tcp { size >= MIN_TCP } else { size > 0 && segments.count <= MAX_UDP };
    let agrees = offload.checksum.is_none_or(|checksum| checksum == segments.checksum());
    if fits && sane && agrees { Ok(segments) } else { Err(BadOffload) }
}

/// Whether a kernel that is told the kind of a large frame and where its checksum begins takes it for what it is: TCP or UDP right behind an IP
/// header, and that right behind Ethernet's and at most two tags.
pub fn is_plain(head: &[u8], offload: &Offload) -> bool {
    let (mut key, mut layers) = (Key::default(), Layers::default());
    parse_ethernet(head, &mut key, &mut layers);
    let is_ip = matches!(key.0[0] as u16, eth_type::IPV4 | eth_type::IPV6) && layers.vlans <= 2;
    is_ip
        && outermost(head)
            .is_some_and(|packet| packet.carries(offload.gso) && !is_inside(&packet, offload))
}

/// Where a kernel that knows UDP tunnels (`struct virtio_net_hdr_v1_hash_tunnel`) must look in a large frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UdpTunnel {
    /// The tunnel's UDP header.
    pub outer_l4: u16,
    /// The IP header inside.
    pub inner_ip: u16,
    /// Whether the tunnel is over IPv6.
    pub is_v6: bool,
    /// Whether its UDP header has a checksum.
    pub has_checksum: bool,
}

/// The UDP tunnel that a large frame of `total_len` bytes is in, if it is in one, and that right behind Ethernet's header and at most two tags.
pub fn udp_tunnel(head: &[u8], total_len: usize, offload: &Offload) -> Option<UdpTunnel> {
    let segments = plan(head, total_len, offload).ok()?;
    let tunnel = segments.around.udp(segments.ip)?;
    is_plain_udp(head, tunnel.outer_l4).then_some(tunnel)
}

/// The tunnel that a large frame is in, for a kernel that has no mark for it but takes its headers as such.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TunnelHeaders {
    /// Bytes between the Ethernet header and the IP header inside.
    pub len: usize,
    /// Whether they begin with an IPv6 header.
    pub is_v6: bool,
    /// Whether the packet inside is IPv6.
    pub is_inner_v6: bool,
    /// What is behind their IP header.
    pub by: TunnelBy,
    /// Whether they end with an Ethernet header.
    pub has_ethernet: bool,
}

/// What a tunnel's IP header is followed by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TunnelBy {
    /// The packet inside.
    Ip,
    /// GRE.
    Gre,
    /// UDP without a checksum.
    Udp,
}

/// The headers of the tunnel that a large frame of `total_len` bytes is in, if they are right behind an Ethernet header without tags, and usual.
pub fn tunnel_headers(head: &[u8], total_len: usize, offload: &Offload) -> Option<TunnelHeaders> {
    let segments = plan(head, total_len, offload).ok()?;
    segments.around.headers(head, segments.ip)
}

/// Whether a kernel finds the UDP header at `l4` by itself.
fn is_plain_udp(head: &[u8], l4: u16) -> bool {
    let checksum = Some(PartialChecksum { start: l4, offset: 6 });
    is_plain(head, &Offload { checksum, gso: Gso::Udp, ..Offload::default() })
}

fn outermost(head: &[u8]) -> Option<IpPacket> {
    nested::ip_in_frame(head, 0).and_then(|at| ip::packet(head, at))
}

/// Whether the checksum to complete is that of a packet inside this one.
fn is_inside(outer: &IpPacket, offload: &Offload) -> bool {
    let starts = offload.checksum.map(|checksum| usize::from(checksum.start));
    starts.zip(outer.l4).is_some_and(|(start, l4)| start > l4)
}

/// Everything up to the payload.
fn headers(head: &[u8], l4: usize, is_tcp: bool) -> Option<&[u8]> {
    let len = if is_tcp { usize::from(chunk::<20>(head, l4)?[12] >> 4) * 4 } else { 8 };
    let least = if is_tcp { 20 } else { 8 };
    head.get(..l4 + len).filter(|_| len >= least)
}

/// The pseudo-header's sum without its length. Under a routing header only a partial checksum knows the last destination.
fn pseudo_header(
    head: &[u8],
    packet: &IpPacket,
    l4: usize,
    checksum: Option<PartialChecksum>,
) -> Result<u64, BadOffload> {
    if let Some(addresses) = packet.addresses {
        return Ok(addresses + u64::from(packet.proto));
    }
    let (end, partial) = packet.end.zip(checksum).ok_or(BadOffload)?;
    let field =
        chunk(head, usize::from(partial.start) + usize::from(partial.offset)).ok_or(BadOffload)?;
    let len = end.checked_sub(l4).ok_or(BadOffload)?;
    Ok(u64::from(update_partial(u16::from_be_bytes(*field), len as u64, 0)))
}

impl Segments<'_> {
    /// Number of segments, at least 1.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Bytes of headers in front of each segment's payload.
    pub fn header_len(&self) -> usize {
        self.headers.len()
    }

    /// The bytes of the whole frame that are the payload of segment `index`, counted from the frame's first byte.
    pub fn payload(&self, index: usize) -> Range<usize> {
        let start = self.headers.len() + index * self.size;
        start.min(self.total_len)..(start + self.size).min(self.total_len)
    }

    /// The checksum that [`crate::checksum::complete`] must finish in every segment.
    pub fn checksum(&self) -> PartialChecksum {
        let proto = if self.is_tcp { ip_proto::TCP } else { ip_proto::UDP };
        let offset = checksum_offset(proto).expect("TCP and UDP have a 16-bit checksum");
        PartialChecksum { start: self.l4 as u16, offset }
    }

    /// Writes the headers of segment `index` into the first [`Segments::header_len`] bytes of `out`: lengths, ids, sequence numbers,
    /// flags, the IPv4 header checksum, and the pseudo-header's sum in the transport's checksum. The checksums of tunnels around it are those
    /// that are right once that one is done.
    ///
    /// # Panics
    /// When `out` is shorter or there is no such segment: a bug of the port.
    pub fn write_headers(&self, index: usize, out: &mut [u8]) {
        assert!(index < self.count, "segment {index} of {}", self.count);
        let out = &mut out[..self.headers.len()];
        out.copy_from_slice(self.headers);
        let end = out.len() + self.payload(index).len();
        let id = index * self.ids;
        write_ip(self.is_v6, (self.ip, self.l4), (id, end), out);
        let len = end - self.l4;
        if self.is_tcp {
            self.write_tcp(index, out);
        } else {
            put(out, self.l4 + 4, len as u16);
        }
        let checksum = self.checksum();
        let pseudo = fold(self.pseudo + len as u64);
        put(out, usize::from(checksum.start + checksum.offset), pseudo);
        self.around.write((id, end), (self.l4, pseudo), out);
    }

    fn write_tcp(&self, index: usize, out: &mut [u8]) {
        const FIN_PSH: u8 = 0x09;
        const CWR: u8 = 0x80;
        let sequence = u32::from(word(out, self.l4 + 4)) << 16 | u32::from(word(out, self.l4 + 6));
        let sequence = sequence.wrapping_add((index * self.size) as u32);
        put(out, self.l4 + 4, (sequence >> 16) as u16);
        put(out, self.l4 + 6, sequence as u16);
        if index + 1 < self.count {
            out[self.l4 + 13] &= !FIN_PSH;
        }
        if index > 0 {
            out[self.l4 + 13] &= !CWR;
        }
    }
}

/// The 16-bit word at `at`, inside the headers that [`plan`] checked.
fn word(headers: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([headers[at], headers[at + 1]])
}

fn put(headers: &mut [u8], at: usize, value: u16) {
    headers[at..at + 2].copy_from_slice(&value.to_be_bytes());
}
