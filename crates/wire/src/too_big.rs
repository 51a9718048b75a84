//! What tells a packet's sender that the path takes less: ICMP "fragmentation needed" (RFC 1191 §4), ICMPv6 "packet too big" (RFC 4443 §3.2).
//!
//! The message is one that the packet's own destination might have sent, addresses and VLAN tags turned round: between the guests of a switch
//! there is no router whose address it could have, and rules that let the two talk let it through.

use crate::build::{Frame, Ipv4, Ipv6};
use crate::checksum::{fold, sum};
use crate::parse::{chunk, ipv4_header_len, parse_ethernet};
use crate::{Field, Key, Layers, ip_proto};
use std::net::{Ipv4Addr, Ipv6Addr};

/// As much of a frame as an answer may want to see: link header, tags, and what ICMPv6 quotes.
pub const ENOUGH: usize = 14 + 2 * 4 + QUOTE_V6;

/// An ICMP error is at most 576 bytes long (RFC 1812 §4.3.2.3).
const QUOTE_V4: usize = 576 - 20 - 8;
/// An ICMPv6 error is at most the least MTU long (RFC 4443 §2.4 c).
const QUOTE_V6: usize = LEAST_V6 - 40 - 8;
/// Every IPv4 host and link takes this (RFC 791 §3.2), every IPv6 link this (RFC 8200 §5): senders do not go below.
const LEAST_V4: usize = 68;
const LEAST_V6: usize = 1280;

/// The DS field of an answer: network control (RFC 1812 §4.3.2.5, precedence 6), no ECN.
pub const CONTROL: u8 = 0xc0;
const HOPS: u8 = 64;

/// The frame to send back to the sender of a frame that begins with `frame` and was lost because the path carries frames of at most
/// `carries` bytes, Ethernet header included. It quotes as much as is there, up to what the RFCs allow.
///
/// `None` where a message must not be sent or is of no use: for what is not IP right behind the VLAN tags, to and from addresses that are not one host's,
/// about ICMP errors and later fragments (RFC 1812 §4.3.2.7, RFC 4443 §2.4 e), and when the path carries less than any sender would go down to.
/// ICMPv6 may answer multicasts; that answer would need an address of ours.
///
/// An IPv4 packet without DF is answered too. A router would fragment it; one that does not, and says nothing, is a black hole. Senders fragment what follows.
pub fn answer(frame: &[u8], carries: usize) -> Option<Vec<u8>> {
    let (mut key, mut layers) = (Key::default(), Layers::default());
    parse_ethernet(frame, &mut key, &mut layers);
    let at = usize::from(layers.ip);
    let is_plain = at == 14 + 4 * usize::from(layers.vlans);
    let is_known = layers.l4 != 0 || layers.payload != 0;
    let is_later_fragment = key.get(Field::IpFrag) & 2 != 0;
    if !is_plain || !is_known || is_later_fragment || is_error(&key) {
        return None;
    }
    let link = link(frame, &layers)?;
    let mtu = carries.checked_sub(at)?;
    match frame[at] >> 4 {
        4 => answer_v4(link, &frame[at..], mtu),
        _ => answer_v6(link, &frame[at..], mtu),
    }
}

/// Whether it is an ICMP error, or may be one: a redirect is, and ICMPv6 types below 128 are (RFC 4443 §2.1).
fn is_error(key: &Key) -> bool {
    let icmp_type = key.get(Field::IcmpType) as u8;
    match (key.get(Field::EthType) as u16, key.get(Field::IpProto) as u8) {
        (crate::eth_type::IPV4, ip_proto::ICMP) => matches!(icmp_type, 3 | 4 | 5 | 11 | 12),
        (crate::eth_type::IPV6, ip_proto::ICMPV6) => icmp_type < 128 || icmp_type == 137,
        _ => false,
    }
}

/// The way back, unless an end is a group.
fn link(frame: &[u8], layers: &Layers) -> Option<Frame> {
    let (dst, src): (&[u8; 6], &[u8; 6]) = (chunk(frame, 0)?, chunk(frame, 6)?);
    let is_group = (dst[0] | src[0]) & 1 != 0;
    let tags = frame[12..].chunks_exact(4).take(layers.vlans.into());
    let tag = |frame: Frame, tag: &[u8]| {
        frame.vlan(u16::from_be_bytes([tag[0], tag[1]]), u16::from_be_bytes([tag[2], tag[3]]))
    };
    (!is_group).then(|| tags.fold(Frame::ethernet(*src, *dst), tag))
}

fn answer_v4(link: Frame, packet: &[u8], mtu: usize) -> Option<Vec<u8>> {
    let header: &[u8; 20] = chunk(packet, 0)?;
    let is_right = fold(sum(packet.get(..ipv4_header_len(packet)?)?)) == 0xffff;
    let address = |at: usize| Ipv4Addr::from(*chunk(header, at).expect("a header has it"));
    let (src, dst) = (address(12), address(16));
    if !is_right || !is_host_v4(src) || !is_host_v4(dst) || mtu < LEAST_V4 {
        return None;
    }
    let [high, low] = u16::try_from(mtu).unwrap_or(u16::MAX).to_be_bytes();
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let quote = &packet[..packet.len().min(total).min(QUOTE_V4)];
    let back = Ipv4 { src: dst, dst: src, tos: CONTROL, ttl: HOPS, ..Ipv4::default() };
    Some(link.ipv4(back).icmp_with(3, 4, [0, 0, high, low]).payload(quote).finish())
}

fn answer_v6(link: Frame, packet: &[u8], mtu: usize) -> Option<Vec<u8>> {
    let header: &[u8; 40] = chunk(packet, 0)?;
    let address = |at: usize| Ipv6Addr::from(*chunk(header, at).expect("a header has it"));
    let (src, dst) = (address(8), address(24));
    if !is_host_v6(src) || !is_host_v6(dst) || mtu < LEAST_V6 {
        return None;
    }
    let total = 40 + usize::from(u16::from_be_bytes([header[4], header[5]]));
    let quote = &packet[..packet.len().min(total).min(QUOTE_V6)];
    let back = Ipv6 { src: dst, dst: src, traffic_class: CONTROL, hop_limit: HOPS, flow_label: 0 };
    let mtu = (mtu as u32).to_be_bytes();
    Some(link.ipv6(back).icmpv6(2, 0).payload(&mtu).payload(quote).finish())
}

/// Whether it may be one host's address: not this network's, a loopback, a group's, reserved or everyone's.
fn is_host_v4(address: Ipv4Addr) -> bool {
    let first = address.octets()[0];
    first != 0 && first < 224 && !address.is_loopback()
}

fn is_host_v6(address: Ipv6Addr) -> bool {
    !address.is_unspecified() && !address.is_loopback() && !address.is_multicast()
}
