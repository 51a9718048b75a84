//! Where frames are seen.

use super::{Captured, What};
use crate::id::{PortAt, Side, SwitchId};

/// Sides of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sides(u8);

impl Sides {
    /// What comes in.
    pub const RX: Self = Self(Side::Rx as u8);
    /// What leaves.
    pub const TX: Self = Self(Side::Tx as u8);
    /// Both.
    pub const BOTH: Self = Self(Side::Rx as u8 | Side::Tx as u8);

    pub(crate) fn bits(self) -> u8 {
        self.0
    }
}

/// Where frames are seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Point {
    /// At a port.
    Port(PortAt, Sides),
    /// On the underlay, of a tunnel's port: packets as they leave and come.
    Outside(PortAt),
    /// At a queue of a port: as frames come to it, as they leave it, and as it drops them.
    Queue(PortAt, u32),
    /// Between a switch and its controllers: packet-ins as they leave, packet-outs as they come.
    Controller(SwitchId),
    /// Where they are lost: in a switch, or anywhere.
    Drops(Option<SwitchId>),
    /// One in 32 of those that come in: at a switch, or anywhere.
    Passed(Option<SwitchId>),
}

impl Point {
    /// Whether it sees frames that pass this port on this side.
    pub(crate) fn sees(&self, at: PortAt, side: Side) -> bool {
        matches!(*self, Self::Port(port, sides) if port == at && sides.0 & side as u8 != 0)
    }

    /// Whether it sees this tunnel's packets outside.
    pub(crate) fn sees_outside(&self, at: PortAt) -> bool {
        *self == Self::Outside(at)
    }

    /// Whether it sees this queue of a port.
    pub(crate) fn sees_queue(&self, at: PortAt, queue: u32) -> bool {
        *self == Self::Queue(at, queue)
    }

    /// Whether it sees what this switch and its controllers send each other.
    pub(crate) fn sees_controller(&self, switch: SwitchId) -> bool {
        *self == Self::Controller(switch)
    }

    /// Whether it sees what is lost at a port.
    pub(crate) fn sees_losses(&self, at: PortAt) -> bool {
        matches!(*self, Self::Drops(switch) if switch.is_none_or(|switch| switch == at.switch))
    }

    /// Whether it sees the sample of what comes in at a port.
    pub(crate) fn sees_passed(&self, at: PortAt) -> bool {
        matches!(*self, Self::Passed(switch) if switch.is_none_or(|switch| switch == at.switch))
    }

    /// Whether it is of a note: a loss, or a frame of the sample. A port's is what came in there.
    pub(crate) fn sees_noted(&self, seen: &Captured<'_>) -> bool {
        match seen.what {
            What::Lost(_) | What::LostElsewhere(..) => self.sees_losses(seen.port),
            _ => self.sees_passed(seen.port) || self.sees(seen.port, Side::Rx),
        }
    }

    /// The sides of this port that it wants to see.
    pub(crate) fn sides_of(&self, at: PortAt) -> u8 {
        match *self {
            Self::Port(port, sides) if port == at => sides.bits(),
            Self::Outside(port) if port == at => Side::Outside as u8,
            Self::Queue(port, _) if port == at => Side::Queue as u8,
            _ => 0,
        }
    }
}
