//! Sending through a packet socket, many frames in one call.

use super::told::ToldTx;
use crate::batch::BODIES;
use crate::drops::Drops;
use crate::frame::{Sent, TxFrame};
use crate::gather::{Parts, gather, is_scattered, lacks_uso, reason};
use crate::plain::{self, Room, Scratch};
use crate::queue::{TxQueue, send_each};
use crate::sys::packet;
use crate::sys::parts::Part;
use crate::vnet;
use arrayvec::ArrayVec;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use wire::{DropReason, Gso, Offload};

/// One sending socket.
pub(crate) struct PacketTx {
    socket: OwnedFd,
    scratch: Scratch,
    /// Segments that leave together.
    run: Run,
    /// The kernel cuts no UDP (before 6.2): found out when it refused some.
    lacks_uso: bool,
    /// For frames of which the socket cannot say all, if the kernel has a way.
    told: Option<ToldTx>,
}

/// Plain frames, one behind the other.
#[derive(Default)]
struct Run {
    bytes: Vec<u8>,
    pieces: ArrayVec<([u8; vnet::LEN], Range<usize>), BODIES>,
}

impl Run {
    /// Sends them in order, up to one that is refused: why, and its header.
    fn send(&self, socket: &OwnedFd) -> Result<(), (io::Error, [u8; vnet::LEN])> {
        let frame = |at: &Range<usize>| Part::private(&self.bytes[at.clone()]);
        let parts: ArrayVec<[Part<'_>; 2], BODIES> =
            self.pieces.iter().map(|(header, at)| [Part::private(header), frame(at)]).collect();
        let messages: ArrayVec<&[Part<'_>], BODIES> = parts.iter().map(|two| &two[..]).collect();
        let mut next = 0;
        while next < messages.len() {
            next += packet::send(socket, &messages[next..])
                .map_err(|error| (error, self.pieces[next].0))?;
        }
        Ok(())
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.pieces.clear();
    }
}

impl PacketTx {
    pub(super) fn new(socket: OwnedFd, told: Option<ToldTx>) -> Self {
        let (scratch, run) = (Scratch::default(), Run::default());
        Self { socket, scratch, run, lacks_uso: false, told }
    }

    /// The socket, for who asks whether all was sent.
    pub(super) fn socket(&self) -> io::Result<OwnedFd> {
        self.socket.try_clone()
    }

    /// Sends at most [`BODIES`] frames, in order.
    fn send(&mut self, frames: &[TxFrame<'_>], drops: &mut Drops, sent: &mut Sent) {
        for run in frames.chunk_by(|one, next| goes_alone(one) == goes_alone(next)) {
            if run.first().is_some_and(goes_alone) {
                sent.add(send_each(run, drops, |frame| self.send_alone(frame)));
            } else {
                self.send_as_they_are(run, drops, sent);
            }
        }
    }

    /// Sends a frame that needs work first.
    fn send_alone(&mut self, frame: &TxFrame<'_>) -> Result<(), DropReason> {
        if frame.offload.gso != Gso::None
            && let Some(told) = &mut self.told
            && told.send_in_tunnel(frame)
        {
            return Ok(());
        }
        if plain::is_needed(frame) {
            return self.send_plain(frame);
        }
        let header = vnet::encode(frame);
        let parts = [Part::private(&header), Part::private(self.scratch.join(frame))];
        match packet::send(&self.socket, &[&parts]) {
            Ok(_) => Ok(()),
            Err(error) => self.retry(frame, &error),
        }
    }

    /// Sends what a frame is cut into. Its segments may be refused for being one large UDP frame; then they go as they are, and so do all later.
    fn send_plain(&mut self, frame: &TxFrame<'_>) -> Result<(), DropReason> {
        let took_uso = !self.lacks_uso;
        let gathered = plain::send(frame, usize::MAX, self);
        let sent = gathered.and_then(|()| self.flush());
        // What is left of a frame that cannot be sent must not leave with the next one.
        self.run.clear();
        if took_uso && self.lacks_uso { self.send_plain(frame) } else { sent }
    }

    /// Sends the run.
    fn flush(&mut self) -> Result<(), DropReason> {
        let sent = self.run.send(&self.socket);
        self.run.clear();
        sent.map_err(|(error, header)| {
            let is_train = vnet::is_udp(&header);
            self.lacks_uso |= is_train && error.raw_os_error() == Some(libc::EINVAL);
            reason(&error)
        })
    }

    /// Sends frames with their state in virtio-net headers.
    fn send_as_they_are(&mut self, frames: &[TxFrame<'_>], drops: &mut Drops, sent: &mut Sent) {
        let headers: ArrayVec<[u8; vnet::LEN], BODIES> = frames.iter().map(vnet::encode).collect();
        let mut queued: ArrayVec<(&TxFrame<'_>, Parts<'_>), BODIES> = ArrayVec::new();
        for (frame, header) in frames.iter().zip(&headers) {
            queued.push((frame, gather(header, frame)));
        }
        let messages: ArrayVec<&[Part<'_>], BODIES> =
            queued.iter().map(|(_, parts)| &parts[..]).collect();
        let mut next = 0;
        while next < queued.len() {
            match packet::send(&self.socket, &messages[next..]) {
                Ok(count) => {
                    queued[next..next + count]
                        .iter()
                        .for_each(|(frame, _)| sent.count(frame.len()));
                    next += count;
                }
                Err(error) => {
                    match self.retry(queued[next].0, &error) {
                        Ok(()) => sent.count(queued[next].0.len()),
                        Err(reason) => drops.lose(reason, queued[next].0),
                    }
                    next += 1;
                }
            }
        }
    }

    /// A frame that was refused: cut it here if that is what the kernel lacks, or leave its tag beside it if that makes it too long.
    fn retry(&mut self, frame: &TxFrame<'_>, error: &io::Error) -> Result<(), DropReason> {
        match reason(error) {
            _ if lacks_uso(error, frame) => self.send_plain(frame),
            DropReason::TooBig if frame.offload.gso == Gso::None => {
                self.told.as_mut().map_or(Err(DropReason::TooBig), |told| told.send_tagged(frame))
            }
            reason => Err(reason),
        }
    }
}

impl TxQueue for PacketTx {
    fn tx(&mut self, frames: &[TxFrame<'_>], drops: &mut Drops) -> Sent {
        let mut sent = Sent::default();
        for chunk in frames.chunks(BODIES) {
            self.send(chunk, drops, &mut sent);
        }
        sent
    }
}

/// Whether a frame cannot be written as it lies, together with others.
fn goes_alone(frame: &TxFrame<'_>) -> bool {
    plain::is_needed(frame) || is_scattered(frame)
}

/// Segments gather in a run.
impl Room for PacketTx {
    fn fits(&mut self, _: usize) -> bool {
        true
    }

    fn takes_trains(&self) -> bool {
        !self.lacks_uso
    }

    fn put(
        &mut self,
        len: usize,
        offload: Offload,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), DropReason> {
        if self.run.pieces.is_full() {
            self.flush()?;
        }
        let Run { bytes, pieces } = &mut self.run;
        let start = bytes.len();
        bytes.resize(start + len, 0);
        let frame = &mut bytes[start..];
        let checksum = plain::write(frame, offload.checksum, fill)?;
        pieces.push((vnet::header(&Offload { checksum, ..offload }, frame), start..start + len));
        Ok(())
    }
}
