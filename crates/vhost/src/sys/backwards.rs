//! Long frames into a guest's buffers, the last one first, in pieces whose lines are asked for one piece before they are written.
//!
//! A store to a line that the guest has in its cache waits for a way to the guest's core and back, and behind it all others wait. Asked for together, lines are on their way together; and while those of
//! one piece are, the piece asked for before is copied. Backwards, because processors follow an ascending row of accesses and fetch what comes next by themselves: forwards that is the
//! next frame's buffer, which comes as shared then and which every store has to ask for once more; backwards it is what has just been written. Within a piece the bytes go
//! forwards. Figures, and for which processors: docs/decisions/0012.

use super::copy::{Copier, LINE};
use super::prefetch::own_soon;
use super::slice::GuestSlice;
use std::marker::PhantomData;

/// Bytes of a piece, at most. Chosen, Zen 4, the guest on another cache: frames of 9000 bytes 5920 cycles, with half as many 6800, with twice as many 6800.
const PIECE: usize = 16 * LINE;

/// What has no more bytes than this, as a frame of an Ethernet's usual MTU, is one piece: in two, 1518 bytes cost 1 to 3 % more (Zen 4, the guest on the same cache).
const UNCUT: usize = 24 * LINE;

/// What one copy does.
#[derive(Clone, Copy)]
struct Move {
    to: *mut u8,
    from: *const u8,
    len: usize,
}

/// Copies that are taken from the last to the first. `'a` is a borrow of whoever keeps their bytes.
pub(crate) struct Backwards<'a> {
    copier: Copier,
    /// Its lines are on their way.
    asked: Option<Move>,
    bytes: PhantomData<&'a [u8]>,
}

impl<'a> Backwards<'a> {
    /// For frames of which the longest has so many bytes, if that is how this processor copies them best.
    #[inline]
    pub(crate) fn of(longest: usize) -> Option<Self> {
        let copier = Copier::here();
        copier.goes_backwards(longest).then(|| Self::by(copier))
    }

    #[inline]
    pub(super) fn by(copier: Copier) -> Self {
        Self { copier, asked: None, bytes: PhantomData }
    }

    /// Takes a copy from another guest's memory, which comes before those taken until now: all of `from` to where `to` begins.
    ///
    /// # Panics
    /// When `to` is shorter.
    #[inline]
    pub(crate) fn take_from(&mut self, to: GuestSlice<'a>, from: GuestSlice<'a>) {
        let to = to.split_at(from.len()).0;
        // SAFETY: both have `from.len()` bytes, and whoever keeps them is borrowed for `'a`.
        unsafe { self.take(to.as_ptr().as_ptr(), from.as_ptr().as_ptr(), from.len()) };
    }

    /// The same from private memory.
    ///
    /// # Panics
    /// When `to` is shorter.
    #[inline]
    pub(crate) fn take_private(&mut self, to: GuestSlice<'a>, from: &'a [u8]) {
        let to = to.split_at(from.len()).0;
        // SAFETY: as for `take_from`.
        unsafe { self.take(to.as_ptr().as_ptr(), from.as_ptr(), from.len()) };
    }

    /// # Safety
    /// `from` is readable and `to` writable for `len` bytes as long as `'a`. Either may change meanwhile; they may overlap if nobody minds what arrives.
    #[inline]
    pub(super) unsafe fn take(&mut self, to: *mut u8, from: *const u8, len: usize) {
        // Pieces end where lines do.
        let skew = to.addr() % LINE;
        let most = if skew + len <= UNCUT { UNCUT } else { PIECE };
        let mut end = len;
        while end > 0 {
            let start = ((end + skew - 1) / most * most).saturating_sub(skew);
            let (to, from) = (to.wrapping_add(start), from.wrapping_add(start));
            let next = Move { to, from, len: end - start };
            next.ask();
            if let Some(before) = self.asked.replace(next) {
                // SAFETY: a part of what an earlier call was promised, for as long as `'a`.
                unsafe { before.copy(self.copier) };
            }
            end = start;
        }
    }

    /// Copies what is still to be copied.
    #[inline]
    pub(crate) fn finish(self) {
        if let Some(last) = self.asked {
            // SAFETY: as in `take`.
            unsafe { last.copy(self.copier) };
        }
    }
}

impl Move {
    /// Asks for the lines that will be written.
    #[inline]
    fn ask(self) {
        let skew = self.to.addr() % LINE;
        for at in (0..skew + self.len).step_by(LINE) {
            own_soon(self.to.wrapping_sub(skew).wrapping_add(at));
        }
    }

    /// # Safety
    /// As for [`Backwards::take`].
    #[inline]
    unsafe fn copy(self, copier: Copier) {
        // SAFETY: the caller's promise.
        unsafe { copier.copy(self.to, self.from, self.len) };
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
                let mut backwards = Backwards::by(Copier::here());
                for frame in (0..3).rev() {
                    let at = 5 + frame * (len + gap);
                    let sent = &from[frame * 3..frame * 3 + len];
                    expected[at..at + len].copy_from_slice(sent);
                    // SAFETY: `to` has room for three frames and what is before and between them.
                    unsafe { backwards.take(to.as_mut_ptr().wrapping_add(at), sent.as_ptr(), len) };
                }
                backwards.finish();
                assert!(to == expected, "{len} {gap}");
            }
        }
    }
}
