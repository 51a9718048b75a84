//! Buffers of a ring, each a chain of slices.

use crate::fault::Fault;
use crate::memory::{GuestMemory, GuestSlice};
use crate::sys::{For, Held, prefetch_lines};
use std::sync::Arc;

/// Most descriptors of one chain. Chosen: QEMU's bound for every device (`VIRTQUEUE_MAX_SIZE`); Linux sends a frame in at most 19.
pub(super) const CHAIN_MAX: u32 = 1024;

/// Slices in all after which no further chain is begun: bounds the memory, and the time of a round.
const SLICES_MAX: usize = 1024;

/// Bytes in all after which no further chain is begun: a round of 64 KiB frames is over in about a tenth of a millisecond.
const BYTES_MAX: u64 = 1 << 20;

/// One buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Chain {
    /// The number by which it is given back.
    pub(super) id: u16,
    /// Places that it takes in a packed ring.
    pub(super) places: u16,
    /// Its first slice.
    first: u32,
    /// … and the one after its last.
    end: u32,
    /// Bytes in all.
    pub(super) len: u32,
}

/// Buffers taken from a ring, with what keeps their memory mapped.
///
/// A chain holds no more than its ring's driver said when it was read: addresses and lengths here are ours.
#[derive(Debug, Default)]
pub struct Chains {
    held: Held,
    list: Vec<Chain>,
    bytes: u64,
}

impl Chains {
    /// Chains.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Forgets them, and lets go of the memory.
    pub fn forget(&mut self) {
        self.list.clear();
        self.held.forget();
        self.bytes = 0;
    }

    /// Bytes of chain `index` that were not read yet.
    ///
    /// # Panics
    /// When there are fewer chains.
    #[inline]
    pub fn remaining(&self, index: usize) -> usize {
        self.list[index].len as usize
    }

    /// Moves a header and a head, one behind the other, to private memory: twice [`Chains::read`], and most often once.
    ///
    /// # Panics
    /// When there are fewer bytes or chains.
    #[inline]
    pub fn read_both(&mut self, index: usize, header: &mut [u8], head: &mut [u8]) {
        let chain = &mut self.list[index];
        let len = header.len() + head.len();
        match self.held.all().get(chain.first as usize) {
            Some(slice) if slice.len() > len && chain.len as usize > len => {
                let (first, rest) = slice.split_at(header.len());
                first.read(header);
                rest.read(head);
                chain.len -= len as u32;
                self.held.cut(chain.first as usize, len);
            }
            Some(slice) if slice.len() == len && chain.len as usize == len => {
                let (first, rest) = slice.split_at(header.len());
                first.read(header);
                rest.read(head);
                chain.len = 0;
                chain.first += 1;
            }
            _ => {
                self.read(index, header);
                self.read(index, head);
            }
        }
    }

    /// Moves the first `into.len()` bytes of chain `index` to private memory; what remains is the rest.
    ///
    /// # Panics
    /// When there are fewer bytes or chains.
    pub fn read(&mut self, index: usize, mut into: &mut [u8]) {
        let chain = &mut self.list[index];
        assert!(into.len() <= chain.len as usize, "read past a chain's end");
        if into.is_empty() {
            return;
        }
        chain.len -= into.len() as u32;
        loop {
            let slice = self.held.all()[chain.first as usize];
            if into.len() < slice.len() {
                slice.read(into);
                return self.held.cut(chain.first as usize, into.len());
            }
            let (part, rest) = into.split_at_mut(slice.len());
            slice.read(part);
            chain.first += 1;
            if rest.is_empty() {
                return;
            }
            into = rest;
        }
    }

    /// The slices of chain `index` that were not read yet.
    ///
    /// # Panics
    /// When there are fewer chains.
    #[inline]
    pub fn slices(&self, index: usize) -> &[GuestSlice<'_>] {
        let Chain { first, end, .. } = self.list[index];
        &self.held.all()[first as usize..end as usize]
    }

    /// Empties it for chains of `memory`.
    #[inline]
    pub(super) fn reset(&mut self, memory: &Arc<GuestMemory>) {
        self.list.clear();
        self.held.reset(memory);
        self.bytes = 0;
    }

    /// Whether a round has enough.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.held.all().len() >= SLICES_MAX || self.bytes >= BYTES_MAX
    }

    /// The chains.
    #[inline]
    pub(super) fn list(&self) -> &[Chain] {
        &self.list
    }

    /// Chain `index` if it is one slice: its number, places, and bytes.
    #[inline]
    pub(super) fn single(&self, index: usize) -> Option<(Chain, GuestSlice<'_>)> {
        let chain = *self.list.get(index)?;
        match self.held.all().get(chain.first as usize..chain.end as usize)? {
            [only] => Some((chain, *only)),
            _ => None,
        }
    }

    /// The slices of `count` chains from `index` on, as if they were one.
    #[inline]
    pub(super) fn run(&self, index: usize, count: usize) -> &[GuestSlice<'_>] {
        let (first, last) = (self.list[index], self.list[index + count - 1]);
        &self.held.all()[first.first as usize..last.end as usize]
    }

    /// Begins a chain.
    #[inline]
    pub(super) fn begin(&mut self, purpose: For) -> Building<'_> {
        let first = self.held.all().len() as u32;
        Building { chains: self, purpose, first, len: 0 }
    }

    /// Forgets the first `count` chains.
    pub(super) fn discard(&mut self, count: usize) {
        let Some(&next) = self.list.get(count) else {
            self.list.clear();
            self.held.clear();
            self.bytes = 0;
            return;
        };
        self.held.discard(next.first as usize);
        self.bytes -= self.list.drain(..count).map(|chain| u64::from(chain.len)).sum::<u64>();
        for chain in &mut self.list {
            chain.first -= next.first;
            chain.end -= next.first;
        }
    }
}

/// A chain that is being read.
pub(super) struct Building<'c> {
    chains: &'c mut Chains,
    purpose: For,
    first: u32,
    len: u64,
}

impl Building<'_> {
    /// Adds a buffer of the guest.
    ///
    /// # Errors
    /// It does not lie in one region.
    #[inline]
    pub(super) fn push(&mut self, guest: u64, len: u32) -> Result<(), Fault> {
        if len == 0 {
            return Ok(()); // allowed, and nothing
        }
        let slice = self.chains.held.push(guest, len).ok_or(Fault::Unmapped { guest, len })?;
        prefetch_lines(slice.as_ptr(), slice.len(), self.purpose);
        self.len += u64::from(len);
        Ok(())
    }

    /// Ends it. A length beyond `u32` is as good as that: no frame is so long.
    #[inline]
    pub(super) fn end(self, id: u16, places: u16) {
        let end = self.chains.held.all().len() as u32;
        let len = u32::try_from(self.len).unwrap_or(u32::MAX);
        self.chains.bytes += u64::from(len);
        self.chains.list.push(Chain { id, places, first: self.first, end, len });
    }
}
