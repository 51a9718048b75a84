//! The short way of a packet whose whole program is known to be edits and then one output.
//!
//! Most programs are so. Nothing of theirs has to wait, be copied or be kept for later, so what a [`Run`] keeps account of is not
//! needed; only a packet whose edit fails needs one. What the edits replace is worked out when the program is made.

use super::leave::Leaves;
use super::{Env, Origin, Run, edit};
use crate::action::{Action, Instructions, Output};
use crate::action_set::ActionSet;
use crate::packet::{Packet, Sink, Then};
use wire::{EditError, Field};

/// Edits in their order, then one output.
#[derive(Debug)]
pub(crate) struct Straight {
    edits: Box<[Step]>,
    to: Output,
}

/// One edit, or several at once.
#[derive(Debug)]
enum Step {
    /// Neighbouring set-fields of the Ethernet addresses, as [`wire::Edit::set_addresses`] takes them.
    Addresses { masks: [u64; 2], values: [u64; 2] },
    /// Any other.
    One(Action),
}

impl Straight {
    /// The short form of an entry's instructions, if the entry is the only one on a packet's way and they have such a form.
    pub fn of(instructions: &Instructions) -> Option<Self> {
        let Instructions { meter: None, metadata: None, goto: None, apply, write, clear: _ } =
            instructions
        else {
            return None;
        };
        let set = ActionSet::of(write);
        let all: Vec<Action> = apply.iter().chain(set.program()).copied().collect();
        let (Action::Output(to), edits) = all.split_last()? else { return None };
        let to = *to;
        let waits = |action: &Action| {
            matches!(action, Action::Output(_) | Action::Group(_) | Action::SetQueue(_))
        };
        // What a controller is told depends on the entry, and which of its actions said so.
        let fits = !matches!(to, Output::Controller { .. } | Output::Table);
        (fits && !edits.iter().any(waits)).then(|| Self { edits: steps(edits), to })
    }

    /// The output, if nothing is edited.
    pub fn bare_output(&self) -> Option<Output> {
        self.edits.is_empty().then_some(self.to)
    }

    /// Runs the program and tells the one verdict. `origin` is asked for only if the controller is to be told of a TTL.
    pub fn run<S: Sink>(
        &self,
        env: &Env<'_>,
        index: usize,
        packet: &mut Packet<'_>,
        sink: &mut S,
        origin: impl FnOnce() -> Origin,
    ) {
        for step in &self.edits {
            match step.apply(packet) {
                Ok(()) | Err(EditError::NotPresent) => {}
                Err(error) => {
                    let mut run = Run::new(env, index, packet, sink);
                    run.enter(origin());
                    let _ends_here = run.cannot_edit(error);
                    run.finish(&ActionSet::default());
                    return;
                }
            }
        }
        match env.leaves(packet, self.to) {
            Leaves::By(port) => sink.output(index, packet, &[port], Then::Done),
            Leaves::ByAll(ports) => sink.output(index, packet, ports, Then::Done),
            Leaves::Nowhere(reason) => sink.discard(index, packet, reason),
        }
    }
}

impl Step {
    #[inline]
    fn apply(&self, packet: &mut Packet<'_>) -> Result<(), EditError> {
        match self {
            Self::Addresses { masks, values } => edit::of(packet).set_addresses(*masks, *values),
            Self::One(Action::DecNwTtl) => edit::of(packet).dec_nw_ttl(),
            Self::One(action) => edit::edit(packet, action),
        }
    }
}

/// The edits as steps, as few as they can be.
fn steps(edits: &[Action]) -> Box<[Step]> {
    let mut steps: Vec<Step> = Vec::new();
    for &action in edits {
        let Some((which, value, mask)) = address(&action) else {
            steps.push(Step::One(action));
            continue;
        };
        if !matches!(steps.last(), Some(Step::Addresses { .. })) {
            steps.push(Step::Addresses { masks: [0; 2], values: [0; 2] });
        }
        if let Some(Step::Addresses { masks, values }) = steps.last_mut() {
            masks[which] |= mask;
            values[which] = values[which] & !mask | value & mask;
        }
    }
    steps.into()
}

/// Which Ethernet address the action sets; value and mask as they lie in the key.
fn address(action: &Action) -> Option<(usize, u64, u64)> {
    let (which, value, mask) = match *action {
        Action::SetField { field: Field::EthDst, value, mask, .. } => (0, value, mask),
        Action::SetField { field: Field::EthSrc, value, mask, .. } => (1, value, mask),
        _ => return None,
    };
    Some((which, (value as u64) << 16, (mask as u64) << 16))
}
