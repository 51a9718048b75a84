//! The first bytes of many frames into a guest's buffers, in a loop that does nothing else.
//!
//! A guest's lines are long on their way: until they are here, stores to them wait in a queue of some 64 places, and a load whose address has
//! the same lowest 12 bits as one of them waits too. So the loop reads little (one entry for each frame, and its head) and writes little
//! (whole registers): with the bookkeeping in it, a frame cost three times as much when the guest's core was far away.

mod alike;
#[cfg(target_arch = "x86_64")]
mod wide;

pub(crate) use alike::Alike;

use super::backwards::Backwards;
use super::copy::LINE;
use super::past::Past;
use super::prefetch::{For, own_soon, prefetch_lines};
use super::processor::Copier;
use super::slice::{GuestSlice, Header};
use crate::ring::{NetHeader, Outline};
use std::marker::PhantomData;
use std::mem::{MaybeUninit, replace};
use wire::Pattern;

/// Frames of a burst.
pub(crate) const BURST: usize = 64;

/// `num_buffers` in a header's last four bytes (VIRTIO 1.2 §5.1.6).
const ONE_BUFFER: u32 = 1 << 16;

/// What [`Burst::fill`] takes as `LONG` where frames are likely to be short: its loop is shorter then.
pub(crate) const ALL_SHORT: usize = usize::MAX;

/// One frame's way: room for header and piece was checked.
#[derive(Clone, Copy)]
struct Way {
    to: *mut u8,
    from: *const u8,
    /// The header's first eight bytes, and the next two; the last two, if it has twelve, say that the frame takes one buffer.
    first: u64,
    second: u16,
    /// Bytes of the piece …
    head: u16,
    /// … and of header, piece and body.
    total: u32,
}

/// What is written of a frame: a header, then bytes from private memory or from a guest's. `'a` is a borrow of whoever keeps them.
#[derive(Clone, Copy)]
pub(crate) struct Piece<'a> {
    header: NetHeader,
    from: *const u8,
    len: usize,
    /// Bytes of the frame behind these, which are not written here.
    body: usize,
    borrow: PhantomData<&'a [u8]>,
}

impl<'a> From<Outline<'a>> for Piece<'a> {
    #[inline(always)] // it is never put together in memory
    fn from(Outline { header, head, body }: Outline<'a>) -> Self {
        Self { header, from: head.as_ptr(), len: head.len(), body, borrow: PhantomData }
    }
}

/// A plain frame, whole.
impl<'a> From<GuestSlice<'a>> for Piece<'a> {
    #[inline(always)] // likewise
    fn from(frame: GuestSlice<'a>) -> Self {
        let (from, len) = (frame.as_ptr().as_ptr().cast_const(), frame.len());
        Self { header: NetHeader::default(), from, len, body: 0, borrow: PhantomData }
    }
}

/// What will be written. `'a` is a borrow of the pieces, and of whoever keeps the guests' regions mapped.
pub(crate) struct Burst<'a> {
    header: Header,
    ways: [MaybeUninit<Way>; BURST],
    count: usize,
    bytes: u64,
    has_bodies: bool,
    longest: usize,
    borrows: PhantomData<&'a [u8]>,
}

impl<'a> Burst<'a> {
    /// An empty one, to be filled where it lies.
    #[inline]
    pub(crate) fn new(header: Header) -> Self {
        let ways = [const { MaybeUninit::uninit() }; BURST];
        let (has_bodies, longest, borrows) = (false, 0, PhantomData);
        Self { header, ways, count: 0, bytes: 0, has_bodies, longest, borrows }
    }

