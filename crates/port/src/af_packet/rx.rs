//! Receiving from a packet socket, and putting back the VLAN tag that the kernel took out.
//!
//! A frame longer than a batch's buffers ("BIG TCP") is lost, once: from then on there is room for any ([`Long`]).

use super::long::Long;
use crate::batch::{BODIES, RxBatch, Slot};
use crate::drops::{Drops, Lost};
use crate::merge::Merger;
use crate::queue::RxQueue;
use crate::sys::packet::{self, AuxData, Received};
use crate::vnet;
use arrayvec::ArrayVec;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use wire::{DropReason, HEAD_MAX, PartialChecksum};
use xdp::offload::{RungPort as _, TcPort};

/// The tag was taken out; its type is in `vlan_tpid`.
const VLAN_VALID: u32 = 0x10;
const VLAN_TPID_VALID: u32 = 0x40;
const TPID_8021Q: u16 = 0x8100;
/// Destination and source address: the tag goes behind them.
const ADDRESSES: usize = 12;
const TAG: usize = 4;
/// Rounds between two looks at the kernel's drop counter (a system call): chosen so that it costs nothing.
const ROUNDS_PER_LOOK: u32 = 4096;

/// One receiving socket.
pub(super) struct PacketRx {
    socket: OwnedFd,
    rounds: u32,
    /// Since the first frame that was too long.
    long: Option<Long>,
    merger: Merger,
    /// What takes flows past the worker.
    past: Option<Arc<TcPort>>,
    /// Frames that were received, and frames that the socket lost, since it was opened.
    received: u64,
    lost: u64,
}

impl PacketRx {
    pub(super) fn new(socket: OwnedFd, past: Option<Arc<TcPort>>) -> Self {
        let merger = Merger::default();
        Self { socket, rounds: 0, long: None, merger, past, received: 0, lost: 0 }
    }

    fn count_kernel_drops(&mut self, drops: &mut Drops) -> io::Result<()> {
        self.rounds = self.rounds.wrapping_add(1);
        if self.rounds.is_multiple_of(ROUNDS_PER_LOOK) {
            self.take_drops(drops)?;
        }
        Ok(())
    }

    fn take_drops(&mut self, drops: &mut Drops) -> io::Result<u64> {
        let full = packet::take_drops(&self.socket)?.into();
        drops.lose(DropReason::RxFull, Lost::Elsewhere(full));
        self.lost += full;
        Ok(self.lost)
    }

    /// Nothing waits, and what came before was sent: flows that wait for that may go past the worker.
    #[inline]
    fn quiet(&mut self, drops: &mut Drops) -> io::Result<()> {
        match &self.past {
            Some(past) if past.is_asked() => {
                let past = past.clone();
                past.quiet(self.received, || self.take_drops(drops))
            }
            _ => Ok(()),
        }
    }

    /// Nothing more comes now, for this reason.
    fn ends(&mut self, error: io::Error, drops: &mut Drops) -> io::Result<usize> {
        self.quiet(drops)?;
        self.down_or_gone(error)
    }

    /// "Interface down" is told once; the socket wakes up again with the interface, unless that is gone.
    fn down_or_gone(&self, error: io::Error) -> io::Result<usize> {
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EINTR) => Ok(0),
            Some(libc::ENETDOWN) if packet::is_bound(&self.socket)? => Ok(0),
            Some(libc::ENETDOWN) => Err(io::Error::from_raw_os_error(libc::ENODEV)),
            _ => Err(error),
        }
    }
}

