//! One TAP file: `readv` and `writev`, a frame each.

use crate::batch::{BODIES, RxBatch, Slot};
use crate::gather::{gather, is_scattered, lacks_uso, reason};
use crate::plain::{self, Room, Scratch};
use crate::queue::{Drops, RxQueue, Sent, TxFrame, TxQueue, send_each};
use crate::sys::parts::{self, Part};
use crate::vnet;
use rustix::io::Errno;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use wire::{DropReason, PartialChecksum};

/// Receives.
pub(super) struct TapRx {
    file: Arc<OwnedFd>,
}

impl TapRx {
    pub(super) fn new(file: Arc<OwnedFd>) -> Self {
        Self { file }
    }

    /// Reads one frame; `Ok(None)` when there is none.
    fn read(&self, slot: &mut Slot) -> io::Result<Option<Result<(), DropReason>>> {
        let mut header = [0; vnet::LEN];
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
        let Some(len) = len.checked_sub(vnet::LEN) else {
            return Ok(Some(Err(DropReason::BadSource)));
        };
        let decoded = vnet::decode(&header, len).map_err(|_| DropReason::BadSource);
        Ok(Some(decoded.map(|offload| {
            slot.filled(len);
            slot.offload = offload;
        })))
    }
}

impl RxQueue for TapRx {
    fn rx(&mut self, batch: &mut RxBatch, drops: &mut Drops) -> io::Result<usize> {
        let mut received = 0;
        // The bound also counts refused frames, so that a flood of them cannot hold the worker here.
        for _ in 0..BODIES {
            let Some(slot) = batch.free_with_bodies().first_mut() else { break };
            match self.read(slot)? {
                None => break,
                Some(Ok(())) => {
                    batch.advance(1);
                    received += 1;
                }
                Some(Err(reason)) => drops.add(reason, 1),
            }
        }
        Ok(received)
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Sends.
pub(super) struct TapTx {
    file: Arc<OwnedFd>,
    scratch: Scratch,
}

impl TapTx {
    pub(super) fn new(file: Arc<OwnedFd>) -> Self {
        Self { file, scratch: Scratch::default() }
    }

    fn send(&mut self, frame: &TxFrame<'_>) -> Result<(), DropReason> {
        if plain::is_needed(frame) {
            return plain::send(frame, usize::MAX, self);
        }
        let header = vnet::encode(frame);
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
}

impl TxQueue for TapTx {
    fn tx(&mut self, frames: &[TxFrame<'_>], drops: &mut Drops) -> Sent {
        send_each(frames, drops, |frame| self.send(frame))
    }
}

/// Segments are written one by one; the kernel's queue takes what it takes.
impl Room for TapTx {
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
        parts::write(&self.file, &parts).map(drop).map_err(|error| reason(&error))
    }
}