    /// Takes the first of these frames, as many as a burst holds and as there are buffers, up to one that does not fit into its own. Of those of `LONG` bytes and more, which will go past the caches
    /// ([`Burst::write_past`]) or backwards ([`Burst::write_backwards`]), nothing is asked for but the header that may be there.
    #[inline(always)] // one loop with the iterators
    pub(crate) fn fill<'f: 'a, const LONG: usize>(
        &mut self,
        mut buffers: impl Iterator<Item = GuestSlice<'a>>,
        mut pieces: impl Iterator<Item = Piece<'f>>,
    ) {
        let copier = Copier::here();
        let (mut count, mut bytes, mut bodies, mut lengths) = (0, 0, 0, 0);
        for place in &mut self.ways {
            // Not zipped: that would be a call for each frame, which puts the piece together in memory.
            let (Some(to), Some(piece)) = (buffers.next(), pieces.next()) else { break };
            let Piece { header: NetHeader(number), from, len, body, .. } = piece;
            let total = self.header as usize + len + body;
            let (Ok(head), true) = (u16::try_from(len), total <= to.len()) else {
                break;
            };
            if total >= LONG {
                // With a frame's first bytes behind it, its line will be asked for with them, and must not be there shared.
                if ends_line(to.as_ptr().as_ptr().wrapping_add(self.header as usize)) {
                    prefetch_lines(to.as_ptr(), 1, For::Reading);
                }
            } else {
                // Asked for when the buffer was read, they may have moved to a farther cache of ours since.
                prefetch_lines(to.as_ptr(), copier.asked(total, false), For::Writing);
            }
            place.write(Way {
                to: to.as_ptr().as_ptr(),
                from,
                first: (number as u64).to_le(),
                second: ((number >> 64) as u16).to_le(),
                head,
                total: total as u32,
            });
            (count, bytes) = (count + 1, bytes + total as u64);
            (bodies, lengths) = (bodies | body, lengths | total);
        }
        (self.count, self.bytes, self.has_bodies) = (count, bytes, bodies > 0);
        self.longest = lengths;
    }

    /// Bytes of all frames, without headers.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes - (self.count * self.header as usize) as u64
    }

    /// Header, piece and body of each frame: bytes in all.
    pub(crate) fn totals(&self) -> impl ExactSizeIterator<Item = u32> {
        self.ways().iter().map(|way| way.total)
    }

    /// Header and piece of each frame: bytes before its body.
    pub(crate) fn befores(&self) -> impl Iterator<Item = usize> {
        self.ways().iter().map(|way| self.header as usize + usize::from(way.head))
    }

    /// Whether some frame has a body.
    pub(crate) fn has_bodies(&self) -> bool {
        self.has_bodies
    }

    #[inline]
    fn ways(&self) -> &[Way] {
        let written = &self.ways[..self.count];
        // SAFETY: `fill` wrote the first `count`.
        unsafe { &*(std::ptr::from_ref(written) as *const [Way]) }
    }

    /// Bytes of the longest frame, header included, or more, but less than the next power of two.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    /// Writes all of them.
    pub(crate) fn write(&self) {
        let copier = Copier::here();
        #[cfg(target_arch = "x86_64")]
        if let Some(wide) = wide::Wide::of(copier) {
            // SAFETY: as in `each`.
            return unsafe { wide.write(self.ways(), self.header) };
        }
        match self.header {
            Header::Twelve => self.each(copier, Header::Twelve),
            Header::Ten => self.each(copier, Header::Ten),
        }
    }

    #[inline(always)] // one loop for each kind of header
    fn each(&self, copier: Copier, header: Header) {
        for way in self.ways() {
            way.write_header(header);
            // SAFETY: `fill` checked that the piece lies in the slice, behind the header; it is borrowed for `'a`. Private memory does not overlap a
            // mapping; a guest that sends to itself may make two buffers overlap, and what arrives then is its own affair.
            unsafe { copier.copy(way.behind(header), way.from, usize::from(way.head)) };
        }
    }

    /// Writes the first of them, whole frames that have a pattern's bytes, up to one that is not like it, of which nothing is written; returns how many. What is compared is what is written.
    pub(crate) fn write_alike(&self, alike: Alike, pattern: &Pattern) -> usize {
        // SAFETY: as in `each`.
        unsafe { alike.write(self.ways(), self.header, pattern) }
    }

    /// Lines of all frames, about.
    #[inline]
    pub(crate) fn lines(&self) -> usize {
        self.bytes as usize / LINE + self.count
    }

    /// The same past the caches into these buffers, those that it was filled for, but for headers that are there already: they are not written. `body` takes the body of the frame of this number. `SENT` says
    /// that all of it comes from a guest's memory.
    pub(crate) fn write_past<'b, const SENT: bool>(
        &self,
        past: Past,
        buffers: impl Iterator<Item = GuestSlice<'b>>,
        mut body: impl FnMut(usize),
    ) {
        // In a pass of their own: a line that has to be waited for would hold up whole frames behind it.
        self.ways()
            .iter()
            .filter(|way| !way.has_header(self.header))
            .for_each(|way| way.write_header(self.header));
        for (number, (way, buffer)) in self.ways().iter().zip(buffers).enumerate() {
            let (len, before) = (usize::from(way.head), self.header as usize);
            let is_whole = before + len == way.total as usize;
            let room = match is_whole && buffer.as_ptr().as_ptr() == way.to {
                true => buffer.len().saturating_sub(before + len),
                false => 0,
            };
            // SAFETY: as in `each`; the room is behind the frame in a slice that begins where its header does.
            unsafe { past.copy(way.behind(self.header), way.from, len, room) };
            if SENT {
                // SAFETY: the piece is borrowed for `'a`.
                unsafe { past.leave(way.from, len) };
            }
            body(number);
        }
        past.finish();
    }

    /// The same from the last to the first, but for headers that are there already, as in [`Burst::write_past`]; `body` takes the body of the frame of this number, before which its piece comes.
    pub(crate) fn write_backwards(&self, backwards: Backwards, mut body: impl FnMut(usize)) {
        // Each is written a frame after its line was asked for: before, the other stores would wait for it.
        let mut asked: Option<&Way> = None;
        for (number, way) in self.ways().iter().enumerate().rev() {
            let missing = Some(way).filter(|way| !way.has_header(self.header));
            missing.into_iter().for_each(|way| own_soon(way.to));
            body(number);
            // SAFETY: as in `each`.
            unsafe { backwards.take(way.behind(self.header), way.from, usize::from(way.head)) };
            replace(&mut asked, missing).into_iter().for_each(|way| way.write_header(self.header));
        }
        asked.into_iter().for_each(|way| way.write_header(self.header));
    }
}

