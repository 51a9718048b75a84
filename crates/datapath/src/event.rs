//! What the workers tell the control thread, and how it waits for that.
//!
//! Two bounded rings, because the two kinds must not drown each other: packet-ins, which guests can cause at any rate,
//! and the rare notices, which must arrive. One eventfd for both, written only when the reader has not been told yet: it is
//! told once for a burst. Memory goes in a circle: what the control thread is done with, workers use for the next frame.

use crate::id::{PortAt, SwitchId};
use crate::packet_in::HeldFrame;
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

/// Bytes of a waiting packet-in for which it takes one place of its switch's share; so a full ring is bounded in bytes, too.
const PLACE: usize = 1024;

/// Frames' memory that waits to be used again. Chosen: what a burst between two looks of the control thread takes.
const SPARES: usize = 1024;

/// Memory larger than this is given back to the system instead. Chosen: a full Ethernet frame.
const SPARE: usize = 2048;

/// A frame for the controller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Punt {
    /// The switch whose rule sent it.
    pub switch: SwitchId,
    /// Port by which it entered that switch.
    pub in_port: PortNo,
    /// The frame as the actions left it: its first `why.max_len` bytes, or all of it where the switch keeps frames
    /// ([`crate::Publisher::set_keeps_frames`]).
    pub frame: HeldFrame,
    /// Bytes of the whole frame; for a large (GSO) frame those of the unsegmented frame.
    pub total_len: u32,
    /// Reason, table, cookie.
    pub why: PacketIn,
    /// Table metadata at that moment, for the packet-in's match.
    pub metadata: u64,
    /// Tunnel id, likewise.
    pub tunnel_id: u64,
    /// Number of the tunnel's end that sent it, likewise ([`port::Ends`]).
    pub tun_src: u16,
    /// Number of the end that it was to go to, likewise.
    pub tun_dst: u16,
}

/// Something that a worker saw.
#[derive(Debug)]
pub enum Event {
    /// A frame for the controller.
    PacketIn(Punt),
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

/// A packet-in and its places in its switch's share of the ring, given back when the control thread takes it.
struct Queued {
    punt: Punt,
    switch: Arc<SwitchShared>,
    places: u32,
}

/// Places that a packet-in of `len` bytes takes.
pub(crate) fn places(len: usize) -> u32 {
    len.div_ceil(PLACE).max(1) as u32
}

/// The workers' end, one for all of them.
pub(crate) struct EventRing {
    packet_ins: ArrayQueue<Queued>,
    notices: ArrayQueue<Event>,
    spares: ArrayQueue<Vec<u8>>,
    told: AtomicBool,
    wake: OwnedFd,
}

impl EventRing {
    /// A ring for `packet_ins` packet-ins.
    pub(crate) fn new(packet_ins: usize) -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self {
            packet_ins: ArrayQueue::new(packet_ins.max(1)),
            notices: ArrayQueue::new(NOTICES),
            spares: ArrayQueue::new(SPARES),
            told: AtomicBool::new(false),
            wake: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?,
        }))
    }

    /// Places that the packet-ins of one switch may take here.
    pub(crate) fn share(&self) -> u32 {
        (self.packet_ins.capacity() / 4).max(1) as u32
    }

    /// Queues a packet-in, whose places in the share were taken already; false when the ring is full.
    pub(crate) fn packet_in(&self, switch: &Arc<SwitchShared>, punt: Punt, places: u32) -> bool {
        let queued = Queued { punt, switch: Arc::clone(switch), places };
        let fits = self.packet_ins.push(queued).is_ok();
        if fits {
            self.tell();
        }
        fits
    }

    /// Memory for a frame: used before, if there is any.
    pub(crate) fn memory(&self) -> Vec<u8> {
        self.spares.pop().unwrap_or_default()
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
        if !self.told.load(Ordering::SeqCst) && !self.told.swap(true, Ordering::SeqCst) {
            // An eventfd refuses only when its counter is at its limit: it is readable then anyway.
            let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
        }
    }
}

/// The control thread's end. Readable (as a file descriptor) when something may wait: then [`Events::acknowledge`] once, and
/// [`Events::pop`] until it is `None`. Popping before that spares the workers a wake-up for what comes meanwhile; popping until the
/// end after it is what nothing is missed by.
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
        if !self.ring.notices.is_empty()
            && let Some(notice) = self.ring.notices.pop()
        {
            return Some(notice);
        }
        let Queued { punt, switch, places } = self.ring.packet_ins.pop()?;
        switch.quota.give_back(places);
        Some(Event::PacketIn(punt))
    }

    /// Lets workers use a frame's memory again.
    pub fn recycle(&self, frame: HeldFrame) {
        let memory = frame.into_memory();
        if (1..=SPARE).contains(&memory.capacity()) {
            // As many as a burst takes wait already: the system gets this one back.
            let _ = self.ring.spares.push(memory);
        }
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
