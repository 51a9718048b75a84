//! # Steering over OpenFlow: suiro's experimenter messages
//!
//! **Question answered**: what does a controller learn of the host's cores and virtual machines, and how does it say which core shall
//! process a flow?
//!
//! `docs/reference/openflow-extension.md` is the specification, byte by byte; this module is its values and its codec. The bytes after
//! experimenter id and type are the same in OpenFlow 1.0 and 1.3, so nothing here depends on a version.
//!
//! * [`Message`]: bodies of experimenter (1.0: vendor) messages; [`Request`] and [`Reply`]: those of multiparts (1.0: statistics).
//! * [`Place`]: the action, which is [`crate::Action::Place`] in action lists. The flow control field is the match field
//!   [`crate::OxmField::Fcf`].
//!
//! ## Invariants
//!
//! * decode ∘ encode = identity on every value whose texts fit their places and whose lists fit a message.
//! * Whatever may grow begins with its length: bytes after what this version knows are skipped, so a later version may append.

mod action;
mod entry;
mod error;
mod host;
mod message;
mod multipart;
mod stats;
mod vm;

pub use action::{CoreChoice, Place, PlaceFlags};
pub use entry::PlaceMod;
pub use error::SteerError;
pub use host::{
    CoreRole, HostAbilities, HostCore, HostInfo, HostInterface, InterfaceAbilities, XdpMode,
};
pub use message::{Events, Message, VERSION};
pub use multipart::{Reply, Request};
pub use stats::{
    CoreStats, PlacementKind, PlacementKinds, PlacementRequest, PlacementStats, Reason, STAGES,
};
pub use vm::{Vm, VmAddress, VmReason, VmSource, VmStatus};

pub(crate) use action::{put_body as put_action, put_set_fcf, take_body as take_action};

use crate::bytes::{Reader, Writer};
use crate::error::{ErrorCode, Fault};

/// "None", "unknown", "undecided" or "all" in a place for the number of a core or NUMA node.
const NO_CORE: u16 = 0xffff;

/// A structure with one layout.
trait Wire: Sized {
    /// Appends the structure.
    fn put(&self, out: &mut Writer);

    /// Takes the structure off the front.
    fn take(input: &mut Reader<'_>) -> Result<Self, Fault>;
}

fn put_core(core: Option<u16>, out: &mut Writer) {
    out.u16(core.unwrap_or(NO_CORE));
}

fn take_core(input: &mut Reader<'_>) -> Result<Option<u16>, Fault> {
    input.u16().map(|core| (core != NO_CORE).then_some(core))
}

/// Ends an element that began at `start` with two bytes for its length: pads it to 8 bytes and fills the length in.
fn end_element(start: usize, out: &mut Writer) {
    out.pad8(start);
    out.patch_len(start, start);
}

/// The rest of an element that begins with its length, of at least `least` bytes with it.
fn take_element<'a>(input: &mut Reader<'a>, least: usize) -> Result<Reader<'a>, Fault> {
    let len = usize::from(input.peek_u16(0)?);
    if len < least || len > input.len() {
        return Err(input.bad_len("an element of the wrong length"));
    }
    let mut element = input.part(len, ErrorCode::BadRequestBadLen)?;
    element.skip(2)?;
    Ok(element)
}

/// As many numbers of 16 bits as `count` says.
fn take_u16s(count: u16, input: &mut Reader<'_>) -> Result<Vec<u16>, Fault> {
    let mut bytes = input.part(2 * usize::from(count), ErrorCode::BadRequestBadLen)?;
    (0..count).map(|_| bytes.u16()).collect()
}

/// How many elements follow. Lists are far shorter; what does not fit is left out.
fn count<T>(list: &[T]) -> u16 {
    u16::try_from(list.len()).unwrap_or(u16::MAX)
}
