//! A record: seven words in front of a frame's first bytes, so that these begin a cache line.
//!
//! ```text
//! 0  when, ns
//! 1  number of the switch u32 · of the port u32
//! 2  point u16 · what u8 · reason u8 · size of a large segment's pieces u16 · flags u8: 1 the checksum is to be completed, 2 outside · u8
//! 3  length of the frame, or how many frames are lost elsewhere u32 · records lost before u32
//! 4  bytes of the frame inside, which come first u16 · kind of place that it goes to, 0 if not known u8 · u8 · port or reason there u32
//! 5  table u8 · 1 + rung, 0 if not known u8 · 1 if there is a cookie u8 · u8 · waited, ns u32
//! 6  cookie
//! ```

use super::verdict::{Verdict, Whither};
use crate::id::{PortAt, Side, SwitchId};
use crate::rung::Rung;
use crate::sys::ring;
use flow::Nanos;
use port::{Lost, OuterPacket, TxFrame};
use wire::{DropReason, HEAD_MAX};

/// What goes with a frame's bytes.
pub(super) type Words = [u64; 7];
/// The end of a ring of records that puts.
pub(super) type Writer = ring::Writer<7>;
/// The end that takes.
pub(super) type Reader = ring::Reader<7>;

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
    /// So many came in and went on unread; there are no bytes.
    Unread(u32),
}

const PARTIAL: u8 = 1;
const OUTSIDE: u8 = 2;

const RECEIVED: u8 = 0;
const SENT: u8 = 1;
const LOST: u8 = 2;
const ELSEWHERE: u8 = 3;
const UNREAD: u8 = 4;

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
    /// It is a tunnel's packet outside; of its headers only addresses, ports, DS field and TTL are those on the underlay.
    pub is_outside: bool,
    /// The first bytes of the frame in it.
    pub inside: &'r [u8],
    /// What rules did with it, if it came in and that is known.
    pub verdict: Option<Verdict>,
    /// The rung that took its batch, if it came in and that is known.
    pub rung: Option<Rung>,
    /// From when the batch was there until the last of its frames had left; what waits in queues is not waited for.
    pub wait: Nanos,
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
    flags: u8,
    len: u32,
    inside: u16,
    verdict: Option<Verdict>,
}

impl Front {
    pub(super) fn of_frame(
        (point, at): (usize, PortAt),
        side: Side,
        now: Nanos,
        frame: &TxFrame<'_>,
    ) -> Self {
        let what = match side {
            Side::Tx => SENT,
            Side::Rx | Side::Outside | Side::Queue | Side::Timed => RECEIVED,
        };
        let (point, len) = (point as u16, frame.len() as u32);
        let piece = frame.offload.gso_size;
        let flags = if frame.offload.checksum.is_some() { PARTIAL } else { 0 };
        Self { now, at, point, what, reason: 0, piece, flags, len, inside: 0, verdict: None }
    }

    /// A frame that came in there.
    pub(super) fn of_received(at: PortAt, now: Nanos, frame: &TxFrame<'_>) -> Self {
        Self::of_frame((0, at), Side::Rx, now, frame)
    }

    /// The same, of which it is known what rules do with it.
    pub(super) fn with(self, verdict: Option<Verdict>) -> Self {
        Self { verdict, ..self }
    }

    pub(super) fn of_outer(
        (point, at): (usize, PortAt),
        now: Nanos,
        packet: &OuterPacket<'_>,
    ) -> Self {
        let what = if packet.is_sent { SENT } else { RECEIVED };
        let len = (packet.headers.len() + packet.payload.len()) as u32;
        let (point, inside) = (point as u16, packet.inside.len().min(HEAD_MAX) as u16);
        Self {
            now,
            at,
            point,
            what,
            reason: 0,
            piece: 0,
            flags: OUTSIDE,
            len,
            inside,
            verdict: None,
        }
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
        Self { now, at, point, what, reason, piece: 0, flags: 0, len, inside: 0, verdict: None }
    }

