//! What came through, compared with what must come through, byte by byte.
//!
//! A frame's sequence number tells its flow, and with it every byte: so the receiver makes the frame again, passes it through
//! what the rules do to it, and compares.

use super::flows::Fields;
use super::frame::{self, Protocol, STAMP, Template};
use super::lean::Got;
use super::sys::{LINE, Line};
use super::traffic::{Touch, Traffic};
use std::sync::atomic::Ordering::Relaxed;

/// What the rules do to a head: head, and the side that sent it.
pub type Rewrite = fn([u64; 6], u8) -> [u64; 6];

/// The frames of both directions, and what was wrong with them.
pub struct Check {
    traffic: Traffic,
    templates: [Template; 2],
    rewrite: Rewrite,
    /// Next number expected from each side.
    next: [u64; 2],
    /// Checked and right.
    pub good: u64,
    /// Never came.
    pub lost: u64,
    /// Came after a later one, of whatever flow: a switch that keeps the order only within flows is not wrong.
    pub reordered: u64,
    /// Came with another length or other bytes.
    pub damaged: u64,
    /// The first of these.
    pub example: Option<String>,
}

impl Check {
    /// For traffic that passes rules which do `rewrite`.
    pub fn new(traffic: Traffic, rewrite: Rewrite) -> Self {
        let templates = [0, 1].map(|side| Template::new(side, traffic.frame, traffic.protocol()));
        Self {
            traffic,
            templates,
            rewrite,
            next: [0; 2],
            good: 0,
            lost: 0,
            reordered: 0,
            damaged: 0,
            example: None,
        }
    }

    /// The numbers that the sides will send next.
    pub fn begin(&mut self, next: [u64; 2]) {
        self.next = next;
    }

    /// The number that is expected next from a side.
    pub fn next(&self, side: u8) -> u64 {
        self.next[usize::from(side)]
    }

    /// The numbers that the sides would have sent next: what is missing up to there is lost.
    pub(super) fn end(&mut self, next: [u64; 2]) {
        self.lost += next.iter().zip(self.next).map(|(end, next)| end - next).sum::<u64>();
        self.lost -= self.reordered.min(self.lost);
    }

    /// A frame that side `to` received.
    pub fn frame(&mut self, to: u8, got: Got<'_>) {
        let side = 1 - to;
        let sequence = got.line.0[self.templates[0].sequence_word()].load(Relaxed);
        let next = &mut self.next[usize::from(side)];
        // Far from what was sent: the number itself is damaged.
        if sequence.abs_diff(*next) > 1 << 20 {
            self.damaged += 1;
            return;
        }
        if sequence < *next {
            self.reordered += 1;
        } else {
            self.lost += sequence - *next;
            *next = sequence + 1;
        }
        if got.len == self.traffic.frame && self.is_right(side, sequence, got) {
            self.good += 1;
        } else {
            self.damaged += 1;
            if self.example.is_none() {
                self.example = Some(self.describe(side, sequence, got));
            }
        }
    }

    /// A frame beside what it should have been: header, length, first line.
    #[cold]
    fn describe(&self, side: u8, sequence: u64, got: Got<'_>) -> String {
        let (head, rest) = self.expected(side, sequence);
        let words = |line: &Line| line.0.each_ref().map(|cell| cell.load(Relaxed));
        let [.., h6, h7] = words(got.header);
        format!(
            "header {:08x} {:016x}, {} bytes, {:016x?} instead of {head:016x?} {rest:016x?}",
            h6 >> 32,
            h7,
            got.len,
            words(got.line)
        )
    }

    /// A frame's first line as it must come, without its stamp.
    fn expected(&self, side: u8, sequence: u64) -> ([u64; 6], [u64; 2]) {
        let order = &self.traffic.order;
        let at = sequence as usize + usize::from(side) * order.len() / 2;
        let fields = Fields::of(&self.traffic.pattern, side, order[at & (order.len() - 1)]);
        let template = &self.templates[usize::from(side)];
        ((self.rewrite)(template.head(fields), side), template.rest(fields, sequence, 0))
    }

    fn is_right(&self, side: u8, sequence: u64, got: Got<'_>) -> bool {
        let (head, rest) = self.expected(side, sequence);
        head.iter().zip(&got.line.0).all(|(&word, cell)| cell.load(Relaxed) == word)
            && self.is_rest(rest, got)
            && (self.traffic.touch == Touch::Head || self.payload(sequence, got.whole))
    }

    /// A stamp of any time; or a segment's own words, whole and still to be cut and summed by who gets it. What is in the checksum's place
    /// until then only he reads who cuts: DPDK puts its own sum there, which leaves out the length.
    fn is_rest(&self, rest: [u64; 2], got: Got<'_>) -> bool {
        match self.traffic.protocol() {
            Protocol::Udp => got.line.0[STAMP].load(Relaxed) != 0,
            Protocol::Tcp => {
                const CHECKSUM: u64 = 0xffff_0000;
                (got.line.0[6].load(Relaxed) ^ rest[0]) & !CHECKSUM == 0
                    && self.traffic.is_whole(got.header)
            }
        }
    }

    /// Every whole word after the first line repeats the number's last byte.
    fn payload(&self, sequence: u64, whole: &[Line]) -> bool {
        let word = u64::from_le_bytes([sequence as u8; 8]);
        let words = (self.traffic.frame - LINE) / 8;
        let cells = whole.iter().skip(1).flat_map(|line| &line.0);
        cells.take(words).all(|cell| cell.load(Relaxed) == word)
    }
}

/// Rules that only forward.
pub fn unchanged(head: [u64; 6], _: u8) -> [u64; 6] {
    head
}

/// See [`frame::routed`], with the addresses that the bench's routes write.
pub fn routed(head: [u64; 6], side: u8) -> [u64; 6] {
    frame::routed(head, [2, 0, 0, 1 - side, 0x99, 1], [2, 0, 0, side, 0x99, 2])
}
