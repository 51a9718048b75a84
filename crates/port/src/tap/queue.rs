//! One TAP file: `readv` and `writev`, a frame each; and the side entrance, where tunnels come in past the kernel ([`crate::bypass`]).

use super::finder::Finder;
use crate::batch::{BODIES, BodyAt, RxBatch, Slot};
use crate::bypass::{Door, Injected, Sorter};
use crate::drops::{Drops, Lost};
use crate::frame::{Body, Sent, TxFrame};
use crate::gather::{gather, is_scattered, lacks_uso, reason};
use crate::mailbox::{Mailbox, Turns};
use crate::merge::Merger;
use crate::plain::{self, Room, Scratch};
use crate::queue::{RxQueue, TxQueue};
use crate::sys::parts::{self, Part};
use crate::vnet;
use rustix::event::epoll;
use rustix::io::Errno;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use wire::segment::{self, TunnelBy, UdpTunnel};
use wire::{BATCH, DropReason, Gso, HEAD_MAX, Offload};
use xdp::outer::Told;

/// Receives.
pub(super) struct TapRx {
    file: Arc<OwnedFd>,
    door: Arc<Door>,
    lane: Arc<Mailbox<Injected>>,
    queue: usize,
    /// Readable when the file is, or a frame waits at the side entrance.
    either: OwnedFd,
    /// Frames of the last round that came in there.
    held: Vec<Injected>,
    turns: Turns,
    merger: Merger,
}

impl TapRx {
    pub(super) fn new(file: Arc<OwnedFd>, door: Arc<Door>, queue: usize) -> io::Result<Self> {
        let lane = door.lane(queue).clone();
        let either = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for source in [file.as_fd(), lane.as_fd()] {
            epoll::add(&either, source, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
        }
        let (held, turns) = (Vec::with_capacity(BATCH), Turns::default());
        Ok(Self { file, door, lane, queue, either, held, turns, merger: Merger::default() })
    }

    /// Takes what came in at the side entrance; how many frames.
    fn take_injected(&mut self, batch: &mut RxBatch) -> usize {
        let mut taken = 0;
        while let Some(slot) = batch.free().first_mut() {
            let Some(frame) = self.lane.pop() else { break };
            let (head, body) = frame.bytes.split_at(frame.bytes.len().min(HEAD_MAX));
            slot.head.area()[..head.len()].copy_from_slice(head);
            slot.head.set_len(head.len());
            slot.body = match body.len() {
                0 => BodyAt::Nowhere,
                len => BodyAt::Port { at: self.held.len() as u64, len: len as u32 },
            };
            slot.offload = frame.offload;
            self.held.push(frame);
            batch.advance(1);
            taken += 1;
        }
        taken
    }

    /// Reads one frame; `Ok(None)` when there is none.
    fn read(&self, slot: &mut Slot) -> io::Result<Option<Result<(), DropReason>>> {
        let mut header = [0; vnet::TUNNEL_LEN];
        let mut parts = [
            IoSliceMut::new(&mut header),
            IoSliceMut::new(slot.head.area()),
            IoSliceMut::new(&mut slot.buffer),
        ];
        let len = match rustix::io::readv(&self.file, &mut parts) {
            Ok(len) => len,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        slot.filled(len.saturating_sub(vnet::TUNNEL_LEN));
        let Some(len) = len.checked_sub(vnet::TUNNEL_LEN) else {
            return Ok(Some(Err(DropReason::BadSource)));
        };
        let decoded = vnet::decode_tunnelled(&header, len).map_err(|_| DropReason::BadSource);
        Ok(Some(decoded.map(|offload| slot.offload = offload)))
    }
}

impl RxQueue for TapRx {
    fn rx(&mut self, batch: &mut RxBatch, drops: &mut Drops) -> io::Result<usize> {
        let mut received = 0;
        let most = if self.turns.asks_kernel(self.lane.has_some()) { BODIES } else { 0 };
        let slots = batch.free_with_bodies();
        // The bound also counts refused frames, so that a flood of them cannot hold the worker here.
        for _ in 0..most {
            let Some(slot) = slots.get_mut(received) else { break };
            match self.read(slot)? {
                None => break,
                Some(Ok(())) => received += 1,
                Some(Err(reason)) => drops.lose(reason, Lost::slot(slot)),
            }
        }
        let merged = self.merger.merge(&mut slots[..received]);
        batch.advance(merged);
        // Behind these there is always room for as many, so neither keeps the other waiting.
        Ok(merged + self.take_injected(batch))
    }

    fn body(&self, at: u64, len: u32) -> Body<'_> {
        Body::private(&self.held[at as usize].bytes[HEAD_MAX..HEAD_MAX + len as usize])
    }

    fn release(&mut self) {
        self.door.passage().leave(self.queue, self.held.len() as u64);
        self.held.drain(..).for_each(|frame| self.door.give_back(frame.bytes));
    }

    fn arm(&mut self) -> bool {
        self.lane.leave()
    }

    fn has_frames(&mut self) -> Option<bool> {
        self.lane.has_some().then_some(true)
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.either.as_fd()
    }
}

/// Sends.
pub(super) struct TapTx {
    sorter: Sorter,
    writer: Writer,
}

/// Writes frames to the file.
struct Writer {
    file: Arc<OwnedFd>,
    scratch: Scratch,
    takes: Takes,
}

/// Which large frames in tunnels the kernel takes whole.
#[derive(Clone)]
pub(super) struct Takes {
    /// Those in UDP.
    pub(super) udp: bool,
    /// Those in GRE and IP in IP, as soon as the program is there.
    pub(super) others: Arc<Finder>,
}

impl TapTx {
    pub(super) fn new(file: Arc<OwnedFd>, sorter: Sorter, takes: Takes) -> Self {
        Self { sorter, writer: Writer { file, scratch: Scratch::default(), takes } }
    }
}

impl Writer {
    fn send(&mut self, frame: &TxFrame<'_>) -> Result<(), DropReason> {
        let is_tunnel =
            frame.offload.gso != Gso::None && !segment::is_plain(frame.head, &frame.offload);
        let udp = if is_tunnel { self.udp_tunnel(frame) } else { None };
        let is_whole = udp.is_some() || is_tunnel && self.is_found(frame);
        if !is_whole && plain::is_needed(frame) {
            return plain::send(frame, usize::MAX, self);
        }
        let header = vnet::encode_tunnelled(frame, udp);
        let written = if is_scattered(frame) {
            parts::write(
                &self.file,
                &[Part::private(&header), Part::private(self.scratch.join(frame))],
            )
        } else {
            parts::write(&self.file, &gather(&header, frame))
        };
        match written {
            Ok(_) => Ok(()),
            Err(error) if lacks_uso(&error, frame) => plain::send(frame, usize::MAX, self),
            Err(error) => Err(reason(&error)),
        }
    }

