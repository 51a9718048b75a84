//! How a guest fills the buffers of a burst of long frames, and which way is the faster one here and now.
//!
//! It depends on where the buffers' lines are. Those that the switch has read and both still have must be taken back from it: asked for together, a piece ahead and backwards, they come fastest. Those that
//! nobody has, as the switch has sent them to memory, need not come at all if they are written whole, one after the other, and nothing has asked for them. A Zen 4, cycles a line: 11 and 19 in the first state on the same
//! cache; 17 to 22 and 7 to 9 in the second. So the driver tries both all the time, and is at its best beside any switch.

use super::sys::LINE;
use std::ops::Range;

/// Lines that are asked for before they are written, of frames of one piece: stores wait for their lines one after another, and asked for together they come sooner. Chosen: a frame of 1518
/// bytes (14.9 instead of 14.2 Mpps), and so six of 256 (on far caches 16 instead of 12 Mpps); all 141 lines of 9000 bytes, which a core can't wait for at once, cost a fifth.
const AHEAD: usize = 24;

/// Lines of a piece of a long frame, at most: the unit of asking and writing. Chosen: Zen 4, far caches, writing frames of 9000 bytes, 5050 cycles; 6800 with half as many, 5600 with 24.
const PIECE: usize = 16;

/// Bursts of a trial.
const TRIED: usize = 8;

/// Bursts from one pair of trials to the next: a few milliseconds of frames of 256 bytes.
const SPAN: usize = 1024;

/// A way to fill a burst of frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Filling {
    /// In [pieces](pieces_backwards), from the last to the first, whose lines are asked for before.
    Asking,
    /// From the first byte to the last.
    Straight,
}

impl Filling {
    /// Whether the first lines of frames of `len` bytes are to be asked for long before the burst is filled: not where nothing may have asked for them, nor where each frame is as much as
    /// is asked for ahead anyway (Zen 4, the same cache: 1518 bytes 2 % more frames without, 256 bytes a fifth fewer).
    pub(super) fn wants_first(self, len: usize) -> bool {
        self == Self::Asking && len.div_ceil(LINE) < AHEAD
    }
}

/// The bytes of the pieces of `count` frames of `len` bytes, the last piece of the last frame first: processors follow an ascending row of accesses and fetch by themselves what comes
/// next, which would be the next frame's buffer, from which the switch may still read.
pub(super) fn pieces_backwards(
    count: u16,
    len: usize,
) -> impl Iterator<Item = (u16, Range<usize>)> + Clone {
    let (pieces, piece) = pieces_of(len);
    let frame = (0..pieces).rev().map(move |n| n * piece..((n + 1) * piece).min(len));
    (0..count).rev().flat_map(move |n| frame.clone().map(move |bytes| (n, bytes)))
}

/// Pieces of a frame of `len` bytes, and bytes of the longest, whole lines.
fn pieces_of(len: usize) -> (usize, usize) {
    let lines = len.div_ceil(LINE);
    let pieces = lines.div_ceil(PIECE);
    (pieces, lines.div_ceil(pieces) * LINE)
}

/// Pieces that are asked for ahead: of frames of several, one (Zen 4, the same cache, 1518 bytes, with the switch between: 9.4 to 9.9 instead of 9.0 Mpps with two, which are
/// as much as is on its way at once, and the switch's lines are on their way, too).
pub(super) fn pieces_ahead(len: usize) -> usize {
    match pieces_of(len) {
        (1, bytes) => (AHEAD * LINE / bytes).max(1),
        _ => 1,
    }
}

/// Tries both ways at the beginning of each span of bursts, and goes on with the one that took less.
#[derive(Clone, Default)]
pub(super) struct Choice {
    /// Cycles of the bursts tried, by way.
    tried: [[u64; TRIED]; 2],
    /// Bursts of this span.
    count: usize,
    is_straight_less: bool,
}

impl Choice {
    /// How the next burst is to be filled.
    pub(super) fn filling(&self) -> Filling {
        match self.count / TRIED {
            0 => Filling::Asking,
            1 => Filling::Straight,
            _ if self.is_straight_less => Filling::Straight,
            _ => Filling::Asking,
        }
    }

    /// Filling a burst so took that many cycles; what its stores hold up afterwards is not counted. All bursts are of the same length.
    pub(super) fn took(&mut self, cycles: u64) {
        if let Some(tried) = self.tried.get_mut(self.count / TRIED) {
            tried[self.count % TRIED] = cycles;
        }
        self.count = (self.count + 1) % SPAN;
        if self.count == 2 * TRIED {
            let [asking, straight] = self.tried.map(median);
            self.is_straight_less = straight < asking;
        }
    }
}

/// So that one interruption decides nothing.
fn median(mut cycles: [u64; TRIED]) -> u64 {
    *cycles.select_nth_unstable(TRIED / 2).1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spans of bursts that cost so much by way; how many were straight.
    fn straight(choice: &mut Choice, spans: usize, cost: impl Fn(Filling, usize) -> u64) -> usize {
        let mut straight = 0;
        for burst in 0..spans * SPAN {
            let filling = choice.filling();
            straight += usize::from(filling == Filling::Straight);
            choice.took(cost(filling, burst));
        }
        straight
    }

    #[test]
    fn the_way_that_takes_less_is_taken_but_for_trials_of_the_other() {
        let mut choice = Choice::default();
        let far = |filling, _| if filling == Filling::Straight { 2000 } else { 4000 };
        assert_eq!(straight(&mut choice, 3, far), 3 * (SPAN - TRIED));
        let near = |filling, _| if filling == Filling::Straight { 5000 } else { 3000 };
        assert_eq!(straight(&mut choice, 3, near), 3 * TRIED);
    }

    #[test]
    fn an_interruption_decides_nothing() {
        let mut choice = Choice::default();
        let disturbed = |filling, burst: usize| match filling {
            Filling::Straight if burst % SPAN == TRIED + 3 => 1_000_000,
            Filling::Straight => 2000,
            Filling::Asking => 4000,
        };
        assert_eq!(straight(&mut choice, 2, disturbed), 2 * (SPAN - TRIED));
    }

    #[test]
    fn pieces_are_all_of_the_frames_from_the_end() {
        for len in [65, 256, 1518, 9000] {
            let mut end = (2, len);
            for (n, bytes) in pieces_backwards(3, len) {
                assert_eq!((n, bytes.end), end, "{len}");
                assert!(bytes.start.is_multiple_of(LINE) && bytes.len() <= PIECE * LINE, "{len}");
                end = if bytes.start == 0 { (n.wrapping_sub(1), len) } else { (n, bytes.start) };
            }
            assert_eq!(end.0, u16::MAX, "{len}");
        }
    }
}
