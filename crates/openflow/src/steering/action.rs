//! Actions: `place`, and the flow control field set in 1.0 or under a mask. Both are experimenter (1.0: vendor) actions of 16 bytes.

use crate::action::Action;
use crate::bytes::{Reader, Writer};
use crate::error::{ErrorCode, Fault};
use crate::oxm::{Oxm, OxmField};

// Subtypes: the two bytes after the experimenter id.
const PLACE: u16 = 1;
const SET_FCF: u16 = 2;

// Numbers that are no core's.
const AUTO: u16 = 0xffff;
const HASH: u16 = 0xfffe;
/// The largest number of a core.
const CORE_MAX: u16 = 0xfeff;

/// The core that shall process a flow, or who chooses it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CoreChoice {
    /// The switch's policy, when the first frame comes; it may choose anew later.
    Auto,
    /// The frame's hash, over the cores that are allowed: what RSS does.
    Hash,
    /// This core, 0..=0xfeff.
    Core(u16),
}

impl CoreChoice {
    /// The number on the wire.
    pub const fn wire(self) -> u16 {
        match self {
            Self::Auto => AUTO,
            Self::Hash => HASH,
            Self::Core(core) => core,
        }
    }

    /// The choice of that number. One that means nothing is a core that no host has, which [`Place::check`] refuses.
    pub const fn from_wire(number: u16) -> Self {
        match number {
            AUTO => Self::Auto,
            HASH => Self::Hash,
            core => Self::Core(core),
        }
    }
}

bitflags::bitflags! {
    /// What a policy that chooses heeds. Unknown bits survive decoding; [`Place::check`] refuses them.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct PlaceFlags: u16 {
        /// A priority flow: a core without a pinned machine and with little load is preferred.
        const PRIORITY = 1;
        /// Under overcommit, the core of the flow's own machine.
        const OWN = 2;
    }
}

/// Where a flow shall be processed: `place(core=auto,priority)`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    /// The core, or who chooses it.
    pub core: CoreChoice,
    /// What the policy heeds.
    pub flags: PlaceFlags,
}

impl Place {
    /// A place without flags.
    pub const fn on(core: CoreChoice) -> Self {
        Self { core, flags: PlaceFlags::empty() }
    }

    /// Refuses numbers that mean nothing, unknown flags, and flags where no policy chooses.
    ///
    /// # Errors
    /// `OFPBAC_BAD_ARGUMENT`.
    pub fn check(self) -> Result<(), Fault> {
        let bad = |what| Err(Fault::new(ErrorCode::BadActionBadArgument, what));
        match self.core {
            CoreChoice::Core(core) if core > CORE_MAX => bad("a number that no core can have"),
            _ if !PlaceFlags::all().contains(self.flags) => {
                bad("a flag that this version does not define")
            }
            CoreChoice::Auto => Ok(()),
            _ if !self.flags.is_empty() => bad("flags for a policy, and none chooses"),
            _ => Ok(()),
        }
    }

    /// Core and flags, four bytes, as messages and actions have them.
    pub(super) fn put(self, out: &mut Writer) {
        out.u16(self.core.wire());
        out.u16(self.flags.bits());
    }

    pub(super) fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let core = CoreChoice::from_wire(input.u16()?);
        Ok(Self { core, flags: PlaceFlags::from_bits_retain(input.u16()?) })
    }
}

/// What follows the experimenter id in the action `place`: eight bytes.
pub(crate) fn put_body(place: Place, out: &mut Writer) {
    out.u16(PLACE);
    place.put(out);
    out.zeros(2);
}

/// What follows the experimenter id in the action that sets the bits `mask` of the flow control field: eight bytes.
pub(crate) fn put_set_fcf(value: u128, mask: u128, out: &mut Writer) {
    out.u16(SET_FCF);
    out.u8(value as u8);
    out.u8(mask as u8);
    out.zeros(4);
}

/// The action whose bytes after the experimenter id are `body`; `None`, and nothing taken, if this version does not know it.
pub(crate) fn take_body(body: &mut Reader<'_>) -> Result<Option<Action>, Fault> {
    let mut ahead = body.clone();
    let action = match ahead.u16()? {
        PLACE => {
            let place = Place::take(&mut ahead)?;
            ahead.skip(2)?;
            Action::Place(place)
        }
        SET_FCF => {
            let (value, mask) = (ahead.u8()?, ahead.u8()?);
            ahead.skip(4)?;
            Action::SetField(Oxm::masked(OxmField::Fcf, value.into(), mask.into()))
        }
        _ => return Ok(None),
    };
    *body = ahead;
    Ok(Some(action))
}
