//! One frame, or a copy of it, on its way: what actions make of it and where they send it.
//!
//! Step for step what `exec` does to a packet, on a [`Sketch`]; nothing is counted, learned or charged.

use super::sketch::{Edited, Sketch, whole};
use super::visit::{Exit, Stop, Visitor};
use super::walk::Walk;
use crate::action::{Action, Output};
use crate::config::Miss;
use crate::exec::{HASHED, Leaves, Origin, WHOLE, flow_hash};
use crate::limits::MAX_CHAIN;
use crate::meter::{CONTROLLER_METER, MeterVerdict, remarked};
use crate::packet::{PacketIn, PacketInReason};
use wire::{DropReason, Field};

/// A frame or copy.
pub(super) struct Course {
    pub sketch: Sketch,
    /// A group that is run when it is known whether anything follows it.
    group: Option<(u32, Origin)>,
    pub origin: Origin,
    /// Groups around these actions.
    depth: u8,
    /// Nothing cut the program short.
    alive: bool,
}

impl Course {
    /// A frame at the start of its way.
    pub fn new(sketch: Sketch) -> Self {
        Self { sketch, group: None, origin: Origin::PACKET_OUT, depth: 0, alive: true }
    }

    /// Applies a list of actions.
    pub fn apply<V: Visitor>(
        &mut self,
        walk: &mut Walk<'_, V>,
        actions: &[Action],
    ) -> Result<(), Stop> {
        actions.iter().try_for_each(|action| self.step(walk, action))
    }

    /// Passes a meter, which is taken to let the frame pass.
    pub fn meter<V: Visitor>(&mut self, walk: &mut Walk<'_, V>, id: u32) -> Result<(), Stop> {
        walk.uses.meters = true;
        let meters = &walk.snapshot.meters;
        if !meters.contains(id) {
            return Ok(());
        }
        let remarks = meters.remarks(id);
        if remarks && self.sketch.whole.is_none() {
            self.sketch.forget(Field::IpDscp);
        }
        walk.visitor.limit(id, remarks)?;
        let Some(frame) = &self.sketch.whole else { return Ok(()) };
        let verdict = walk.ask_meter(id, frame.frame_len);
        walk.visitor.metered(id, verdict)?;
        match verdict {
            MeterVerdict::Pass => Ok(()),
            MeterVerdict::Drop => Err(self.stop(walk, DropReason::Meter)),
            MeterVerdict::Remark(level) => self.remark(walk, level),
        }
    }

    fn remark<V: Visitor>(&mut self, walk: &mut Walk<'_, V>, level: u8) -> Result<(), Stop> {
        let before = self.sketch.field(Field::IpDscp, &mut walk.looked_at);
        let before = before.map_err(Stop::Depends)? as u8;
        match remarked(before, level) {
            after if after == before => Ok(()),
            after => self.step(
                walk,
                &Action::SetField {
                    field: Field::IpDscp,
                    of: None,
                    value: after.into(),
                    mask: Field::IpDscp.full(),
                },
            ),
        }
    }

    /// Writes metadata.
    pub fn write_metadata<V: Visitor>(
        &mut self,
        walk: &mut Walk<'_, V>,
        (value, mask): (u64, u64),
    ) -> Result<(), Stop> {
        let before = self.sketch.field(Field::Metadata, &mut walk.looked_at);
        let before = before.map_err(Stop::Depends)? as u64;
        if before & mask != value & mask {
            self.run_waiting_group(walk)?;
            self.sketch.write_metadata(value.into(), mask.into());
        }
        Ok(())
    }

    /// Ends the way here, for this reason unless the frame left somewhere.
    pub fn stop<V: Visitor>(&mut self, walk: &mut Walk<'_, V>, reason: DropReason) -> Stop {
        walk.lose(reason);
        self.alive = false;
        Stop::Cut
    }

    /// Runs what is left when the tables or the bucket have been gone through: `program`, then a group that waits.
    ///
    /// # Errors
    /// Never [`Stop::Cut`].
    pub fn finish<V: Visitor>(
        mut self,
        walk: &mut Walk<'_, V>,
        program: &[Action],
    ) -> Result<(), Stop> {
        if self.alive {
            self.origin.miss = false;
            uncut(self.apply(walk, program))?;
        }
        self.run_last_group(walk)
    }

