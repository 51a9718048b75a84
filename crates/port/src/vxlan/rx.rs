//! From a run of datagrams to frames.

use super::answers::Answers;
use super::destinations::Destinations;
use super::origin::{Origin, Sender};
use super::path::Path;
use super::security::Opening;
use super::vni::Received;
use crate::batch::{BATCH, BodyAt, RxBatch, Slot};
use crate::queue::{Body, Drops, RxQueue};
use crate::spec::Tunnel;
use crate::sys::datagram::Arrived;
use rustix::event::epoll;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use wire::merge::Train;
use wire::tunnel::{Dscp, Vxlan, decapsulate_ds};
use wire::{DropReason, Gso, HEAD_MAX, Head, Layers, Offload, mss};

/// Bytes of a buffer: the longest run that the kernel puts together.
const BUFFER: usize = 1 << 16;
/// Runs received in one round.
const BUFFERS: usize = 16;

/// Where a TCP header has its checksum (RFC 9293 §3.1).
const TCP_CHECKSUM: u16 = 16;
/// Bytes of the frame's own header, which an MTU does not count.
const ETHERNET: usize = 14;

/// One receiving socket.
pub(super) struct VxlanRx {
    socket: Arc<OwnedFd>,
    is_v4: bool,
    /// Of the port's first queue.
    own: Option<Own>,
    origin: Origin,
    /// Whose MTU the offers of TCP are lowered to.
    clamp: Option<Clamp>,
    /// Of an encrypted port: what its datagrams go through.
    opening: Option<Opening>,
    frames: Frames,
}

/// The path of all frames, or of each its sender's.
pub(super) enum Clamp {
    One(Arc<Path>),
    Each(Destinations),
}

/// What comes from the port itself.
struct Own {
    answers: Arc<Answers>,
    /// Readable when an answer waits or the socket is readable.
    either: OwnedFd,
}

/// From a run of datagrams to frames; knows no socket.
pub(super) struct Frames {
    received: Received,
    dscp: Dscp,
    /// No frame on the wire is longer than this and its Ethernet header.
    mtu: u16,
    buffers: Vec<Box<[u8]>>,
    /// Buffers whose frames are out.
    used: usize,
    /// Of the last run, what the last round had no slots for.
    left: Option<Run>,
}

/// Datagrams in a buffer that have not become frames.
#[derive(Clone, Copy)]
pub(super) struct Run {
    buffer: usize,
    at: usize,
    end: usize,
    segment: usize,
    ds: u8,
    /// VNI of the first, if it is VXLAN.
    first: Option<u32>,
    /// Who sent all of them.
    from: Sender,
}

impl VxlanRx {
    pub(super) fn new(
        socket: Arc<OwnedFd>,
        tunnel: &Tunnel,
        received: Received,
        origin: Origin,
        mtu: u16,
    ) -> Self {
        let frames = Frames::new(received, tunnel.dscp, mtu);
        let is_v4 = tunnel.remote.is_ipv4();
        Self { socket, is_v4, own: None, origin, clamp: None, opening: None, frames }
    }

    /// The same queue of an encrypted port.
    pub(super) fn behind(self, opening: Option<Opening>) -> Self {
        Self { opening, ..self }
    }

