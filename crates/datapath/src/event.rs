//! What the workers tell the control thread, and how it waits for that.
//!
//! Two bounded rings, because the two kinds must not drown each other: packet-ins, which guests can cause at any rate,
//! and the rare notices, which must arrive. One eventfd for both, written only when the reader has not been told yet.

use crate::id::{PortAt, SwitchId};
use crate::switch::SwitchShared;
use crossbeam_queue::ArrayQueue;
use flow::{PacketIn, PortNo};
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

/// Notices that may wait. A queue faults once until it is attached anew and a worker's restarts are limited by parking the
/// queue that causes them, so this exceeds what a node with a thousand ports can have outstanding.
const NOTICES: usize = 8192;

/// Something that a worker saw.
#[derive(Debug)]
pub enum Event {
    /// A frame for the controller.
    PacketIn {
        /// The switch whose rule sent it.
        switch: SwitchId,
        /// Port by which it entered that switch.
        in_port: PortNo,
        /// The frame as the actions left it, cut at `why.max_len`, all checksums in place.
        data: Vec<u8>,
        /// Bytes of the whole frame; for a large (GSO) frame those of the unsegmented frame.
        total_len: u32,
        /// Reason, table, cookie.
        why: PacketIn,
        /// Table metadata at that moment, for the packet-in's match.
        metadata: u64,
        /// Tunnel id, likewise.
        tunnel_id: u64,
    },
    /// A queue's source is gone or broken; the worker no longer polls it. Detach the port to get rid of it.
    PortFault {
        /// The port.
        at: PortAt,
        /// Worker that polled the queue.
        worker: usize,
        /// What its source said.
        error: io::Error,
    },
    /// A worker panicked and went on with its ports and an empty cache; the frames of that round are lost
    /// ([`wire::DropReason::WorkerFault`]).
    WorkerDied {
        /// Which.
        worker: usize,
        /// What it was working on, if that is known.
        at: Option<PortAt>,
        /// The panic's message.
        message: String,
    },
}

/// A packet-in and its switch's share of the ring, given back when the control thread takes it.
struct Queued {
    event: Event,
    switch: Arc<SwitchShared>,
}

/// The workers' end, one for all of them.
pub(crate) struct EventRing {
    packet_ins: ArrayQueue<Queued>,
    notices: ArrayQueue<Event>,
    told: AtomicBool,
    wake: OwnedFd,
}

impl EventRing {
    /// A ring for `packet_ins` packet-ins.
    pub(crate) fn new(packet_ins: usize) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            packet_ins: ArrayQueue::new(packet_ins.max(1)),
            notices: ArrayQueue::new(NOTICES),
            told: AtomicBool::new(false),
            wake: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?,
        }))
    }

    /// Most packet-ins of one switch that may wait here.
    pub(crate) fn share(&self) -> u32 {
        (self.packet_ins.capacity() / 4).max(1) as u32
    }

    /// Queues a packet-in, whose place in the share was taken already; false when the ring is full.
    pub(crate) fn packet_in(&self, switch: &Arc<SwitchShared>, event: Event) -> bool {
        let queued = Queued { event, switch: Arc::clone(switch) };
        let fits = self.packet_ins.push(queued).is_ok();
        if fits {
            self.tell();
        }
        fits
    }

    /// Queues a notice.
    pub(crate) fn notice(&self, event: Event) {
        // More than `NOTICES` faults outstanding means that no one reads; the ports' own state shows them still.
        let _ = self.notices.push(event);
        self.tell();
    }

    /// Wakes the reader unless it has been told since it last looked.
    fn tell(&self) {
        fence(Ordering::SeqCst); // the push above before the look at `told`; pairs with `Events::acknowledge`
        if !self.told.swap(true, Ordering::SeqCst) {
            // An eventfd refuses only when its counter is at its limit: it is readable then anyway.
            let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
        }
    }
}

/// The control thread's end. Readable (as a file descriptor) when something may wait: then [`Events::acknowledge`] once, and
/// [`Events::pop`] until it is `None`.
pub struct Events {
    ring: Arc<EventRing>,
}

impl Events {
    pub(crate) fn new(ring: Arc<EventRing>) -> Self {
        Self { ring }
    }

    /// Clears the readiness of the file descriptor; what is queued afterwards sets it again.
    pub fn acknowledge(&self) {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.ring.wake, &mut count); // empty already: as well
        self.ring.told.store(false, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// The next event: notices first.
    pub fn pop(&self) -> Option<Event> {
        if let Some(notice) = self.ring.notices.pop() {
            return Some(notice);
        }
        let Queued { event, switch } = self.ring.packet_ins.pop()?;
        switch.quota.give_back();
        Some(event)
    }
}

impl AsFd for Events {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.wake.as_fd()
    }
}

impl AsRawFd for Events {
    fn as_raw_fd(&self) -> RawFd {
        self.ring.wake.as_raw_fd()
    }
}
