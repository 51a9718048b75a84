//! # datapath: rx → pipeline → tx, on threads pinned to cores
//!
//! **Question answered**: how does a frame get from the queue it arrives in, through one switch or a row of them, to where it
//! must go — on one core, without a lock, an allocation or a copy that can be avoided, and without a busy loop when nothing arrives?
//!
//! ## Types, from outside
//!
//! * [`Datapath`]: the control thread's handle. Switches and ports come into service and go out of it while frames flow.
//! * [`Publisher`]: gives one switch new tables (an `Arc<flow::Snapshot>`); every batch takes the newest.
//! * [`Events`]: packet-ins, faults and restarts, behind a file descriptor that a runtime can wait on.
//! * [`Clock`]: time, handed in.
//! * [`PortQueues`]: queues and rates of a port; [`Datapath::set_queues`] puts them in force (module `shape` says how).
//! * [`Steering`]: which worker processes which flows of a switch; [`Datapath::steer`] begins it (module `steering` says how).
//! * [`Rung`], [`Rungs`]: ways to work a batch off, and which of them are on ([`Datapath::set_rungs`]).
//! * [`Capture`]: frames seen at [`Point`]s ([`Datapath::capture`]; module `taps` says how).
//! * [`PortCounters`], [`QueueCounters`], [`SwitchCounters`], [`WorkerStats`], [`Latencies`]: what was counted.
//!
//! ## A worker
//!
//! ```text
//!  mailbox ──commands, packet-outs──▶ ┌───────────── worker: one thread, one core ─────────────┐
//!  (bounded rings + eventfd)          │ queues   active: polled in turn, 32 frames a round     │
//!                                     │          others: one epoll instance, one-shot          │
//!                                     │ engine   world:   switches, ports, by dense place      │
//!                                     │          cache:   flow's, for all switches             │
//!                                     │          scratch: spare heads, waiting frames, vlinks  │
//!  events  ◀─packet-ins, notices───── └────────────────────────────────────────────────────────┘
//! ```
//!
//! A *round* is one call of a source's `rx`, and what becomes of the frames that it gave. They are worked off on the *ladder* (module
//! `ladder`): five rungs, the last of which is the *pass*. There heads are parsed in place, as deep as the switch's tables and programs look.
//! `flow::process` tells a sink where each packet goes. Frames that crossed a vlink go through the next switch in the same pass, and
//! their key is kept. At the end each destination gets all its frames in one `tx` call. Bodies stay in the source's memory until then; the
//! source gets its buffers back when the round is over.
//!
//! ## Polling
//!
//! A queue that had a frame within the last `spin` is *active* and polled. The others are watched by the kernel. A worker with no active
//! queue sleeps in `epoll_wait`; one with some looks at the others every few microseconds, whatever `spin` is (`looks`): into the memory of those
//! that show what they have (a guest's ring), and for the rest it asks the kernel. So a queue costs nothing while it is idle, a frame waits for a
//! sleeping queue's wake-up only after a pause, and neither a busy port nor one that is polled in vain hides a waking one.
//!
//! A frame that is sent to a port makes its queues *expected*: they are polled for as long as replies from there usually take, if they come soon
//! (`queues`). With [`Config::learns`], `spin` is what a wake-up costs ([`wake_up_cost`]), and only queues whose frames usually come sooner are
//! polled in vain for so long.
//!
//! ## Invariants
//!
//! * **Copy on write.** An output that more edits follow, and a frame that goes to several switches, gets a copy of the head, never of
//!   the body. Any other output shares the head.
//! * **Order.** Frames of one flow leave each destination in the order in which they came, whatever memory runs out and whatever
//!   worker the flow moves to.
//! * **Bounds.** One received frame causes at most 512 deliveries over vlinks, 16 in a row, and in each switch the copies that
//!   `flow` allows a program, whatever else is in the batch. Copies behind vlinks are 64 a received frame on average; at its own ports a switch has 50,000 a second beyond those that each frame may make (`allowance`). All memory is allocated at start and attach; only when a tree of
//!   switches holds more than 608 edited copies of one batch at once are further ones dropped (`too_many_copies`).
//! * **One verdict.** Bytes, order, counters and losses are the same whatever rung takes a frame.
//! * **Conservation.** A frame is lost in one call, [`port::Drops::lose`], with its bytes at hand. Per switch: received + packet-outs = sent + dropped (each with its reason) + packet-ins, counted in copies.
//! * **No sharing.** Counters belong to one worker each and are summed when read. Tables are immutable and never freed on a worker; queues
//!   are dropped by the thread that detaches them. Workers meet only in the token bucket of a switch's packet-ins, in the event ring, and
//!   for switches that are steered in rings of one writer and one reader.
//! * **Faults stay where they are.** A source that fails is parked and reported. A panic costs the round's frames: the worker goes
//!   on with its ports and an empty cache, and who panics repeatedly is parked.

mod allowance;
mod backlog;
mod clock;
mod collect;
mod command;
mod config;
mod copies;
mod counters;
mod crossing;
mod datapath;
mod enforcer;
mod engine;
mod event;
mod exit;
mod frames;
mod heads;
mod id;
mod ladder;
mod local;
mod looks;
mod mailbox;
mod neighbours;
mod onward;
mod packet_in;
mod pending;
mod placement;
mod poller;
mod queues;
mod quota;
mod rung;
mod samples;
mod scratch;
mod shape;
mod shared;
mod stats;
mod steering;
mod switch;
mod sys;
mod taps;
mod touch;
mod transmit;
mod wake_up;
mod waker;
mod why;
mod worker;

pub use api::{BadQueues, BitRate, Latencies, Latency, PortQueues, QUEUES_MAX, QueueRates};
pub use clock::{Clock, MonotonicClock};
pub use config::{Config, StartError};
pub use datapath::{
    AttachError, CaptureError, Datapath, HandoverCounts, OnlyHere, PacketOut, PacketOutError,
    Queues, QueuesError, Steering,
};
pub use enforcer::{Steers, Workers};
pub use event::{Event, Events, Punt};
pub use id::{PortAt, SwitchId};
pub use packet_in::HeldFrame;
pub use rung::{Rung, Rungs};
pub use samples::{SAMPLE_HEAD, Sample, Samples};
pub use shape::QueueCounters;
pub use shared::PastWorkers;
pub use stats::{
    Assignment, PortCounters, PortLoad, RungCounters, StageCycles, SwitchCounters, WorkerStats,
    WorkerTimes,
};
pub use steering::{Placed, SteeredUnit, SteeringEntry, SteeringError};
pub use switch::Publisher;
pub use taps::{
    Capture, CaptureId, Captured, Counted, Every, Filter, Point, Share, Sides, Sieve, Stage,
    Timing, Verdict, Wanted, What, Whither,
};
pub use wake_up::wake_up_cost;
pub use why::{Rules, Step, Way, What as Happens};
