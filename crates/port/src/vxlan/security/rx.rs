//! From sealed datagrams to what is inside.

use super::Security;
use crate::batch::RxBatch;
use crate::drops::{Drops, Lost};
use crate::queue::RxQueue;
use crate::sys::datagram::{self, Arrived};
use crate::vxlan::seen::Seen;
use esp::{Opened, Refusal, udp};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use wire::DropReason;
use wire::tunnel::Ecn;

/// Bytes of a buffer: the longest run that the kernel puts together.
const BUFFER: usize = 1 << 16;
/// Runs of plain datagrams that are thrown away in one round.
const REFUSED_AT_ONCE: usize = 16;
/// A packet that only hides that there is none (RFC 4303 §2.6).
const NO_NEXT_HEADER: u8 = 59;

/// What is before a queue of an encrypted port: instead of the socket's datagrams it gives those that were in them.
pub(in crate::vxlan) struct Opening {
    security: Arc<Security>,
    buffer: Box<[u8]>,
    /// Of the last run what was not opened yet.
    at: usize,
    arrived: Arrived,
    /// Who sees that run as it came.
    seen: Option<Seen>,
    /// Opened, and of another length than those before it, so that it waits for the next run.
    held: Option<(Range<usize>, u8)>,
    drops: Drops,
}

impl Opening {
    pub(in crate::vxlan) fn new(security: Arc<Security>) -> Self {
        Self {
            security,
            buffer: vec![0; BUFFER].into_boxed_slice(),
            at: 0,
            arrived: Arrived::default(),
            seen: None,
            held: None,
            drops: Drops::default(),
        }
    }

    /// Opens what `receive` receives, sealed: a run of VXLAN packets of one length and DS field, but for the last, which may be shorter. A
    /// run may be empty: all that came was refused. `None`: nothing came.
    pub(in crate::vxlan) fn receive(
        &mut self,
        receive: impl FnOnce(&mut [u8]) -> io::Result<Option<(Arrived, Option<Seen>)>>,
        into: &mut [u8],
    ) -> io::Result<Option<Arrived>> {
        if !self.has_more() {
            let Some((arrived, seen)) = receive(&mut self.buffer)? else { return Ok(None) };
            (self.arrived, self.seen, self.at) = (arrived, seen, 0);
        }
        let mut run = Arrived::default();
        while let Some((packet, ds)) = self.held.take().or_else(|| self.next()) {
            let is_first = run.len == 0;
            if !is_first
                && (packet.len() > run.segment || run.len % run.segment != 0 || ds != run.ds)
            {
                self.held = Some((packet, ds));
                break;
            }
            if is_first {
                (run.segment, run.ds) = (packet.len(), ds);
            }
            into[run.len..run.len + packet.len()].copy_from_slice(&self.buffer[packet.clone()]);
            run.len += packet.len();
        }
        Ok(Some(run))
    }

    /// Whether something waits here that no socket tells of.
    pub(in crate::vxlan) fn has_more(&self) -> bool {
        self.held.is_some() || self.at < self.arrived.len
    }

    /// What was refused since the last time.
    pub(in crate::vxlan) fn count_into(&mut self, drops: &mut Drops) {
        self.drops.drain(|reason, count| drops.lose(reason, Lost::Elsewhere(count)));
    }

    /// The next packet that is the tunnel's, and the DS field it came under.
    fn next(&mut self) -> Option<(Range<usize>, u8)> {
        while self.at < self.arrived.len {
            let segment =
                if self.arrived.segment == 0 { self.arrived.len } else { self.arrived.segment };
            let datagram = self.at..self.arrived.len.min(self.at + segment);
            self.at = datagram.end;
            let opened = match self.seen.is_some() {
                false => self.open(datagram),
                true => self.open_seen(datagram),
            };
            match opened {
                Ok(found @ Some(_)) => return found,
                Ok(None) => {}
                Err(reason) => self.drops.lose(reason, Lost::Elsewhere(1)),
            }
        }
        None
    }

