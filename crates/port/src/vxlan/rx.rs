//! From a run of datagrams to frames.

use super::destinations::Destinations;
use super::origin::{Origin, Sender};
use super::path::Path;
use super::security::Opening;
use super::seen::{Marks, Seen};
use super::tell::Answers;
use super::vni::Received;
use crate::batch::{BodyAt, RxBatch, Slot};
use crate::bypass::{Arrival, Inbox};
use crate::drops::{Drops, Lost, Watch};
use crate::frame::Body;
use crate::mailbox::Turns;
use crate::queue::RxQueue;
use crate::sys::datagram::{self, Arrived};
use crate::vxlan::tunnel::Tunnel;
use rustix::event::epoll;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use wire::merge::Train;
use wire::tunnel::{Dscp, Vxlan, decapsulate_ds};
use wire::{BATCH, DropReason, Gso, HEAD_MAX, Head, Layers, Offload, mss};

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
    /// What comes in by other ways than the socket.
    inside: Option<Inside>,
    origin: Origin,
    /// Whose MTU the offers of TCP are lowered to.
    clamp: Option<Clamp>,
    /// Of an encrypted port: what its datagrams go through.
    opening: Option<Opening>,
    /// Of whose packets somebody sees the outside: where they come, and who sees them in this round.
    outside: Outside,
    frames: Frames,
}

/// What is known of packets from outside beside their bytes.
struct Outside {
    ttl: u8,
    /// This end's UDP port, and its address if that is said.
    port: u16,
    local: Option<IpAddr>,
    path: Option<Arc<Path>>,
    watch: Option<Watch>,
}

impl Outside {
    /// Who sees what came from there under this DS field, if anybody.
    fn seen(&self, from: Option<SocketAddr>, ds: u8) -> Option<Seen> {
        let (watch, from) = (self.watch.clone()?, from?);
        let source = || self.path.as_ref()?.towards(from.ip()).source().ok();
        let to = SocketAddr::new(self.local.or_else(source)?, self.port);
        Seen::new(watch, [from, to], Marks { ds, ttl: self.ttl, is_sent: false })
    }
}

/// The path of all frames, or of each its sender's.
pub(super) enum Clamp {
    One(Arc<Path>),
    Each(Destinations),
}

/// What comes from this process.
struct Inside {
    /// From the port itself, to its first queue.
    answers: Option<Arc<Answers>>,
    /// From a TAP, past the kernel.
    inbox: Option<Arc<Inbox>>,
    /// Readable when something of these waits or the socket is readable.
    any: OwnedFd,
    turns: Turns,
    /// Whether this round asks the socket.
    asks_socket: bool,
    /// Runs that came by the inbox, and whose frames have not all been sent or dropped.
    open: u64,
    /// Whether the last run came by it.
    is_mail: bool,
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
        let (local, port, ttl) = (tunnel.local.first().copied(), tunnel.port, tunnel.ttl);
        let outside = Outside { ttl, port, local, path: None, watch: None };
        Self { socket, is_v4, inside: None, origin, clamp: None, opening: None, outside, frames }
    }

    /// The same queue, whose senders are at the other ends of this way.
    pub(super) fn along(mut self, path: Arc<Path>) -> Self {
        self.outside.path = Some(path);
        self
    }

    /// The same queue of an encrypted port.
    pub(super) fn behind(mut self, opening: Option<Opening>) -> Self {
        if opening.is_some() {
            self.outside.port = esp::udp::PORT;
        }
        Self { opening, ..self }
    }

    /// The same queue, which also brings in what comes from this process, if anything does.
    pub(super) fn with(
        mut self,
        answers: Option<Arc<Answers>>,
        inbox: Option<Arc<Inbox>>,
    ) -> io::Result<Self> {
        let bells = [answers.as_ref().map(AsFd::as_fd), inbox.as_ref().map(AsFd::as_fd)];
        if bells.iter().all(Option::is_none) {
            return Ok(self);
        }
        let any = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for source in bells.into_iter().flatten().chain([self.socket.as_fd()]) {
            epoll::add(&any, source, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
        }
        let turns = Turns::default();
        let (asks_socket, open, is_mail) = (true, 0, false);
        self.inside = Some(Inside { answers, inbox, any, turns, asks_socket, open, is_mail });
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
        let asks = self.inside.as_ref().is_none_or(|inside| inside.asks_socket);
        let turn = (asks, self.frames.is_empty());
        let Some(buffer) = self.frames.next_buffer() else { return Ok(None) };
        if let Some((end, datagram)) = self.inside.as_ref().and_then(Inside::answer) {
            let arrived = Arrived { len: datagram.len(), segment: 0, ds: wire::too_big::CONTROL };
            buffer[..datagram.len()].copy_from_slice(&datagram);
            let from = self.origin.end(end);
            self.inside.iter_mut().for_each(|inside| inside.took(0));
            return Ok(Some(self.frames.run(arrived, from)));
        }
        let (socket, is_v4, inside) = (&self.socket, self.is_v4, self.inside.as_ref());
        let inbox = inside.and_then(|inside| inside.inbox.as_deref());
        let (outside, asks) = (&self.outside, self.outside.watch.is_some());
        let mut mail = 0;
        let arrived = match &mut self.opening {
            None => {
                let by_socket =
                    |buffer: &mut [u8]| self.origin.receive(socket, is_v4, buffer, asks);
                let came = match either(turn, inbox, buffer, by_socket)? {
                    Some(Came::BySocket(came)) => Some(came),
                    Some(Came::ByInbox(arrived, from)) => {
                        mail += 1;
                        Some((arrived, self.origin.of(Some(from))))
                    }
                    None => None,
                };
                if let Some((Arrived { len, segment, ds }, from)) = came.filter(|_| asks) {
                    let segment = if segment == 0 { len } else { segment };
                    let seen = outside.seen(from.outside(), ds);
                    seen.iter().for_each(|seen| seen.show_run(&buffer[..len], segment));
                }
                came
            }
            Some(opening) => {
                let by_socket = |buffer: &mut [u8]| match asks {
                    true => datagram::receive_from(socket, is_v4, buffer)
                        .map(|(arrived, from)| (arrived, Some(from))),
                    false => Ok((datagram::receive(socket, is_v4, buffer)?, None)),
                };
                let receive = |into: &mut [u8]| {
                    let came = either(turn, inbox, into, by_socket)?;
                    mail += u64::from(matches!(came, Some(Came::ByInbox(..))));
                    Ok(came.map(|came| match came {
                        Came::BySocket((arrived, from)) => {
                            (arrived, outside.seen(from, arrived.ds))
                        }
                        Came::ByInbox(arrived, from) => {
                            let from = SocketAddr::new(from, 0);
                            (arrived, outside.seen(Some(from), arrived.ds))
                        }
                    }))
                };
                opening.receive(receive, buffer)?.map(|arrived| (arrived, self.origin.of(None)))
            }
        };
        self.inside.iter_mut().for_each(|inside| inside.took(mail));
        Ok(arrived.map(|(arrived, from)| self.frames.run(arrived, from)))
    }
}

