//! Long frames into a guest's buffers, the last one first, in pieces: all lines of one are asked for, then it is copied.
//!
//! A store to a line that the guest has in its cache waits for a way to the guest's core and back, and behind it all others wait. Asked for together, lines are on their way together.
//! Backwards, because processors follow an ascending row of accesses and fetch what comes next by themselves: forwards that is the
//! next frame's buffer, which comes as shared then and which every store has to ask for once more; backwards it is what has just been written. Within a piece the bytes go
//! forwards.
//!
//! What another guest has sent is asked for before, all of it, and as if it were to be written: that guest will write the next frame there, and we think that it gets a line back sooner from one who alone has it than
//! where both have a copy. Figures, and for which processors: docs/decisions/0012.

use super::copy::LINE;
use super::prefetch::own_soon;
use super::processor::Copier;
use super::slice::GuestSlice;

/// Bytes of a piece, at most. Chosen, Zen 4, the guest on the same cache, frames of 1518 bytes: 9.1 Mpps; 8.8 and 8.9 with 24 and 16 lines, 7.8 to 8.3 with 6 to 10.
const PIECE: usize = 12 * LINE;

/// How copies are taken from the last to the first.
#[derive(Clone, Copy)]
pub(crate) struct Backwards(pub(super) Copier);

impl Backwards {
    /// For frames of which the longest has so many bytes, if that is how this processor copies them best.
    #[inline]
    pub(crate) fn of(longest: usize) -> Option<Self> {
        let copier = Copier::here();
        copier.goes_backwards(longest).then_some(Self(copier))
    }

    /// Takes a copy from another guest's memory, which comes before those taken until now: all of `from` to where `to` begins.
    ///
    /// # Panics
    /// When `to` is shorter.
    #[inline]
    pub(crate) fn take_from(self, to: GuestSlice<'_>, from: GuestSlice<'_>) {
        let to = to.split_at(from.len()).0;
        let source = from.as_ptr().as_ptr();
        // Its first line, which this may leave out, was asked for with its descriptor.
        for at in (0..from.len()).rev().step_by(LINE) {
            own_soon(source.wrapping_add(at));
        }
        // SAFETY: both have `from.len()` bytes, and whoever keeps them is borrowed.
        unsafe { self.take(to.as_ptr().as_ptr(), source, from.len()) };
    }

    /// The same from private memory.
    ///
    /// # Panics
    /// When `to` is shorter.
    #[inline]
    pub(crate) fn take_private(self, to: GuestSlice<'_>, from: &[u8]) {
        let to = to.split_at(from.len()).0;
        // SAFETY: as for `take_from`.
        unsafe { self.take(to.as_ptr().as_ptr(), from.as_ptr(), from.len()) };
    }

    /// # Safety
    /// `from` is readable and `to` writable for `len` bytes. Either may change meanwhile, and they may overlap if nobody minds what arrives.
    #[inline]
    pub(super) unsafe fn take(self, to: *mut u8, from: *const u8, len: usize) {
        // All but the first begin where lines do.
        let skew = to.addr() % LINE;
        let mut end = len;
        while end > 0 {
            let start = ((end + skew - 1) / PIECE * PIECE).saturating_sub(skew);
            let piece = to.wrapping_add(start);
            let first = piece.wrapping_sub(piece.addr() % LINE);
            for at in (0..to.addr() + end - first.addr()).step_by(LINE) {
                own_soon(first.wrapping_add(at));
            }
            // SAFETY: a part of what the caller promised.
            unsafe { self.0.copy(piece, from.wrapping_add(start), end - start) };
            end = start;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of all lengths, wherever in a line they begin and one behind the other, arrive whole, and nothing else is written.
    #[test]
    fn frames_arrive_whole_and_nothing_else_is_written() {
        let from: Vec<u8> = (0..70_000).map(|at| (at % 251) as u8 + 1).collect();
        for len in (0..200).chain([511, 512, 1023, 1024, 1025, 1518, 2048, 9000, 16_384, 20_001]) {
            for gap in [0, 1, 12, 63, 64, 100] {
                let mut to = vec![0; 3 * (len + gap) + 64];
                let mut expected = to.clone();
                let backwards = Backwards(Copier::here());
                for frame in (0..3).rev() {
                    let at = 5 + frame * (len + gap);
                    let sent = &from[frame * 3..frame * 3 + len];
                    expected[at..at + len].copy_from_slice(sent);
                    // SAFETY: `to` has room for three frames and what is before and between them.
                    unsafe { backwards.take(to.as_mut_ptr().wrapping_add(at), sent.as_ptr(), len) };
                }
                assert!(to == expected, "{len} {gap}");
            }
        }
    }
}
