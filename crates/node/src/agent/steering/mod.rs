//! # Steering for controllers
//!
//! **Question answered**: what does a controller get when it speaks suiro's OpenFlow extension (`docs/reference/openflow-extension.md`), and who tells
//! it of news?
//!
//! * [`Host`]: what is asked of the host's steering, in the extension's own values. [`crate::steer`] has the real one.
//! * [`Desk`]: one for a node. It watches the host for all sessions together, as long as any wants to hear.
//! * [`Permit`]: what a switch's owner lets its controllers do; a switch without one does not know the extension.
//!
//! ## Invariants
//!
//! * All that a session is told of the host comes from one stream of what the desk saw, so news never contradicts what came before.
//! * While nobody has subscribed, the host is not asked.

mod answer;
mod desk;
mod news;

pub use answer::{Answer, Question, answer};
pub use desk::{Desk, Facts};
pub use news::Teller;

use openflow::steering::{
    CoreStats, HostInfo, PlaceMod, PlacementRequest, PlacementStats, SteerError, Vm,
};
use openflow::{ErrorKind, Fault};
use std::pin::Pin;
use std::sync::Arc;

/// What the host answers, some time.
pub type Answered<T> = Pin<Box<dyn Future<Output = Result<T, Refused>> + Send>>;

/// The host's steering.
pub trait Host: Send + Sync {
    /// Its cores and interfaces. Whether the asker may program is not for the host to say.
    fn info(&self) -> Answered<HostInfo>;

    /// Its virtual machines, in an order that stays.
    fn vms(&self) -> Answered<Vec<Vm>>;

    /// Changes steering entries. The change was [checked](PlaceMod::check).
    fn change(&self, change: PlaceMod) -> Answered<()>;

    /// What its cores do.
    fn core_stats(&self) -> Answered<Vec<CoreStats>>;

    /// What was placed where.
    fn placements(&self, request: PlacementRequest) -> Answered<Vec<PlacementStats>>;
}

/// Why something was refused: the error to answer with, and the reason for the log.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{what}")]
pub struct Refused {
    /// The error to answer with.
    pub kind: ErrorKind,
    /// What was wrong, in one clause.
    pub what: String,
}

impl Refused {
    /// One of the extension's own errors.
    pub fn new(error: SteerError, what: impl Into<String>) -> Self {
        Self { kind: error.kind(), what: what.into() }
    }

    /// The host did not answer in time.
    pub fn late() -> Self {
        Self::new(SteerError::Host, "the host's steering did not answer in time")
    }
}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Self {
        Self { kind: ErrorKind::Known(fault.code), what: fault.what.to_owned() }
    }
}

/// What a switch's controllers may do.
#[derive(Clone)]
pub struct Permit {
    /// Where they are answered.
    pub desk: Arc<Desk>,
    /// Whether they may change entries.
    pub may_program: bool,
}
