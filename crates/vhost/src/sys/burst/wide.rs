//! Frames of up to 64 bytes by one load and one store each, with AVX-512: without a call, and with no more of their length to ask than whether it is a register's, and whether the register reaches into another page.

use super::super::processor::{Copier, Stores};
use super::super::slice::Header;
use super::Way;
use std::arch::asm;
use std::arch::x86_64::__m512i;

/// Bytes of a register.
pub(super) const FIRST: usize = 64;

/// Writing by such registers.
#[derive(Clone, Copy)]
pub(super) struct Wide(Copier);

impl Wide {
    /// If this processor has such registers.
    #[inline]
    pub(super) fn of(copier: Copier) -> Option<Self> {
        (copier.stores == Stores::Avx512).then_some(Self(copier))
    }

    /// Writes these headers and pieces; those that are longer, or end in another page, as the others are.
    ///
    /// # Safety
    /// As for [`Copier::copy`], of the piece of each, behind its header.
    #[inline]
    pub(super) unsafe fn write(self, ways: &[Way], header: Header) {
        // SAFETY: the caller's promise, and the processor can.
        unsafe { write_avx512(ways, header, self.0) };
    }
}

/// # Safety
/// As for [`Wide::write`]; AVX-512 is there, for bytes too.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn write_avx512(ways: &[Way], header: Header, copier: Copier) {
    for way in ways {
        let (from, to, len) = (way.from, way.behind(header), usize::from(way.head));
        let is_within = len == FIRST || !(ends_in_next_page(from) || ends_in_next_page(to));
        if (1..=FIRST).contains(&len) && is_within {
            // SAFETY: the caller's promise.
            let first = unsafe { load(from, len) };
            way.write_header(header);
            // SAFETY: likewise.
            unsafe { store(to, first, len) };
        } else {
            way.write_header(header);
            // SAFETY: likewise.
            unsafe { copier.copy(to, from, len) };
        }
    }
}

/// Whether 64 bytes from there on reach into another page. If that one is absent, a move by a mask that leaves its bytes alone takes 100 to 160 ns each way all the same: no guest shall make us wait so long for each frame.
#[inline]
pub(super) fn ends_in_next_page(at: *const u8) -> bool {
    at.addr() % 4096 > 4096 - FIRST
}

/// The first 64 of `len` bytes, or all with zeros behind; each is read once.
///
/// # Safety
/// `len` bytes can be read, one at least; AVX-512 is there.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) unsafe fn load(from: *const u8, len: usize) -> __m512i {
    let first;
    match FIRST.checked_sub(len) {
        // SAFETY: reads what the caller promised.
        None | Some(0) => unsafe {
            asm!("vmovdqu64 {first}, [{from}]", first = out(zmm_reg) first, from = in(reg) from,
                options(nostack, preserves_flags, readonly));
        },
        // SAFETY: likewise; bytes whose bit is not set are neither read nor the cause of a fault.
        Some(missing) => unsafe {
            asm!("vmovdqu8 {first}{{{set}}}{{z}}, [{from}]", first = out(zmm_reg) first,
                set = in(kreg) u64::MAX >> missing, from = in(reg) from,
                options(nostack, preserves_flags, readonly));
        },
    }
    first
}

/// Writes what was loaded of `len` bytes.
///
/// # Safety
/// `len` bytes can be written, one at least; AVX-512 is there.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) unsafe fn store(to: *mut u8, first: __m512i, len: usize) {
    match FIRST.checked_sub(len) {
        // SAFETY: writes what the caller promised.
        None | Some(0) => unsafe {
            asm!("vmovdqu64 [{to}], {first}", first = in(zmm_reg) first, to = in(reg) to,
                options(nostack, preserves_flags));
        },
        // SAFETY: likewise; bytes whose bit is not set stay as they are.
        Some(missing) => unsafe {
            asm!("vmovdqu8 [{to}]{{{set}}}, {first}", first = in(zmm_reg) first,
                set = in(kreg) u64::MAX >> missing, to = in(reg) to,
                options(nostack, preserves_flags));
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ALL_SHORT, Burst, Piece};
    use super::*;
    use crate::ring::NetHeader;
    use crate::sys::GuestSlice;
    use std::marker::PhantomData;
    use std::ptr::NonNull;

    #[repr(align(4096))]
    struct Pages([[u8; 8192]; 2]);

    /// Whatever its length, and wherever in a page it and its place end, a piece arrives whole behind its header, and nothing behind it.
    #[test]
    fn what_is_short_arrives_whole_at_the_end_of_a_page_and_elsewhere() {
        let Some(wide) = Wide::of(Copier::here()) else { return };
        let mut pages = Box::new(Pages([[0; 8192]; 2]));
        let [source, place] = &mut pages.0;
        (1..).zip(source.iter_mut()).for_each(|(at, byte)| *byte = (at % 251) as u8 + 1);
        for header in [Header::Ten, Header::Twelve] {
            for len in 0..=130 {
                for (from, behind) in [(0, 64), (4096 - len, 100), (100, 4096 - len), (4090, 4095)]
                {
                    place.fill(0);
                    let start = NonNull::new(place[behind - header as usize..].as_mut_ptr());
                    let start = start.expect("a page is somewhere");
                    // SAFETY: the bytes up to there are the page's.
                    let to = unsafe { GuestSlice::new(start, header as usize + len) };
                    let piece = Piece {
                        header: NetHeader(7),
                        from: source[from..].as_ptr(),
                        len,
                        body: 0,
                        borrow: PhantomData,
                    };
                    let mut burst = Burst::new(header);
                    burst.fill::<ALL_SHORT>([to].into_iter(), [piece].into_iter());
                    // SAFETY: `fill` checked that the piece lies in the place, behind the header.
                    unsafe { wide.write(burst.ways(), header) };
                    let (before, rest) = place.split_at(behind);
                    assert_eq!(before[behind - header as usize], 7);
                    assert_eq!(
                        rest[..len],
                        source[from..from + len],
                        "{len} from {from} to {behind}"
                    );
                    assert!(rest[len..].iter().all(|&byte| byte == 0), "{len} to {behind}");
                }
            }
        }
    }
}
