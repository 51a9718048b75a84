//! Where rings and buffers are in a guest's memory.

use super::frontend::{HEADER, Shape};
use super::ring::Areas;
use super::sys::{LINE, Memory};
use anyhow::{Context, Result};
use std::sync::Arc;

/// Room before a frame, so that the frame begins on a cache line as DPDK's do; the header ends there.
const HEADROOM: usize = LINE;

/// The buffers of one ring: `slots` of them, `stride` bytes apart, frame `HEADROOM` bytes into each.
#[derive(Clone, Copy, Debug)]
pub struct Buffers {
    /// Byte offset of the first.
    first: usize,
    /// Bytes from one to the next: an odd number of lines, so that they do not all fall into the same few sets of the caches.
    pub stride: usize,
}

impl Buffers {
    fn at(offset: usize, frame: usize) -> Self {
        let lines = (HEADROOM + frame).div_ceil(LINE);
        Self { first: offset.next_multiple_of(4096), stride: (lines | 1) * LINE }
    }

    fn end(self, slots: u16) -> usize {
        self.first + usize::from(slots) * self.stride
    }

    /// Byte offset of a slot's frame.
    #[inline]
    pub fn frame(self, slot: u16) -> usize {
        self.first + usize::from(slot) * self.stride + HEADROOM
    }

    /// Byte offset of a slot's virtio header.
    pub fn header(self, slot: u16) -> usize {
        self.frame(slot) - HEADER
    }
}

/// Where things are in a guest's memory: receive, transmit.
pub(super) struct Places {
    pub areas: [Areas; 2],
    pub buffers: [Buffers; 2],
    end: usize,
}

impl Places {
    pub fn of(shape: &Shape) -> Self {
        let (receive, next) = Areas::at(0, shape.slots);
        let (transmit, next) = Areas::at(next, shape.slots);
        let into = Buffers::at(next, shape.buffer);
        let out = Buffers::at(into.end(shape.slots), shape.frame);
        Self { areas: [receive, transmit], buffers: [into, out], end: out.end(shape.slots) }
    }

    pub fn memory(&self, shape: &Shape) -> Result<Arc<Memory>> {
        Memory::new(self.end, shape.pages)
            .context("making the guest's memory failed; huge pages need vm.nr_hugepages")
    }
}
