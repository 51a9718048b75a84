//! # steer: each flow's packets on the core that the policy picks
//!
//! **Question answered**: how does the kernel's receive path put every flow's packets on a chosen core, in front of any switch, and move a
//! flow to another core without reordering it?
//!
//! ## Types
//!
//! * [`Host`]: what all steered interfaces share, once for each host: by tracing programs, where each core's time goes ([`Host::times`]),
//!   and how many units ever came to it ([`Host::arrivals`]).
//! * [`Attached`]: a steered interface: program, entries, units, queues to other cores. Made by [`Attached::attach`], taken over by
//!   [`Attached::adopt`], told the cores by [`Attached::set_cores`], ended by [`Attached::detach`].
//! * [`Entry`] ([`Match`], [`Target`](place::steering::Target)): which frames are steered how. Each has a *unit*; frames that no entry matches belong to the unit of
//!   their flow group, or stay where they are ([`Unmatched`](place::steering::Unmatched)).
//! * [`Unit`]: what is placed and moved as one. [`Attached::want`] asks for a move, [`Event`]s tell when it was made.
//! * [`Steered`], [`Count`], [`CoreCount`]: what became of frames, and which core had them.
//! * [`Frames`]: the frames themselves, before and after, for captures (`bpf/shown.h`). A test of a word at each place while nobody looks.
//!
//! ## A frame's way (`bpf/steer.bpf.c`)
//!
//! dissect (`dissect.h`) → entry or group (`classify.h`) → the unit's core, chosen now if it has none (`place.h`) → if the unit is to move,
//! whether it may yet (`order.h`) → stay, or through the queue of the core (a cpumap) to its program, and into the stack there.
//!
//! ## A move loses no order
//!
//! A unit goes to another core with a frame that finds none of the unit's frames under way through the old core's stack. `bpf/order.h` has
//! the argument, `docs/decisions/0013-moves-never-reorder.md` the figures. While frames come without a pause into a core that is
//! always behind, that never happens: then a move that is [`DropToDrain`](place::steering::Urgency::DropToDrain) drops frames, counted, until it does, and gives up after a
//! while. A change of entries is a move of the flows that it concerns, by the same rule ([`Attached::settle`]).
//!
//! ## Invariants
//!
//! * Traffic needs no process: programs, links and maps are pinned. Who dies changes nothing, and the next owner adopts the pins.
//! * An interface with another XDP program is refused, never overwritten. One that is a port of a switch is steered, too: frames that an entry
//!   names are the host's, all others the port's ([`crate::hook`]).
//! * One slot, one set of maps, queues and counters for each interface: none sees another's. Only the clocks and the numbers of units that came to each core are shared.
//! * A frame costs one search for exact entries and at most [`MASKS`] for wildcard entries, however many entries there are.
//! * A frame that nothing wants passes. The programs drop only for want of room, and for urgent moves; both are counted by unit.
//!
//! * A frame that goes to another core comes to the stack there as from a wire, with its checksum: where its sender is on this host and has
//!   left that to a device, the program finishes it (`checksum.h`).
//! * Only drivers that run XDP programs themselves are steered: behind them, Linux loses frames on their way to another core
//!   ([`SteerError::Refused`]).
//!
//! Order holds within a receive queue of the interface, which a flow does not change; it is the kernel's own business where the kernel moves
//! a flow (a migrated interrupt, threaded NAPI, RPS behind us), and where the work behind the stack is not in soft interrupts (asynchronous
//! encryption). Threads: a `Host` and an `Attached` are used by one thread at a time; several processes hold each other off with a lock.

pub(crate) mod abi;
mod attached;
mod beside;
mod counts;
mod dissect;
mod enforcer;
mod entries;
mod error;
mod events;
mod frames;
mod hash;
mod host;
mod index;
#[cfg(test)]
mod layout_tests;
mod maps;
mod matching;
mod missed;
mod options;
mod order;
mod pins;
#[cfg(feature = "testing")]
mod rehearsal;
mod tables;
mod times;
mod units;

pub(crate) use abi::MASKS;
pub use abi::{CPUS, ENTRIES_MAX, SLOTS};
pub use attached::{Attached, Interface};
pub use beside::places_missed;
pub use counts::{CoreCount, Count, Steered};
pub use dissect::{Dissected, Dissector};
pub use enforcer::{Kernel, frames_of};
pub use entries::Entry;
pub use error::{ChangeError, SteerError};
pub use events::{Event, EventKind, Events};
pub use frames::{Frames, Shown, ShownCount, ShownUnit, Side};
pub use host::Host;
pub use matching::Match;
pub use options::Options;
pub use pins::PIN_ROOT;
#[cfg(feature = "testing")]
pub use rehearsal::{Rehearsal, count_runs};
pub use times::CoreTimes;
pub use units::{Unit, UnitKind};

/// Has the calling thread run before all ordinary ones, or as one of them: what watches over busy cores must not wait for one. Without the
/// privilege nothing changes.
pub fn set_prompt(is_prompt: bool) {
    crate::sys::schedule::set_prompt(is_prompt);
}

/// The compiled objects, for the test that compares their BTF with the Rust mirror.
#[cfg(test)]
pub(crate) static OBJECTS: [&[u8]; 3] = [attached::OBJECT, host::OBJECT, dissect::OBJECT];
