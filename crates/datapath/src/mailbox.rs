//! The mailbox between the control thread and one worker: rings of orders, counters, the waker.
//!
//! Two bounded rings, so that a controller's packet-outs never stand before an attach or a detach.

use crate::command::{Command, Injected};
use crate::counters::WorkerBlock;
use crate::rung::Rungs;
use crate::taps::Flight;
use crate::waker::Waker;
use crossbeam_queue::ArrayQueue;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::time::Duration;

/// Commands that may wait; the control thread waits when there are more.
const COMMANDS: usize = 64;

/// Packet-outs that may wait at one worker: what a controller sends in the time of a few rounds.
const PACKET_OUTS: usize = 1024;

/// One worker's mailbox.
pub(crate) struct Mailbox {
    commands: ArrayQueue<Command>,
    packet_outs: ArrayQueue<Injected>,
    pub(crate) counters: Arc<WorkerBlock>,
    pub(crate) waker: Arc<Waker>,
    rungs: AtomicU8,
    /// What the worker lost lately.
    pub(crate) flight: Arc<Flight>,
}

impl Mailbox {
    /// Makes an empty mailbox of a worker that uses these rungs.
    ///
    /// # Errors
    /// No file descriptor is left.
    pub(crate) fn new(rungs: Rungs) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            commands: ArrayQueue::new(COMMANDS),
            packet_outs: ArrayQueue::new(PACKET_OUTS),
            counters: Arc::default(),
            waker: Waker::new()?,
            rungs: AtomicU8::new(rungs.bits()),
            flight: Arc::default(),
        }))
    }

    /// Rungs that are switched on.
    #[inline]
    pub(crate) fn rungs(&self) -> Rungs {
        Rungs::from_bits(self.rungs.load(Relaxed))
    }

    /// Switches rungs on and off, from the worker's next round on.
    pub(crate) fn set_rungs(&self, rungs: Rungs) {
        self.rungs.store(rungs.bits(), Relaxed);
    }

    /// Hands over a command; waits while the ring is full, which lasts some rounds at most.
    pub(crate) fn command(&self, mut command: Command) {
        while let Err(back) = self.commands.push(command) {
            command = back;
            std::thread::sleep(Duration::from_micros(50));
        }
        self.waker.wake();
    }

    /// Takes the next command out.
    pub(crate) fn next_command(&self) -> Option<Command> {
        pop(&self.commands)
    }

    /// Takes the next packet-out out.
    pub(crate) fn next_packet_out(&self) -> Option<Injected> {
        pop(&self.packet_outs)
    }

    /// Packet-outs that wait.
    pub(crate) fn packet_outs(&self) -> usize {
        self.packet_outs.len()
    }

    /// Hands over a packet-out; false when too many wait.
    pub(crate) fn packet_out(&self, injected: Injected) -> bool {
        let fits = self.packet_outs.push(injected).is_ok();
        self.waker.wake();
        fits
    }

    /// Announces that the worker is about to sleep; false when something waits after all.
    pub(crate) fn fall_asleep(&self) -> bool {
        self.waker.fall_asleep(|| self.commands.is_empty() && self.packet_outs.is_empty())
    }
}

/// Looks before it takes: an attempt at an empty ring is a memory barrier, and a worker makes two in each turn.
fn pop<T>(ring: &ArrayQueue<T>) -> Option<T> {
    if ring.is_empty() { None } else { ring.pop() }
}
