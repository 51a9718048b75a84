//! A flow's stay on a rung, from installation to removal.

use crate::declined::{Declined, MoveReason, PolicyReason};
use crate::{FlowProgram, Handle, Price, Provider, ProviderName, Side};
use flow::Nanos;
use std::time::Duration;

/// Where a stay is.
#[derive(Clone, Debug)]
pub enum Stage {
    /// In place; no frame takes it, and earlier ones may be unknown to it.
    Installed,
    /// It goes up as soon as no frame of it is under way in the worker.
    Rising,
    /// Frames take the rung.
    Up,
    /// It goes down.
    Falling {
        /// Why.
        why: Declined,
    },
}

/// A stay.
pub(super) struct Stay {
    pub provider: ProviderName,
    pub handle: Handle,
    pub program: FlowProgram,
    pub price: Price,
    pub stage: Stage,
    /// Whether frames have taken the rung.
    pub was_up: bool,
    /// How long it stays at least, and tries to rise at most.
    pub residence: Duration,
}

impl Stay {
    /// Whether its packets came otherwise than they had, and its frames are the worker's since.
    pub fn fell_by_itself(&self, provider: Option<&mut (dyn Provider + '_)>) -> bool {
        let may_wait = !self.program.shapes.is_empty();
        let is_down =
            |provider: &mut (dyn Provider + '_)| provider.side(self.handle) == Side::Worker;
        matches!(self.stage, Stage::Up) && !may_wait && provider.is_some_and(is_down)
    }

    /// Why it gives up, if it has tried for long enough since it was wanted up. It takes a frame to rise: without one since then, none
    /// was in its way.
    pub fn rises_in_vain(&self, since: Nanos, last: Nanos, now: Nanos) -> Option<Declined> {
        let in_vain = matches!(self.stage, Stage::Rising)
            && now.since(since) > self.residence.as_nanos() as u64;
        let why =
            if last > since { MoveReason::NeverQuiet.into() } else { PolicyReason::NotSeen.into() };
        in_vain.then_some(why)
    }
}

/// How long a flow waits that fell or failed to rise so often in a row: 1, 2, 4 … 64 s.
pub(super) fn cooling(now: Nanos, failures: u8) -> Nanos {
    Nanos(now.0 + (1_000_000_000 << failures.min(6)))
}

/// When a refusal is tried again: after 1, 2, 4 … 512 s.
pub(super) fn retry(now: Nanos, refusals: u8) -> Nanos {
    Nanos(now.0 + (1_000_000_000 << refusals.min(9)))
}
