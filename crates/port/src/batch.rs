//! The worker's memory for one rx round.

use wire::{HEAD_MAX, Head, Offload};

/// Frames per round (design.md §2).
pub const BATCH: usize = 32;

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

/// One received frame.
pub struct Slot {
    /// First bytes, private.
    pub head: Head,
    /// Where the rest is.
    pub body: BodyAt,
    /// Checksum and segmentation state.
    pub offload: Offload,
    /// Bytes for a body that was read from a file descriptor; filled by the port.
    pub buffer: Box<[u8]>,
}

impl Slot {
    /// Bytes of the whole frame.
    pub fn frame_len(&self) -> usize {
        self.head.bytes().len()
            + match self.body {
                BodyAt::Nowhere => 0,
                BodyAt::Slot(len) | BodyAt::Port { len, .. } => len as usize,
            }
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

/// Up to [`BATCH`] received frames.
pub struct RxBatch {
    slots: Vec<Slot>,
    len: usize,
}

impl Default for RxBatch {
    fn default() -> Self {
        let slot = || Slot {
            head: Head::default(),
            body: BodyAt::Nowhere,
            offload: Offload::default(),
            buffer: vec![0; BODY_MAX].into_boxed_slice(),
        };
        Self { slots: std::iter::repeat_with(slot).take(BATCH).collect(), len: 0 }
    }
}

impl RxBatch {
    /// Forgets the frames of the last round.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// The free slots, for a port to fill from the first on.
    pub fn free(&mut self) -> &mut [Slot] {
        &mut self.slots[self.len..]
    }

    /// Declares the first `count` free slots filled.
    pub fn advance(&mut self, count: usize) {
        self.len += count;
        assert!(self.len <= BATCH, "a port filled more slots than there are");
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
