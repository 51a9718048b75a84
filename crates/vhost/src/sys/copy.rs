//! Copies between memories that others may write.

use super::prefetch::own_soon;
use super::processor::{Copier, LONG_MIN, Long, Stores};

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// Bytes that are on their way before they are written ([`Long::Ahead`]). Twice as many are no better, and three times worse.
const AHEAD: usize = 8 * LINE;

impl Copier {
    /// Copies as [`copy`] does.
    ///
    /// # Safety
    /// As for [`copy`].
    #[inline(always)]
    pub(super) unsafe fn copy(self, to: *mut u8, from: *const u8, len: usize) {
        // SAFETY: the caller's promise.
        unsafe { copy_by(to, from, len, self) };
    }
}

/// Copies `len` bytes. Some may be read and written twice.
///
/// # Safety
/// `from` is readable and `to` writable for `len` bytes. Either may change meanwhile, and they may overlap if nobody minds what arrives.
#[inline]
pub(super) unsafe fn copy(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { copy_by(to, from, len, Copier::here()) };
}

/// The same for a part of a frame that goes to several buffers, large segments mostly: from [`LONG_MIN`] on a string move whatever the processor.
///
/// # Safety
/// As for [`copy`].
#[inline]
pub(super) unsafe fn copy_part(to: *mut u8, from: *const u8, len: usize) {
    let copier = Copier::here();
    match len {
        // SAFETY: the caller's promise, and 64 <= len.
        LONG_MIN.. => unsafe { move_string(to, from, len, copier.stores) },
        // SAFETY: the caller's promise.
        _ => unsafe { copy_by(to, from, len, copier) },
    }
}

/// The same as [`copy`], by whoever has asked how before.
///
/// # Safety
/// As for [`copy`].
#[inline]
unsafe fn copy_by(to: *mut u8, from: *const u8, len: usize, copier: Copier) {
    let Copier { stores, long, .. } = copier;
    match len {
        // SAFETY: the caller's promise, and 64 <= len.
        LONG_MIN.. if len >= long.string_min() => unsafe { move_string(to, from, len, stores) },
        // SAFETY: the caller's promise, and 128 <= len.
        LONG_MIN.. if long == Long::Ahead => unsafe { ahead(to, from, len, stores) },
        // SAFETY: the caller's promise, and 64 <= len.
        64.. => unsafe { lines(to, from, len, stores) },
        // SAFETY: in each arm, the caller's promise and the arm's range.
        32.. => unsafe { halves(to, from, len, stores) },
        // SAFETY: as above.
        16.. => unsafe { ends::<16>(to, from, len) },
        // SAFETY: as above.
        8.. => unsafe { ends::<8>(to, from, len) },
        // SAFETY: as above.
        4.. => unsafe { ends::<4>(to, from, len) },
        // SAFETY: as above.
        2.. => unsafe { ends::<2>(to, from, len) },
        // SAFETY: as above.
        1 => unsafe { one::<1>(to, from) },
        0 => {}
    }
}

/// A string move that begins where a line of the destination does: 2 to 3 % less for 1518-byte frames than from wherever the body begins.
///
/// # Safety
/// As for [`copy`], and `len >= 64`.
#[inline]
unsafe fn move_string(to: *mut u8, from: *const u8, len: usize, stores: Stores) {
    let before = to_next_line(to);
    // SAFETY: `64 <= len`.
    unsafe { line(to, from, stores) };
    // SAFETY: `before <= 64 <= len`.
    unsafe { string(to.wrapping_add(before), from.wrapping_add(before), len - before) };
}

/// Line by line of the destination, each asked for [`AHEAD`] bytes before it is written, and none behind the last.
///
/// # Safety
/// As for [`copy`], and `len >= 128`.
#[inline]
unsafe fn ahead(to: *mut u8, from: *const u8, len: usize, stores: Stores) {
    let (first, before) = (to, to_next_line(to));
    let (to, body, len) = (to.wrapping_add(before), from.wrapping_add(before), len - before);
    own_soon(first);
    for at in (0..len.min(AHEAD)).step_by(64) {
        own_soon(to.wrapping_add(at));
    }
    // SAFETY: `64 <= len`.
    unsafe { line(first, from, stores) };
    let mut at = 0;
    while at + AHEAD < len {
        own_soon(to.wrapping_add(at + AHEAD));
        // SAFETY: `at + 64 < len`.
        unsafe { line(to.wrapping_add(at), body.wrapping_add(at), stores) };
        at += 64;
    }
    // SAFETY: what is left, at least 64 bytes: there were, and the loop ends where more than `AHEAD - 64` are left.
    unsafe { lines(to.wrapping_add(at), body.wrapping_add(at), len - at, stores) };
}

/// Bytes up to where the next line begins, 1 to 64.
#[inline]
fn to_next_line(at: *mut u8) -> usize {
    64 - at.addr() % 64
}

/// `len` bytes by 64, the last ones counted from the end.
///
/// # Safety
/// As for [`copy`], and `len >= 64`.
#[inline]
unsafe fn lines(to: *mut u8, from: *const u8, len: usize, stores: Stores) {
    let last = len - 64;
    let mut at = 0;
    while at < last {
        // SAFETY: `at + 64 < len`.
        unsafe { line(to.wrapping_add(at), from.wrapping_add(at), stores) };
        at += 64;
    }
    // SAFETY: `last + 64 == len`.
    unsafe { line(to.wrapping_add(last), from.wrapping_add(last), stores) };
}

