//! A frame into the driver's receive buffers.

use super::chains::Unread;
use super::distance::{Course, Distance, worth};
use super::header::NetHeader;
use super::vring::{Layout, Vring};
use super::{Queue, Used};
use crate::fault::Fault;
use crate::features::Features;
use crate::log::DirtyLog;
use crate::memory::{GuestMemory, GuestSlice};
use crate::sys::{
    self, ALL_SHORT, Alike, BACKWARDS_MIN, BURST, Backwards, Bounds, Burst, Copier, Header, LINE,
    PAST_MIN, Past, Piece,
};
use arrayvec::ArrayVec;
use std::iter::{empty, once};
use std::ops::RangeInclusive;
use wire::Pattern;

/// Buffers read ahead at once; their memory stays in the nearest caches until they are filled.
const AHEAD: usize = BURST;

/// Filled buffers that are forgotten together: what stands behind them has to be moved then.
const KEPT: usize = 3 * AHEAD;

/// Bytes of the shortest frame, header included, to whole lines.
pub(super) const SHORTEST: usize = 128;

/// The bytes of a frame after its head.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'a> {
    /// In memory that no one else writes.
    Private(&'a [u8]),
    /// In a guest's memory.
    Guest(&'a [GuestSlice<'a>]),
}

impl Default for Payload<'_> {
    fn default() -> Self {
        Self::Private(&[])
    }
}

impl Payload<'_> {
    /// Bytes.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Self::Private(bytes) => bytes.len(),
            Self::Guest([one]) => one.len(),
            Self::Guest(slices) => many(slices),
        }
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[inline(never)]
fn many(slices: &[GuestSlice<'_>]) -> usize {
    slices.iter().map(|slice| slice.len()).sum()
}

/// A frame for a driver.
#[derive(Clone, Copy, Debug, Default)]
pub struct Frame<'a> {
    /// What the driver is told; the number of buffers is the ring's affair.
    pub header: NetHeader,
    /// The first bytes.
    pub head: &'a [u8],
    /// The others.
    pub body: Payload<'a>,
}

/// What a ring must know of a frame before it copies the body.
#[derive(Clone, Copy, Debug)]
pub struct Outline<'a> {
    /// As [`Frame::header`].
    pub header: NetHeader,
    /// As [`Frame::head`].
    pub head: &'a [u8],
    /// Bytes of the body.
    pub body: usize,
}