impl Way {
    #[inline(always)] // in a loop that does nothing else
    fn write_header(&self, header: Header) {
        // SAFETY: `fill` checked that the header's ten or twelve bytes lie in the slice.
        unsafe { self.to.cast::<u64>().write_unaligned(self.first) };
        let rest = self.to.wrapping_add(8);
        match header {
            Header::Twelve => {
                // SAFETY: as above, twelve.
                unsafe { rest.cast::<u32>().write_unaligned(self.twelve()) }
            }
            // SAFETY: as above, ten.
            Header::Ten => unsafe { rest.cast::<u16>().write_unaligned(self.second) },
        }
    }

    /// Whether the header is there already, as it would be written, and at the end of a line: a driver that only reads such a line, as DPDK's do, shares it with us.
    #[inline(always)] // likewise
    fn has_header(&self, header: Header) -> bool {
        if !ends_line(self.behind(header)) {
            return false;
        }
        // SAFETY: `fill` checked that the header's ten or twelve bytes lie in the slice; any bytes are numbers, at any address.
        let first = unsafe { self.to.cast::<u64>().read_unaligned() };
        let rest = self.to.wrapping_add(8);
        let is_rest = match header {
            // SAFETY: as above, twelve.
            Header::Twelve => unsafe { rest.cast::<u32>().read_unaligned() == self.twelve() },
            // SAFETY: as above, ten.
            Header::Ten => unsafe { rest.cast::<u16>().read_unaligned() == self.second },
        };
        first == self.first && is_rest
    }

    /// The last four bytes of a header of twelve.
    #[inline(always)] // likewise
    fn twelve(&self) -> u32 {
        (u32::from(u16::from_le(self.second)) | ONE_BUFFER).to_le()
    }

    /// Where the frame begins.
    #[inline(always)] // likewise
    fn behind(&self, header: Header) -> *mut u8 {
        self.to.wrapping_add(header as usize)
    }
}

