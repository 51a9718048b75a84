//! Slices of guest memory together with what keeps them mapped.

use super::slice::GuestSlice;
use crate::memory::GuestMemory;
use std::sync::Arc;

/// A list of slices of one [`GuestMemory`], which it keeps alive.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// `'static` is a lie told only in here: every way out shortens it to a borrow of `self`.
    slices: Vec<GuestSlice<'static>>,
    memory: Option<Arc<GuestMemory>>,
}

impl Held {
    /// Empties the list and makes it one of `memory`.
    #[inline]
    pub(crate) fn reset(&mut self, memory: &Arc<GuestMemory>) {
        self.slices.clear();
        if !self.memory.as_ref().is_some_and(|held| Arc::ptr_eq(held, memory)) {
            self.memory = Some(Arc::clone(memory));
        }
    }

    /// Empties the list and lets go of the memory.
    pub(crate) fn forget(&mut self) {
        self.slices.clear();
        self.memory = None;
    }

    /// Adds a slice of the memory; `None` when the range is not in one of its regions.
    #[inline]
    pub(crate) fn push(&mut self, guest: u64, len: u32) -> Option<GuestSlice<'_>> {
        let slice = self.memory.as_ref()?.slice(guest, u64::from(len))?;
        // SAFETY: the region stays mapped while `self.memory` is set; `reset` and `forget` empty the list before they change it.
        let slice = unsafe { GuestSlice::new(slice.as_ptr(), slice.len()) };
        self.slices.push(slice);
        Some(slice)
    }

    /// The slices.
    #[inline]
    pub(crate) fn all(&self) -> &[GuestSlice<'_>] {
        &self.slices
    }

    /// Cuts `count` bytes off the front of slice `index`.
    #[inline]
    pub(crate) fn cut(&mut self, index: usize, count: usize) {
        self.slices[index] = self.slices[index].split_at(count).1;
    }

    /// Empties the list.
    pub(crate) fn clear(&mut self) {
        self.slices.clear();
    }

    /// Forgets the first `count` slices.
    pub(crate) fn discard(&mut self, count: usize) {
        self.slices.drain(..count);
    }
}