impl<'a> Frame<'a> {
    /// Its outline.
    #[inline]
    pub fn outline(&self) -> Outline<'a> {
        Outline { header: self.header, head: self.head, body: self.body.len() }
    }

    /// Bytes, the header apart.
    #[inline]
    pub fn len(&self) -> usize {
        self.head.len() + self.body.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What went into a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Put {
    /// Frames.
    pub frames: usize,
    /// Their bytes, without headers.
    pub bytes: u64,
}

/// A frame did not go into a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refused {
    /// The driver has not enough buffers there now.
    #[error("the driver has no room")]
    Full,
    /// The driver takes a frame in one buffer, and its buffers are too short.
    #[error("the driver's buffers are too short for the frame")]
    TooSmall,
    /// The ring stops.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl Vring {
    /// Reads buffers for `count` frames ahead, as far as they are there, so that their memory is on its way before they are filled: best long
    /// before, when the last batch has been published.
    ///
    /// # Errors
    /// The driver broke the rules.
    #[inline]
    pub fn reserve(&mut self, count: usize) -> Result<(), Fault> {
        self.check_memory()?;
        let (ahead, count) = (self.room.len() - self.filled, count.min(AHEAD));
        if ahead < count {
            self.read_ahead(count - ahead)?;
        }
        Ok(())
    }

    /// Whether `count` buffers are there.
    ///
    /// # Errors
    /// The driver broke the rules.
    pub fn has_buffers(&mut self, count: usize) -> Result<bool, Fault> {
        while self.room.len() - self.filled < count {
            if self.read_ahead(AHEAD)? == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Copies frames into the driver's buffers, one buffer each, as long as they are there and have room; returns what that is. The
    /// driver does not see them before [`Vring::publish`].
    ///
    /// The frames' headers and heads are written together, then their bodies, which are asked for only if there are any.
    #[inline]
    pub fn put_run<'f>(
        &mut self,
        outlines: impl Iterator<Item = Outline<'f>>,
        bodies: impl Iterator<Item = Payload<'f>>,
    ) -> Put {
        self.put_pieces::<false>(outlines.map(Piece::from), bodies)
    }

    /// Copies frames likewise from where another driver has them, up to the first of another length, or of which there is more to say, or that does not fit.
    #[inline]
    pub fn put_unread(&mut self, frames: Unread<'_>, lengths: &RangeInclusive<usize>) -> Put {
        self.put_pieces::<true>(frames.plain(lengths).map(Piece::from), empty())
    }

    /// The same up to the first that is not like the pattern's, or is so long that it is copied in another way, or too short to be compared; none where [`Vring::compares`] says no. What is compared is what the driver gets,
    /// and of a frame that is not like it, it gets nothing.
    pub fn put_alike(
        &mut self,
        frames: Unread<'_>,
        lengths: &RangeInclusive<usize>,
        pattern: &Pattern,
    ) -> Put {
        let Some(alike) = Alike::here().filter(|_| self.log.is_none()) else {
            return Put::default(); // as in `put_pieces`
        };
        if let Layout::Split(split) = &self.layout {
            split.expect_more();
        }
        let header = self.features.header();
        let course = self.course();
        let long = if course == Course::Far { PAST_MIN } else { BACKWARDS_MIN };
        let longest = long - 1 - header as usize;
        let lengths = *lengths.start().max(&Pattern::SPAN)..=*lengths.end().min(&longest);
        let room = self.room.buffers_from(self.filled);
        let mut burst = Burst::new(header);
        let buffers = room.iter().map(|buffer| buffer.slice);
        burst.fill::<ALL_SHORT>(buffers, frames.plain(&lengths).map(Piece::from));
        let (before, totals) = (self.used.len(), burst.totals());
        let all = Put { frames: totals.len(), bytes: burst.bytes() };
        self.used
            .extend(room.iter().zip(totals).map(|(buffer, total)| Used::of(buffer.mark, total)));
        let lines = worth(burst.lines()).filter(|_| burst.longest() >= PAST_MIN);
        let look = Look::at(lines, course, burst.longest());
        let frames = burst.write_alike(alike, pattern);
        let put = if frames == all.frames {
            look.end(&mut self.distance);
            all
        } else {
            self.keep(before, frames)
        };
        self.filled += put.frames;
        self.usual = usual_after(put, header, false).unwrap_or(self.usual);
        put
    }

    /// Of the frames noted after the first `before`, these came into the driver's buffers and no others.
    #[cold]
    fn keep(&mut self, before: usize, frames: usize) -> Put {
        self.used.truncate(before + frames);
        let bytes = self.used[before..].iter().map(|used| u64::from(used.len)).sum::<u64>();
        Put { frames, bytes: bytes - (frames * self.features.header_len()) as u64 }
    }

    /// Whether a buffer that was read is still to be filled.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.filled < self.room.len()
    }

    /// Whether this processor compares while it copies ([`Vring::put_alike`]).
    pub fn compares() -> bool {
        Alike::here().is_some()
    }

    /// `SENT` says that the pieces are in a guest's memory.
    #[inline(always)] // one loop with the iterators
    fn put_pieces<'f, const SENT: bool>(
        &mut self,
        pieces: impl Iterator<Item = Piece<'f>>,
        bodies: impl Iterator<Item = Payload<'f>>,
    ) -> Put {
        if self.log.is_some() {
            return Put::default(); // [`Vring::put`] notes what it writes
        }
        if let Layout::Split(split) = &self.layout {
            split.expect_more();
        }
        let header = self.features.header();
        let room = self.room.buffers_from(self.filled);
        let mut burst = Burst::new(header);
        let buffers = room.iter().map(|buffer| buffer.slice);
        let (past, course) = (Past::here(), self.course());
        match (course, self.went_backwards) {
            (Course::Far, _) => burst.fill::<PAST_MIN>(buffers.clone(), pieces),
            (_, true) => burst.fill::<BACKWARDS_MIN>(buffers.clone(), pieces),
            (_, false) => burst.fill::<ALL_SHORT>(buffers.clone(), pieces),
        }
        let totals = burst.totals();
        let put = Put { frames: totals.len(), bytes: burst.bytes() };
        self.used
            .extend(room.iter().zip(totals).map(|(buffer, total)| Used::of(buffer.mark, total)));
        // Before anything is written: once stores to the guest wait, whoever looks for a body may wait for all of them.
        let mut moves = ArrayVec::<(GuestSlice<'_>, Payload<'_>), BURST>::new();
        if burst.has_bodies() {
            let rests = burst.befores().zip(room);
            let rests = rests.map(|(before, buffer)| buffer.slice.split_at(before).1);
            moves.extend(rests.zip(bodies));
        }
        let lines = worth(burst.lines()).filter(|_| burst.longest() >= PAST_MIN);
        let look = Look::at(lines, course, burst.longest());
        let backwards = Backwards::of(burst.longest());
        self.went_backwards = backwards.is_some();
        match past.filter(|_| lines.is_some() && course == Course::Far) {
            Some(past) => burst.write_past::<SENT>(past, buffers, |number| {
                if let Some(&(to, body)) = moves.get(number) {
                    write_body_past(past, to, body);
                }
            }),
            None => match backwards {
                Some(backwards) => burst.write_backwards(backwards, |number| {
                    if let Some(&(to, body)) = moves.get(number) {
                        take_body(backwards, to, body);
                    }
                }),
                None => {
                    burst.write();
                    moves.iter().for_each(|&(to, body)| write_body(to, body));
                }
            },
        }
        look.end(&mut self.distance);
        self.filled += put.frames;
        self.usual = usual_after(put, header, course == Course::Far).unwrap_or(self.usual);
        put
    }

    /// Copies a frame into as many of the driver's buffers as it takes, likewise.
    ///
    /// # Errors
    /// No room, or the driver broke the rules; no buffer is lost to a frame that is refused.
    pub fn put(&mut self, frame: Frame<'_>) -> Result<(), Refused> {
        if self.put_run(once(frame.outline()), once(frame.body)).frames == 1 {
            return Ok(());
        }
        let Frame { header, head, body } = frame;
        let total = self.features.header_len() + frame.len();
        self.put_over(header, head, body, total)
    }

    /// How the next batch of long frames is written.
    #[inline]
    fn course(&self) -> Course {
        Past::here().map_or(Course::Near, |_| self.distance.next())
    }

    /// The same over several buffers, or several pieces of one, or when there is none yet.
    fn put_over(
        &mut self,
        header: NetHeader,
        head: &[u8],
        body: Payload<'_>,
        total: usize,
    ) -> Result<(), Refused> {
        let header_len = self.features.header_len();
        let count = self.buffers_for(total, header_len)?;
        let course = self.course();
        let lines = worth(total / LINE);
        let past = Past::here().filter(|_| lines.is_some() && course == Course::Far);
        let look = Look::at(lines, course, total);
        let header = header.with_buffers(count as u16).bytes();
        let slices = self.room.run(self.filled, count);
        let mut spread = Spread::new(slices.clone(), past);
        spread.write(&header[..header_len]);
        spread.write(head);
        match body {
            Payload::Private(bytes) => spread.write(bytes),
            Payload::Guest(parts) => parts.iter().for_each(|part| spread.copy_from(*part)),
        }
        past.into_iter().for_each(Past::finish);
        look.end(&mut self.distance);
        if let Some(log) = &self.log {
            log_slices(log, &self.memory, slices, total);
        }
        let mut left = total as u32;
        for (index, mark) in self.room.marks().enumerate().skip(self.filled).take(count) {
            let len = left.min(self.room.remaining(index) as u32);
            left -= len;
            self.used.push(Used::of(mark, len));
        }
        self.filled += count;
        Ok(())
    }

    /// How many buffers a frame of `total` bytes takes, headers included.
    #[inline]
    fn buffers_for(&mut self, total: usize, header_len: usize) -> Result<usize, Refused> {
        let (mut count, mut have) = (0, 0);
        while have < total {
            if self.filled + count == self.room.len() && self.read_ahead(AHEAD)? == 0 {
                return Err(Refused::Full);
            }
            let len = self.room.remaining(self.filled + count);
            if count == 0 && len < header_len {
                return Err(Fault::NoHeader(len as u32).into());
            }
            have += len;
            count += 1;
            if have < total && !self.features.contains(Features::MRG_RXBUF) {
                return Err(Refused::TooSmall);
            }
        }
        Ok(count)
    }

    /// Reads up to `count` more buffers; returns how many there were.
    fn read_ahead(&mut self, count: usize) -> Result<usize, Fault> {
        if self.filled == self.room.len() {
            self.room.reset(&self.memory);
            self.filled = 0;
        } else if self.filled >= KEPT || self.room.is_full() {
            self.room.discard(self.filled);
            self.filled = 0;
        }
        self.room.expect(0..self.usual);
        let found = match &mut self.layout {
            Layout::Split(split) => split.fetch(count, Queue::Receive, &mut self.room),
            Layout::Packed(packed) => packed.fetch(count, Queue::Receive, &mut self.room),
        };
        self.check_memory()?;
        found
    }
}

