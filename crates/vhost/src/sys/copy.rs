//! Copies between memories that others may write, and prefetching.

use std::ptr::NonNull;

/// From here on a string move, but where lines are better ([`SEGMENT_MIN`]): it takes whole lines without reading what they held (1518-byte frames whose payload the receiver reads:
/// 546 → 357 cycles when it sits on another cache, 137 → 124 on the same). Below, the processor's start-up costs more.
const STRING_MIN: usize = 512;

/// From here on what is copied at once is a large segment. Below, a processor without AVX-512 moves it line by line: its string move sends the lines on to where the reader finds them only slowly once
/// others of the host want the last-level cache (Zen 3: 9000-byte frames whose payload is read, 0.9 Mpps, by lines 2.1; 1518 bytes 5.4 to 12.7, by lines 8.1 to 13.0). Large segments come from cold
/// memory and go to cold memory, and there the string move is faster everywhere (docs/decisions/0012).
const SEGMENT_MIN: usize = 16 << 10;

/// What the processor's widest stores are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Copier {
    /// 64 bytes and 32.
    Avx512,
    /// What every processor of the architecture has.
    Common,
}

impl Copier {
    /// This processor's.
    #[inline]
    pub(crate) fn here() -> Self {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") {
            return Self::Avx512;
        }
        Self::Common
    }

    /// Whether so many bytes, 512 or more, are better moved line by line than by a string move.
    #[inline]
    fn prefers_lines(self, len: usize) -> bool {
        cfg!(target_arch = "x86_64") && self == Self::Common && len < SEGMENT_MIN
    }

    /// Copies as [`copy`] does.
    ///
    /// # Safety
    /// As for [`copy`].
    #[inline(always)]
    pub(super) unsafe fn copy(self, to: *mut u8, from: *const u8, len: usize) {
        // SAFETY: the caller's promise.
        unsafe { copy_wide(to, from, len, self) };
    }
}

/// Copies `len` bytes. Some may be read and written twice.
///
/// # Safety
/// `from` is readable and `to` writable for `len` bytes. Either may change meanwhile, and they may overlap if nobody minds what arrives.
#[inline]
pub(super) unsafe fn copy(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { copy_wide(to, from, len, Copier::here()) };
}

/// The same for a part of a frame that goes to several buffers, large segments mostly: from [`STRING_MIN`] on a string move whatever the processor.
///
/// # Safety
/// As for [`copy`].
#[inline]
pub(super) unsafe fn copy_part(to: *mut u8, from: *const u8, len: usize) {
    match len {
        // SAFETY: the caller's promise, and 64 < len.
        STRING_MIN.. => unsafe { long(to, from, len, Copier::here()) },
        // SAFETY: the caller's promise.
        _ => unsafe { copy(to, from, len) },
    }
}