impl Inside {
    fn answer(&self) -> Option<(u16, Vec<u8>)> {
        self.answers.as_ref()?.pop()
    }

    fn begin_round(&mut self) {
        let has_mail = self.inbox.as_ref().is_some_and(|inbox| inbox.has_some());
        self.asks_socket = self.turns.asks_kernel(has_mail);
    }

    /// Where the last run came from: so much of the inbox's went into it.
    fn took(&mut self, mail: u64) {
        self.is_mail = mail > 0;
        self.open += mail;
    }

    /// What came in the rounds so far was sent or dropped, but for what is `left` of the last run.
    fn done(&mut self, is_left: bool) {
        let open = u64::from(is_left && self.is_mail);
        self.inbox.iter().for_each(|inbox| inbox.done(self.open.saturating_sub(open)));
        self.open = open;
    }

    /// The worker goes; whether nothing waits.
    fn leave(&self) -> bool {
        let answers = self.answers.as_ref().is_none_or(|answers| answers.leave());
        self.inbox.as_ref().is_none_or(|inbox| inbox.leave()) && answers
    }
}

/// A run, by the way that it came.
enum Came<T> {
    BySocket(T),
    ByInbox(Arrived, IpAddr),
}

/// Receives a run by one of two ways. The socket is asked only in some rounds, for that costs a system call: first, so that a full inbox cannot
/// hide it, and when nothing else is there any more.
fn either<T>(
    (asks, is_first): (bool, bool),
    inbox: Option<&Inbox>,
    into: &mut [u8],
    mut by_socket: impl FnMut(&mut [u8]) -> io::Result<T>,
) -> io::Result<Option<Came<T>>> {
    let mut by_socket = |into: &mut [u8]| match by_socket(into) {
        Ok(came) => Ok(Some(Came::BySocket(came))),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR)) => Ok(None),
        Err(error) => Err(error),
    };
    let Some(inbox) = inbox else { return by_socket(into) };
    if asks && is_first {
        let came = by_socket(into)?;
        if came.is_some() {
            return Ok(came);
        }
    }
    let Some(Arrival { bytes, segment, ds, from }) = inbox.pop() else {
        return if asks && !is_first { by_socket(into) } else { Ok(None) };
    };
    into[..bytes.len()].copy_from_slice(&bytes);
    Ok(Some(Came::ByInbox(Arrived { len: bytes.len(), segment, ds }, from)))
}

impl Frames {
    pub(super) fn new(received: Received, dscp: Dscp, mtu: u16) -> Self {
        let buffers = (0..BUFFERS).map(|_| vec![0; BUFFER].into_boxed_slice()).collect();
        Self { received, dscp, mtu, buffers, used: 0, left: None }
    }

    /// Whether the round has brought nothing yet.
    fn is_empty(&self) -> bool {
        self.used == 0
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
            let (frame, outcome) = match vni {
                Some(vni) => {
                    (slot.tunnel_id, slot.tun_src) = (vni, run.from.number);
                    let (frame, offload) = self.merge(frame, vni, &mut run);
                    let merged = (frame.clone(), offload);
                    (frame, self.decapsulate(slot, merged, run.buffer, ds))
                }
                None => (frame, Err(DropReason::BadSource)),
            };
            match outcome {
                Ok(()) => batch.advance(1),
                Err(reason) => drops.lose(reason, Lost::bytes(&self.buffers[run.buffer][frame])),
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
        self.outside.watch = drops.watcher();
        // A round of which nothing was left to send did not end with it.
        self.release();
        let before = batch.frames().len();
        batch.set_tunnel_ids();
        self.inside.iter_mut().for_each(Inside::begin_round);
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
        let is_left = self.frames.left.is_some();
        self.inside.iter_mut().for_each(|inside| inside.done(is_left));
    }

    /// What is left of a run is told by no one.
    fn arm(&mut self) -> bool {
        let is_silent = self.inside.as_ref().is_none_or(Inside::leave);
        let is_opened = !self.opening.as_ref().is_some_and(Opening::has_more);
        self.frames.left.is_none() && is_opened && is_silent
    }

    fn has_frames(&mut self) -> Option<bool> {
        let inbox = self.inside.as_ref().and_then(|inside| inside.inbox.as_ref());
        inbox.is_some_and(|inbox| inbox.has_some()).then_some(true)
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.inside.as_ref().map_or(self.socket.as_fd(), |inside| inside.any.as_fd())
    }
}