/// 64 bytes.
///
/// # Safety
/// As for [`copy`].
#[inline]
unsafe fn line(to: *mut u8, from: *const u8, stores: Stores) {
    match stores {
        // SAFETY: the caller's promise, and the processor can.
        #[cfg(target_arch = "x86_64")]
        Stores::Avx512 => unsafe { line_avx512(to, from) },
        // SAFETY: the caller's promise.
        _ => unsafe { one::<64>(to, from) },
    }
}

/// `32 <= len <= 64` bytes, as the first and the last 32.
///
/// # Safety
/// As for [`copy`].
#[inline]
unsafe fn halves(to: *mut u8, from: *const u8, len: usize, stores: Stores) {
    let last = len - 32;
    match stores {
        #[cfg(target_arch = "x86_64")]
        Stores::Avx512 => {
            // SAFETY: the caller's promise, and the processor can.
            unsafe { half_avx512(to, from) };
            // SAFETY: `last + 32 == len`.
            unsafe { half_avx512(to.wrapping_add(last), from.wrapping_add(last)) };
        }
        // SAFETY: the caller's promise.
        _ => unsafe { ends::<32>(to, from, len) },
    }
}

/// 64 bytes in one store.
///
/// # Safety
/// As for [`copy`]; AVX-512 is there.
#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn line_avx512(to: *mut u8, from: *const u8) {
    // SAFETY: reads and writes exactly the ranges that the caller promised, at any address. Nothing has to be cleared after
    // register 16, which older code does not know.
    unsafe {
        std::arch::asm!(
            "vmovdqu64 zmm16, [{from}]",
            "vmovdqu64 [{to}], zmm16",
            from = in(reg) from,
            to = in(reg) to,
            out("zmm16") _,
            options(nostack, preserves_flags)
        );
    }
}

/// 32 bytes in one store.
///
/// # Safety
/// As for [`copy`]; AVX-512 is there, for short vectors too.
#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn half_avx512(to: *mut u8, from: *const u8) {
    // SAFETY: as for `line_avx512`.
    unsafe {
        std::arch::asm!(
            "vmovdqu64 ymm16, [{from}]",
            "vmovdqu64 [{to}], ymm16",
            from = in(reg) from,
            to = in(reg) to,
            out("zmm16") _,
            options(nostack, preserves_flags)
        );
    }
}

/// `N <= len <= 2 * N` bytes, as the first and the last `N`.
///
/// # Safety
/// As for [`copy`].
#[inline]
unsafe fn ends<const N: usize>(to: *mut u8, from: *const u8, len: usize) {
    let last = len - N;
    // SAFETY: `N <= len`.
    unsafe { one::<N>(to, from) };
    // SAFETY: `last + N == len`.
    unsafe { one::<N>(to.wrapping_add(last), from.wrapping_add(last)) };
}

/// `N` bytes, read whole before any is written.
///
/// # Safety
/// As for [`copy`].
#[inline]
unsafe fn one<const N: usize>(to: *mut u8, from: *const u8) {
    // SAFETY: the caller's promise; any bytes are `[u8; N]`, at any address.
    let bytes = unsafe { from.cast::<[u8; N]>().read_unaligned() };
    // SAFETY: likewise.
    unsafe { to.cast::<[u8; N]>().write_unaligned(bytes) };
}

/// # Safety
/// As for [`copy`].
#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn string(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: reads and writes exactly the ranges that the caller promised, byte by byte as the processor sees fit; the direction
    // flag is clear by the calling convention.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") len => _,
            inout("rdi") to => _,
            inout("rsi") from => _,
            options(nostack, preserves_flags)
        );
    }
}

/// # Safety
/// As for [`copy`].
#[cfg(not(target_arch = "x86_64"))]
#[inline]
unsafe fn string(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the caller's promise; `ptr::copy` allows overlap.
    unsafe { std::ptr::copy(from, to, len) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every one that this processor can.
    fn ways() -> impl Iterator<Item = Copier> {
        let all = [Long::String, Long::Lines, Long::Backwards, Long::Ahead];
        let stores = [Copier::here().stores, Stores::Common];
        stores
            .into_iter()
            .flat_map(move |stores| all.map(|long| Copier { stores, long, far: None }))
    }

    #[test]
    fn every_length_is_copied_whole_and_nothing_else() {
        let from: Vec<u8> = (0..20_000).map(|at| (at % 251) as u8 + 1).collect();
        for len in (0..700).chain([1023, 1024, 1025, 1299, 9001, 16_383, 16_384, 19_999]) {
            for copier in ways() {
                let mut to = vec![0; 20_100];
                let (into, out) = (to.as_mut_ptr().wrapping_add(3), from.as_ptr().wrapping_add(1));
                // SAFETY: both are longer, from the third byte on.
                unsafe { copy_by(into, out, len, copier) };
                assert_eq!(to[3..3 + len], from[1..1 + len], "{len} {copier:?}");
                assert!(
                    to[..3].iter().chain(&to[3 + len..]).all(|&byte| byte == 0),
                    "{len} {copier:?}"
                );

                to.fill(0);
                // SAFETY: likewise.
                unsafe { copy_part(to.as_mut_ptr().wrapping_add(3), out, len) };
                assert_eq!(to[3..3 + len], from[1..1 + len], "a part of {len}");
                assert!(to[..3].iter().chain(&to[3 + len..]).all(|&byte| byte == 0), "{len}");
            }
        }
    }
}
