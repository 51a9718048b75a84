//! Receiving frames of any length: those longer than a batch's buffers are split into large frames that fit, as they come.
//!
//! Linux lets a veth's owner raise `gso_max_size` up to 512 KiB at any time, and tells nobody at the other end.

use super::rx::put_tag_back;
use crate::batch::{RxBatch, Slot};
use crate::drops::{Drops, Lost};
use crate::sys::packet::{self, Received};
use crate::vnet;
use std::io::{self, IoSliceMut};
use std::os::fd::OwnedFd;
use wire::segment::{Segments, remove_jumbo, split};
use wire::{DropReason, Gso, HEAD_MAX, Offload};

/// The longest frame (Linux `GSO_MAX_SIZE`) and its link header.
const LONGEST: usize = 8 * 65_535 + 64;
/// Most frames that one is split into.
const PIECES: usize = 9;

/// Room for what follows a frame's head.
pub(super) struct Long {
    body: Box<[u8]>,
    /// Frames that the socket gave, those that were refused among them.
    pub(super) received: u64,
}

impl Default for Long {
    fn default() -> Self {
        Self { body: vec![0; LONGEST].into_boxed_slice(), received: 0 }
    }
}

impl Long {
    /// As a queue's, one frame a call of the kernel.
    pub(super) fn rx(
        &mut self,
        socket: &OwnedFd,
        batch: &mut RxBatch,
        drops: &mut Drops,
    ) -> io::Result<usize> {
        let mut count = 0;
        while batch.free_with_bodies().len() > PIECES {
            let slots = batch.free_with_bodies();
            let taken = match self.read(socket, slots) {
                Ok(taken) => taken,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && count > 0 => break,
                Err(error) => return Err(error),
            };
            match taken {
                Ok(pieces) => {
                    batch.advance(pieces);
                    count += pieces;
                }
                Err(reason) => drops.lose(reason, Lost::slot(&slots[0])),
            }
        }
        Ok(count)
    }

    /// Reads one frame; how many slots have it now.
    fn read(
        &mut self,
        socket: &OwnedFd,
        slots: &mut [Slot],
    ) -> io::Result<Result<usize, DropReason>> {
        let mut header = [0; vnet::LEN];
        let mut received = [Received::default(); crate::batch::BODIES];
        let slot = &mut slots[0];
        let mut buffers = [[
            IoSliceMut::new(&mut header),
            IoSliceMut::new(slot.head.area()),
            IoSliceMut::new(&mut self.body),
        ]];
        packet::receive(socket, &mut buffers, &mut received)?;
        self.received += 1;
        Ok(self.take(slots, &header, &received[0]))
    }

    fn take(
        &self,
        slots: &mut [Slot],
        header: &[u8; vnet::LEN],
        received: &Received,
    ) -> Result<usize, DropReason> {
        let slot = &mut slots[0];
        let len = received.len.checked_sub(vnet::LEN).ok_or(DropReason::BadSource)?;
        let body = &self.body[..len.saturating_sub(HEAD_MAX)];
        slot.filled(len.min(HEAD_MAX + slot.buffer.len()));
        if received.truncated {
            return Err(DropReason::TooBig);
        }
        slot.offload = vnet::decode(header, len).map_err(|_| DropReason::BadSource)?;
        put_tag_back(slot, &received.aux)?;
        if body.len() <= slot.buffer.len() {
            slot.buffer[..body.len()].copy_from_slice(body);
            return Ok(1);
        }
        remove_jumbo(&mut slot.head, &mut slot.offload);
        let (head, offload) = (slot.head.clone(), slot.offload);
        let frame = (head.bytes(), body);
        let pieces = split(frame.0, frame.0.len() + body.len(), &offload);
        let pieces = pieces.map_err(|_| DropReason::TooBig)?;
        let slots = slots.get_mut(..pieces.count()).ok_or(DropReason::TooBig)?;
        slots.iter_mut().enumerate().for_each(|(at, slot)| put(slot, &pieces, at, frame, &offload));
        Ok(pieces.count())
    }
}

/// Makes a slot of the piece at `index`.
fn put(
    slot: &mut Slot,
    pieces: &Segments<'_>,
    index: usize,
    frame: (&[u8], &[u8]),
    offload: &Offload,
) {
    let (payload, headers) = (pieces.payload(index), pieces.header_len());
    let is_large = payload.len() > usize::from(offload.gso_size);
    let gso = if is_large { offload.gso } else { Gso::None };
    let gso_size = if is_large { offload.gso_size } else { 0 };
    slot.offload = Offload { checksum: Some(pieces.checksum()), gso, gso_size, ..*offload };
    let in_head = payload.len().min(HEAD_MAX - headers);
    let area = slot.head.area();
    pieces.write_headers(index, area);
    copy(frame, payload.start, &mut area[headers..headers + in_head]);
    copy(frame, payload.start + in_head, &mut slot.buffer[..payload.len() - in_head]);
    slot.filled(headers + payload.len());
}

/// Copies the frame's bytes from offset `at` on, across the seam of head and body.
fn copy((head, body): (&[u8], &[u8]), at: usize, into: &mut [u8]) {
    let in_head = head.get(at..).unwrap_or_default();
    let (first, rest) = into.split_at_mut(in_head.len().min(into.len()));
    first.copy_from_slice(&in_head[..first.len()]);
    let from = at + first.len() - head.len().min(at + first.len());
    rest.copy_from_slice(&body[from..from + rest.len()]);
}