/// A batch of long frames under way; the counter is read only if it is a look.
struct Look {
    lines: Option<usize>,
    /// The counter, and [`Copier::far_line`].
    start: Option<(u64, Bounds)>,
}

impl Look {
    #[inline]
    fn at(lines: Option<usize>, course: Course, longest: usize) -> Self {
        let is_look = lines.is_some() && course == Course::Look;
        let far = Copier::here().far_line(longest).filter(|_| is_look);
        Self { lines, start: far.map(|far| (sys::cycles(), far)) }
    }

    #[inline]
    fn end(self, distance: &mut Distance) {
        match (self.lines, self.start) {
            (Some(lines), Some((start, far))) => distance.saw(sys::cycles() - start, lines, far),
            (Some(_), None) => distance.went(),
            (None, _) => {}
        }
    }
}

/// Bytes of a buffer that are worth asking for when it is read, after these frames, if there were any: the next ones are most often as long. Of long ones no more
/// than of the shortest, or they would fill the nearest cache before their turn comes.
#[inline]
fn usual_after(put: Put, header: Header, is_far: bool) -> Option<usize> {
    let usual = put.bytes.checked_div(put.frames as u64)? as usize + header as usize;
    Some(match usual {
        PAST_MIN.. if is_far => 0,
        ..=sys::ASKED => usual,
        _ => SHORTEST,
    })
}

