//! Receiving from and sending to an AF_XDP socket.

use crate::af_packet::{ToldTx, is_too_long};
use crate::batch::{BodyAt, RxBatch, Slot};
use crate::drops::{Drops, Lost};
use crate::frame::{Body, Sent, TxFrame};
use crate::plain::{self, Room};
use crate::queue::{RxQueue, TxQueue};
use crate::sys::xsk::{Flushed, RxFrame, XskRx, XskTx};
use arrayvec::ArrayVec;
use rustix::io::Errno;
use rustix::net::sockopt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use wire::{BATCH, DropReason, HEAD_MAX, Key, Layers, Offload, PartialChecksum, checksum};
use xdp::offload::{RungPort as _, XdpPort};

/// Rounds between two looks at the kernel's counters (a system call): chosen so that it costs nothing.
const ROUNDS_PER_LOOK: u32 = 4096;

/// Whether a frame's transport checksum may be unfinished without a mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Checksums {
    /// The interface hands over what other software sent (veth, TAP …): unfinished checksums come without their mark.
    MayBePartial,
    /// A wire's other end finished them.
    Complete,
}

/// The receiving half of one queue.
pub(super) struct XdpRx {
    socket: XskRx,
    checksums: Checksums,
    rounds: u32,
    seen: Seen,
    /// Working memory of the parser.
    parsed: (Key, Layers),
    /// What takes flows past the worker.
    past: Option<Arc<XdpPort>>,
    /// Frames that were received since the socket was opened.
    received: u64,
}

/// The kernel's drops up to the last look.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// No free buffer, or a full ring.
    full: u64,
    /// Longer than a buffer.
    too_big: u64,
    /// All: each frame once, whatever the reason.
    lost: u64,
}

impl XdpRx {
    pub(super) fn new(socket: XskRx, checksums: Checksums, past: Option<Arc<XdpPort>>) -> Self {
        let (seen, parsed) = (Seen::default(), Default::default());
        Self { socket, checksums, rounds: 0, seen, parsed, past, received: 0 }
    }

    /// Nothing waits, and what came before was sent: flows that wait for that may go past the worker.
    #[inline]
    fn quiet(&mut self, drops: &mut Drops) -> io::Result<()> {
        match &self.past {
            Some(past) if past.is_asked() => {
                let past = past.clone();
                past.quiet(self.received, || {
                    self.look(drops)?;
                    Ok(self.seen.lost)
                })
            }
            _ => Ok(()),
        }
    }

    /// Counts the kernel's drops since the last look. It counts a frame without a free buffer twice, as "dropped" and as "fill ring
    /// empty", a moment apart: so the difference is taken of the totals, and only its growth is counted.
    fn look(&mut self, drops: &mut Drops) -> io::Result<()> {
        let stats = sockopt::xdp_statistics(self.socket.fd())?;
        let unfilled = stats.rx_fill_ring_empty_descs.unwrap_or(0).min(stats.rx_dropped);
        let full = (stats.rx_ring_full.unwrap_or(0) + unfilled).max(self.seen.full);
        let too_big = (stats.rx_dropped - unfilled).max(self.seen.too_big);
        drops.lose(DropReason::RxFull, Lost::Elsewhere(full - self.seen.full));
        drops.lose(DropReason::TooBig, Lost::Elsewhere(too_big - self.seen.too_big));
        let lost = stats.rx_ring_full.unwrap_or(0) + stats.rx_dropped;
        self.seen = Seen { full, too_big, lost };
        match sockopt::socket_error(self.socket.fd())? {
            Err(Errno::NETDOWN) => Err(Errno::NODEV.into()),
            _ => Ok(()),
        }
    }
}

impl RxQueue for XdpRx {
    fn rx(&mut self, batch: &mut RxBatch, drops: &mut Drops) -> io::Result<usize> {
        self.release();
        self.rounds = self.rounds.wrapping_add(1);
        if self.rounds.is_multiple_of(ROUNDS_PER_LOOK) {
            self.look(drops)?;
        }
        let slots = batch.free();
        let (checksums, parsed) = (self.checksums, &mut self.parsed);
        let mut count = 0;
        self.socket.receive(slots.len(), |socket, frame| {
            fill(&mut slots[count], socket, frame);
            if checksums == Checksums::MayBePartial {
                slots[count].offload.checksum = partial(&slots[count], parsed);
            }
            count += 1;
        });
        if count == 0 {
            self.quiet(drops)?;
            self.socket.wake();
        }
        self.received += count as u64;
        batch.advance(count);
        Ok(count)
    }

    fn body(&self, at: u64, len: u32) -> Body<'_> {
        Body::private(self.socket.bytes(at, len))
    }

    fn release(&mut self) {
        self.socket.release();
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.socket.fd().as_fd()
    }
}

/// Copies the head; the body stays in the UMEM.
fn fill(slot: &mut Slot, socket: &XskRx, RxFrame { at, len }: RxFrame) {
    let head = (len as usize).min(HEAD_MAX);
    slot.head.area()[..head].copy_from_slice(socket.bytes(at, head as u32));
    slot.head.set_len(head);
    slot.body = match len - head as u32 {
        0 => BodyAt::Nowhere,
        rest => BodyAt::Port { at: at + head as u64, len: rest },
    };
    slot.offload = Offload::default();
}

