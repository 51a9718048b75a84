//! What the control thread asks of a worker, and how the worker hears of it.
//!
//! Two bounded rings, so that a controller's packet-outs never stand before an attach or a detach.

use crate::counters::WorkerBlock;
use crate::id::SwitchId;
use crate::local::{LocalPort, LocalSwitch, PortIx, SwitchIx};
use crate::shape::Shaper;
use crate::steering::{Classifier, Handover, Steered};
use crate::switch::SwitchShared;
use crossbeam_queue::ArrayQueue;
use flow::{Action, PortNo};
use port::RxQueue;
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::mpsc::Sender;
use std::time::Duration;
use wire::Offload;

/// Commands that may wait; the control thread waits when there are more.
const COMMANDS: usize = 64;

/// Packet-outs that may wait at one worker: what a controller sends in the time of a few rounds.
const PACKET_OUTS: usize = 1024;

/// A change of what a worker serves. Each is answered.
pub(crate) enum Command {
    /// Take up a switch.
    AddSwitch { ix: SwitchIx, shared: Arc<SwitchShared>, reply: Sender<Reply> },
    /// Give up a switch, whose ports are gone already.
    RemoveSwitch { ix: SwitchIx, reply: Sender<Reply> },
    /// Take up a port and those of its receive queues that this worker polls.
    Attach { ix: PortIx, port: Box<LocalPort>, rx: Vec<Box<dyn RxQueue>>, reply: Sender<Reply> },
    /// Give up a port and its queues.
    Detach { ix: PortIx, reply: Sender<Reply> },
    /// Give a port queues and rates, or take them away.
    SetQueues { ix: PortIx, shaper: Option<Box<Shaper>>, reply: Sender<Reply> },
    /// Steer a switch; with the worker's part in steering if it has none yet.
    Steer { ix: SwitchIx, part: Option<Box<Handover>>, steered: Box<Steered>, reply: Sender<Reply> },
    /// Steer it by other entries, when no order is lost: answered then.
    Reclassify { ix: SwitchIx, classifier: Arc<Classifier>, reply: Sender<Reply> },
    /// Steer it no more, when no order is lost: answered then.
    Unsteer { ix: SwitchIx, reply: Sender<Reply> },
    /// Give up the worker's part in steering: nothing is steered any more.
    Disconnect { reply: Sender<Reply> },
    /// Say that no round is under way that began before.
    Barrier { reply: Sender<Reply> },
    /// End.
    Stop,
}

/// A worker's answer. What it gives back is dropped by the thread that asked.
pub(crate) enum Reply {
    /// Done.
    Done,
    /// Done; the port and its queues.
    Port(#[expect(dead_code, reason = "only dropped, by the asking thread")] Box<Removed>),
    /// Done; the switch.
    Switch(#[expect(dead_code, reason = "only dropped, by the asking thread")] Box<LocalSwitch>),
    /// Done; the queues that the port had.
    Shaper(#[expect(dead_code, reason = "only dropped, by the asking thread")] Option<Box<Shaper>>),
    /// Done; the entries that were.
    Classifier(#[expect(dead_code, reason = "only dropped, by the asking thread")] Arc<Classifier>),
    /// Done; what the worker knew of the switch.
    Steered(#[expect(dead_code, reason = "only dropped, by the asking thread")] Box<Steered>),
    /// Done; the worker's part in steering.
    Handover(
        #[expect(dead_code, reason = "only dropped, by the asking thread")] Option<Box<Handover>>,
    ),
    /// A receive queue cannot be watched; the worker holds nothing of the port.
    Failed(
        io::Error,
        #[expect(dead_code, reason = "only dropped, by the asking thread")] Box<Removed>,
    ),
}

/// What a worker held of a port.
pub(crate) struct Removed {
    #[expect(dead_code, reason = "only dropped, by the asking thread")]
    pub(crate) port: Option<LocalPort>,
    pub(crate) rx: Vec<Box<dyn RxQueue>>,
}

/// A frame to send, on its way to a worker.
pub(crate) struct Injected {
    pub(crate) ix: SwitchIx,
    /// The place may belong to another switch when the worker gets to it.
    pub(crate) switch: SwitchId,
    pub(crate) in_port: PortNo,
    pub(crate) frame: Vec<u8>,
    pub(crate) offload: Offload,
    pub(crate) actions: Vec<Action>,
}

/// What a worker and the control thread share.
pub(crate) struct Mailbox {
    pub(crate) commands: ArrayQueue<Command>,
    pub(crate) packet_outs: ArrayQueue<Injected>,
    pub(crate) counters: WorkerBlock,
    asleep: AtomicBool,
    pub(crate) wake: OwnedFd,
}

impl Mailbox {
    pub(crate) fn new() -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            commands: ArrayQueue::new(COMMANDS),
            packet_outs: ArrayQueue::new(PACKET_OUTS),
            counters: WorkerBlock::default(),
            asleep: AtomicBool::new(false),
            wake: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?,
        }))
    }

    /// Hands over a command; waits while the ring is full, which lasts some rounds at most.
    pub(crate) fn command(&self, mut command: Command) {
        while let Err(back) = self.commands.push(command) {
            command = back;
            std::thread::sleep(Duration::from_micros(50));
        }
        self.tell();
    }

    /// The next command.
    pub(crate) fn next_command(&self) -> Option<Command> {
        pop(&self.commands)
    }

    /// The next packet-out.
    pub(crate) fn next_packet_out(&self) -> Option<Injected> {
        pop(&self.packet_outs)
    }

    /// Hands over a packet-out; false when too many wait.
    pub(crate) fn packet_out(&self, injected: Injected) -> bool {
        let fits = self.packet_outs.push(injected).is_ok();
        self.tell();
        fits
    }

    /// Wakes the worker if it sleeps; what it is to see was published before.
    pub(crate) fn tell(&self) {
        fence(Ordering::SeqCst); // the push before the look at `asleep`; pairs with `fall_asleep`
        if self.asleep.load(Ordering::SeqCst) {
            let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes()); // refused only when it is readable anyway
        }
    }

    /// The worker is about to sleep; false when something waits after all.
    pub(crate) fn fall_asleep(&self) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let idle = self.commands.is_empty() && self.packet_outs.is_empty();
        if !idle {
            self.asleep.store(false, Ordering::Relaxed);
        }
        idle
    }

    /// The worker is awake again.
    pub(crate) fn awake(&self) {
        self.asleep.store(false, Ordering::SeqCst);
    }

    /// Clears the wake-up.
    pub(crate) fn heard(&self) {
        let _ = rustix::io::read(&self.wake, &mut [0u8; 8]); // empty already: as well
    }
}

/// Looks before it takes: an attempt at an empty ring is a memory barrier, and a worker makes two in each turn.
fn pop<T>(ring: &ArrayQueue<T>) -> Option<T> {
    if ring.is_empty() { None } else { ring.pop() }
}
