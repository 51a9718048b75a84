//! Frames that are compared with a pattern while they are copied.
//!
//! A guest may change what it has sent at any time, so the bytes that a rule has looked at must be those that leave. They need no place in our memory for it: of each frame the first bytes are read once, into a
//! register, are compared there, and are written from there. The pattern is in registers, too: a load waits for stores to guests that happen to have its lowest address bits, and there is a dozen of these at any time
//! (docs/decisions/0012; with pattern and first bytes in memory a frame costs half as much again, and 1.7 times as much where the guest's core is far away).

use super::super::processor::{Copier, Stores};
use super::super::slice::Header;
use super::Way;
#[cfg(target_arch = "x86_64")]
use super::wide::{FIRST, ends_in_next_page, load, store};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    _mm512_and_si512, _mm512_loadu_si512, _mm512_test_epi64_mask, _mm512_xor_si512,
};
use wire::Pattern;

/// Comparing while copying.
#[derive(Clone, Copy)]
pub(crate) struct Alike(Copier);

impl Alike {
    /// If this processor has such registers.
    #[inline]
    pub(crate) fn here() -> Option<Self> {
        let copier = Copier::here();
        (copier.stores == Stores::Avx512).then_some(Self(copier))
    }

    /// Writes these frames, up to the first that is not like the pattern's or cannot be compared so, of which nothing is written; returns how many that is.
    ///
    /// # Safety
    /// As for [`Copier::copy`], of the piece of each, behind its header.
    pub(super) unsafe fn write(self, ways: &[Way], header: Header, pattern: &Pattern) -> usize {
        // SAFETY: the caller's promise, and the processor can.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            write_avx512(ways, header, self.0, pattern)
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            let _ = (ways, header, pattern);
            unreachable!("no other architecture has AVX-512")
        }
    }
}

/// # Safety
/// As for [`Alike::write`]; AVX-512 is there, for bytes too.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn write_avx512(ways: &[Way], header: Header, copier: Copier, pattern: &Pattern) -> usize {
    let [value, mask, some] = [&pattern.value, &pattern.mask, &pattern.some]
        // SAFETY: each has 64 bytes.
        .map(|bytes| unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) });
    for (number, way) in ways.iter().enumerate() {
        let (from, to, len) = (way.from, way.behind(header), usize::from(way.head));
        let is_short = len < FIRST && (ends_in_next_page(from) || ends_in_next_page(to));
        if len < Pattern::SPAN || is_short {
            return number;
        }
        // SAFETY: the caller's promise.
        let first = unsafe { load(from, len) };
        let differs = _mm512_xor_si512(_mm512_and_si512(first, mask), value);
        let is_like = _mm512_test_epi64_mask(differs, differs) == 0
            && _mm512_test_epi64_mask(first, some) != 0;
        if !is_like {
            return number;
        }
        way.write_header(header);
        if let Some(rest @ 1..) = len.checked_sub(FIRST) {
            // SAFETY: the caller's promise.
            unsafe { copier.copy(to.wrapping_add(FIRST), from.wrapping_add(FIRST), rest) };
        }
        // SAFETY: the caller's promise.
        unsafe { store(to, first, len) };
    }
    ways.len()
}

#[cfg(test)]
mod tests {
    use super::super::{ALL_SHORT, Burst, Piece};
    use super::*;
    use crate::sys::GuestSlice;
    use std::ptr::NonNull;
    use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
    use std::thread;

    /// Bytes from one buffer to the next.
    const STRIDE: usize = 1024;

