//! Sending through a packet socket, many frames in one call.

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
use std::os::fd::OwnedFd;
use wire::{DropReason, PartialChecksum};

/// One sending socket.
pub(crate) struct PacketTx {
    socket: OwnedFd,
    scratch: Scratch,
}

impl PacketTx {
    pub(super) fn new(socket: OwnedFd) -> Self {
        Self { socket, scratch: Scratch::default() }
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
        if plain::is_needed(frame) {
            return plain::send(frame, usize::MAX, self);
        }
        let header = vnet::encode(frame);
        let parts = [Part::private(&header), Part::private(self.scratch.join(frame))];
        match packet::send(&self.socket, &[&parts]) {
            Ok(_) => Ok(()),
            Err(error) => self.retry(frame, &error),
        }
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

    /// A frame that was refused: cut it here if that is what the kernel lacks.
    fn retry(&mut self, frame: &TxFrame<'_>, error: &io::Error) -> Result<(), DropReason> {
        if lacks_uso(error, frame) {
            plain::send(frame, usize::MAX, self)
        } else {
            Err(reason(error))
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

/// Segments are sent one by one; the kernel's queue takes what it takes.
impl Room for PacketTx {
    fn fits(&mut self, _: usize) -> bool {
        true
    }

    fn put(
        &mut self,
        len: usize,
        checksum: Option<PartialChecksum>,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), DropReason> {
        let (header, bytes) = self.scratch.write(len, checksum, fill)?;
        let parts = [Part::private(&header), Part::private(bytes)];
        packet::send(&self.socket, &[&parts]).map(drop).map_err(|error| reason(&error))
    }
}