/// Copies a body into one slice that has room for it.
#[inline]
fn write_body(mut to: GuestSlice<'_>, body: Payload<'_>) {
    match body {
        Payload::Private([]) => {}
        Payload::Private(bytes) => to.write(bytes),
        Payload::Guest(parts) => {
            for part in parts {
                to.copy_from(*part);
                to = to.split_at(part.len()).1;
            }
        }
    }
}

/// The same, past the caches.
fn write_body_past(past: Past, mut to: GuestSlice<'_>, body: Payload<'_>) {
    match body {
        Payload::Private(bytes) => past.write(to, bytes, true),
        Payload::Guest(parts) => {
            for (left, part) in (0..parts.len()).rev().zip(parts) {
                past.copy_from(to, *part, left == 0);
                to = to.split_at(part.len()).1;
            }
        }
    }
}

/// The same, from the last of its parts to the first.
fn take_body(backwards: Backwards, to: GuestSlice<'_>, body: Payload<'_>) {
    match body {
        Payload::Private(bytes) => backwards.take_private(to, bytes),
        Payload::Guest(parts) => {
            let mut end = body.len();
            for part in parts.iter().rev() {
                end -= part.len();
                backwards.take_from(to.split_at(end).1, *part);
            }
        }
    }
}

/// Marks the pages of the first `total` bytes of `slices`.
#[cold]
fn log_slices<'a>(
    log: &DirtyLog,
    memory: &GuestMemory,
    slices: impl Iterator<Item = GuestSlice<'a>>,
    mut total: usize,
) {
    for slice in slices {
        let len = slice.len().min(total);
        total -= len;
        if let Some(guest) = memory.guest_of(slice) {
            log.mark(guest, len as u64);
        }
    }
}

/// Writes one after the other, over the seams of the slices.
struct Spread<'a, I> {
    /// What is left of the slice in work.
    now: GuestSlice<'a>,
    later: I,
    /// Past the caches.
    past: Option<Past>,
}

impl<'a, I: Iterator<Item = GuestSlice<'a>>> Spread<'a, I> {
    /// # Panics
    /// Without a slice: a buffer that holds a header has one.
    #[inline]
    fn new(mut slices: I, past: Option<Past>) -> Self {
        let now = slices.next().expect("a buffer with room has a slice");
        Self { now, later: slices, past }
    }

    /// # Panics
    /// (Both.) Past the last slice: the room was counted before.
    #[inline]
    fn write(&mut self, mut bytes: &[u8]) {
        loop {
            let (part, rest) = bytes.split_at(bytes.len().min(self.now.len()));
            match self.past {
                Some(past) => past.write(self.now, part, false),
                None => self.now.write(part),
            }
            self.now = self.now.split_at(part.len()).1;
            if rest.is_empty() {
                return;
            }
            bytes = rest;
            self.now = self.later.next().expect("the room was counted");
        }
    }

    #[inline]
    fn copy_from(&mut self, mut bytes: GuestSlice<'_>) {
        loop {
            let (part, rest) = bytes.split_at(bytes.len().min(self.now.len()));
            match self.past {
                Some(past) => past.copy_from(self.now, part, false),
                None => self.now.copy_part_from(part),
            }
            self.now = self.now.split_at(part.len()).1;
            if rest.is_empty() {
                return;
            }
            bytes = rest;
            self.now = self.later.next().expect("the room was counted");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_short_frames_all_is_asked_for_and_of_long_ones_the_first_lines() {
        let usual = |frames, bytes| usual_after(Put { frames, bytes }, Header::Twelve, false);
        let far = |frames, bytes| usual_after(Put { frames, bytes }, Header::Twelve, true);
        assert_eq!(usual(0, 0), None, "nothing was learned");
        assert_eq!(usual(64, 64 * 64), Some(76));
        assert_eq!(usual(2, 64 + 552), Some(320));
        assert_eq!([usual(1, 309), usual(10, 90_000)], [Some(SHORTEST); 2]);
        assert_eq!([far(64, 64 * 64), far(1, 180)], [Some(76), Some(0)], "past the caches nothing");
    }
}
