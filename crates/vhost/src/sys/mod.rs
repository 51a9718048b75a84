//! Memory that someone else writes: mapped, guarded against being taken away, and touched only by copies and atomics.
//!
//! Everything `unsafe` of this crate is here. What makes it sound, in one place:
//!
//! * **Life.** A [`Mapping`] is mapped from its making to its drop. Whoever keeps an address into it keeps an `Arc` of it
//!   ([`Area`], [`Held`]) or a borrow of someone who does ([`GuestSlice`]).
//! * **Bounds.** An address is made only here, from an offset and a length that were checked against the mapping.
//! * **Others write.** No reference to the bytes is ever made. Words of a ring are atomics; bytes are copied through raw pointers into
//!   private memory or into other such memory. What a copy brings may be torn: callers check the copy, and a compiler fence
//!   keeps the compiler from looking at the source again; or it is checked in the register that it passes through.
//! * **Locks.** What a mutex guards is reached without its guard only by a [`Keeper`], which locked it and has not let go of it.
//! * **Accounts.** What the C library fills in is copied out; nothing keeps its pointers ([`account`]).
//! * **Faults.** A page that is gone raises SIGBUS; [`guard`] puts an empty page there, so that every access ends.

#![expect(
    unsafe_code,
    reason = "guests' memory is mapped and reached by address here, and nowhere else"
)]

mod account;
mod aio;
mod area;
mod backwards;
mod burst;
mod copy;
mod fence;
mod guard;
mod held;
mod holes;
mod keeper;
mod mapping;
mod past;
mod prefetch;
mod processor;
mod purse;
mod slice;
mod uring;

pub(crate) use account::{group, user};
pub(crate) use aio::Aio;
pub(crate) use area::{Area, Descriptor};
pub(crate) use backwards::Backwards;
pub(crate) use burst::{ALL_SHORT, Alike, BURST, Burst, Piece};
pub(crate) use copy::LINE;
pub(crate) use fence::{cycles, full_fence};
pub(crate) use guard::{Loss, hits};
pub(crate) use held::{Adder, Buffer, Expected, Held};
pub(crate) use keeper::Keeper;
pub(crate) use mapping::{MapError, Mapping};
pub(crate) use past::{PAST_MIN, Past};
pub(crate) use prefetch::{ASKED, For, prefetch_lines};
pub(crate) use processor::{BACKWARDS_MIN, Bounds, Copier};
pub use purse::GuestBounds;
pub(crate) use purse::{Mapped, Purse};
pub use slice::GuestSlice;
pub(crate) use slice::{Header, SentHeader};
pub(crate) use uring::Uring;
