//! Lowering the maximum segment size that a TCP SYN offers (RFC 9293 §3.7.1) to what a path carries.

use crate::checksum::{sum, update};
use crate::parse::{chunk, parse_ethernet};
use crate::{Field, Key, Layers, ip_proto};
use std::ops::Range;

/// No sender takes less for granted (Linux `TCP_MIN_SND_MSS`); a path that carries less is no path for TCP.
const LEAST: usize = 48;
const TCP: usize = 20;
const CHECKSUM: usize = 16;
const SYN: u8 = 0x02;

/// Option kinds (RFC 9293 §3.1).
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const MSS: u8 = 2;

/// Whether a frame that begins with `head` is a TCP SYN, of either direction.
pub fn is_syn(head: &[u8]) -> bool {
    syn(head).is_some()
}

/// Lowers the MSS that a SYN offers, if it is more than what fits frames of `carries` bytes, Ethernet header included (RFC 6691: IP and TCP headers
/// without options off). The checksum follows (RFC 1624), unless it `is_partial`: that one covers no options yet. Any other frame stays as it is,
/// and so does a SYN without the option: it offers the least there is.
pub fn clamp(head: &mut [u8], carries: usize, is_partial: bool) {
    let Some((ip, l4)) = syn(head) else { return };
    let network = if head[ip] >> 4 == 4 { 20 } else { 40 };
    let most = carries.checked_sub(ip + network + TCP).filter(|most| *most >= LEAST);
    let Some((most, at)) = most.zip(option(head, l4)) else { return };
    let offered = usize::from(u16::from_be_bytes([head[at.start], head[at.start + 1]]));
    if offered <= most {
        return;
    }
    // Options are aligned to nothing: the words that the value touches.
    let words = at.start - (at.start - l4) % 2..at.end + (at.end - l4) % 2;
    let old = sum(&head[words.clone()]);
    head[at].copy_from_slice(&(most as u16).to_be_bytes());
    if !is_partial {
        let field = l4 + CHECKSUM..l4 + CHECKSUM + 2;
        let checksum = u16::from_be_bytes([head[field.start], head[field.start + 1]]);
        let checksum = update(checksum, old, sum(&head[words]));
        head[field].copy_from_slice(&checksum.to_be_bytes());
    }
}

/// Where the IP and the TCP header of a SYN are.
fn syn(head: &[u8]) -> Option<(usize, usize)> {
    let (mut key, mut layers) = (Key::default(), Layers::default());
    parse_ethernet(head, &mut key, &mut layers);
    let is_tcp = layers.l4 != 0 && key.get(Field::IpProto) == u128::from(ip_proto::TCP);
    let has_syn = is_tcp && head.get(usize::from(layers.l4) + 13)? & SYN != 0;
    has_syn.then_some((layers.ip.into(), layers.l4.into()))
}

/// Where the value of the MSS option lies.
fn option(head: &[u8], l4: usize) -> Option<Range<usize>> {
    let end = l4 + usize::from(head[l4 + 12] >> 4) * 4;
    let options = head.get(..end)?;
    let mut at = l4 + TCP;
    loop {
        match *options.get(at)? {
            END => return None,
            NO_OPERATION => at += 1,
            kind => {
                let len = usize::from(*options.get(at + 1)?);
                if kind == MSS && len == 4 {
                    return chunk::<4>(options, at).map(|_| at + 2..at + 4);
                }
                at += len.max(2);
            }
        }
    }
}
