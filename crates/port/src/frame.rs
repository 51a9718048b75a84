//! A frame on its way out, and how much of it left.

use vhost::{GuestSlice, Payload};
use wire::Offload;

/// The bytes of a frame after its head, in their source buffer: private, or segments of a guest's memory, which change while we look.
///
/// Either way they can only be copied out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Body<'a> {
    payload: Payload<'a>,
}

impl<'a> Body<'a> {
    /// A body in memory that no one else writes.
    #[inline]
    pub fn private(bytes: &'a [u8]) -> Self {
        Self { payload: Payload::Private(bytes) }
    }

    /// A body in a guest's memory.
    #[inline]
    pub fn guest(segments: &'a [GuestSlice<'a>]) -> Self {
        Self { payload: Payload::Guest(segments) }
    }

    /// Bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.payload.len()
    }

    /// Whether the frame ends inside its head.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.payload.is_empty()
    }

    /// Copies `into.len()` bytes from offset `at` on.
    ///
    /// # Panics
    /// When the range lies outside: lengths are ours, checked at rx.
    pub fn copy_to(&self, at: usize, into: &mut [u8]) {
        match self.payload {
            Payload::Private(bytes) => into.copy_from_slice(&bytes[at..at + into.len()]),
            Payload::Guest(segments) => copy_segments(segments, at, into),
        }
    }

    /// Appends all bytes.
    pub fn append_to(&self, bytes: &mut Vec<u8>) {
        let at = bytes.len();
        bytes.resize(at + self.len(), 0);
        self.copy_to(0, &mut bytes[at..]);
    }

    /// The bytes where they lie, for a destination that copies them itself.
    #[inline]
    pub(crate) fn payload(&self) -> Payload<'a> {
        self.payload
    }
}

fn copy_segments(segments: &[GuestSlice<'_>], mut at: usize, mut into: &mut [u8]) {
    for segment in segments {
        if into.is_empty() {
            return;
        }
        let (_, from) = segment.split_at(at.min(segment.len()));
        at -= segment.len() - from.len();
        let (part, rest) = into.split_at_mut(from.len().min(into.len()));
        from.read(part);
        into = rest;
    }
    assert!(into.is_empty(), "copy past the end of a body");
}

/// A frame to send: head and body are gathered by the destination.
#[derive(Clone, Copy)]
pub struct TxFrame<'a> {
    /// First bytes, as the actions left them.
    pub head: &'a [u8],
    /// The rest, in the source buffer.
    pub body: Body<'a>,
    /// What is still to be done to it.
    pub offload: Offload,
    /// The tunnel's key that rules chose; only for a port that asks for it ([`crate::TxQueue::wants_tunnel_ids`]), else 0.
    pub tunnel_id: u32,
    /// Number of the tunnel's end that rules chose ([`Ends`](crate::Ends)), likewise.
    pub tun_dst: u16,
}

impl TxFrame<'_> {
    /// Bytes of the whole frame.
    pub fn len(&self) -> usize {
        self.head.len() + self.body.len()
    }

    /// Never true of a frame; here because clippy asks.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What a [`TxQueue`](crate::TxQueue) got rid of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sent {
    /// Frames.
    pub frames: u64,
    /// Bytes, Ethernet header included, no FCS.
    pub bytes: u64,
}

impl Sent {
    /// What is left when `refused` of the frames were not sent; which ones is not told: their bytes are taken to be average.
    pub(crate) fn without(self, refused: u64) -> Self {
        let refused = refused.min(self.frames);
        let bytes = self.bytes - self.bytes * refused / self.frames.max(1);
        Self { frames: self.frames - refused, bytes }
    }

    /// Adds `more`.
    pub(crate) fn add(&mut self, more: Self) {
        self.frames += more.frames;
        self.bytes += more.bytes;
    }

    /// Adds a frame of `len` bytes.
    pub fn count(&mut self, len: usize) {
        self.frames += 1;
        self.bytes += len as u64;
    }
}