/// The same, by whoever has asked for the widest stores before.
///
/// # Safety
/// As for [`copy`].
#[inline]
pub(super) unsafe fn copy_wide(to: *mut u8, from: *const u8, len: usize, wide: Copier) {
    match len {
        // SAFETY: the caller's promise, and 64 < len.
        STRING_MIN.. if !wide.prefers_lines(len) => unsafe { long(to, from, len, wide) },
        // SAFETY: the caller's promise, and 64 <= len.
        64.. => unsafe { blocks(to, from, len, wide) },
        // SAFETY: in each arm, the caller's promise and the arm's range.
        32.. => unsafe { halves(to, from, len, wide) },
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
unsafe fn long(to: *mut u8, from: *const u8, len: usize, wide: Copier) {
    // 1 to 64.
    let before = 64 - to.addr() % 64;
    // SAFETY: `64 <= len`.
    unsafe { line(to, from, wide) };
    // SAFETY: `before <= 64 <= len`.
    unsafe { string(to.wrapping_add(before), from.wrapping_add(before), len - before) };
}

/// `len` bytes by 64, the last ones counted from the end.
///
/// # Safety
/// As for [`copy`], and `len >= 64`.
#[inline]
unsafe fn blocks(to: *mut u8, from: *const u8, len: usize, wide: Copier) {
    let last = len - 64;
    let mut at = 0;
    while at < last {
        // SAFETY: `at + 64 < len`.
        unsafe { line(to.wrapping_add(at), from.wrapping_add(at), wide) };
        at += 64;
    }
    // SAFETY: `last + 64 == len`.
    unsafe { line(to.wrapping_add(last), from.wrapping_add(last), wide) };
}

/// 64 bytes.
///
/// # Safety
/// As for [`copy`].
#[inline]
unsafe fn line(to: *mut u8, from: *const u8, wide: Copier) {
    match wide {
        // SAFETY: the caller's promise, and the processor can.
        #[cfg(target_arch = "x86_64")]
        Copier::Avx512 => unsafe { line_avx512(to, from) },
        // SAFETY: the caller's promise.
        _ => unsafe { one::<64>(to, from) },
    }
}

/// `32 <= len <= 64` bytes, as the first and the last 32.
///
/// # Safety
/// As for [`copy`].
#[inline]
unsafe fn halves(to: *mut u8, from: *const u8, len: usize, wide: Copier) {
    let last = len - 32;
    match wide {
        #[cfg(target_arch = "x86_64")]
        Copier::Avx512 => {
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
    // SAFETY: reads and writes exactly the ranges that the caller promised, at any address. Register 16 exists only for code that knows of
    // AVX-512: no one else keeps anything there, and nothing has to be cleared after it.
    unsafe {
        std::arch::asm!(
            "vmovdqu64 zmm16, [{from}]",
            "vmovdqu64 [{to}], zmm16",
            from = in(reg) from,
            to = in(reg) to,
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

/// What prefetched lines are for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum For {
    /// They will be read.
    Reading,
    /// They will be written: fetched as our own, so that the write need not ask again.
    Writing,
    /// The same, but later, and of buffers behind which the driver may be at work on the next.
    Reserving,
}

/// One line of assembly for each line of memory, and no register: this stands in the innermost loop over frames, and as a loop or a call of its own it made the shortest ones 3 to 8 cycles
/// dearer.
#[cfg(target_arch = "x86_64")]
macro_rules! ask {
    ($prefetch:literal, $at:expr, $bytes:expr) => {
        // SAFETY: a prefetch changes nothing and faults nowhere.
        unsafe {
            std::arch::asm!(
                concat!($prefetch, " [{at}]"),
                "cmp {bytes}, 64",
                "jbe 2f",
                concat!($prefetch, " [{at} + 64]"),
                "cmp {bytes}, 128",
                "jbe 2f",
                concat!($prefetch, " [{at} + 128]"),
                "cmp {bytes}, 192",
                "jbe 2f",
                concat!($prefetch, " [{at} + 192]"),
                "cmp {bytes}, 256",
                "jbe 2f",
                concat!($prefetch, " [{at} + 256]"),
                "2:",
                at = in(reg) $at,
                bytes = in(reg) $bytes,
                options(nostack, readonly)
            )
        }
    };
}

#[cfg(not(target_arch = "x86_64"))]
macro_rules! ask {
    ($prefetch:literal, $at:expr, $bytes:expr) => {
        _ = ($at, $bytes)
    };
}

/// The same by one instruction for all lines, for [`For::Reserving`]. Of [`ask`]'s, each steps from buffer to buffer; processors learn the steps between the addresses of one instruction
/// and fetch by themselves what would come next: buffers that the driver has not given back, from which they take away what it still reads. A step of one line, then one of what is
/// left to the next buffer, they do not follow (docs/decisions/0012: a fifth to a third of a frame's cycles where the driver's core is far away).
#[cfg(target_arch = "x86_64")]
macro_rules! ask_by_one {
    ($prefetch:literal, $at:expr, $bytes:expr) => {
        // SAFETY: a prefetch changes nothing and faults nowhere.
        unsafe {
            std::arch::asm!(
                "2:",
                concat!($prefetch, " [{at}]"),
                "add {at}, 64",
                "sub {bytes}, 64",
                "ja 2b",
                at = inout(reg) $at => _,
                bytes = inout(reg) $bytes => _,
                options(nostack, readonly)
            )
        }
    };
}

#[cfg(not(target_arch = "x86_64"))]
macro_rules! ask_by_one {
    ($prefetch:literal, $at:expr, $bytes:expr) => {
        _ = ($at, $bytes)
    };
}

/// Bytes that are asked for ahead, at most: a header and a head of 256. What is not asked for is waited for when it is touched, frame by frame; of what is longer the processor
/// finds the rest by itself (docs/decisions/0012).
pub(crate) const ASKED: usize = 5 * 64;

/// Asks for the first `bytes` from `at` on, which are best at most [`ASKED`].
#[inline]
pub(crate) fn prefetch_lines(at: NonNull<u8>, bytes: usize, purpose: For) {
    match purpose {
        For::Reading => ask!("prefetcht0", at.as_ptr(), bytes),
        // Processors without it take it for a no-op. (The compiler's intrinsic needs a target feature to use it.)
        For::Writing => ask!("prefetchw", at.as_ptr(), bytes),
        For::Reserving => ask_by_one!("prefetchw", at.as_ptr(), bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_copied_whole_and_nothing_else() {
        let from: Vec<u8> = (0..20_000).map(|at| (at % 251) as u8 + 1).collect();
        for len in (0..700).chain([1023, 1024, 1025, 1299, 9001, 16_383, 16_384, 19_999]) {
            for wide in [Copier::here(), Copier::Common] {
                let mut to = vec![0; 20_100];
                let (into, out) = (to.as_mut_ptr().wrapping_add(3), from.as_ptr().wrapping_add(1));
                // SAFETY: both are longer, from the third byte on.
                unsafe { copy_wide(into, out, len, wide) };
                assert_eq!(to[3..3 + len], from[1..1 + len], "{len}");
                assert!(to[..3].iter().chain(&to[3 + len..]).all(|&byte| byte == 0), "{len}");

                to.fill(0);
                // SAFETY: likewise.
                unsafe { copy_part(to.as_mut_ptr().wrapping_add(3), out, len) };
                assert_eq!(to[3..3 + len], from[1..1 + len], "a part of {len}");
                assert!(to[..3].iter().chain(&to[3 + len..]).all(|&byte| byte == 0), "{len}");
            }
        }
    }
}
