//! Why a flow has no program, and whose change may give it one.

use crate::declined::{Declined, MoveReason};
use crate::{FlowProgram, PortReason};
use flow::SwitchId;

/// Why a flow stays where it is.
#[derive(Clone, PartialEq, Debug)]
pub struct Refusal {
    /// Why.
    pub why: Declined,
    /// Beside its own, the switch that was asked: its tunnel's packets pass it. What changes there may change the answer.
    pub beyond: Option<SwitchId>,
}

impl Refusal {
    /// Of a flow whose packets pass that switch, too.
    pub fn beyond(why: impl Into<Declined>, switch: SwitchId) -> Self {
        Self { why: why.into(), beyond: Some(switch) }
    }

    /// Of a flow that has a program, which nobody takes.
    pub fn of(program: &FlowProgram, why: impl Into<Declined>) -> Self {
        let own = program.from.switch;
        let beyond = program.ports().map(|port| port.switch).find(|switch| *switch != own);
        Self { why: why.into(), beyond }
    }
}

impl<T: Into<Declined>> From<T> for Refusal {
    fn from(why: T) -> Self {
        Self { why: why.into(), beyond: None }
    }
}

impl Declined {
    /// Whether it holds until something changes that the engine is told of. What a policy says changes with each window.
    pub(super) fn is_remembered(&self) -> bool {
        match self {
            Self::Policy(_) => false,
            Self::Move(why) => *why == MoveReason::Steered,
            Self::Flow(_) | Self::Port(_) | Self::Card(_) => true,
        }
    }

    /// Whether any switch may know better.
    pub(super) fn is_anybodys(&self) -> bool {
        *self == PortReason::NoWay.into()
    }
}
