//! ARP for IPv4 over Ethernet (RFC 826).

use super::{be, chunk, set_link_layer};
use crate::key::{TUN_DST_WORD, TUN_SRC_WORD};
use crate::{Key, Layers};

/// Bytes of an ARP packet with 6-byte and 4-byte addresses.
const LEN: usize = 28;

/// Hardware type Ethernet, protocol IPv4, and their address lengths: the first 48 bits.
const ETHERNET_IPV4: u64 = 0x0001_0800_0604;

pub(super) fn parse(bytes: &[u8], at: usize, key: &mut Key, layers: Layers) -> Layers {
    let Some(arp) = chunk::<LEN>(bytes, at) else { return layers };
    let fixed = be!(u64, arp, 0);
    if fixed >> 16 != ETHERNET_IPV4 {
        return layers;
    }
    key.0[3] = u64::from(be!(u32, arp, 14)) << 32 | u64::from(be!(u32, arp, 24));
    key.0[4] = fixed << 48;
    set_link_layer(key, TUN_SRC_WORD, be!(u64, arp, 8) >> 16);
    set_link_layer(key, TUN_DST_WORD, be!(u64, arp, 18) >> 16);
    Layers { payload: (at + LEN) as u16, ..layers }
}