    /// The UDP tunnel that a large frame is in, if the kernel takes it so.
    fn udp_tunnel(&self, frame: &TxFrame<'_>) -> Option<UdpTunnel> {
        let find = || segment::udp_tunnel(frame.head, frame.len(), &frame.offload);
        self.takes.udp.then(find).flatten()
    }

    /// Whether a large frame is in a tunnel that the program finds by itself.
    fn is_found(&self, frame: &TxFrame<'_>) -> bool {
        let tunnel = segment::tunnel_headers(frame.head, frame.len(), &frame.offload);
        let tunnel = tunnel.filter(|tunnel| tunnel.by != TunnelBy::Udp);
        tunnel.is_some_and(|tunnel| Told::tunnel(&tunnel).is_some() && self.takes.others.is_there())
    }
}

impl TxQueue for TapTx {
    fn tx(&mut self, frames: &[TxFrame<'_>], drops: &mut Drops) -> Sent {
        self.sorter.sort(frames, drops, |frame| self.writer.send(frame))
    }
}

/// Segments are written one by one; the kernel's queue takes what it takes.
impl Room for Writer {
    fn fits(&mut self, _: usize) -> bool {
        true
    }

    fn put(
        &mut self,
        len: usize,
        offload: Offload,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), DropReason> {
        let (checksum, bytes) = self.scratch.write(len, offload.checksum, fill)?;
        let header: [u8; vnet::TUNNEL_LEN] = vnet::plain(checksum);
        let parts = [Part::private(&header), Part::private(bytes)];
        parts::write(&self.file, &parts).map(drop).map_err(|error| reason(&error))
    }
}
