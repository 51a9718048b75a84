//! From frames to datagrams.

use super::path::Path;
use super::tell::Teller;
use crate::gather::{Parts, gather, is_scattered, reason};
use crate::plain::{self, Room};
use crate::queue::{Drops, Sent, TxFrame, TxQueue, send_each};
use crate::spec::Tunnel;
use crate::sys::datagram::{self, Address};
use crate::sys::parts::Part;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;
use wire::tunnel::{Dscp, Vxlan, entropy, outer_ds};
use wire::{DropReason, Gso, PartialChecksum, checksum, mss};

/// Datagrams in one call (Linux `UDP_MAX_SEGMENTS` was 64 until 6.9).
const RUN_MAX: usize = 64;
/// Bytes in one call: a UDP datagram's most, less an IPv6 header that some paths count.
const RUN_BYTES: usize = 65_535 - 8 - 40;

/// One worker's way out.
pub(super) struct VxlanTx {
    senders: Arc<[OwnedFd]>,
    to: Address,
    header: [u8; Vxlan::LEN],
    dscp: Dscp,
    /// Tells the senders of frames that are too long.
    teller: Teller,
    /// Whose MTU the offers of TCP are lowered to.
    clamp: Option<Arc<Path>>,
    /// Datagrams that leave together.
    run: Run,
}

/// Datagrams of one length, but for the last.
#[derive(Default)]
struct Run {
    bytes: Vec<u8>,
    /// Length of the first.
    segment: usize,
    count: usize,
    /// Whether one was shorter, so that none may follow.
    is_closed: bool,
    /// Which socket sends it, and under which DS field.
    flow: usize,
    ds: u8,
}

impl VxlanTx {
    pub(super) fn new(
        senders: Arc<[OwnedFd]>,
        tunnel: &Tunnel,
        teller: Teller,
        clamp: Option<Arc<Path>>,
    ) -> Self {
        let to = Address::new(SocketAddr::new(tunnel.remote, tunnel.port));
        let header = Vxlan { vni: tunnel.vni }.emit();
        Self { senders, to, header, dscp: tunnel.dscp, teller, clamp, run: Run::default() }
    }

    /// Sends a frame; one that the path does not take is answered.
    fn send(&mut self, frame: &TxFrame<'_>) -> Result<(), DropReason> {
        let sent = self.send_alone(frame);
        if sent == Err(DropReason::TooBig) {
            self.teller.tell(frame, &self.header, Instant::now());
        }
        sent
    }

    fn send_alone(&mut self, frame: &TxFrame<'_>) -> Result<(), DropReason> {
        let (flow, ds) = (self.flow(frame), outer_ds(frame.head, self.dscp));
        let is_simple = frame.offload.gso == Gso::None && frame.offload.checksum.is_none();
        let is_clamped = self.clamp.is_some() && mss::is_syn(frame.head);
        if is_simple && !is_clamped && !is_scattered(frame) {
            return self.send_parts(frame, flow, ds);
        }
        self.send_run(&[*frame], flow, ds)
    }

    /// Sends frames of one flow and DS field together, all or some of them, in order.
    fn send_run(&mut self, frames: &[TxFrame<'_>], flow: usize, ds: u8) -> Result<(), DropReason> {
        (self.run.flow, self.run.ds) = (flow, ds);
        let gathered = frames.iter().try_for_each(|frame| plain::send(frame, usize::MAX, self));
        let sent = gathered.and_then(|()| self.flush());
        // What is left of a frame that cannot be sent must not leave with the next one.
        self.run.clear();
        sent
    }

    fn flow(&self, frame: &TxFrame<'_>) -> usize {
        entropy(frame.head) as usize % self.senders.len()
    }

    /// Sends a frame that needs nothing done, from where it lies.
    fn send_parts(&mut self, frame: &TxFrame<'_>, flow: usize, ds: u8) -> Result<(), DropReason> {
        let parts: Parts<'_> = gather(&self.header, frame);
        let sent = datagram::send(&self.senders[flow], &self.to, &parts, None, ds);
        sent.map_err(|error| reason(&error))
    }

    /// Sends the run.
    fn flush(&mut self) -> Result<(), DropReason> {
        let run = &mut self.run;
        if run.count == 0 {
            return Ok(());
        }
        let segment = (run.count > 1).then_some(run.segment as u16);
        let parts = [Part::private(&run.bytes)];
        let sent = datagram::send(&self.senders[run.flow], &self.to, &parts, segment, run.ds);
        run.clear();
        sent.map_err(|error| if segment.is_some() { reason_of_run(&error) } else { reason(&error) })
    }
}

/// Why the kernel refused a run: Linux before 6.14 says `EINVAL` where one of its datagrams is too long.
fn reason_of_run(error: &io::Error) -> DropReason {
    let is_too_big = error.raw_os_error() == Some(libc::EINVAL);
    if is_too_big { DropReason::TooBig } else { reason(error) }
}

impl Run {
    /// Forgets its datagrams.
    fn clear(&mut self) {
        self.bytes.clear();
        (self.count, self.is_closed) = (0, false);
    }
}

impl TxQueue for VxlanTx {
    fn tx(&mut self, frames: &[TxFrame<'_>], drops: &mut Drops) -> Sent {
        send_each(frames, drops, |frame| self.send(frame))
    }
}

/// Segments gather in a run.
impl Room for VxlanTx {
    fn fits(&mut self, _: usize) -> bool {
        true
    }

    fn put(
        &mut self,
        len: usize,
        checksum: Option<PartialChecksum>,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), DropReason> {
        let whole = Vxlan::LEN + len;
        let run = &self.run;
        let is_full = run.is_closed || run.count == RUN_MAX || run.bytes.len() + whole > RUN_BYTES;
        if run.count > 0 && (is_full || whole > run.segment) {
            self.flush()?;
        }
        let run = &mut self.run;
        if run.count == 0 {
            run.segment = whole;
        }
        run.is_closed = whole < run.segment;
        run.count += 1;
        let at = run.bytes.len();
        run.bytes.resize(at + whole, 0);
        let (header, frame) = run.bytes[at..].split_at_mut(Vxlan::LEN);
        header.copy_from_slice(&self.header);
        fill(frame);
        if let Some(path) = &self.clamp {
            path.clamp(frame, checksum.is_some());
        }
        match checksum {
            Some(partial) => checksum::complete(frame, partial).map_err(|_| DropReason::BadOffload),
            None => Ok(()),
        }
    }
}
