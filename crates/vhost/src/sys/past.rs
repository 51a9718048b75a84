//! Long frames into a guest's buffers past the caches, and out of another's.
//!
//! Where a guest's core shares no cache with ours, each line that we write is taken from its cache, one after the other through a narrow way, only to be taken back when it is read. Written to memory, whole,
//! it is not waited for, and is read from there as soon. What was read is sent there too: its sender, who will write it again, need not take it from us then. Figures, and for which
//! processors: docs/decisions/0023.

use super::copy::LINE;
#[cfg(not(target_arch = "x86_64"))]
use super::copy::copy;
use super::processor::{Copier, Stores};
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
        let stores = copier.stores;
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
            unsafe { line_past(to.wrapping_add(at), from.wrapping_add(at), stores) };
            at += LINE;
        }
        let (to, from, left) = (to.wrapping_add(at), from.wrapping_add(at), len - at);
        // SAFETY: the caller's promise; the rest of the line is in the room.
        let is_done =
            left == 0 || left + room >= LINE && unsafe { part_past(to, from, left, stores) };
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

/// 64 bytes past the caches, in one piece.
///
/// # Safety
/// As for [`Copier::copy`]; `to` begins a line.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn line_past(to: *mut u8, from: *const u8, stores: Stores) {
    match stores {
        // SAFETY: reads and writes exactly what the caller promised. Nothing has to be cleared after register 16, which older code does not know.
        Stores::Avx512 => unsafe {
            std::arch::asm!(
                "vmovdqu64 zmm16, [{from}]",
                "vmovntdq [{to}], zmm16",
                from = in(reg) from,
                to = in(reg) to,
                out("zmm16") _,
                options(nostack, preserves_flags)
            );
        },
        // SAFETY: as above; every processor of the architecture has these.
        Stores::Common => unsafe {
            std::arch::asm!(
                "movdqu {a}, [{from}]",
                "movdqu {b}, [{from} + 16]",
                "movdqu {c}, [{from} + 32]",
                "movdqu {d}, [{from} + 48]",
                "movntdq [{to}], {a}",
                "movntdq [{to} + 16], {b}",
                "movntdq [{to} + 32], {c}",
                "movntdq [{to} + 48], {d}",
                from = in(reg) from,
                to = in(reg) to,
                a = out(xmm_reg) _,
                b = out(xmm_reg) _,
                c = out(xmm_reg) _,
                d = out(xmm_reg) _,
                options(nostack, preserves_flags)
            );
        },
    }
}

/// A line past the caches of which only the first `len` bytes are copied, 1 to 63, and the others are zero; false, and nothing is done, where the processor cannot leave them unread.
///
/// # Safety
/// `from` is readable for `len` bytes and `to`, where a line begins, writable for 64; otherwise as for [`Copier::copy`].
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn part_past(to: *mut u8, from: *const u8, len: usize, stores: Stores) -> bool {
    if stores != Stores::Avx512 {
        return false;
    }
    let mask = (1_u64 << len) - 1;
    // SAFETY: bytes outside the mask are not read. Otherwise as for `line_past`.
    unsafe {
        std::arch::asm!(
            "kmovq k1, {mask}",
            "vmovdqu8 zmm16 {{k1}} {{z}}, [{from}]",
            "vmovntdq [{to}], zmm16",
            mask = in(reg) mask,
            from = in(reg) from,
            to = in(reg) to,
            out("k1") _,
            out("zmm16") _,
            options(nostack, preserves_flags)
        );
    }
    true
}

/// Writes a line back to memory, if it was changed, and forgets it, here and in every other cache.
///
/// # Safety
/// A byte of it is readable. The processor knows `clflushopt` ([`Copier::goes_past`]).
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn send_away(at: *const u8) {
    // SAFETY: nothing changes but where the line is; the caller's promise.
    unsafe {
        std::arch::asm!("clflushopt [{at}]", at = in(reg) at, options(nostack, preserves_flags));
    }
}

/// Where nobody goes past: an ordinary copy.
///
/// # Safety
/// As above.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn line_past(to: *mut u8, from: *const u8, _: Stores) {
    // SAFETY: the caller's promise.
    unsafe { copy(to, from, LINE) }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn part_past(_: *mut u8, _: *const u8, _: usize, _: Stores) -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn send_away(_: *const u8) {}

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
