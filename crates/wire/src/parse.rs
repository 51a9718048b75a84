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

use crate::key::{METADATA_WORD, TUN_BITS, TUN_DST_WORD, TUN_SRC_WORD, TUNNEL_ID_WORD};
use crate::{Depth, Field, Head, IN_PORT_WORD, Key, Layers, WORDS};

const IN_PORT_BITS: u64 = 0xffff_ffff << 32;

/// What of a key is not in the frame, word by word.
const NOTED: [(usize, u64); 5] = [
    (IN_PORT_WORD, IN_PORT_BITS),
    (TUN_SRC_WORD, TUN_BITS),
    (METADATA_WORD, u64::MAX),
    (TUN_DST_WORD, TUN_BITS),
    (TUNNEL_ID_WORD, u64::MAX),
];

/// Parses the head of a frame that came in at `in_port`. All else that is not in the frame is 0.
pub fn parse(head: &Head, in_port: u32) -> (Key, Layers) {
    let (mut key, mut layers) = (Key::default(), Layers::default());
    key.set(Field::InPort, u128::from(in_port));
    parse_into(head, &mut key, &mut layers);
    (key, layers)
}

/// Parses a frame that begins with these bytes, wherever they lie. What is not in it is 0.
pub fn parse_bytes(bytes: &[u8]) -> (Key, Layers) {
    let (mut key, mut layers) = (Key::default(), Layers::default());
    ethernet::parse(bytes, &mut key, &mut layers);
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

/// Parses anew into `key` and `layers`; what is not in the frame stays: `in_port`, `metadata`, and what is said of tunnels.
#[inline]
pub fn parse_into(head: &Head, key: &mut Key, layers: &mut Layers) {
    let noted = NOTED.map(|(word, bits)| key.0[word] & bits);
    key.0 = [0; WORDS];
    NOTED.iter().zip(noted).for_each(|(&(word, _), noted)| key.0[word] = noted);
    ethernet::parse(head.bytes(), key, layers);
}

/// Puts an Ethernet address, the low 48 bits of `address`, above a tunnel end's number, which is not in the frame.
#[inline(always)]
pub(crate) fn set_link_layer(key: &mut Key, word: usize, address: u64) {
    key.0[word] = key.0[word] & TUN_BITS | address << 16;
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
pub(crate) use be;