    /// The same queue, which also brings in what the port itself answers.
    pub(super) fn with(mut self, answers: Arc<Answers>) -> io::Result<Self> {
        let either = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for source in [self.socket.as_fd(), answers.as_fd()] {
            epoll::add(&either, source, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
        }
        self.own = Some(Own { answers, either });
        Ok(self)
    }

    /// The same queue, with the offers of TCP lowered to what the path carries.
    pub(super) fn clamped_to(self, clamp: Option<Clamp>) -> Self {
        Self { clamp, ..self }
    }

    /// The next run, if one is there and there is a buffer for it.
    fn next_run(&mut self) -> io::Result<Option<Run>> {
        if let Some(run) = self.frames.left.take() {
            return Ok(Some(run));
        }
        let Some(buffer) = self.frames.next_buffer() else { return Ok(None) };
        let answer = self.own.as_ref().and_then(|own| own.answers.pop());
        let arrived = match answer {
            Some((end, datagram)) => Ok((copy(&datagram, buffer), self.origin.end(end))),
            None => match &mut self.opening {
                None => self.origin.receive(&self.socket, self.is_v4, buffer),
                Some(opening) => {
                    let arrived = opening.receive(&self.socket, self.is_v4, buffer);
                    arrived.map(|arrived| (arrived, self.origin.of(None)))
                }
            },
        };
        match arrived {
            Ok((arrived, from)) => Ok(Some(self.frames.run(arrived, from))),
            Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR)) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

impl Frames {
    pub(super) fn new(received: Received, dscp: Dscp, mtu: u16) -> Self {
        let buffers = (0..BUFFERS).map(|_| vec![0; BUFFER].into_boxed_slice()).collect();
        Self { received, dscp, mtu, buffers, used: 0, left: None }
    }

    /// Where the next run goes, if there is room for one.
    pub(super) fn next_buffer(&mut self) -> Option<&mut [u8]> {
        self.buffers.get_mut(self.used).map(|buffer| &mut buffer[..])
    }

    /// The run that arrived in the next buffer.
    pub(super) fn run(&mut self, Arrived { len, segment, ds }: Arrived, from: Sender) -> Run {
        let buffer = self.used;
        self.used += 1;
        let segment = if segment == 0 { len } else { segment };
        let segment = segment.max(1);
        let mut run = Run { buffer, at: 0, end: len, segment, ds, first: None, from };
        run.first = self.vni_of(&run);
        run
    }

    /// Makes frames of as much of the run as there are slots for; returns the rest.
    pub(super) fn take(
        &mut self,
        mut run: Run,
        batch: &mut RxBatch,
        drops: &mut Drops,
    ) -> Option<Run> {
        while let Some(frame) = run.frame() {
            let Some(slot) = batch.free().first_mut() else { return Some(run) };
            let vni = self
                .vni_of(&run)
                .filter(|&vni| self.received.has(vni, run.from.address, run.first));
            let ds = run.ds;
            run.advance();
            // A run may hold datagrams of other ports: the kernel puts together what only its outer headers tell apart.
            let outcome = match vni {
                Some(vni) => {
                    (slot.tunnel_id, slot.tun_src) = (vni, run.from.number);
                    let merged = self.merge(frame, vni, &mut run);
                    self.decapsulate(slot, merged, run.buffer, ds)
                }
                None => Err(DropReason::BadSource),
            };
            match outcome {
                Ok(()) => batch.advance(1),
                Err(reason) => drops.add(reason, 1),
            }
        }
        None
    }

    /// The VNI of the run's next datagram, if it is VXLAN.
    fn vni_of(&self, run: &Run) -> Option<u32> {
        let header = run.datagram().and_then(|at| Vxlan::parse(&self.buffers[run.buffer][at]));
        header.map(|header| header.vni)
    }

    /// Puts the segments of the same VNI that follow `frame` in the run behind it; the frame that they are now, and its state.
    fn merge(&mut self, frame: Range<usize>, vni: u32, run: &mut Run) -> (Range<usize>, Offload) {
        let Range { start, mut end } = frame;
        let is_alone = run.frame().is_none();
        let begun = (!is_alone).then(|| Train::begin(&self.buffers[run.buffer][start..end]));
        let Some(mut train) = begun.flatten() else { return (start..end, Offload::default()) };
        while let Some(next) = run.frame().filter(|_| self.vni_of(run) == Some(vni)) {
            let buffer = &mut self.buffers[run.buffer];
            if !train.precedes(&buffer[start..], &buffer[next.clone()]) {
                break;
            }
            let headers = train.add(&buffer[next.clone()]);
            buffer.copy_within(next.start + headers..next.end, end);
            end += next.len() - headers;
            run.advance();
        }
        (start..end, train.finish(&mut self.buffers[run.buffer][start..]))
    }

    /// Makes a slot of a frame.
    fn decapsulate(
        &self,
        slot: &mut Slot,
        (range, offload): (Range<usize>, Offload),
        buffer: usize,
        ds: u8,
    ) -> Result<(), DropReason> {
        let frame = &self.buffers[buffer][range.clone()];
        let (head, body) = frame.split_at(frame.len().min(HEAD_MAX));
        slot.head.area()[..head.len()].copy_from_slice(head);
        slot.head.set_len(head.len());
        slot.body = match body.len() {
            0 => BodyAt::Nowhere,
            len => BodyAt::Port {
                at: (buffer * BUFFER + range.start + HEAD_MAX) as u64,
                len: len as u32,
            },
        };
        slot.offload = offload;
        if offload.gso == Gso::None {
            slot.offload = self.found(&slot.head, frame.len());
        }
        let kept = decapsulate_ds(slot.head.bytes_mut(), ds, self.dscp);
        if kept { Ok(()) } else { Err(DropReason::Ecn) }
    }

    pub(super) fn body(&self, at: u64, len: u32) -> Body<'_> {
        let (buffer, at) = (at as usize / BUFFER, at as usize % BUFFER);
        Body::private(&self.buffers[buffer][at..at + len as usize])
    }

    pub(super) fn release(&mut self) {
        self.used = 0;
        if let Some(run) = &mut self.left {
            self.buffers.swap(0, run.buffer);
            (run.buffer, self.used) = (0, 1);
        }
    }

    /// The state of a frame, of which a socket says nothing.
    fn found(&self, head: &Head, len: usize) -> Offload {
        let (_, layers) = wire::parse(head, 0);
        let checksum = wire::is_partial(head, &layers);
        let offload = Offload { checksum, ..Offload::default() };
        match len > ETHERNET + usize::from(self.mtu) {
            true => large(head, &layers, len, offload, self.mtu),
            false => offload,
        }
    }
}

impl Clamp {
    fn lower(&mut self, slot: &mut Slot) {
        let path = match self {
            Self::One(path) => Some(&*path),
            Self::Each(_) if !mss::is_syn(slot.head.bytes()) => None,
            // Of an end that no rule names nothing is known.
            Self::Each(ends) => ends.find(slot.tun_src).ok().map(|end| &end.path),
        };
        if let Some(path) = path {
            path.clamp(slot.head.bytes_mut(), slot.offload.checksum.is_some());
        }
    }
}

impl Run {
    /// Where the next datagram is.
    fn datagram(&self) -> Option<Range<usize>> {
        (self.at < self.end).then(|| self.at..self.end.min(self.at + self.segment))
    }

