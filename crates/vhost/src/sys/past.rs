//! Long frames into a guest's buffers past the caches, and out of another's.
//!
//! Where a guest's core shares no cache with ours, each line that we write is taken from its cache, one after the other through a narrow way, only to be taken back when it is read. Written to memory, whole,
//! it is not waited for, and is read from there as soon. What was read is sent there too: its sender, who will write it again, need not take it from us then. Figures, and for which
//! processors: docs/decisions/0023.

use super::copy::{Copier, LINE, line_past, part_past, send_away};
use super::slice::GuestSlice;

/// Frames of fewer bytes are written as to anyone: their lines are on their way together with their headers'.
pub(crate) const PAST_MIN: usize = 192;

/// Copies that leave nothing in caches.
#[derive(Clone, Copy)]
pub(crate) struct Past(Copier);

impl Past {
    /// If this processor gains by it.
    #[inline]
    pub(crate) fn here() -> Option<Self> {
        let copier = Copier::here();
        copier.goes_past().then_some(Self(copier))
    }

    /// For tests: as it would do it.
    #[cfg(test)]
    pub(super) fn by(copier: Copier) -> Self {
        Self(copier)
    }

    /// All of another guest's `from` to where `to` begins. What is last of a frame may be followed by zeros up to the next line, as far as `to` goes: "The device MAY
    /// write more than len bytes" (VIRTIO 1.2 §2.7.8.2).
    ///
    /// # Panics
    /// When `to` is shorter.
    #[inline]
    pub(crate) fn copy_from(self, to: GuestSlice<'_>, from: GuestSlice<'_>, is_last: bool) {
        let len = from.len();
        let (whole, rest) = to.split_at(len);
        let (to, from) = (whole.as_ptr().as_ptr(), from.as_ptr().as_ptr());
        let room = if is_last { rest.len() } else { 0 };
        // SAFETY: both have `len` bytes, and `to` so many more.
        unsafe { self.copy(to, from, len, room) };
        // SAFETY: as above.
        unsafe { self.leave(from, len) };
    }

    /// The same from private memory.
    ///
    /// # Panics
    /// When `to` is shorter.
    #[inline]
    pub(crate) fn write(self, to: GuestSlice<'_>, from: &[u8], is_last: bool) {
        let (whole, rest) = to.split_at(from.len());
        let room = if is_last { rest.len() } else { 0 };
        // SAFETY: as for `copy_from`.
        unsafe { self.copy(whole.as_ptr().as_ptr(), from.as_ptr(), from.len(), room) };
    }

    /// Copies `len` bytes; the line with the last of them may be filled up with zeros if it has no more than `room` others.
    ///
    /// # Safety
    /// `from` is readable for `len` bytes and `to` writable for `len + room`. As for [`Copier::copy`], others may change both.
    #[inline]
    pub(super) unsafe fn copy(self, to: *mut u8, from: *const u8, len: usize, room: usize) {
        let Self(copier) = self;
        let before = to.addr().wrapping_neg() % LINE;
        if len < before + LINE {
            // SAFETY: the caller's promise.
            return unsafe { copier.copy(to, from, len) };
        }
        // SAFETY: the caller's promise, `before <= len`.
        unsafe { copier.copy(to, from, before) };
        let mut at = before;
        while at + LINE <= len {
            // SAFETY: the caller's promise, and `to + before` begins a line.
            unsafe { line_past(to.wrapping_add(at), from.wrapping_add(at), copier) };
            at += LINE;
        }
        let (to, from, left) = (to.wrapping_add(at), from.wrapping_add(at), len - at);
        // SAFETY: the caller's promise; the rest of the line is in the room.
        let is_done =
            left == 0 || left + room >= LINE && unsafe { part_past(to, from, left, copier) };
        if !is_done {
            // SAFETY: the caller's promise.
            unsafe { copier.copy(to, from, left) };
        }
    }

    /// Sends lines that were read to memory.
    ///
    /// # Safety
    /// `from` is readable for `len` bytes.
    #[inline]
    pub(super) unsafe fn leave(self, from: *const u8, len: usize) {
        if len == 0 {
            return;
        }
        let skew = from.addr() % LINE;
        for at in (0..skew + len).step_by(LINE) {
            // SAFETY: each of these lines holds one of the bytes.
            unsafe { send_away(from.wrapping_sub(skew).wrapping_add(at)) };
        }
    }

    /// What was copied can be seen before anything that is written from here on (AMD's manual, volume 4, MOVNTDQ: such stores are weakly ordered; volume 3, SFENCE).
    #[inline]
    pub(crate) fn finish(self) {
        super::fence::store_fence();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of all lengths arrive whole wherever in a line they begin, what was before them stays, and behind them at most the line is filled up, and that with zeros, if there is room for it.
    #[test]
    fn frames_arrive_whole_and_nothing_else_changes_but_the_room() {
        #[repr(align(64))]
        struct Aligned([u8; 9300]);
        let past = Past::by(Copier::here());
        let from: Vec<u8> = (0..9000).map(|at| (at % 251) as u8 + 1).collect();
        for len in (0..400).chain([1023, 1024, 1025, 1518, 9000]) {
            for (skew, room) in [(0, 0), (0, 63), (12, 5), (52, 80), (64, 30), (1, 80)] {
                let mut to = Aligned([0xee; 9300]);
                let at = LINE + skew;
                // SAFETY: `to` has room for the frame, and all the room behind it.
                unsafe { past.copy(to.0.as_mut_ptr().wrapping_add(at), from.as_ptr(), len, room) };
                past.finish();
                let (before, rest) = to.0.split_at(at);
                let (frame, behind) = rest.split_at(len);
                assert!(before.iter().all(|&byte| byte == 0xee), "{len} {skew} {room}");
                assert!(frame == &from[..len], "{len} {skew} {room}");
                let line = (at + len).next_multiple_of(LINE) - (at + len);
                let zeros = behind.iter().take_while(|&&byte| byte == 0).count();
                assert!(
                    zeros == 0 || zeros == line && line <= room,
                    "{len} {skew} {room}: {zeros}"
                );
                assert!(behind[zeros..].iter().all(|&byte| byte == 0xee), "{len} {skew} {room}");
            }
        }
    }
}