    fn step<V: Visitor>(&mut self, walk: &mut Walk<'_, V>, action: &Action) -> Result<(), Stop> {
        match *action {
            Action::Output(output) => self.output(walk, output),
            Action::Group(id) => {
                self.run_waiting_group(walk)?;
                self.group = Some((id, self.origin));
                Ok(())
            }
            Action::SetQueue(queue) if queue == self.sketch.queue => Ok(()),
            Action::SetQueue(queue) => {
                self.run_waiting_group(walk)?;
                walk.visitor.parted();
                self.sketch.queue = queue;
                Ok(())
            }
            _ => {
                self.run_waiting_group(walk)?;
                walk.visitor.parted();
                self.edit(walk, action)
            }
        }
    }

    fn edit<V: Visitor>(&mut self, walk: &mut Walk<'_, V>, action: &Action) -> Result<(), Stop> {
        walk.visitor.edit(action)?;
        match self.sketch.edit(action, &mut walk.looked_at) {
            Edited::Done => Ok(()),
            Edited::Malformed => Err(self.stop(walk, DropReason::BadEdit)),
            Edited::Depends(field) => Err(Stop::Depends(field)),
            Edited::Expired if walk.snapshot.config.invalid_ttl_to_controller => {
                self.packet_in(walk, PacketInReason::InvalidTtl, WHOLE)?;
                self.alive = false;
                Err(Stop::Cut)
            }
            Edited::Expired => Err(self.stop(walk, DropReason::TtlExpired)),
        }
    }

    fn output<V: Visitor>(&mut self, walk: &mut Walk<'_, V>, output: Output) -> Result<(), Stop> {
        self.run_waiting_group(walk)?;
        match output {
            Output::Controller { max_len } => self.send_to_controller(walk, max_len),
            Output::Table => {
                walk.lose(DropReason::NoPort);
                Ok(())
            }
            _ => {
                let leaves = walk.leaves(&self.sketch, output)?;
                self.send(walk, leaves)
            }
        }
    }

    fn send<V: Visitor>(&mut self, walk: &mut Walk<'_, V>, leaves: Leaves<'_>) -> Result<(), Stop> {
        let ports = match leaves {
            Leaves::By(port) => &[port][..],
            Leaves::ByAll(ports) => ports,
            Leaves::Nowhere(reason) => {
                walk.lose(reason);
                return Ok(());
            }
        };
        self.spend(walk, ports.len())?;
        self.leave(walk, Exit::Ports(ports))
    }

    fn leave<V: Visitor>(&self, walk: &mut Walk<'_, V>, exit: Exit<'_>) -> Result<(), Stop> {
        walk.told = true;
        let Sketch { edits, queue, .. } = &self.sketch;
        match self.sketch.frame() {
            Some(frame) => walk.visitor.leave(&frame, *queue, exit),
            None => walk.visitor.exit(edits, *queue, exit),
        }
    }

    fn send_to_controller<V: Visitor>(
        &mut self,
        walk: &mut Walk<'_, V>,
        max_len: u16,
    ) -> Result<(), Stop> {
        if !self.origin.miss {
            return self.packet_in(walk, PacketInReason::Action, max_len);
        }
        let in_port = walk.in_port(&self.sketch)?;
        match walk.snapshot.ports.get(in_port) {
            Some(port) if port.no_packet_in && walk.snapshot.config.miss == Miss::Controller => {
                self.packet_in(walk, PacketInReason::SilentMiss, max_len)
            }
            Some(port) if port.no_packet_in => {
                walk.lose(DropReason::NoMatch);
                Ok(())
            }
            _ => self.packet_in(walk, PacketInReason::NoMatch, max_len),
        }
    }

