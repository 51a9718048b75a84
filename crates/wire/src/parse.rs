//! What is in a frame: one pass over the head, one key.
//!
//! Nothing here fails. A header that is truncated or contradicts itself ends the key at the layer before it; the fields of
//! deeper layers stay 0 and their [`Layers`] offsets too. What a header says of lengths is believed only downwards: the transport header must lie
//! inside the IP packet, so that padding is never taken for a header, but an IP length past the frame's end is the receiver's business.
//!
//! Every read is a fixed-size chunk taken after one length check, and every word of the key is composed in registers and stored once.

mod arp;
mod ethernet;
mod ipv4;
mod ipv6;
mod nd;
mod shim;
mod transport;

pub(crate) use ethernet::parse as parse_ethernet;
pub(crate) use ipv4::header_len as ipv4_header_len;
pub(crate) use ipv6::chain;
pub(crate) use nd::{link_layer_option, nd_option_for};
pub(crate) use shim::ITAG;

use crate::key::TUNNEL_ID_WORD;
use crate::{Depth, Field, Head, IN_PORT_WORD, Key, Layers, WORDS};

/// The word of the key that is `metadata`: like `tunnel_id`, and `in_port` in its word, it is not in the frame.
const METADATA_WORD: usize = 13;
const IN_PORT_BITS: u64 = 0xffff_ffff << 32;

/// Parses the head of a frame that came in at `in_port`. `metadata` and `tunnel_id` are 0.
pub fn parse(head: &Head, in_port: u32) -> (Key, Layers) {
    let (mut key, mut layers) = (Key::default(), Layers::default());
    key.set(Field::InPort, u128::from(in_port));
    parse_into(head, &mut key, &mut layers);
    (key, layers)
}

/// Goes on with a parse that ended at a lesser depth: `key` and `layers` say nothing of what lies below it. Headers that were pushed
/// or popped since are no matter.
#[inline]
pub fn parse_on(head: &Head, to: Depth, key: &mut Key, layers: &mut Layers) {
    match to {
        Depth::Nothing => {}
        Depth::Link => *layers = ethernet::parse_link(head.bytes(), key),
        Depth::Full => ethernet::parse(head.bytes(), key, layers),
    }
}

/// Parses anew into `key` and `layers`; `in_port`, `metadata` and `tunnel_id` stay.
#[inline]
pub fn parse_into(head: &Head, key: &mut Key, layers: &mut Layers) {
    let [metadata, tunnel_id] = [key.0[METADATA_WORD], key.0[TUNNEL_ID_WORD]];
    let in_port = key.0[IN_PORT_WORD] & IN_PORT_BITS;
    key.0 = [0; WORDS];
    key.0[IN_PORT_WORD] = in_port;
    (key.0[METADATA_WORD], key.0[TUNNEL_ID_WORD]) = (metadata, tunnel_id);
    ethernet::parse(head.bytes(), key, layers);
}

/// The `N` bytes at offset `at`, if they are there.
#[inline(always)]
pub(crate) fn chunk<const N: usize>(bytes: &[u8], at: usize) -> Option<&[u8; N]> {
    bytes.get(at..)?.first_chunk()
}

/// A big-endian word of `bytes`; `at` is a constant in every caller, so that no check survives compilation.
macro_rules! be {
    ($word:ty, $bytes:expr, $at:literal) => {{
        const WIDTH: usize = size_of::<$word>();
        let (_, rest) = $bytes.split_at($at);
        <$word>::from_be_bytes(*rest.first_chunk::<WIDTH>().expect("the array holds the word"))
    }};
}
use be;
