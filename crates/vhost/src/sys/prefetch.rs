//! Lines that are asked for before they are touched.

use std::ptr::NonNull;

/// Asks for a line as our own, as [`For::Writing`] does for several.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) fn own_soon(at: *mut u8) {
    // SAFETY: a prefetch changes nothing and faults nowhere.
    unsafe {
        std::arch::asm!("prefetchw [{at}]", at = in(reg) at, options(nostack, readonly, preserves_flags))
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(super) fn own_soon(_at: *mut u8) {}

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

/// Asks for the first `bytes` from `at` on, which are best at most [`ASKED`]; the line at `at` also if they are none, but for [`For::Reserving`].
#[inline]
pub(crate) fn prefetch_lines(at: NonNull<u8>, bytes: usize, purpose: For) {
    match purpose {
        For::Reading => ask!("prefetcht0", at.as_ptr(), bytes),
        // Processors without it take it for a no-op. (The compiler's intrinsic needs a target feature to use it.)
        For::Writing => ask!("prefetchw", at.as_ptr(), bytes),
        For::Reserving if bytes == 0 => {}
        For::Reserving => ask_by_one!("prefetchw", at.as_ptr(), bytes),
    }
}
