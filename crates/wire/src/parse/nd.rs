//! Neighbour solicitation and advertisement (RFC 4861 §4.3, §4.4).

use super::{be, chunk, set_link_layer};
use crate::key::{TUN_DST_WORD, TUN_SRC_WORD};
use crate::{Key, Layers};

/// ICMPv6 type of a neighbour solicitation.
const SOLICITATION: u8 = 135;
/// ICMPv6 type of a neighbour advertisement.
const ADVERTISEMENT: u8 = 136;
/// ICMPv6 header, reserved word, target.
const FIXED: usize = 24;

/// The option that the message carries: source address (1) when asking, target address (2) when answering.
pub(crate) const fn nd_option_for(icmp_type: u8) -> Option<u8> {
    match icmp_type {
        SOLICITATION => Some(1),
        ADVERTISEMENT => Some(2),
        _ => None,
    }
}

pub(super) fn parse(packet: &[u8], key: &mut Key, layers: Layers) -> Layers {
    let at = usize::from(layers.l4);
    let Some(message) = chunk::<FIXED>(packet, at).filter(|_| at != 0) else { return layers };
    let (Some(wanted), 0) = (nd_option_for(message[0]), message[1]) else { return layers };
    (key.0[9], key.0[10]) = (be!(u64, message, 8), be!(u64, message, 16));
    if let Some(address) =
        link_layer_option(packet, at, wanted).and_then(|at| chunk::<8>(packet, at - 2))
    {
        let word = if wanted == 1 { TUN_SRC_WORD } else { TUN_DST_WORD };
        set_link_layer(key, word, be!(u64, address, 0));
    }
    layers
}

/// Offset of the address in the first option of type `wanted`. A repeated option is ignored, as receivers do; one that is not
/// of Ethernet's length holds no address.
pub(crate) fn link_layer_option(packet: &[u8], l4: usize, wanted: u8) -> Option<usize> {
    let mut at = l4 + FIXED;
    loop {
        let option = chunk::<8>(packet, at)?;
        let len = usize::from(option[1]) * 8;
        if len == 0 || at + len > packet.len() {
            return None;
        }
        if option[0] == wanted {
            return (len == 8).then_some(at + 2);
        }
        at += len;
    }
}