    fn packet_in<V: Visitor>(
        &mut self,
        walk: &mut Walk<'_, V>,
        reason: PacketInReason,
        max_len: u16,
    ) -> Result<(), Stop> {
        walk.uses.meters = true;
        if walk.snapshot.meters.contains(CONTROLLER_METER) {
            walk.visitor.limit(CONTROLLER_METER, false)?;
            if let Some(frame) = &self.sketch.whole {
                let verdict = walk.ask_meter(CONTROLLER_METER, frame.frame_len);
                walk.visitor.metered(CONTROLLER_METER, verdict)?;
                if verdict == MeterVerdict::Drop {
                    walk.lose(DropReason::Meter);
                    return Ok(());
                }
            }
        }
        self.spend(walk, 1)?;
        let Origin { table, cookie, .. } = self.origin;
        let why = PacketIn { reason, table, cookie, max_len };
        self.leave(walk, Exit::Controller(why))
    }

    fn run_waiting_group<V: Visitor>(&mut self, walk: &mut Walk<'_, V>) -> Result<(), Stop> {
        let Some((id, origin)) = self.group.take() else { return Ok(()) };
        let buckets = self.choose(walk, id)?;
        self.run_copies(walk, id, buckets, origin)
    }

    fn run_last_group<V: Visitor>(&mut self, walk: &mut Walk<'_, V>) -> Result<(), Stop> {
        while let Some((id, origin)) = self.group.take() {
            let mut buckets = self.choose(walk, id)?;
            let Some(last) = buckets.next_back() else { return Ok(()) };
            match self.run_copies(walk, id, buckets, origin) {
                Err(Stop::Cut) => return Ok(()),
                other => other?,
            }
            self.depth += 1;
            self.origin = Origin { miss: false, ..origin };
            walk.visitor.bucket(id, last)?;
            match self.run_bucket(walk, id, last) {
                Err(Stop::Cut) => return Ok(()),
                other => other?,
            }
        }
        Ok(())
    }

    fn run_bucket<V: Visitor>(
        &mut self,
        walk: &mut Walk<'_, V>,
        id: u32,
        at: usize,
    ) -> Result<(), Stop> {
        let snapshot = walk.snapshot;
        let actions = snapshot.groups.get(id).map_or(&[][..], |group| group.actions(at));
        self.apply(walk, actions)
    }

    fn run_copies<V: Visitor>(
        &mut self,
        walk: &mut Walk<'_, V>,
        id: u32,
        buckets: std::ops::Range<usize>,
        origin: Origin,
    ) -> Result<(), Stop> {
        if !buckets.is_empty() {
            walk.visitor.parted();
        }
        for at in buckets {
            self.spend(walk, 1)?;
            walk.visitor.bucket(id, at)?;
            let mut copy = Course {
                sketch: self.sketch.clone(),
                group: None,
                origin: Origin { miss: false, ..origin },
                depth: self.depth + 1,
                alive: true,
            };
            uncut(copy.run_bucket(walk, id, at))?;
            copy.run_last_group(walk)?;
            walk.visitor.parted();
        }
        Ok(())
    }

    /// The buckets of a group that the frame takes.
    fn choose<V: Visitor>(
        &self,
        walk: &mut Walk<'_, V>,
        id: u32,
    ) -> Result<std::ops::Range<usize>, Stop> {
        walk.uses.groups = true;
        let group = walk.snapshot.groups.get(id).filter(|_| self.depth < MAX_CHAIN);
        let chosen = match group {
            None => 0..0,
            Some(group) if group.chooses_by_hash() => {
                for &field in HASHED {
                    self.sketch.look(&whole(field), &mut walk.looked_at).map_err(Stop::Depends)?;
                }
                group.chosen(|| flow_hash(&self.sketch.key))
            }
            Some(group) => group.chosen(|| 0),
        };
        walk.visitor.group(id, &chosen);
        if chosen.is_empty() {
            walk.lose(DropReason::NoBucket);
        }
        Ok(chosen)
    }

    fn spend<V: Visitor>(&mut self, walk: &mut Walk<'_, V>, copies: usize) -> Result<(), Stop> {
        match walk.budget.checked_sub(copies as u32) {
            Some(left) => {
                walk.budget = left;
                Ok(())
            }
            None => {
                walk.budget = 0;
                Err(self.stop(walk, DropReason::TooManyCopies))
            }
        }
    }
}

/// A program that was cut has ended; all else goes on.
pub(super) fn uncut(result: Result<(), Stop>) -> Result<(), Stop> {
    match result {
        Err(Stop::Cut) => Ok(()),
        other => other,
    }
}
