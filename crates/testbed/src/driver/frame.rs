//! The frames that a driver sends: Ethernet, IPv4 and UDP in the first 42 bytes, a sequence number in 48..56, a stamp in 56..64; or
//! with TCP in the first 54 bytes, a sequence number in 56..64 and no stamp.
//!
//! A frame's first line is written as eight words, all of it anew for each packet.

use super::flows::Fields;
use super::sys::Line;
use std::sync::atomic::Ordering::Relaxed;

/// Shortest frame: one line.
pub const SHORTEST: usize = 64;

/// Word of the stamp in the first line of a UDP frame.
pub const STAMP: usize = 7;

/// What the frames carry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// Whole, without a checksum (RFC 768: 0).
    Udp,
    /// Segments of a connection with the checksum left to whoever needs it: that of the pseudo header is in its place.
    Tcp,
}

/// IPv4's time to live as sent.
const TTL: u8 = 64;

/// The parts of frames that are the same in all of one direction.
#[derive(Clone, Copy, Debug)]
pub struct Template {
    protocol: Protocol,
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
    pub fn new(side: u8, len: usize, protocol: Protocol) -> Self {
        let ip_len = (len - 14) as u16;
        let mut bytes = [0; 48];
        bytes[0..6].copy_from_slice(&mac(1 - side, 0));
        bytes[6..12].copy_from_slice(&mac(side, 0));
        bytes[12..16].copy_from_slice(&[0x08, 0x00, 0x45, 0x00]);
        bytes[16..18].copy_from_slice(&ip_len.to_be_bytes());
        bytes[20..24].copy_from_slice(&[0x40, 0x00, TTL, protocol.number()]); // do not fragment
        match protocol {
            Protocol::Udp => bytes[38..40].copy_from_slice(&(ip_len - 20).to_be_bytes()),
            Protocol::Tcp => bytes[46..48].copy_from_slice(&[0x50, 0x10]), // five words of header; ACK
        }
        let half = |at: usize| u32::from(u16::from_ne_bytes([bytes[at], bytes[at + 1]]));
        let sum = (14..24).step_by(2).map(half).sum();
        let word = |n: usize| bytes[8 * n..8 * n + 8].try_into().map_or(0, u64::from_le_bytes);
        Self { protocol, words: std::array::from_fn(word), sum }
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

    /// Words 6 and 7 of a packet's first line.
    #[inline(always)]
    pub fn rest(&self, fields: Fields, sequence: u64, stamp: u64) -> [u64; 2] {
        match self.protocol {
            Protocol::Udp => [sequence, stamp],
            Protocol::Tcp => [self.window_and_sum(fields), sequence],
        }
    }

    /// The word of the sequence number.
    #[inline(always)]
    pub fn sequence_word(&self) -> usize {
        match self.protocol {
            Protocol::Udp => 6,
            Protocol::Tcp => 7,
        }
    }

    /// TCP's window, the sum of its pseudo header (RFC 9293 §3.1), no urgent data, two bytes of payload.
    fn window_and_sum(&self, fields: Fields) -> u64 {
        let halves = |word: u32| (word & 0xffff) + (word >> 16);
        // The IPv4 header's length is 20.
        let length = (u16::from_be(self.words[2] as u16) - 20).to_be();
        let fixed = u32::from(u16::from(Protocol::Tcp.number()).to_be()) + u32::from(length);
        let sum = fixed + halves(fields.source.to_be()) + halves(fields.destination.to_be());
        0xffff | u64::from(halves(halves(sum)) as u16) << 16
    }

    /// RFC 1071, on halves as they lie in memory.
    #[inline]
    fn checksum(&self, source: u32, destination: u32) -> u16 {
        let halves = |word: u32| (word & 0xffff) + (word >> 16);
        let sum = self.sum + halves(source) + halves(destination);
        !(halves(halves(sum)) as u16)
    }
}

impl Protocol {
    /// IANA's number.
    const fn number(self) -> u8 {
        match self {
            Protocol::Udp => 17,
            Protocol::Tcp => 6,
        }
    }
}

/// Writes a frame's first line.
#[inline]
pub fn write(line: &Line, head: [u64; 6], rest: [u64; 2]) {
    let words = head.iter().chain(&rest);
    words.zip(&line.0).for_each(|(&word, cell)| cell.store(word, Relaxed));
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
        let made = bytes(Template::new(0, 64, Protocol::Udp).head(fields));
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
    fn a_segments_line_is_what_the_frame_builder_makes_with_the_pseudo_headers_sum() {
        let fields = Fields::of(&Pattern::Addresses, 1, 4711);
        let template = Template::new(1, 1514, Protocol::Tcp);
        let rest = template.rest(fields, 0x0102, 99);
        let made = [
            bytes(template.head(fields)),
            rest.iter().flat_map(|word| word.to_le_bytes()).collect(),
        ]
        .concat();
        assert_eq!(
            (made[23], made[46] >> 4, u64::from_le_bytes(made[56..64].try_into().unwrap())),
            (6, 5, 0x0102)
        );
        // Pseudo header: addresses, protocol, length (RFC 9293 §3.1).
        let half = |bytes: &[u8]| u32::from(bytes[0]) << 8 | u32::from(bytes[1]);
        let sum: u32 = made[26..34].chunks(2).map(half).sum::<u32>() + 6 + (1514 - 34);
        assert_eq!(half(&made[50..52]), (sum & 0xffff) + (sum >> 16));
        assert_eq!(template.sequence_word(), 7);
    }

    #[test]
    fn a_router_keeps_the_checksum_right() {
        let head =
            Template::new(1, 64, Protocol::Udp).head(Fields::of(&Pattern::Prefixes, 1, 77_777));
        let routed = bytes(routed(head, [2; 6], [4; 6]));
        let sum: u32 =
            routed[14..34].chunks(2).map(|half| u32::from(half[0]) << 8 | u32::from(half[1])).sum();
        assert_eq!((routed[22], sum % 0xffff), (TTL - 1, 0));
    }
}