fn partial(slot: &Slot, (key, layers): &mut (Key, Layers)) -> Option<PartialChecksum> {
    wire::parse_into(&slot.head, key, layers);
    wire::is_partial(&slot.head, layers)
}

/// The sending half of one queue.
pub(super) struct XdpTx {
    socket: XskTx,
    /// For frames with two tags that are longer than `longest`.
    told: Option<ToldTx>,
    longest: usize,
}

impl XdpTx {
    pub(super) fn new(socket: XskTx, told: Option<ToldTx>, longest: usize) -> Self {
        Self { socket, told, longest }
    }

    /// Sends at most [`BATCH`] frames: queued, then flushed once (and when the ring is full between two frames).
    ///
    /// What the kernel would not take at once counts as lost, though it goes out, late, if the interface comes back; nothing is queued behind it.
    fn send(&mut self, frames: &[TxFrame<'_>], drops: &mut Drops, sent: &mut Sent) {
        if let Some(error) = self.socket.retry() {
            frames.iter().for_each(|frame| drops.lose(reason(error), frame));
            return;
        }
        self.socket.reclaim();
        let mut queued = Queued::default();
        for frame in frames {
            if self.told.is_some() && is_too_long(frame, self.longest) {
                // In its place, behind those before it.
                self.settle(&mut queued, drops, sent);
                self.send_tagged(frame, drops, sent);
                continue;
            }
            let mut result = self.queue(frame);
            if result == Err(DropReason::TxFull) && queued.descriptors > 0 {
                self.settle(&mut queued, drops, sent);
                result = self.queue(frame);
            }
            match result {
                Ok(descriptors) => queued.push(frame, descriptors),
                Err(reason) => drops.lose(reason, frame),
            }
        }
        self.settle(&mut queued, drops, sent);
    }

    fn send_tagged(&mut self, frame: &TxFrame<'_>, drops: &mut Drops, sent: &mut Sent) {
        let Some(told) = &mut self.told else { return };
        match told.send_tagged(frame) {
            Ok(()) => sent.count(frame.len()),
            Err(reason) => drops.lose(reason, frame),
        }
    }

    /// Puts a frame, or its segments, into the ring; returns how many descriptors it takes there.
    fn queue(&mut self, frame: &TxFrame<'_>) -> Result<u32, DropReason> {
        let before = self.socket.room();
        plain::send(frame, self.socket.max_len(), &mut self.socket)?;
        Ok((before - self.socket.room()) as u32)
    }

    /// Flushes, and tells sent frames from lost ones.
    fn settle(&mut self, queued: &mut Queued<'_>, drops: &mut Drops, sent: &mut Sent) {
        let Flushed { refused, left } = self.socket.flush();
        self.socket.reclaim();
        let (left, error) = left.unwrap_or((0, Errno::AGAIN));
        let taken = std::mem::take(&mut queued.descriptors).saturating_sub(left);
        let mut flushed = Sent::default();
        for (frame, end) in queued.frames.drain(..) {
            if end <= taken {
                flushed.count(frame.len());
            } else {
                drops.lose(reason(error), frame);
            }
        }
        let went = flushed.without(refused.into());
        drops.lose(DropReason::TxError, Lost::Elsewhere(flushed.frames - went.frames));
        sent.add(went);
    }
}

/// What was put into the ring since the last flush.
#[derive(Default)]
struct Queued<'f> {
    /// Each frame, and the number of descriptors up to and including its own.
    frames: ArrayVec<(&'f TxFrame<'f>, u32), BATCH>,
    descriptors: u32,
}

impl<'f> Queued<'f> {
    fn push(&mut self, frame: &'f TxFrame<'f>, descriptors: u32) {
        self.descriptors += descriptors;
        self.frames.push((frame, self.descriptors));
    }
}

impl TxQueue for XdpTx {
    fn tx(&mut self, frames: &[TxFrame<'_>], drops: &mut Drops) -> Sent {
        let mut sent = Sent::default();
        for chunk in frames.chunks(BATCH) {
            self.send(chunk, drops, &mut sent);
        }
        sent
    }
}

fn reason(error: Errno) -> DropReason {
    match error {
        Errno::NETDOWN | Errno::NXIO | Errno::NODEV => DropReason::PortDown,
        Errno::AGAIN | Errno::NOBUFS | Errno::BUSY => DropReason::TxFull,
        _ => DropReason::TxError,
    }
}

impl Room for XskTx {
    fn fits(&mut self, count: usize) -> bool {
        self.room() >= count
    }

    fn put(
        &mut self,
        len: usize,
        Offload { checksum, .. }: Offload,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), DropReason> {
        let by_us = checksum.filter(|partial| partial.is_crc() || !self.completes_checksums());
        let checksum = checksum.filter(|_| by_us.is_none());
        let queued = XskTx::put(self, len, checksum, |out| {
            fill(out);
            by_us.map_or(Some(()), |by_us| checksum::complete(out, by_us).ok())
        });
        queued.ok_or(DropReason::BadOffload)
    }
}