    /// So many frames that came in and went on unread.
    pub(super) fn of_unread(at: PortAt, now: Nanos, frames: usize) -> Self {
        let len = frames as u32;
        Self {
            now,
            at,
            point: 0,
            what: UNREAD,
            reason: 0,
            piece: 0,
            flags: 0,
            len,
            inside: 0,
            verdict: None,
        }
    }

    /// The same, at this of a capture's points.
    pub(super) fn at_point(self, point: usize) -> Self {
        Self { point: point as u16, ..self }
    }

    /// When, and where.
    pub(super) fn place(&self) -> (Nanos, PortAt) {
        (self.now, self.at)
    }

    pub(super) fn words(self, lost_before: u32) -> Words {
        let [place, way, cookie] = packed(self.verdict);
        [
            self.now.0,
            u64::from(self.at.switch.0) | u64::from(self.at.port) << 32,
            u64::from(self.point)
                | u64::from(self.what) << 16
                | u64::from(self.reason) << 24
                | u64::from(self.piece) << 32
                | u64::from(self.flags) << 48,
            u64::from(self.len) | u64::from(lost_before) << 32,
            u64::from(self.inside) | place,
            way,
            cookie,
        ]
    }
}

/// What became of a frame, as the last words of its record have it; the first of them beside how much of it is inside.
fn packed(verdict: Option<Verdict>) -> Words3 {
    let Some(Verdict { table, cookie, to }) = verdict else { return [0; 3] };
    let (kind, number) = to.packed();
    [
        u64::from(kind) << 16 | u64::from(number) << 32,
        u64::from(table) | u64::from(cookie.is_some()) << 16,
        cookie.unwrap_or_default(),
    ]
}

type Words3 = [u64; 3];

fn unpacked([place, way, cookie]: Words3) -> Option<Verdict> {
    let to = Whither::of(((place >> 16) as u8, (place >> 32) as u32))?;
    Some(Verdict { table: way as u8, cookie: ((way >> 16) as u8 != 0).then_some(cookie), to })
}

/// The number of the word that has an entry's cookie.
pub(super) const COOKIE: usize = 6;
/// The number of the word that has rung and time, and what it is once these are known.
pub(super) const WAY: usize = 5;
pub(super) fn way_with(way: u64, rung: Option<Rung>, wait: Nanos) -> u64 {
    let rung = rung.map_or(0, |rung| 1 + rung as u8);
    let wait = u32::try_from(wait.0).unwrap_or(u32::MAX);
    way & 0xff_00ff | u64::from(rung) << 8 | u64::from(wait) << 32
}

impl<'r> Captured<'r> {
    pub(super) fn read(worker: usize, words: Words, bytes: &'r [u8]) -> Self {
        let [at, place, kind, size, more, way, cookie] = words;
        let port = PortAt { switch: SwitchId(place as u32), port: (place >> 32) as u32 };
        let len = size as u32;
        let reason = DropReason::ALL[usize::from((kind >> 24) as u8) % DropReason::ALL.len()];
        let (what, len) = match (kind >> 16) as u8 {
            RECEIVED => (What::Received, len),
            SENT => (What::Sent, len),
            LOST => (What::Lost(reason), len),
            UNREAD => (What::Unread(len), 0),
            _ => (What::LostElsewhere(reason, len), 0),
        };
        let flags = (kind >> 48) as u8;
        let (inside, bytes) = bytes.split_at(usize::from(more as u16).min(bytes.len()));
        Self {
            at: Nanos(at),
            worker,
            point: usize::from(kind as u16),
            port,
            what,
            len,
            piece: (kind >> 32) as u16,
            is_partial: flags & PARTIAL != 0,
            is_outside: flags & OUTSIDE != 0,
            inside,
            verdict: unpacked([more, way, cookie]),
            rung: Rung::ALL.get(usize::from((way >> 8) as u8).wrapping_sub(1)).copied(),
            wait: Nanos(way >> 32),
            lost_before: (size >> 32) as u32,
            bytes,
        }
    }
}
