//! A frame into the driver's receive buffers.

use super::Queue;
use super::Used;
use super::vring::{Layout, Vring};
use crate::fault::Fault;
use crate::features::Features;
use crate::log::DirtyLog;
use crate::memory::{GuestMemory, GuestSlice};

/// Bytes of the longest header before a frame (VIRTIO 1.2 §5.1.6); its last two are `num_buffers`, which [`Vring::put`] fills in.
pub const HEADER_MAX: usize = 12;

/// Where `num_buffers` stands in it.
const NUM_BUFFERS: usize = 10;

/// Buffers read ahead at once.
const AHEAD: usize = 64;

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
            Self::Guest(slices) => slices.iter().map(|slice| slice.len()).sum(),
        }
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
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
    /// Reads buffers for `count` frames ahead, so that their memory is on its way while the first are filled.
    ///
    /// # Errors
    /// The driver broke the rules.
    #[inline]
    pub fn reserve(&mut self, count: usize) -> Result<(), Fault> {
        self.check_memory()?;
        let ahead = self.room.len() - self.filled;
        if ahead < count {
            self.read_ahead(count.min(AHEAD))?;
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

    /// Copies a frame into the driver's buffers; it does not see it before [`Vring::publish`].
    ///
    /// # Errors
    /// No room, or the driver broke the rules; no buffer is lost to a frame that is refused.
    #[inline]
    pub fn put(
        &mut self,
        header: &[u8; HEADER_MAX],
        head: &[u8],
        body: Payload<'_>,
    ) -> Result<(), Refused> {
        let header_len = self.features.header_len();
        let total = header_len + head.len() + body.len();
        match self.room.single(self.filled) {
            Some((chain, slice)) if slice.len() >= total && self.log.is_none() => {
                write_whole(slice, header, header_len, head, body);
                self.used.push(Used { id: chain.id, places: chain.places, len: total as u32 });
                self.filled += 1;
                Ok(())
            }
            _ => self.put_over(header, head, body, total),
        }
    }

    /// The same over several buffers, or several pieces of one, or when there is none yet.
    fn put_over(
        &mut self,
        header: &[u8; HEADER_MAX],
        head: &[u8],
        body: Payload<'_>,
        total: usize,
    ) -> Result<(), Refused> {
        let header_len = self.features.header_len();
        let count = self.buffers_for(total, header_len)?;
        let mut header = *header;
        header[NUM_BUFFERS..].copy_from_slice(&(count as u16).to_le_bytes());
        let slices = self.room.run(self.filled, count);
        let mut spread = Spread::new(slices);
        spread.write(&header[..header_len]);
        spread.write(head);
        match body {
            Payload::Private(bytes) => spread.write(bytes),
            Payload::Guest(parts) => parts.iter().for_each(|part| spread.copy_from(*part)),
        }
        if let Some(log) = &self.log {
            log_slices(log, &self.memory, slices, total);
        }
        let mut left = total as u32;
        for chain in &self.room.list()[self.filled..self.filled + count] {
            let len = left.min(chain.len);
            left -= len;
            self.used.push(Used { id: chain.id, places: chain.places, len });
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
            let len = self.room.list()[self.filled + count].len;
            if count == 0 && (len as usize) < header_len {
                return Err(Fault::NoHeader(len).into());
            }
            have += len as usize;
            count += 1;
            if have < total && !self.features.contains(Features::MRG_RXBUF) {
                return Err(Refused::TooSmall);
            }
        }
        Ok(count)
    }

    /// Reads up to `count` more buffers; returns how many there were.
    fn read_ahead(&mut self, count: usize) -> Result<usize, Fault> {
        if self.room.is_empty() {
            self.room.reset(&self.memory);
        } else {
            self.room.discard(self.filled);
        }
        self.filled = 0;
        let found = match &mut self.layout {
            Layout::Split(split) => split.fetch(count, Queue::Receive, &mut self.room),
            Layout::Packed(packed) => packed.fetch(count, Queue::Receive, &mut self.room),
        };
        self.check_memory()?;
        found
    }
}

/// Copies a frame into one slice that has room for it.
#[inline]
fn write_whole(
    slice: GuestSlice<'_>,
    header: &[u8; HEADER_MAX],
    header_len: usize,
    head: &[u8],
    body: Payload<'_>,
) {
    let mut header = *header;
    header[NUM_BUFFERS..].copy_from_slice(&1_u16.to_le_bytes());
    let (first, rest) = slice.split_at(header_len);
    if header_len == HEADER_MAX {
        first.write(&header)
    } else {
        first.write(&header[..header_len])
    }
    rest.write(head);
    let mut rest = rest.split_at(head.len()).1;
    match body {
        Payload::Private([]) => {}
        Payload::Private(bytes) => rest.write(bytes),
        Payload::Guest(parts) => {
            for part in parts {
                rest.copy_from(*part);
                rest = rest.split_at(part.len()).1;
            }
        }
    }
}

/// Marks the pages of the first `total` bytes of `slices`.
#[cold]
fn log_slices(log: &DirtyLog, memory: &GuestMemory, slices: &[GuestSlice<'_>], mut total: usize) {
    for slice in slices {
        let len = slice.len().min(total);
        total -= len;
        if let Some(guest) = memory.guest_of(*slice) {
            log.mark(guest, len as u64);
        }
    }
}

/// Writes one after the other, over the seams of the slices.
struct Spread<'a> {
    /// What is left of the slice in work.
    now: GuestSlice<'a>,
    later: std::slice::Iter<'a, GuestSlice<'a>>,
}

impl<'a> Spread<'a> {
    /// # Panics
    /// Without a slice: a buffer that holds a header has one.
    #[inline]
    fn new(slices: &'a [GuestSlice<'a>]) -> Self {
        let (first, later) = slices.split_first().expect("a buffer with room has a slice");
        Self { now: *first, later: later.iter() }
    }

    /// # Panics
    /// (Both.) Past the last slice: the room was counted before.
    #[inline]
    fn write(&mut self, mut bytes: &[u8]) {
        loop {
            let (part, rest) = bytes.split_at(bytes.len().min(self.now.len()));
            self.now.write(part);
            self.now = self.now.split_at(part.len()).1;
            if rest.is_empty() {
                return;
            }
            bytes = rest;
            self.now = *self.later.next().expect("the room was counted");
        }
    }

    #[inline]
    fn copy_from(&mut self, mut bytes: GuestSlice<'_>) {
        loop {
            let (part, rest) = bytes.split_at(bytes.len().min(self.now.len()));
            self.now.copy_from(part);
            self.now = self.now.split_at(part.len()).1;
            if rest.is_empty() {
                return;
            }
            bytes = rest;
            self.now = *self.later.next().expect("the room was counted");
        }
    }
}
