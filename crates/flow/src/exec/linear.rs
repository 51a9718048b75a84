//! The short way of a packet whose whole program is known to be edits and then one output.
//!
//! Most programs are so. Nothing of theirs has to wait, be copied or be kept for later, so what a [`Run`] keeps account of is not
//! needed; only a packet whose edit fails needs one. What the edits replace is worked out when the program is made.

use super::leave::Leaves;
use super::leaving::Leaving;
use super::{Env, Origin, Run, edit};
use crate::action::{Action, Instructions, Output, PortNo};
use crate::action_set::ActionSet;
use crate::packet::{Packet, Sink, Then};
use std::ops::Range;
use wire::{Edit, EditError, Field, Head, Key, Layers, Offload};

/// Edits in their order, then one output.
#[derive(Debug)]
pub(crate) struct LinearProgram {
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

impl LinearProgram {
    /// The short form of an entry's instructions, if the entry is the only one on a packet's way and they have such a form.
    pub fn of(instructions: &Instructions) -> Option<Self> {
        let Instructions { meter: None, metadata: None, goto: None, apply, write, .. } =
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

    /// The port by which packets of these keys leave that came in by `in_port`, if all leave by the same. A bridge is asked only of packets
    /// that nothing has changed.
    #[inline]
    pub fn leaves_by(&self, env: &Env<'_>, in_port: PortNo, keys: &[Key]) -> Option<PortNo> {
        if self.bare_output() == Some(Output::Normal) {
            return env.bridged_to(keys, in_port);
        }
        match env.leaves_by_port(in_port, self.to) {
            Leaves::By(port) => Some(port),
            Leaves::ByAll(_) | Leaves::Nowhere(_) => None,
        }
    }

    /// Whether all that it does to these packets is to replace Ethernet addresses and to decrement TTLs, and none runs out. Heads with what was parsed of them.
    #[inline]
    pub fn surely_routes<'h, 'k>(
        &self,
        mut packets: impl Iterator<Item = (&'h Head, (&'k Key, &'k Layers))>,
    ) -> bool {
        let is_ttl = |step: &Step| matches!(step, Step::One(Action::DecNwTtl));
        let is_address = |step: &Step| matches!(step, Step::Addresses { .. });
        match self.edits.iter().filter(|step| is_ttl(step)).count() {
            _ if !self.edits.iter().all(|step| is_ttl(step) || is_address(step)) => false,
            0 => true,
            1 => packets.all(|(head, (key, layers))| {
                wire::nw_ttl(head, key, layers).is_none_or(|ttl| ttl > 1)
            }),
            _ => false,
        }
    }

    /// Does that to one of them.
    #[inline]
    pub fn route(&self, head: &mut Head, key: &mut Key, layers: &mut Layers) {
        // Neither step looks at these, or changes them.
        let (mut offload, mut frame_len) = (Offload::default(), 0);
        let mut edit = Edit { head, key, layers, offload: &mut offload, frame_len: &mut frame_len };
        for step in &self.edits {
            // What a packet does not have stays as it is.
            let _done_or_not_present = match step {
                Step::Addresses { masks, values } => edit.set_addresses(*masks, *values),
                Step::One(_) => edit.dec_nw_ttl(),
            };
        }
    }

    /// Runs the program for neighbours that came in by one port, and tells the one verdict of each. `origin` is asked for only if the
    /// controller is to be told of a TTL.
    #[inline(always)]
    pub fn run<S: Sink>(
        &self,
        env: &Env<'_>,
        which: Range<usize>,
        packets: &mut [&mut Packet<'_>],
        leaving: &mut Leaving<'_, S>,
        origin: impl Fn() -> Origin,
    ) {
        let mut from = which.start;
        if !self.edits.is_empty() {
            for at in which.clone() {
                let Err(error) = self.edit(packets[at]) else { continue };
                self.leave(env, from..at, packets, leaving);
                let sink = leaving.otherwise(packets, at..at + 1);
                let mut run = Run::new(env, at, packets[at], sink);
                run.enter(origin());
                let _ends_here = run.cannot_edit(error);
                run.finish(&ActionSet::default());
                from = at + 1;
            }
        }
        self.leave(env, from..which.end, packets, leaving);
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
    #[inline(always)]
    fn leave<S: Sink>(
        &self,
        env: &Env<'_>,
        which: Range<usize>,
        packets: &[&mut Packet<'_>],
        leaving: &mut Leaving<'_, S>,
    ) {
        match self.to {
            Output::Normal => {
                let mut each = which.clone();
                let bridged = packets[which].iter().map(|packet| &packet.key);
                env.bridged_each(bridged, |leaves| {
                    let index = each.next().unwrap_or_default();
                    tell(leaves, index..index + 1, packets, leaving);
                });
            }
            _ => leave(env, self.to, which, packets, leaving),
        }
    }
}

/// Tells where neighbours leave that came in by one port and all leave the same way.
#[inline(always)]
pub(crate) fn leave<S: Sink>(
    env: &Env<'_>,
    to: Output,
    which: Range<usize>,
    packets: &[&mut Packet<'_>],
    leaving: &mut Leaving<'_, S>,
) {
    let Some(first) = packets.get(which.start).filter(|_| !which.is_empty()) else { return };
    tell(env.leaves(first, to), which, packets, leaving);
}

#[inline(always)]
fn tell<S: Sink>(
    leaves: Leaves<'_>,
    which: Range<usize>,
    packets: &[&mut Packet<'_>],
    leaving: &mut Leaving<'_, S>,
) {
    match leaves {
        Leaves::By(port) => leaving.by(which, port),
        Leaves::ByAll(ports) => {
            let sink = leaving.otherwise(packets, which.clone());
            which.for_each(|index| sink.output(index, packets[index], ports, Then::Done));
        }
        Leaves::Nowhere(reason) => {
            let sink = leaving.otherwise(packets, which.clone());
            which.for_each(|index| sink.lose(index, packets[index], reason));
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
