//! The worker's memory for one rx round.

use wire::{BATCH, HEAD_MAX, Head, Offload};

/// Frames per round from a port that reads whole frames, of up to 64 KiB, into the batch: more memory than this would leave the cache.
pub const BODIES: usize = 32;

/// Most bytes after the head: the largest frame a TAP or packet socket hands over is 64 KiB and an Ethernet header.
pub const BODY_MAX: usize = 65_536 + 64;

/// Where the rest of a frame lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BodyAt {
    /// The frame ends inside its head.
    #[default]
    Nowhere,
    /// In the slot's own buffer, this many bytes from its beginning.
    Slot(u32),
    /// In the port's memory; `at` means something to that port only.
    Port {
        /// The port's own address.
        at: u64,
        /// Bytes.
        len: u32,
    },
}

impl BodyAt {
    /// Bytes.
    #[inline]
    pub fn len(self) -> usize {
        match self {
            Self::Nowhere => 0,
            Self::Slot(len) | Self::Port { len, .. } => len as usize,
        }
    }

    /// Whether the frame ends inside its head.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// One received frame: a short one takes two cache lines, that of its bytes and that of all the rest.
#[repr(C, align(64))]
pub struct Slot {
    /// First bytes, private.
    pub head: Head,
    /// Number of the tunnel's end that sent it ([`Ends`](crate::Ends)), of a batch that [has tunnel ids](RxBatch::set_tunnel_ids). It lies where
    /// nothing else does.
    pub tun_src: u16,
    /// Where the rest is.
    pub body: BodyAt,
    /// Checksum and segmentation state.
    pub offload: Offload,
    /// The key of the tunnel that it came by, of a batch that [has them](RxBatch::set_tunnel_ids); else whatever was here before. It lies where
    /// nothing else does.
    pub tunnel_id: u32,
    /// Bytes for a body that was read from a file descriptor; filled by the port. Empty in slots after the first [`BODIES`].
    pub buffer: Box<[u8]>,
}

impl Slot {
    /// Bytes of the whole frame.
    #[inline]
    pub fn frame_len(&self) -> usize {
        self.head.bytes().len() + self.body.len()
    }

    /// Declares that `total` bytes were read: first into the head's area, the rest into `buffer`.
    pub fn filled(&mut self, total: usize) {
        self.head.set_len(total.min(HEAD_MAX));
        self.body = match total.checked_sub(HEAD_MAX) {
            Some(rest @ 1..) => BodyAt::Slot(rest as u32),
            _ => BodyAt::Nowhere,
        };
    }
}

const _: () = assert!(size_of::<Slot>() == 7 * 64); // an odd number of lines, so that slots spread over all sets of a cache

/// What a batch's frames are by their lengths.
#[derive(Clone, Copy)]
pub struct Lengths {
    /// All together.
    pub bytes: u64,
    /// Of the shortest frame.
    pub shortest: u32,
    /// Of the longest.
    pub longest: u32,
}

impl Default for Lengths {
    fn default() -> Self {
        Self { bytes: 0, shortest: u32::MAX, longest: 0 }
    }
}

impl Lengths {
    /// One more frame.
    #[inline(always)]
    pub fn count(&mut self, len: usize) {
        self.bytes += len as u64;
        self.shortest = self.shortest.min(len as u32);
        self.longest = self.longest.max(len as u32);
    }
}

/// Up to [`BATCH`] received frames.
pub struct RxBatch {
    slots: Vec<Slot>,
    len: usize,
    has_tunnel_ids: bool,
    lengths: Option<Lengths>,
}

impl Default for RxBatch {
    fn default() -> Self {
        let slot = |index| Slot {
            head: Head::default(),
            tun_src: 0,
            body: BodyAt::Nowhere,
            offload: Offload::default(),
            tunnel_id: 0,
            buffer: vec![0; if index < BODIES { BODY_MAX } else { 0 }].into_boxed_slice(),
        };
        Self { slots: (0..BATCH).map(slot).collect(), len: 0, has_tunnel_ids: false, lengths: None }
    }
}

impl RxBatch {
    /// Forgets the frames of the last round.
    pub fn clear(&mut self) {
        (self.len, self.has_tunnel_ids, self.lengths) = (0, false, None);
    }

    /// Declares that every frame of the batch has a tunnel id, and the number of who sent it. Said once for all: a batch from any other port has nothing to clear, and its
    /// reader one thing to ask.
    pub fn set_tunnel_ids(&mut self) {
        self.has_tunnel_ids = true;
    }

    /// Whether its frames have tunnel ids.
    pub fn has_tunnel_ids(&self) -> bool {
        self.has_tunnel_ids
    }

    /// The free slots, for a port to fill from the first on.
    pub fn free(&mut self) -> &mut [Slot] {
        &mut self.slots[self.len..]
    }

    /// The free slots that have a buffer.
    pub fn free_with_bodies(&mut self) -> &mut [Slot] {
        let end = self.len.max(BODIES);
        &mut self.slots[self.len..end]
    }

    /// Declares the first `count` free slots filled.
    pub fn advance(&mut self, count: usize) {
        self.len += count;
        self.lengths = None;
        assert!(self.len <= BATCH, "a port filled more slots than there are");
    }

    /// The same of all frames of the batch, by a port that knows their lengths: then nobody has to look at each for them.
    pub fn advance_counted(&mut self, count: usize, lengths: Lengths) {
        let is_all = self.len == 0;
        self.advance(count);
        self.lengths = is_all.then_some(lengths);
    }

    /// The frames' lengths, if the port said them.
    #[inline]
    pub fn lengths(&self) -> Option<Lengths> {
        self.lengths
    }

    /// The frames received.
    pub fn frames(&self) -> &[Slot] {
        &self.slots[..self.len]
    }

    /// The frames received, for edits of their heads.
    pub fn frames_mut(&mut self) -> &mut [Slot] {
        &mut self.slots[..self.len]
    }
}
