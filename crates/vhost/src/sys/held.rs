//! Buffers in guest memory together with what keeps them mapped.

use super::prefetch::{For, prefetch_lines};
use super::processor::Copier;
use super::slice::GuestSlice;
use crate::memory::{GuestMemory, Near};
use std::ops::Range;
use std::sync::Arc;

/// A list of buffers of one [`GuestMemory`], which it keeps alive; `M` is what its user notes of each.
///
/// Most buffers are one slice, which stands in the list itself. The slices of the others stand in a second list, to which their marks point.
#[derive(Debug)]
pub(crate) struct Held<M> {
    /// `'static` is a lie told only in here: every way out shortens it to a borrow of `self`.
    buffers: Vec<Buffer<'static, M>>,
    parts: Vec<GuestSlice<'static>>,
    memory: Option<Arc<GuestMemory>>,
}

/// A buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffer<'m, M> {
    /// Its only slice; empty if there are several.
    pub(crate) slice: GuestSlice<'m>,
    pub(crate) mark: M,
}

impl<M> Default for Held<M> {
    fn default() -> Self {
        Self { buffers: Vec::new(), parts: Vec::new(), memory: None }
    }
}

impl<M> Held<M> {
    /// Empties the list and makes it one of `memory`.
    #[inline]
    pub(crate) fn reset(&mut self, memory: &Arc<GuestMemory>) {
        self.buffers.clear();
        self.parts.clear();
        if !self.memory.as_ref().is_some_and(|held| Arc::ptr_eq(held, memory)) {
            self.memory = Some(Arc::clone(memory));
        }
    }

    /// Empties the list and lets go of the memory.
    pub(crate) fn forget(&mut self) {
        self.clear();
        self.memory = None;
    }

    /// Empties the list.
    pub(crate) fn clear(&mut self) {
        self.buffers.clear();
        self.parts.clear();
    }

    /// The buffers.
    #[inline]
    pub(crate) fn buffers(&self) -> &[Buffer<'_, M>] {
        &self.buffers
    }

    /// The slices of buffers that have several.
    #[inline]
    pub(crate) fn parts(&self) -> &[GuestSlice<'_>] {
        &self.parts
    }

    /// What was noted of a buffer.
    #[inline]
    pub(crate) fn mark_mut(&mut self, index: usize) -> &mut M {
        &mut self.buffers[index].mark
    }

    /// Shows the only slices of the buffers from `from` on, one after the other with what was noted, and cuts as many bytes off the front of each as
    /// `used` says, up to the first of which it says nothing. Returns how many.
    #[inline(always)] // one loop with `used`
    pub(crate) fn cut_each(
        &mut self,
        from: usize,
        mut used: impl FnMut(GuestSlice<'_>, &M) -> Option<usize>,
    ) -> usize {
        let buffers = &mut self.buffers[from..];
        for (count, Buffer { slice, mark }) in buffers.iter_mut().enumerate() {
            let Some(bytes) = used(*slice, mark) else { return count };
            *slice = slice.split_at(bytes).1;
        }
        buffers.len()
    }

    /// Cuts `count` bytes off the front of a buffer's only slice.
    #[inline]
    pub(crate) fn cut(&mut self, index: usize, count: usize) {
        let slice = &mut self.buffers[index].slice;
        *slice = slice.split_at(count).1;
    }

    /// … of part `index`.
    pub(crate) fn cut_part(&mut self, index: usize, count: usize) {
        self.parts[index] = self.parts[index].split_at(count).1;
    }

    /// Forgets the first buffers and the first parts.
    pub(crate) fn discard(&mut self, buffers: usize, parts: usize) {
        self.buffers.drain(..buffers);
        self.parts.drain(..parts);
    }

    /// To add buffers of the memory; `None` without one.
    #[inline]
    pub(crate) fn adder(&mut self) -> Option<Adder<'_, M>> {
        let memory = &**self.memory.as_ref()?;
        Some(Adder {
            buffers: &mut self.buffers,
            parts: &mut self.parts,
            near: memory.near(),
            memory,
        })
    }
}

/// What is likely to be done with buffers that are read from now on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expected {
    /// The bytes of each that will be touched: others are not asked for ahead.
    pub(crate) bytes: Range<usize>,
    /// Whether heads were taken of the last ones: they will be of the next, most often.
    pub(crate) are_looked_at: bool,
}

/// Adds to a list.
pub(crate) struct Adder<'h, M> {
    buffers: &'h mut Vec<Buffer<'static, M>>,
    parts: &'h mut Vec<GuestSlice<'static>>,
    near: Near<'h>,
    memory: &'h GuestMemory,
}

impl<M> Adder<'_, M> {
    /// Adds buffers of one slice of the largest region each, and asks for the bytes `expected` of what is read, for all up to its end of what is written; up to the first that does not lie there, and at
    /// most `max` buffers or `bytes` bytes, the last of them whole. Returns how many there are now more, and their bytes.
    #[inline(always)] // one loop with `offers`
    pub(crate) fn push_run(
        &mut self,
        offers: impl Iterator<Item = (u64, u32, M)>,
        max: usize,
        limit: u64,
        expected: &Expected,
        purpose: For,
    ) -> (usize, u64) {
        self.buffers.reserve(max);
        let copier = Copier::here();
        let Expected { bytes: ahead, are_looked_at } = expected;
        let (mut count, mut bytes) = (0, 0);
        let room = &mut self.buffers.spare_capacity_mut()[..max];
        for ((guest, len, mark), place) in offers.zip(room) {
            let Some(slice) = self.near.slice(guest, len.into()) else { break };
            // What is read is as long as its frame; what is written, as its buffer.
            let (touched, most) = match purpose {
                For::Reading => {
                    let touched = slice.split_at(ahead.start.min(slice.len())).1;
                    (touched, copier.asked(touched.len(), *are_looked_at))
                }
                For::Writing | For::Reserving => (slice, slice.len()),
            };
            prefetch_lines(touched.as_ptr(), most.min(ahead.end), purpose);
            place.write(Buffer { slice: lasting(slice), mark });
            (count, bytes) = (count + 1, bytes + u64::from(len));
            if bytes >= limit {
                break;
            }
        }
        // SAFETY: the loop wrote the next `count` places.
        unsafe { self.buffers.set_len(self.buffers.len() + count) };
        (count, bytes)
    }

    /// Adds a part; `None` when the range is not in one of the memory's regions.
    pub(crate) fn push_part(&mut self, guest: u64, len: u32) -> Option<GuestSlice<'_>> {
        let slice = lasting(self.memory.slice(guest, len.into())?);
        self.parts.push(slice);
        Some(slice)
    }

    /// Adds a buffer of the parts that `mark` names.
    pub(crate) fn push(&mut self, mark: M) {
        self.buffers.push(Buffer { slice: GuestSlice::empty(), mark });
    }

    /// Adds a buffer of which the last part is the only slice.
    pub(crate) fn push_only(&mut self, mark: M) {
        let slice = self.parts.pop().expect("it was added before");
        self.buffers.push(Buffer { slice, mark });
    }

    /// Parts in the list.
    #[inline]
    pub(crate) fn parts(&self) -> usize {
        self.parts.len()
    }
}

/// A slice for a list.
#[inline]
fn lasting(slice: GuestSlice<'_>) -> GuestSlice<'static> {
    // SAFETY: it is of the list's memory, whose regions stay mapped while the list has it; `reset` and `forget` empty the list before they
    // change it.
    unsafe { GuestSlice::new(slice.as_ptr(), slice.len()) }
}