    fn slice(bytes: &mut [u8]) -> GuestSlice<'_> {
        let start = NonNull::new(bytes.as_mut_ptr()).expect("a slice is somewhere");
        // SAFETY: the bytes are borrowed as long as the slice.
        unsafe { GuestSlice::new(start, bytes.len()) }
    }

    /// Byte 33, the last that is looked at, is 7; one of bytes 16 and 17 is not zero.
    fn pattern() -> Pattern {
        let mut pattern = Pattern { value: [0; 64], mask: [0; 64], some: [0; 64] };
        (pattern.mask[33], pattern.value[33]) = (0xff, 7);
        (pattern.some[16], pattern.some[17]) = (0xff, 0xe0);
        pattern
    }

    fn frame(len: usize, last: u8, some: [u8; 2]) -> Vec<u8> {
        let mut frame: Vec<u8> = (0..len).map(|at| (at % 251) as u8 + 1).collect();
        frame[16..18].copy_from_slice(&some);
        frame[33] = last;
        frame
    }

    #[repr(align(4096))]
    struct Pages([[u8; 4096]; 12]);

    /// One that ends in another page, or is shorter than what is compared, is left to others.
    #[test]
    fn a_short_frame_at_the_end_of_a_page_is_not_compared() {
        let Some(by) = Alike::here() else { return };
        let mut pages = Box::new(Pages([[0; 4096]; 12]));
        let mut bytes = pages.0.iter_mut();
        let [page, to] = [bytes.next(), bytes.next()].map(|page| page.expect("there are twelve"));
        for (len, before_end, expected) in
            [(60, 64, 1), (60, 63, 0), (64, 64, 1), (63, 63, 0), (33, 64, 0), (34, 64, 1)]
        {
            page.fill(0);
            let (start, sent) = (4096 - before_end, frame(len.max(34), 7, [1, 0]));
            page[start..start + len].copy_from_slice(&sent[..len]);
            let pieces = [Piece::from(slice(&mut page[start..start + len]))];
            let mut burst = Burst::new(Header::Twelve);
            burst.fill::<ALL_SHORT>([slice(to)].into_iter(), pieces.into_iter());
            // SAFETY: `fill` checked the room.
            let count = unsafe { by.write(burst.ways(), Header::Twelve, &pattern()) };
            assert_eq!(count, expected, "{len} bytes, {before_end} before the end");
        }
    }

    #[test]
    fn frames_are_written_up_to_the_first_that_is_not_like_the_pattern() {
        let Some(by) = Alike::here() else { return };
        let lengths = [34, 35, 60, 63, 64, 65, 90, 127, 128, 200, 300, 511];
        // Sources begin pages and buffers quarters of them, so that none of them ends in another.
        let mut sources = Box::new(Pages([[0; 4096]; 12]));
        let mut pages = Box::new(Pages([[0; 4096]; 12]));
        for (is_other, other) in [
            (false, frame(60, 7, [1, 0])),
            (true, frame(60, 8, [1, 0])),
            (true, frame(64, 7, [0, 31])),
        ] {
            for at in 0..lengths.len() {
                let mut frames = lengths.map(|len| frame(len, 7, [0, 32]));
                frames[at] = other.clone();
                let alike = if is_other { at } else { frames.len() };
                for header in [Header::Ten, Header::Twelve] {
                    let memory = &mut pages.0.as_flattened_mut()[..frames.len() * STRIDE];
                    memory.fill(0);
                    let buffers: Vec<_> = memory.chunks_mut(STRIDE).map(slice).collect();
                    let sent = sources.0.iter_mut().zip(&frames).map(|(page, frame)| {
                        page[..frame.len()].copy_from_slice(frame);
                        slice(&mut page[..frame.len()])
                    });
                    let sent: Vec<_> = sent.collect();
                    let pieces = sent.iter().copied().map(Piece::from);
                    let mut burst = Burst::new(header);
                    burst.fill::<ALL_SHORT>(buffers.into_iter(), pieces);
                    // SAFETY: `fill` checked the room, and every frame has 34 bytes.
                    let count = unsafe { by.write(burst.ways(), header, &pattern()) };
                    assert_eq!(count, alike, "{at} {header:?}");
                    let mut expected = vec![0; memory.len()];
                    for (buffer, frame) in expected.chunks_mut(STRIDE).zip(&frames[..alike]) {
                        buffer[10] = u8::from(header == Header::Twelve);
                        buffer[header as usize..][..frame.len()].copy_from_slice(frame);
                    }
                    assert!(*memory == expected, "{at} {header:?}");
                }
            }
        }
    }

    /// A guest that changes a frame all the time never has one written that is not like the pattern.
    #[test]
    fn what_is_compared_is_what_is_written() {
        let Some(by) = Alike::here() else { return };
        /// Chosen: some hundredths of a second, and thousands of changes between.
        const ROUNDS: usize = 100_000;
        for len in [60, 64, 100] {
            let mut page = Box::new(Pages([[0; 4096]; 12]));
            page.0[0][..len].copy_from_slice(&frame(len, 7, [1, 0]));
            let source = slice(&mut page.0[0][..len]);
            let changing: &AtomicU8 =
                // SAFETY: byte 33 is inside, and nobody holds a reference to it.
                unsafe { AtomicU8::from_ptr(source.as_ptr().as_ptr().wrapping_add(33)) };
            let is_over = AtomicBool::new(false);
            thread::scope(|scope| {
                scope.spawn(|| {
                    while !is_over.load(Relaxed) {
                        [8, 7, 9, 7].iter().for_each(|&value| changing.store(value, Relaxed));
                    }
                });
                let mut memory = vec![0; STRIDE];
                let mut wrong = 0;
                for _ in 0..ROUNDS {
                    let mut burst = Burst::new(Header::Twelve);
                    let to = [slice(&mut memory)];
                    burst.fill::<ALL_SHORT>(to.into_iter(), [Piece::from(source)].into_iter());
                    // SAFETY: as above.
                    let count = unsafe { by.write(burst.ways(), Header::Twelve, &pattern()) };
                    wrong += usize::from(count == 1 && memory[12 + 33] != 7);
                }
                is_over.store(true, Relaxed);
                assert_eq!(wrong, 0, "of frames of {len} bytes");
            });
        }
    }
}
