//! # vhost: frames to and from a driver in another address space
//!
//! **Question answered**: how does a driver in another address space hand us frames, and we it, when nothing in that memory
//! can be trusted?
//!
//! A guest's driver keeps *rings* in its own memory (VIRTIO 1.2 §2.7, §2.8) and the guest's front-end (QEMU, a DPDK process) hands that
//! memory to us by file descriptor (the vhost-user protocol). From then on frames move by copies and index updates, without a system call.
//!
//! ## Types
//!
//! * [`GuestMemory`]: the regions that the front-end shares; turns guest and user addresses into [`GuestSlice`]s.
//! * [`Vring`]: one ring, split or packed, seen from the device. As a *source* (the driver's transmit queue): [`Vring::take`], then
//!   [`Vring::give_back`]. As a *destination* (the driver's receive queue): [`Vring::put_run`] a batch,
//!   [`Vring::put`] what takes more than one buffer, then [`Vring::publish`].
//! * [`Reach`]: whether a driver's core shares a cache with ours. Nobody says it; a ring finds out by what the driver's lines cost, and sends what is long through memory if not.
//! * [`Unread`]: frames that a source took and nobody reads, for a destination to copy from buffer to buffer ([`Vring::put_unread`]), comparing them with a pattern or not ([`Vring::put_alike`]).
//! * [`Chains`]: what `take` took: each frame as slices of guest memory, every address and length already checked.
//! * [`Slot`]: where the control thread, which starts and stops a ring, and the worker, which serves it, meet; [`SlotKeeper`]: a worker's hold on it from `take` until `give_back`.
//! * [`InflightMemory`], [`Records`], [`DirtyLog`]: what a restart, a kill and a live migration need to know.
//! * [`Fault`]: why a ring was stopped, in words for the guest's owner.
//!
//! ```text
//!   front-end ══ socket ══▶ session (control thread) ── start, stop, memory ──▶ Slot ◀── lock, per batch ── worker
//!       └──── shared memory: descriptors, rings, buffers ─────────────────────────────────── take, put ────────┘
//! ```
//!
//! ## What the guest can do, and what it gets
//!
//! It can write anything anywhere in what it shares, at any moment, and it can take the memory away. So:
//!
//! * An index, descriptor, length or header is read **once**, into private memory, and checked there. Nothing is looked up again.
//! * What is decided by a frame's bytes is decided by the private copy that leaves. A frame that goes straight from guest to guest is decided by none of them.
//! * A range is checked against one region, without overflow, before an address is made of it.
//! * A walk over a chain ends after as many descriptors as the ring has, whatever `next` says.
//! * No `&[u8]` to guest memory ever exists: [`GuestSlice`] only copies. Raw access is in `sys`, and only there.
//! * Memory whose pages some program could withhold (FUSE) is refused.
//! * A page of its file that nobody has touched before us is paid by its guest, up to a bound ([`GuestBounds`]); then its rings stop
//!   ([`Fault::Untouched`]).
//! * Memory that was withdrawn (`ftruncate`) becomes zero pages where we touch it, and its rings stop ([`Fault::Withdrawn`]).
//! * What it gives us to signal is an eventfd, and signalling it waits for nobody ([`Call`]).
//! * A ring that breaks the rules is stopped with a [`Fault`]; its port goes on without it, its worker never notices more than an error.
//!
//! ## Threads and locks
//!
//! A [`Slot`] has one lock. A worker holds it from `take` until `give_back`, or for one batch of `put`s, some microseconds; the
//! control thread holds it for as long as a ring is exchanged. A worker holds at most one source's and one destination's lock, in this
//! order; the control thread one. So nobody waits in a circle, and a ring that is stopped has given back all that it took.
//!
//! Source: *Virtual I/O Device (VIRTIO) Version 1.2*, and QEMU's *Vhost-user Protocol*.

mod call;
mod fault;
mod features;
mod inflight;
mod log;
mod memory;
mod record;
mod ring;
mod session;
mod slot;
mod sys;

pub use call::Call;
pub use fault::{Fault, Part};
pub use features::Features;
pub use inflight::{InflightError, InflightMemory, InflightRing, Layout};
pub use log::DirtyLog;
pub use memory::{GuestMemory, GuestSlice, MemoryError, RegionFacts, RegionSpec};
pub use record::{RecordError, Records, RingRecord};
pub use ring::{
    Base, Chains, Frame, HEADER_MAX, NetHeader, Outline, Payload, Put, Reach, Refused, Unread,
    Vring, VringConfig,
};
pub use session::{
    Attachment, Connection, LastTrouble, Look, OFFERED, Report, Rights, RingReport, Role, Session,
    Settings, Trouble, UnknownAccount, converse,
};
pub use slot::{Contents, Slot, SlotKeeper, SlotState};
pub use sys::GuestBounds;
