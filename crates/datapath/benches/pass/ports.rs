//! Ports in memory: a source that always has a full batch, and a destination that takes all.
//!
//! What they cost themselves is printed beside the figures: a frame is made by copying 64 bytes and writing some fields, and sent by
//! copying as many.

use port::{BodyAt, Drops, RxBatch, RxQueue, Sent, TxFrame, TxQueue};
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use wire::Offload;
use wire::build::{Frame, Ipv4};

/// Bytes of every frame, FCS not counted.
pub const LEN: usize = 64;

/// Writes what tells flow `n` from the others into a frame.
pub trait Flow: FnMut(u64, &mut [u8; LEN]) + Send + 'static {}
impl<F: FnMut(u64, &mut [u8; LEN]) + Send + 'static> Flow for F {}

/// A source of `flows` flows in random order.
pub struct Source<F> {
    ready: OwnedFd,
    frame: [u8; LEN],
    flow: F,
    flows: u64,
    random: u64,
    batch: usize,
}

impl<F: Flow> Source<F> {
    /// A source of batches of `batch` frames.
    pub fn new(batch: usize, flows: u64, flow: F) -> io::Result<Self> {
        let frame = Frame::ethernet([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 4])
            .ipv4(Ipv4::default())
            .udp(1, 2)
            .payload(&[0; LEN - 42])
            .finish();
        let mut bytes = [0; LEN];
        bytes.copy_from_slice(&frame);
        let ready = eventfd(1, EventfdFlags::NONBLOCK)?;
        Ok(Self { ready, frame: bytes, flow, flows, random: 1, batch })
    }

    /// The number of the next flow: the high bits of a 64-bit linear congruential generator (Knuth's).
    fn next(&mut self) -> u64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.random >> 32) * self.flows) >> 32
    }
}

impl<F: Flow> RxQueue for Source<F> {
    fn rx(&mut self, batch: &mut RxBatch, _drops: &mut Drops) -> io::Result<usize> {
        for slot in &mut batch.free()[..self.batch] {
            let flow = self.next();
            if let Some(frame) = slot.head.area().first_chunk_mut() {
                *frame = self.frame;
                (self.flow)(flow, frame);
            }
            slot.head.set_len(LEN);
            slot.body = BodyAt::Nowhere;
            slot.offload = Offload::default();
        }
        batch.advance(self.batch);
        Ok(self.batch)
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }
}

/// A destination that reads every frame.
pub struct Sink(pub [u8; LEN]);

impl TxQueue for Sink {
    fn tx(&mut self, frames: &[TxFrame<'_>], _drops: &mut Drops) -> Sent {
        let mut bytes = 0;
        for frame in frames {
            if let Some(head) = frame.head.first_chunk() {
                self.0 = *head;
                std::hint::black_box(&self.0);
            }
            bytes += frame.len() as u64;
        }
        Sent { frames: frames.len() as u64, bytes }
    }
}