/// Whether a line of memory ends before `at`.
#[inline(always)] // likewise
fn ends_line(at: *mut u8) -> bool {
    at.addr().is_multiple_of(LINE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::NonNull;

    /// Bytes from one buffer to the next.
    const STRIDE: usize = 2048;

    fn slice(bytes: &mut [u8]) -> GuestSlice<'_> {
        let start = NonNull::new(bytes.as_mut_ptr()).expect("a slice is somewhere");
        // SAFETY: the bytes are borrowed as long as the slice.
        unsafe { GuestSlice::new(start, bytes.len()) }
    }

    /// Of writing.
    enum Course {
        Forwards,
        Backwards,
        Past,
    }

    /// Backwards and past the caches arrives what arrives forwards: headers of both kinds, heads and bodies of all lengths, and nothing behind them but zeros.
    #[test]
    fn all_ways_write_the_same() {
        let bytes: Vec<u8> = (0..4096).map(|at| (at % 251) as u8 + 1).collect();
        let lengths = [0, 1, 60, 64, 256, 511, 512, 1000, 1023, 1024, 1025];
        let frames: Vec<(usize, usize)> = lengths
            .into_iter()
            .flat_map(|head| [0, 1, 300, 512, 990].map(|body| (head, body)))
            .collect();
        for header in [Header::Ten, Header::Twelve] {
            let written = [Course::Forwards, Course::Backwards, Course::Past].map(|course| {
                let mut memory = vec![0; frames.len() * STRIDE];
                let buffers: Vec<_> = memory.chunks_mut(STRIDE).map(slice).collect();
                let pieces = (1..).zip(&frames).map(|(number, &(len, body))| Piece {
                    header: NetHeader(number << 40 | number),
                    from: bytes.as_ptr(),
                    len,
                    body,
                    borrow: PhantomData,
                });
                let mut burst = Burst::new(header);
                burst.fill::<ALL_SHORT>(buffers.iter().copied(), pieces);
                assert_eq!(burst.totals().len(), frames.len());
                let rest = |number: usize, before| {
                    (buffers[number].split_at(before).1, &bytes[1000..1000 + frames[number].1])
                };
                let rests: Vec<_> =
                    burst.befores().enumerate().map(|(n, at)| rest(n, at)).collect();
                match course {
                    Course::Forwards => {
                        burst.write();
                        rests.iter().for_each(|(to, body)| to.write(body));
                    }
                    Course::Backwards => {
                        let backwards = Backwards(Copier::here());
                        burst.write_backwards(backwards, |number| {
                            backwards.take_private(rests[number].0, rests[number].1);
                        });
                    }
                    Course::Past => {
                        let past = Past::by(Copier::here());
                        burst.write_past::<false>(past, buffers.iter().copied(), |number| {
                            past.write(rests[number].0, rests[number].1, true);
                        });
                    }
                }
                drop(rests);
                memory
            });
            assert!(written.iter().all(|memory| *memory == written[0]), "{header:?}");
            assert!(written[0].chunks(STRIDE).zip(&frames).all(|(buffer, (head, body))| {
                let total = header as usize + head + body;
                buffer[header as usize..total].iter().all(|&byte| byte > 0)
                    && buffer[total..].iter().all(|&byte| byte == 0)
            }));
        }
    }

    /// A header that ends a line is right after a burst, whether it was there already, or another, or nothing; whichever way and whatever was asked for.
    #[test]
    fn headers_are_right_whether_they_were_there_or_not() {
        #[repr(align(64))]
        struct Lines([u8; 4 * STRIDE]);
        let bytes = [7; 1500];
        for header in [Header::Ten, Header::Twelve] {
            let before = LINE - header as usize;
            let mut lines = Box::new(Lines([0; 4 * STRIDE]));
            let mut put = |backwards: bool, spoilt: usize, number: u128| {
                lines.0[spoilt * STRIDE + before] ^= 1;
                let buffers: Vec<_> =
                    lines.0.chunks_mut(STRIDE).map(|chunk| slice(&mut chunk[before..])).collect();
                let pieces = [0, 0, number, 0].map(|number| Piece {
                    header: NetHeader(number),
                    from: bytes.as_ptr(),
                    len: bytes.len(),
                    body: 0,
                    borrow: PhantomData,
                });
                let mut burst = Burst::new(header);
                burst.fill::<512>(buffers.iter().copied(), pieces.into_iter());
                let past = Past::by(Copier::here());
                match backwards {
                    true => burst.write_backwards(Backwards(Copier::here()), |_| {}),
                    false => burst.write_past::<false>(past, buffers.iter().copied(), |_| {}),
                }
                lines
                    .0
                    .chunks(STRIDE)
                    .map(|chunk| chunk[before..][..16].to_vec())
                    .collect::<Vec<_>>()
            };
            let said = |number: u8| {
                let twelve = [number, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0];
                [&twelve[..header as usize], &bytes[..16 - header as usize]].concat()
            };
            for backwards in [true, false, true] {
                for (spoilt, number) in [(0, 0), (3, 0), (1, 5), (2, 0), (0, 9)] {
                    let expected = [said(0), said(0), said(number), said(0)];
                    assert_eq!(put(backwards, spoilt, number.into()), expected, "{header:?}");
                }
            }
        }
    }
}
