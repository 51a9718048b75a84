//! The frames that a driver sends: Ethernet, IPv4 and UDP in the first 42 bytes, a sequence number in 48..56, a stamp in 56..64.
//!
//! A frame's first line is written as eight words, all of it anew for each packet.

use super::flows::Fields;
use super::sys::Line;
use std::sync::atomic::Ordering::Relaxed;

/// Shortest frame: one line.
pub const SHORTEST: usize = 64;

/// Word of the sequence number and word of the stamp in a frame's first line.
pub const SEQUENCE: usize = 6;
/// See [`SEQUENCE`].
pub const STAMP: usize = 7;

/// IPv4's time to live as sent.
const TTL: u8 = 64;

/// The parts of frames that are the same in all of one direction.
#[derive(Clone, Copy, Debug)]
pub struct Template {
    words: [u64; 6],
    /// Ones' complement sum of the IPv4 header without addresses and checksum, in memory order.
    sum: u32,
}

/// The MAC addresses of a side: `02:00:00:00:<side>:…` with the station's number in the last two bytes... of which this is the rest.
const fn mac(side: u8, station: u16) -> [u8; 6] {
    let [high, low] = station.to_be_bytes();
    [2, 0, 0, side, high, low]
}

/// The MAC address of a station as text.
pub fn mac_text(side: u8, station: u16) -> String {
    let bytes = mac(side, station);
    bytes.map(|byte| format!("{byte:02x}")).join(":")
}

impl Template {
    /// Of frames of `len` bytes that `side` sends.
    pub fn new(side: u8, len: usize) -> Self {
        let ip_len = (len - 14) as u16;
        let mut bytes = [0; 48];
        bytes[0..6].copy_from_slice(&mac(1 - side, 0));
        bytes[6..12].copy_from_slice(&mac(side, 0));
        bytes[12..16].copy_from_slice(&[0x08, 0x00, 0x45, 0x00]);
        bytes[16..18].copy_from_slice(&ip_len.to_be_bytes());
        bytes[20..24].copy_from_slice(&[0x40, 0x00, TTL, 17]); // do not fragment; UDP
        bytes[38..40].copy_from_slice(&(ip_len - 20).to_be_bytes());
        let half = |at: usize| u32::from(u16::from_ne_bytes([bytes[at], bytes[at + 1]]));
        let sum = (14..24).step_by(2).map(half).sum();
        let word = |n: usize| bytes[8 * n..8 * n + 8].try_into().map_or(0, u64::from_le_bytes);
        Self { words: std::array::from_fn(word), sum }
    }

    /// The first 48 bytes of a packet.
    #[inline(always)]
    pub fn head(&self, fields: Fields) -> [u64; 6] {
        let word = |value: u16| u64::from(value.to_be());
        let (source, destination) = (fields.source.to_be(), fields.destination.to_be());
        let (from, to) = (u64::from(source), u64::from(destination));
        let mut words = self.words;
        words[0] |= word(fields.destination_mac) << 32;
        words[1] |= word(fields.source_mac) << 16;
        words[3] |= u64::from(self.checksum(source, destination)) | from << 16 | to << 48;
        words[4] |= to >> 16 | word(fields.source_port) << 16 | word(fields.destination_port) << 32;
        words
    }

    /// RFC 1071, on halves as they lie in memory.
    #[inline]
    fn checksum(&self, source: u32, destination: u32) -> u16 {
        let halves = |word: u32| (word & 0xffff) + (word >> 16);
        let sum = self.sum + halves(source) + halves(destination);
        !(halves(halves(sum)) as u16)
    }
}

/// Writes a frame's first line.
#[inline]
pub fn write(line: &Line, head: [u64; 6], sequence: u64, stamp: u64) {
    head.iter().zip(&line.0).for_each(|(&word, cell)| cell.store(word, Relaxed));
    line.0[SEQUENCE].store(sequence, Relaxed);
    line.0[STAMP].store(stamp, Relaxed);
}

/// What a router makes of a head: MAC addresses of its own choice, one hop less.
pub fn routed(mut head: [u64; 6], destination: [u8; 6], source: [u8; 6]) -> [u64; 6] {
    let mut bytes: Vec<u8> = head.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes[0..6].copy_from_slice(&destination);
    bytes[6..12].copy_from_slice(&source);
    bytes[22] -= 1;
    bytes[24..26].fill(0);
    let half = |at: usize| u32::from(u16::from_ne_bytes([bytes[at], bytes[at + 1]]));
    let sum: u32 = (14..34).step_by(2).map(half).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
    bytes[24..26].copy_from_slice(&checksum.to_ne_bytes());
    for (word, bytes) in head.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = bytes.try_into().map_or(0, u64::from_le_bytes);
    }
    head
}

#[cfg(test)]
mod tests {
    use super::super::flows::Pattern;
    use super::*;
    use wire::build::{Frame, Ipv4};

    fn bytes(head: [u64; 6]) -> Vec<u8> {
        head.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn a_head_is_what_the_frame_builder_makes() {
        let fields = Fields::of(&Pattern::Macs, 0, 123_456);
        let made = bytes(Template::new(0, 64).head(fields));
        let addresses = (mac(1, fields.destination_mac), mac(0, fields.source_mac));
        let ip = Ipv4 {
            src: fields.source.into(),
            dst: fields.destination.into(),
            ..Default::default()
        };
        let built = Frame::ethernet(addresses.0, addresses.1).ipv4(ip);
        let built = built.udp(fields.source_port, fields.destination_port).finish();
        assert_eq!(made[..14], built[..14]);
        assert_eq!(made[26..38], built[26..38]);
        let sum = |bytes: &[u8]| {
            bytes.chunks(2).map(|half| u32::from(half[0]) << 8 | u32::from(half[1])).sum::<u32>()
        };
        assert_eq!(sum(&made[14..34]) % 0xffff, 0, "the header checksum");
    }

    #[test]
    fn a_router_keeps_the_checksum_right() {
        let head = Template::new(1, 64).head(Fields::of(&Pattern::Prefixes, 1, 77_777));
        let routed = bytes(routed(head, [2; 6], [4; 6]));
        let sum: u32 =
            routed[14..34].chunks(2).map(|half| u32::from(half[0]) << 8 | u32::from(half[1])).sum();
        assert_eq!((routed[22], sum % 0xffff), (TTL - 1, 0));
    }
}