impl RxQueue for PacketRx {
    fn rx(&mut self, batch: &mut RxBatch, drops: &mut Drops) -> io::Result<usize> {
        self.count_kernel_drops(drops)?;
        if let Some(long) = &mut self.long {
            let taken = long.rx(&self.socket, batch, drops);
            self.received += std::mem::take(&mut long.received);
            return taken.or_else(|error| self.ends(error, drops));
        }
        let slots = batch.free_with_bodies();
        let mut headers = [[0; vnet::LEN]; BODIES];
        let mut received = [Received::default(); BODIES];
        let buffers = slots.iter_mut().zip(&mut headers).map(|(slot, header)| {
            [
                IoSliceMut::new(header),
                IoSliceMut::new(slot.head.area()),
                IoSliceMut::new(&mut slot.buffer),
            ]
        });
        let mut buffers: ArrayVec<_, BODIES> = buffers.collect();
        let count = match packet::receive(&self.socket, &mut buffers, &mut received) {
            Ok(count) => count,
            Err(error) => {
                drop(buffers);
                return self.ends(error, drops);
            }
        };
        drop(buffers);
        if received[..count].iter().any(|received| received.truncated) {
            self.long = Some(Long::default());
        }
        self.received += count as u64;
        let mut kept = 0;
        for index in 0..count {
            match take(&mut slots[index], &headers[index], &received[index]) {
                Ok(()) => {
                    slots.swap(kept, index);
                    kept += 1;
                }
                Err(reason) => drops.lose(reason, Lost::slot(&slots[index])),
            }
        }
        let merged = self.merger.merge(&mut slots[..kept]);
        batch.advance(merged);
        Ok(merged)
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Makes a slot of what was received into it; on refusal the slot has the bytes that came.
fn take(slot: &mut Slot, header: &[u8; vnet::LEN], received: &Received) -> Result<(), DropReason> {
    let len = received.len.saturating_sub(vnet::LEN);
    slot.filled(len.min(HEAD_MAX + slot.buffer.len()));
    if received.truncated {
        return Err(DropReason::TooBig);
    }
    if received.len < vnet::LEN {
        return Err(DropReason::BadSource);
    }
    slot.offload = vnet::decode(header, len).map_err(|_| DropReason::BadSource)?;
    put_tag_back(slot, &received.aux)
}

/// The tag that the kernel took out, as it stood in the frame.
pub(super) fn taken_tag(aux: &AuxData) -> Option<[u8; TAG]> {
    let tpid = if aux.status & VLAN_TPID_VALID != 0 { aux.vlan_tpid } else { TPID_8021Q };
    let ([a, b], [c, d]) = (tpid.to_be_bytes(), aux.vlan_tci.to_be_bytes());
    (aux.status & VLAN_VALID != 0).then_some([a, b, c, d])
}

pub(super) fn put_tag_back(slot: &mut Slot, aux: &AuxData) -> Result<(), DropReason> {
    let Some(tag) = taken_tag(aux) else { return Ok(()) };
    slot.head.open(ADDRESSES, TAG).map_err(|_| DropReason::Runt)?.copy_from_slice(&tag);
    if let Some(PartialChecksum { start, .. }) = &mut slot.offload.checksum {
        *start += TAG as u16;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_comes_back_before_the_type_and_moves_the_checksum() {
        let mut batch = RxBatch::default();
        let slot = &mut batch.free()[0];
        let frame: [u8; 64] = std::array::from_fn(|at| at as u8);
        slot.head.area()[..64].copy_from_slice(&frame);
        let mut header = [0; vnet::LEN];
        header[0] = 1;
        header[6..8].copy_from_slice(&34_u16.to_ne_bytes());
        header[8..10].copy_from_slice(&16_u16.to_ne_bytes());
        let aux = AuxData {
            status: VLAN_VALID | VLAN_TPID_VALID,
            vlan_tci: 0x2064,
            vlan_tpid: 0x88a8,
            ..AuxData::default()
        };
        let received = Received { len: 64 + vnet::LEN, truncated: false, aux };
        take(slot, &header, &received).unwrap();
        assert_eq!(&slot.head.bytes()[10..18], &[10, 11, 0x88, 0xa8, 0x20, 0x64, 12, 13]);
        assert_eq!(slot.frame_len(), 68);
        assert_eq!(slot.offload.checksum, Some(PartialChecksum { start: 38, offset: 16 }));
    }
}