    /// Where its frame is; empty for one that ends before.
    fn frame(&self) -> Option<Range<usize>> {
        self.datagram().map(|Range { start, end }| (start + Vxlan::LEN).min(end)..end)
    }

    /// Past the next datagram.
    fn advance(&mut self) {
        self.at = self.end.min(self.at + self.segment);
    }
}

/// The state of a TCP segment that is longer than any frame on the wire: the kernel between two of its own interfaces (a veth) did not cut
/// it, and a socket is not told so. What it would have been cut to is not known either; the path's MTU is.
fn large(head: &Head, layers: &Layers, len: usize, offload: Offload, mtu: u16) -> Offload {
    let headers = usize::from(layers.payload.saturating_sub(layers.ip));
    let is_v4 = head.bytes().get(usize::from(layers.ip)).is_some_and(|byte| byte >> 4 == 4);
    let is_tcp = offload.checksum.is_some_and(|partial| partial.offset == TCP_CHECKSUM);
    if !is_tcp || layers.payload == 0 || headers >= usize::from(mtu) || len <= headers {
        return offload;
    }
    let gso = if is_v4 { Gso::TcpV4 } else { Gso::TcpV6 };
    Offload { gso, gso_size: mtu - headers as u16, ..offload }
}

impl RxQueue for VxlanRx {
    fn rx(&mut self, batch: &mut RxBatch, drops: &mut Drops) -> io::Result<usize> {
        let before = batch.frames().len();
        batch.set_tunnel_ids();
        while batch.frames().len() < BATCH {
            let Some(run) = self.next_run()? else { break };
            self.frames.left = self.frames.take(run, batch, drops);
        }
        self.opening.iter_mut().for_each(|opening| opening.count_into(drops));
        if let Some(clamp) = &mut self.clamp {
            batch.frames_mut()[before..].iter_mut().for_each(|slot| clamp.lower(slot));
        }
        Ok(batch.frames().len() - before)
    }

    fn body(&self, at: u64, len: u32) -> Body<'_> {
        self.frames.body(at, len)
    }

    fn release(&mut self) {
        self.frames.release();
    }

    /// What is left of a run is told by no one.
    fn arm(&mut self) -> bool {
        let is_silent = self.own.as_ref().is_none_or(|own| own.answers.rest());
        let is_opened = !self.opening.as_ref().is_some_and(Opening::has_more);
        self.frames.left.is_none() && is_opened && is_silent
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.own.as_ref().map_or(self.socket.as_fd(), |own| own.either.as_fd())
    }
}

/// Puts a datagram where one that arrives would be; what it may say inside is left as it is.
fn copy(datagram: &[u8], buffer: &mut [u8]) -> Arrived {
    buffer[..datagram.len()].copy_from_slice(datagram);
    Arrived { len: datagram.len(), segment: 0, ds: wire::too_big::CONTROL }
}
