//! The short way of a packet whose whole program is known to be edits and then one output.
//!
//! Most programs are so. Nothing of theirs has to wait, be copied or be kept for later, so what a [`Run`] keeps account of is not
//! needed; only a packet whose edit fails needs one. What the edits replace is worked out when the program is made.

use super::leave::Leaves;
use super::{Env, Origin, Run, edit};
use crate::action::{Action, Instructions, Output, PortNo};
use crate::action_set::ActionSet;
use crate::packet::{Packet, Sink, Then};
use crate::ports::PortTable;
use wire::{DropReason, EditError, Field};

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

    /// Runs the program for neighbours that came in by one port, and tells the one verdict of each. `origin` is asked for only if the
    /// controller is to be told of a TTL.
    pub fn run<S: Sink>(
        &self,
        env: &Env<'_>,
        first: usize,
        packets: &mut [&mut Packet<'_>],
        sink: &mut S,
        origin: impl Fn() -> Origin,
    ) {
        let mut told = 0;
        if !self.edits.is_empty() {
            for at in 0..packets.len() {
                let Err(error) = self.edit(packets[at]) else { continue };
                self.send(env, first + told, &packets[told..at], sink);
                let mut run = Run::new(env, first + at, packets[at], sink);
                run.enter(origin());
                let _ends_here = run.cannot_edit(error);
                run.finish(&ActionSet::default());
                told = at + 1;
            }
        }
        self.send(env, first + told, &packets[told..], sink);
    }

    /// Changes one packet.
    #[inline]
    fn edit(&self, packet: &mut Packet<'_>) -> Result<(), EditError> {
        for step in &self.edits {
            match step.apply(packet) {
                Ok(()) | Err(EditError::NotPresent) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Tells where neighbours leave: all the same way, unless the learning table says where.
    #[inline]
    fn send<S: Sink>(
        &self,
        env: &Env<'_>,
        first: usize,
        packets: &[&mut Packet<'_>],
        sink: &mut S,
    ) {
        match self.to {
            Output::Port(port) => forward(env.ports, first, packets, port, sink),
            Output::Normal => {
                for (index, packet) in packets.iter().enumerate() {
                    let one = std::slice::from_ref(packet);
                    send_together(env, first + index, one, self.to, sink);
                }
            }
            _ => send_together(env, first, packets, self.to, sink),
        }
    }
}

/// Sends neighbours, which came in by one port, by another.
#[inline]
pub(crate) fn forward<S: Sink>(
    ports: &PortTable,
    first: usize,
    packets: &[&mut Packet<'_>],
    port: PortNo,
    sink: &mut S,
) {
    let in_port = packets.first().map(|packet| packet.in_port());
    let verdict = match in_port == Some(port) {
        true => Err(DropReason::NoDestination),
        false => ports.egress(port),
    };
    match verdict {
        Ok(()) => sink.forward(first, packets, port),
        Err(reason) => discard(first, packets, reason, sink),
    }
}

#[cold]
fn discard<S: Sink>(first: usize, packets: &[&mut Packet<'_>], reason: DropReason, sink: &mut S) {
    let each = packets.iter().zip(first..);
    each.for_each(|(packet, index)| sink.discard(index, packet, reason));
}

/// Tells where packets leave that all leave the same way.
#[inline]
fn send_together<S: Sink>(
    env: &Env<'_>,
    first: usize,
    packets: &[&mut Packet<'_>],
    to: Output,
    sink: &mut S,
) {
    let Some(packet) = packets.first() else { return };
    match env.leaves(packet, to) {
        Leaves::By(port) => sink.forward(first, packets, port),
        Leaves::ByAll(ports) => {
            let each = packets.iter().zip(first..);
            each.for_each(|(packet, index)| sink.output(index, packet, ports, Then::Done));
        }
        Leaves::Nowhere(reason) => discard(first, packets, reason, sink),
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
