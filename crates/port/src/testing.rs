//! A port in memory: what a test puts in, the switch receives; what the switch sends, the test takes out.
//!
//! For tests of the crates above. Bodies are handed out as [`BodyAt::Port`], like a UMEM's or a guest's, and end with `release`, so a
//! user that keeps a body too long is caught.

use crate::batch::{BodyAt, RxBatch};
pub use crate::vxlan::Decapsulator;

use crate::drops::Drops;
use crate::frame::{Body, Sent, TxFrame};
use crate::queue::{RxQueue, TxQueue};
use rustix::event::{EventfdFlags, eventfd};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wire::{DropReason, HEAD_MAX, Offload};

/// A frame with its state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    /// All bytes.
    pub bytes: Vec<u8>,
    /// Checksum and segmentation state.
    pub offload: Offload,
}

impl From<Vec<u8>> for Frame {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes, offload: Offload::default() }
    }
}

/// The test's end. Clones share the port.
#[derive(Clone)]
pub struct Memory {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    ready: OwnedFd,
}

#[derive(Default)]
struct State {
    incoming: VecDeque<Frame>,
    outgoing: Vec<Frame>,
    /// Frames that fit before tx is "full".
    room: Option<usize>,
    broken: bool,
}

impl Memory {
    /// An empty port.
    ///
    /// # Errors
    /// No file descriptor is left.
    pub fn new() -> io::Result<Self> {
        let ready = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { shared: Arc::new(Shared { state: Mutex::default(), ready }) })
    }

    /// A receiving half.
    pub fn rx(&self) -> Box<dyn RxQueue> {
        Box::new(MemoryRx { shared: Arc::clone(&self.shared), held: Vec::new() })
    }

    /// A sending half.
    pub fn tx(&self) -> Box<dyn TxQueue> {
        Box::new(MemoryTx { shared: Arc::clone(&self.shared) })
    }

    /// Puts a frame in for the switch to receive, and wakes it.
    pub fn put(&self, frame: impl Into<Frame>) {
        self.state().incoming.push_back(frame.into());
        // Only a count of 2^64 - 1 is refused.
        let _ = rustix::io::write(&self.shared.ready, &1_u64.to_ne_bytes());
    }

    /// Takes out what the switch has sent since the last call.
    pub fn take(&self) -> Vec<Frame> {
        std::mem::take(&mut self.state().outgoing)
    }

    /// Lets only `count` more frames be sent; the others are dropped as `tx_full`.
    pub fn limit(&self, count: usize) {
        self.state().room = Some(count);
    }

    /// Makes the next `rx` fail, as if the interface were gone.
    pub fn break_off(&self) {
        self.state().broken = true;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.shared)
    }
}

/// A test that panicked while it held the lock left whole frames behind.
fn lock(shared: &Shared) -> MutexGuard<'_, State> {
    shared.state.lock().unwrap_or_else(PoisonError::into_inner)
}

struct MemoryRx {
    shared: Arc<Shared>,
    held: Vec<Frame>,
}

impl RxQueue for MemoryRx {
    fn rx(&mut self, batch: &mut RxBatch, _: &mut Drops) -> io::Result<usize> {
        self.release();
        let _ = rustix::io::read(&self.shared.ready, &mut [0_u8; 8]);
        let mut state = lock(&self.shared);
        if state.broken {
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        }
        let count = batch.free().len().min(state.incoming.len());
        for (slot, frame) in batch.free().iter_mut().zip(state.incoming.drain(..count)) {
            let head = frame.bytes.len().min(HEAD_MAX);
            slot.head.area()[..head].copy_from_slice(&frame.bytes[..head]);
            slot.head.set_len(head);
            slot.offload = frame.offload;
            slot.body = match frame.bytes.len() - head {
                0 => BodyAt::Nowhere,
                len => BodyAt::Port { at: self.held.len() as u64, len: len as u32 },
            };
            self.held.push(frame);
        }
        batch.advance(count);
        if !state.incoming.is_empty() {
            let _ = rustix::io::write(&self.shared.ready, &1_u64.to_ne_bytes());
        }
        Ok(count)
    }

    fn body(&self, at: u64, len: u32) -> Body<'_> {
        Body::private(&self.held[at as usize].bytes[HEAD_MAX..][..len as usize])
    }

    fn release(&mut self) {
        self.held.clear();
    }

    fn readiness(&self) -> BorrowedFd<'_> {
        self.shared.ready.as_fd()
    }
}

struct MemoryTx {
    shared: Arc<Shared>,
}

impl TxQueue for MemoryTx {
    fn tx(&mut self, frames: &[TxFrame<'_>], drops: &mut Drops) -> Sent {
        let mut sent = Sent::default();
        let mut state = lock(&self.shared);
        for frame in frames {
            if state.room == Some(0) {
                drops.lose(DropReason::TxFull, frame);
                continue;
            }
            state.room = state.room.map(|room| room - 1);
            let mut bytes = frame.head.to_vec();
            frame.body.append_to(&mut bytes);
            state.outgoing.push(Frame { bytes, offload: frame.offload });
            sent.count(frame.len());
        }
        sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_comes_out_whole() {
        let (left, right) = (Memory::new().unwrap(), Memory::new().unwrap());
        let (mut rx, mut tx) = (left.rx(), right.tx());
        let frame = Frame::from((0..1000).map(|at| at as u8).collect::<Vec<_>>());
        left.put(frame.clone());
        let (mut batch, mut drops) = (RxBatch::default(), Drops::default());
        assert_eq!(rx.rx(&mut batch, &mut drops).unwrap(), 1);
        let slot = &batch.frames()[0];
        let BodyAt::Port { at, len } = slot.body else { panic!("a long frame has a body") };
        let out = TxFrame {
            head: slot.head.bytes(),
            body: rx.body(at, len),
            offload: slot.offload,
            tunnel_id: 0,
            tun_dst: 0,
        };
        assert_eq!(tx.tx(&[out], &mut drops), Sent { frames: 1, bytes: 1000 });
        assert_eq!(right.take(), vec![frame]);
    }

    #[test]
    fn beyond_its_limit_frames_are_dropped_as_tx_full() {
        let port = Memory::new().unwrap();
        port.limit(0);
        let (mut tx, mut drops) = (port.tx(), Drops::default());
        let frame = TxFrame {
            head: &[0; 60],
            body: Body::default(),
            offload: Offload::default(),
            tunnel_id: 0,
            tun_dst: 0,
        };
        assert_eq!(tx.tx(&[frame], &mut drops), Sent::default());
        assert_eq!(drops.iter().collect::<Vec<_>>(), vec![(DropReason::TxFull, 1)]);
    }
}
