//! Tables of descriptors that a descriptor points to (VIRTIO 1.2 §2.7.5.3, §2.8.7).

use super::chains::{Building, CHAIN_MAX};
use super::{INDIRECT, NEXT, Queue};
use crate::fault::Fault;
use crate::memory::{GuestMemory, GuestSlice};

/// Bytes of a descriptor.
const DESCRIPTOR: usize = 16;

/// A table, found and measured.
#[derive(Clone, Copy)]
pub(super) struct Table<'m> {
    bytes: GuestSlice<'m>,
    count: usize,
}

impl<'m> Table<'m> {
    /// The table of a descriptor that says it has one. Its `WRITE` flag means nothing there.
    pub(super) fn new(
        memory: &'m GuestMemory,
        guest: u64,
        len: u32,
        allowed: bool,
    ) -> Result<Self, Fault> {
        let count = len as usize / DESCRIPTOR;
        if !allowed || count == 0 || !(len as usize).is_multiple_of(DESCRIPTOR) {
            return Err(Fault::BadIndirect(len));
        }
        let bytes = memory.slice(guest, len.into()).ok_or(Fault::Unmapped { guest, len })?;
        Ok(Self { bytes, count })
    }

    /// The descriptor at `index`, read once: address, length, and the two words that split and packed tables use differently.
    fn get(self, index: usize) -> (u64, u32, u16, u16) {
        let mut bytes = [0; DESCRIPTOR];
        self.bytes.split_at(index * DESCRIPTOR).1.read(&mut bytes);
        let [a0, a1, a2, a3, a4, a5, a6, a7, l0, l1, l2, l3, t0, t1, f0, f1] = bytes;
        (
            u64::from_le_bytes([a0, a1, a2, a3, a4, a5, a6, a7]),
            u32::from_le_bytes([l0, l1, l2, l3]),
            u16::from_le_bytes([t0, t1]),
            u16::from_le_bytes([f0, f1]),
        )
    }

    /// A split ring's table: a chain by `next`. It may be longer than the ring: §2.7.5.3.1 says no, Linux does it.
    pub(super) fn chained(self, queue: Queue, chain: &mut Building<'_, '_>) -> Result<(), Fault> {
        let mut index = 0;
        for _ in 0..CHAIN_MAX {
            if index >= self.count {
                return Err(Fault::BadIndex {
                    index: index as u16,
                    size: self.count.min(0xffff) as u16,
                });
            }
            let (guest, len, flags, next) = self.get(index);
            self.check(flags)?;
            queue.check(flags)?;
            chain.push(guest, len)?;
            if flags & NEXT == 0 {
                return Ok(());
            }
            index = usize::from(next);
        }
        Err(Fault::ChainTooLong(CHAIN_MAX))
    }

    /// A packed ring's table: all of it, in order.
    pub(super) fn listed(self, queue: Queue, chain: &mut Building<'_, '_>) -> Result<(), Fault> {
        if self.count > CHAIN_MAX as usize {
            return Err(Fault::ChainTooLong(CHAIN_MAX));
        }
        for index in 0..self.count {
            let (guest, len, _, flags) = self.get(index);
            self.check(flags)?;
            // DPDK's driver (22.11) leaves `WRITE` on the header of a frame that it sends. What is sent is only read here, whatever
            // the flag says; what is received must be writable.
            if queue == Queue::Receive {
                queue.check(flags)?;
            }
            chain.push(guest, len)?;
        }
        Ok(())
    }

    fn check(self, flags: u16) -> Result<(), Fault> {
        if flags & INDIRECT != 0 {
            Err(Fault::BadIndirect(self.bytes.len() as u32))
        } else {
            Ok(())
        }
    }
}