    /// The same for somebody who sees it as it came.
    #[cold]
    fn open_seen(
        &mut self,
        datagram: Range<usize>,
    ) -> Result<Option<(Range<usize>, u8)>, DropReason> {
        // It is opened where it lies.
        let sealed = self.buffer[datagram.clone()].to_vec();
        let opened = self.open(datagram);
        if let Some(seen) = &self.seen {
            let vxlan = opened.as_ref().ok().and_then(Option::as_ref);
            seen.show(&sealed, vxlan.map_or(&[], |(at, _)| &self.buffer[at.clone()]));
        }
        opened
    }

    /// `None`: a packet that means nothing.
    fn open(&mut self, datagram: Range<usize>) -> Result<Option<(Range<usize>, u8)>, DropReason> {
        let packet = &mut self.buffer[datagram.clone()];
        if udp::classify(packet) == udp::Datagram::Keepalive {
            return Ok(None);
        }
        let sas = self.security.sas.load();
        let spi = esp::spi(packet);
        let Opened { next_header, payload, .. } = sas.inbounds.open(packet).map_err(reason)?;
        if next_header == NO_NEXT_HEADER {
            return Ok(None);
        }
        let contents = self.security.envelope.read(next_header, &packet[payload.clone()]);
        let contents = contents.map_err(|refusal| {
            let inbound = spi.and_then(|spi| sas.inbounds.find(spi));
            inbound.into_iter().for_each(|inbound| inbound.refuse(refusal));
            reason(refusal)
        })?;
        let start = datagram.start + payload.start;
        let vxlan = start + contents.vxlan.start..start + contents.vxlan.end;
        if vxlan.is_empty() {
            return Err(DropReason::EspMalformed);
        }
        let outer = self.arrived.ds;
        let ds = contents.ds.map_or(Some(outer), |inside| through(inside, outer));
        Ok(Some((vxlan, ds.ok_or(DropReason::Ecn)?)))
    }
}

/// The DS field of an IP header that travelled inside one with `outer` (RFC 6040 §4.2); `None`: the packet must be dropped.
fn through(inside: u8, outer: u8) -> Option<u8> {
    let ecn = Ecn::of(inside).decapsulated(Ecn::of(outer))?;
    Some(inside & 0xfc | ecn as u8)
}

fn reason(refusal: Refusal) -> DropReason {
    match refusal {
        Refusal::UnknownSpi => DropReason::EspSpi,
        Refusal::Replayed => DropReason::EspReplay,
        Refusal::TooOld => DropReason::EspOld,
        Refusal::BadIcv => DropReason::EspIcv,
        Refusal::Truncated | Refusal::BadPadding | Refusal::BadContents => DropReason::EspMalformed,
    }
}

/// The queue of what comes unencrypted to a port that is encrypted: nothing of it gets in.
pub(in crate::vxlan) struct Refuser {
    socket: Arc<OwnedFd>,
    is_v4: bool,
    buffer: Box<[u8]>,
}

impl Refuser {
    pub(in crate::vxlan) fn new(socket: Arc<OwnedFd>, is_v4: bool) -> Self {
        Self { socket, is_v4, buffer: vec![0; BUFFER].into_boxed_slice() }
    }
}

impl RxQueue for Refuser {
    fn rx(&mut self, _: &mut RxBatch, drops: &mut Drops) -> io::Result<usize> {
        for _ in 0..REFUSED_AT_ONCE {
            match datagram::receive(&self.socket, self.is_v4, &mut self.buffer) {
                Ok(Arrived { len, segment, .. }) => {
                    let count = if segment == 0 { 1 } else { len.div_ceil(segment) };
                    drops.lose(DropReason::Plaintext, Lost::Elsewhere(count as u64));
                }
                Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR)) => {
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(0)
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
