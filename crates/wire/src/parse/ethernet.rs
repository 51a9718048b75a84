//! Ethernet II, IEEE 802.3 with LLC and SNAP, and VLAN tags.

use super::{arp, be, chunk, ipv4, ipv6, shim};
use crate::{Key, Layers, VLAN_PRESENT, eth_type};

/// Ethernet header bytes.
const HEADER: usize = 14;

/// Where the tags end and what follows them.
struct Tags {
    l3: usize,
    count: u8,
    vlan: u16,
    eth_type: u16,
}

/// Everything. The layers are written where they stay: put together elsewhere in pieces of two bytes and moved as a whole, they would have to
/// reach the cache first, with every store before them (docs/decisions/0012); that was eleven cycles a frame.
#[inline]
pub(crate) fn parse(bytes: &[u8], key: &mut Key, layers: &mut Layers) {
    if !ipv4::parse_plain(bytes, key, layers) {
        parse_any(bytes, key, layers);
    }
}

#[inline(never)]
fn parse_any(bytes: &[u8], key: &mut Key, into: &mut Layers) {
    let layers = parse_link(bytes, key);
    let l3 = usize::from(layers.l3);
    *into = match key.0[0] as u16 {
        eth_type::IPV4 => ipv4::parse(bytes, l3, key, layers),
        eth_type::IPV6 => ipv6::parse(bytes, l3, key, layers),
        eth_type::ARP => arp::parse(bytes, l3, key, layers),
        eth_type::MPLS | eth_type::MPLS_UPSTREAM => shim::parse_mpls(bytes, l3, key, layers),
        eth_type::PBB => shim::parse_pbb(bytes, l3, key, layers),
        _ => layers,
    };
}

/// Addresses, tags and type; the rest of the key is left alone.
#[inline]
pub(super) fn parse_link(bytes: &[u8], key: &mut Key) -> Layers {
    let Some(header) = bytes.first_chunk::<HEADER>() else { return Layers::default() };
    let (dst_src, src_type) = (be!(u64, header, 0), be!(u64, header, 6));
    let mut tags = Tags { l3: HEADER, count: 0, vlan: 0, eth_type: src_type as u16 };
    if eth_type::is_vlan(tags.eth_type) {
        skip_tags(bytes, &mut tags);
    }
    if tags.eth_type < eth_type::MIN {
        (tags.eth_type, tags.l3) = type_of_llc(bytes, tags.l3);
    }
    key.0[0] = dst_src & !0xffff | u64::from(tags.eth_type);
    key.0[1] = src_type & !0xffff | u64::from(tags.vlan);
    Layers { l3: tags.l3 as u16, vlans: tags.count, ..Layers::default() }
}

/// Walks stacked tags. The key shows the outermost one (OpenFlow 1.3.5 §7.2.3.8); a tag that the head cuts off is not a tag.
fn skip_tags(bytes: &[u8], tags: &mut Tags) {
    while eth_type::is_vlan(tags.eth_type) {
        let Some(tag) = chunk::<4>(bytes, tags.l3) else { return };
        if tags.count == 0 {
            // PCP and VID lie as in the key; the DEI bit between them becomes "present".
            tags.vlan = be!(u16, tag, 0) | VLAN_PRESENT;
        }
        tags.eth_type = be!(u16, tag, 2);
        tags.l3 += 4;
        tags.count += 1;
    }
}

/// The type of an 802.3 frame: SNAP's when its organisation is 0 (RFC 1042), otherwise [`eth_type::NOT_A_TYPE`].
#[cold]
fn type_of_llc(bytes: &[u8], l3: usize) -> (u16, usize) {
    match chunk::<8>(bytes, l3) {
        Some(&[0xaa, 0xaa, 0x03, 0, 0, 0, high, low])
            if u16::from_be_bytes([high, low]) >= eth_type::MIN =>
        {
            (u16::from_be_bytes([high, low]), l3 + 8)
        }
        _ => (eth_type::NOT_A_TYPE, l3),
    }
}
