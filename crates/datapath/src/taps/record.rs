//! A record: four words in front of a frame's first bytes.
//!
//! ```text
//! 0  when, ns
//! 1  number of the switch u32 · of the port u32
//! 2  point u16 · what u8 · reason u8 · size of a large segment's pieces u16 · u16: 1 if the checksum is to be completed
//! 3  length of the frame, or how many frames are lost elsewhere u32 · records lost before u32
//! ```

use crate::id::{PortAt, Side, SwitchId};
use crate::sys::ring::Words;
use flow::Nanos;
use port::{Lost, TxFrame};
use wire::DropReason;

/// What became of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// It came in.
    Received,
    /// It was handed to the way out.
    Sent,
    /// It was lost for this reason.
    Lost(DropReason),
    /// So many were lost for this reason that nobody had at hand; there are no bytes.
    LostElsewhere(DropReason, u32),
}

const RECEIVED: u8 = 0;
const SENT: u8 = 1;
const LOST: u8 = 2;
const ELSEWHERE: u8 = 3;

/// A frame that was seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Captured<'r> {
    /// When.
    pub at: Nanos,
    /// Number of the worker that saw it.
    pub worker: usize,
    /// Which of the capture's points saw it.
    pub point: usize,
    /// At this port.
    pub port: PortAt,
    /// What became of it.
    pub what: What,
    /// Bytes of the frame.
    pub len: u32,
    /// Of a large segment, how many bytes of payload its pieces will have; else 0.
    pub piece: u16,
    /// Its checksum is still to be completed, by who sends it.
    pub is_partial: bool,
    /// Records of this point and worker that are missing since its last one.
    pub lost_before: u32,
    /// The frame's first bytes.
    pub bytes: &'r [u8],
}

/// What is known of a frame beside its bytes.
#[derive(Clone, Copy)]
pub(super) struct Front {
    now: Nanos,
    at: PortAt,
    point: u16,
    what: u8,
    reason: u8,
    piece: u16,
    is_partial: bool,
    len: u32,
}

impl Front {
    pub(super) fn of_frame(
        (point, at): (usize, PortAt),
        side: Side,
        now: Nanos,
        frame: &TxFrame<'_>,
    ) -> Self {
        let what = match side {
            Side::Rx => RECEIVED,
            Side::Tx => SENT,
        };
        let (point, len) = (point as u16, frame.len() as u32);
        let (piece, is_partial) = (frame.offload.gso_size, frame.offload.checksum.is_some());
        Self { now, at, point, what, reason: 0, piece, is_partial, len }
    }

    pub(super) fn of_loss(
        (point, at): (usize, PortAt),
        reason: DropReason,
        now: Nanos,
        lost: &Lost<'_>,
    ) -> Self {
        let (what, len) = match lost {
            Lost::Frame { head, body } => (LOST, (head.len() + body.len()) as u32),
            Lost::Elsewhere(count) => (ELSEWHERE, u32::try_from(*count).unwrap_or(u32::MAX)),
        };
        let (point, reason) = (point as u16, reason as u8);
        Self { now, at, point, what, reason, piece: 0, is_partial: false, len }
    }

    pub(super) fn words(self, lost_before: u32) -> Words {
        [
            self.now.0,
            u64::from(self.at.switch.0) | u64::from(self.at.port) << 32,
            u64::from(self.point)
                | u64::from(self.what) << 16
                | u64::from(self.reason) << 24
                | u64::from(self.piece) << 32
                | u64::from(self.is_partial) << 48,
            u64::from(self.len) | u64::from(lost_before) << 32,
        ]
    }
}

impl<'r> Captured<'r> {
    pub(crate) fn read(worker: usize, [at, place, kind, size]: Words, bytes: &'r [u8]) -> Self {
        let port = PortAt { switch: SwitchId(place as u32), port: (place >> 32) as u32 };
        let len = size as u32;
        let reason = DropReason::ALL[usize::from((kind >> 24) as u8) % DropReason::ALL.len()];
        let (what, len) = match (kind >> 16) as u8 {
            RECEIVED => (What::Received, len),
            SENT => (What::Sent, len),
            LOST => (What::Lost(reason), len),
            _ => (What::LostElsewhere(reason, len), 0),
        };
        Self {
            at: Nanos(at),
            worker,
            point: usize::from(kind as u16),
            port,
            what,
            len,
            piece: (kind >> 32) as u16,
            is_partial: kind >> 48 != 0,
            lost_before: (size >> 32) as u32,
            bytes,
        }
    }
}
