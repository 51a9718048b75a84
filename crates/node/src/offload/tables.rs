//! What the engine asks of the node: what tables and ports make of a flow, and where its frames count.

use super::PortNote;
use super::approach::Came;
use super::seen::AllSeen;
use arrayvec::ArrayVec;
use datapath::{Datapath, OnlyHere, PastWorkers, PortAt, Publisher, Samples, Steers, SwitchId};
use flow::{BucketShape, Counted, Nanos, PortNo, SharedBucket, Snapshot};
use offload::{
    Around, Counts, Declined, Facts, FlowName, FlowProgram, FlowReason, LimitId, MAX_LIMITS,
    MAX_SHAPES, MoveReason, Orphan, PolicyReason, PortReason, Refusal, Work, World, known,
};
use port::Sent;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use xdp::offload::Flows;

/// Switches, ports and workers, as this thread knows them.
#[derive(Default)]
pub(super) struct Tables {
    datapath: Option<Arc<Datapath>>,
    switches: HashMap<SwitchId, Known>,
    ports: HashMap<PortAt, PortNote>,
    /// Switches that are steered, or about to be.
    steered: HashSet<SwitchId>,
    /// What captures want.
    pub(super) seen: AllSeen,
    /// Where limits are that workers and rungs share.
    flows: Option<Arc<Flows>>,
    /// Around which flows there were tunnels' headers.
    pub(super) came: Came,
    /// While a flow is taken up that an earlier node left: when its last frame came.
    left_at: Option<Nanos>,
}

/// A switch, and its tables as they were looked at last.
struct Known {
    publisher: Arc<Publisher>,
    tables: Option<Arc<Snapshot>>,
}

impl Tables {
    pub fn serve(&mut self, datapath: Arc<Datapath>) {
        self.datapath = Some(datapath);
    }

    /// Rungs of the kernel can be used.
    pub fn prepared(&mut self, flows: Arc<Flows>) {
        self.flows = Some(flows);
    }

    pub fn samples(&self) -> Option<Arc<Samples>> {
        self.datapath.as_ref().map(|datapath| datapath.samples().clone())
    }

    /// What workers have done since their start.
    pub fn work(&self) -> Work {
        let (frames, bytes, busy_ns) =
            self.datapath.as_ref().map_or((0, 0, 0), |datapath| datapath.work());
        Work { frames, bytes, busy_ns }
    }

    pub fn show_one_in(&self, every: u32) {
        self.datapath.iter().for_each(|datapath| datapath.samples().show_one_in(every));
    }

    pub fn switch_came(&mut self, id: SwitchId, publisher: Arc<Publisher>) {
        self.switches.insert(id, Known { publisher, tables: None });
    }

    pub fn switch_goes(&mut self, id: SwitchId) {
        self.switches.remove(&id);
        self.steered.remove(&id);
    }

    /// A switch is about to be steered, or is no more.
    pub fn steers(&mut self, id: SwitchId, change: Steers) {
        match change {
            Steers::Begins => _ = self.steered.insert(id),
            Steers::Ended => _ = self.steered.remove(&id),
        }
    }

    /// Notes a port; whether flows meet it differently now.
    pub fn port_is(&mut self, at: PortAt, note: PortNote) -> bool {
        let met = |note: &PortNote| {
            let past = note.past.as_ref().map(|past| past.as_ref().map(drop).map_err(|why| *why));
            let wrapping = note.wrapping.as_ref();
            let wrapping = wrapping.map(|of| of.as_ref().map(Arc::as_ptr).map_err(Clone::clone));
            (note.mtu, note.is_up, note.exit, note.queues.clone(), past, wrapping)
        };
        let now = met(&note);
        self.came.tunnel_is(at, note.wrapping.as_ref().and_then(|wrapping| wrapping.as_ref().ok()));
        self.ports.insert(at, note).is_none_or(|before| met(&before) != now)
    }

    pub fn port_goes(&mut self, at: PortAt) {
        self.ports.remove(&at);
        self.came.tunnel_is(at, None);
    }

    /// Whether a switch published others since they were looked at.
    pub fn is_behind(&self, switch: SwitchId) -> bool {
        let Some(Known { publisher, tables }) = self.switches.get(&switch) else { return false };
        !tables.as_ref().is_some_and(|tables| Arc::ptr_eq(tables, &publisher.tables()))
    }

    /// Takes a switch's tables as they are published; those before keep their entries' counts as long as they are held.
    pub fn renew(&mut self, switch: SwitchId) -> Option<Arc<Snapshot>> {
        let known = self.switches.get_mut(&switch)?;
        known.tables.replace(known.publisher.tables())
    }

    pub fn renew_all(&mut self) {
        self.switches.values_mut().for_each(|known| known.tables = Some(known.publisher.tables()));
    }

    /// Holds no tables any more.
    pub fn forget(&mut self) {
        self.switches.values_mut().for_each(|known| known.tables = None);
    }

    pub(super) fn tables(&self, switch: SwitchId) -> Option<Arc<Snapshot>> {
        let known = self.switches.get(&switch)?;
        Some(known.tables.clone().unwrap_or_else(|| known.publisher.tables()))
    }

    /// What is known of a port.
    pub(super) fn note(&self, at: PortAt) -> Option<&PortNote> {
        self.ports.get(&at)
    }

    pub(super) fn notes(&self) -> impl Iterator<Item = (PortAt, &PortNote)> {
        self.ports.iter().map(|(&at, note)| (at, note))
    }

    /// The longest packet that leaves by a port past the worker, or by a tunnel.
    fn check_exit(&self, at: PortAt) -> Result<u32, Declined> {
        match self.note(at) {
            Some(PortNote { wrapping: Some(wrapping), is_up, mtu, .. }) => {
                wrapping.as_ref().map_err(Clone::clone)?;
                if *is_up { Ok(*mtu) } else { Err(PortReason::Down.into()) }
            }
            _ => {
                let note = self.check_port(at)?;
                note.exit?;
                Ok(note.mtu)
            }
        }
    }

    /// Whether a port takes part in anything past the worker.
    pub(super) fn check_port(&self, at: PortAt) -> Result<&PortNote, PortReason> {
        let note = self.ports.get(&at).ok_or(PortReason::Gone)?;
        match &note.past {
            None => Err(PortReason::NoHook { kind: note.kind }),
            Some(Err(reason)) => Err(*reason),
            Some(Ok(_)) if !note.is_up => Err(PortReason::Down),
            Some(Ok(_)) => Ok(note),
        }
    }
}

/// One switch, while it is asked for a program.
struct Asked<'t> {
    tables: &'t Tables,
    switch: SwitchId,
    snapshot: &'t Snapshot,
    /// Those of the flow's limits, if an earlier node left it, that were not asked for yet.
    before: Cell<&'t [LimitId]>,
    /// Whether frames go to the port of the host's own address, and on by a tunnel.
    to_door: bool,
}

impl Asked<'_> {
    /// Finds places for limits.
    fn find(&self) -> impl FnMut(&BucketShape) -> Option<Arc<dyn SharedBucket>> {
        |shape| {
            let before = self.before.get().split_first();
            let before = before.map(|(first, rest)| {
                self.before.set(rest);
                *first
            });
            Some(Arc::new(self.tables.flows.as_ref()?.limit(shape, before)?))
        }
    }
}

fn push<const N: usize>(
    places: Vec<u32>,
    out: &mut ArrayVec<LimitId, N>,
) -> Result<(), FlowReason> {
    let pushed = places.into_iter().try_for_each(|place| out.try_push(LimitId(place)));
    pushed.map_err(|_| FlowReason::Limits)
}

impl Facts for Asked<'_> {
    fn mtu(&self, exit: PortNo) -> Result<u32, Declined> {
        let at = PortAt { switch: self.switch, port: exit };
        match self.tables.note(at) {
            Some(note) if self.to_door && note.door.is_some() => {
                if note.is_up {
                    Ok(note.mtu)
                } else {
                    Err(PortReason::Down.into())
                }
            }
            _ => self.tables.check_exit(at),
        }
    }

    fn limits(&self, meter: u32, out: &mut ArrayVec<LimitId, MAX_LIMITS>) -> Result<(), Declined> {
        self.tables.flows.as_ref().ok_or(PolicyReason::Off)?;
        let places = self.snapshot.shared_meter(meter, &mut self.find());
        Ok(push(places.ok_or(FlowReason::Limits)?, out)?)
    }

    fn shapes(
        &self,
        exit: PortNo,
        queue: u32,
        out: &mut ArrayVec<LimitId, MAX_SHAPES>,
    ) -> Result<(), Declined> {
        let at = PortAt { switch: self.switch, port: exit };
        let Some(datapath) = &self.tables.datapath else { return Ok(()) };
        let places = datapath.greatest_rates((at, queue), &mut self.find());
        let places = places.map_err(|why| match why {
            OnlyHere::Guarantee => FlowReason::Guaranteed.into(),
            OnlyHere::NoPlace if self.tables.flows.is_none() => Declined::from(PolicyReason::Off),
            OnlyHere::NoPlace => FlowReason::Limits.into(),
        })?;
        Ok(push(places, out)?)
    }
}

impl Tables {
    fn resolved(
        &self,
        name: &FlowName,
        before: &[LimitId],
        now: Nanos,
    ) -> Result<FlowProgram, Refusal> {
        let program = self.through_switch(name, before, now)?;
        let program = if self.note(name.0).is_some_and(|note| note.wrapping.is_some()) {
            self.out_of_tunnel(program, now)?
        } else {
            self.check_port(name.0)?;
            self.through_tunnel(program, now)?
        };
        match self.seen.shows(&program) {
            true => Err(Refusal::of(&program, FlowReason::Captured)),
            false => Ok(program),
        }
    }

    /// What one switch does with a flow.
    pub(super) fn through_switch(
        &self,
        flow: &FlowName,
        before: &[LimitId],
        now: Nanos,
    ) -> Result<FlowProgram, Declined> {
        self.through(flow, (before, false), now)
    }

    /// What it does with packets that may go to the host's own address.
    pub(super) fn to_door(&self, packet: &FlowName, now: Nanos) -> Result<FlowProgram, Declined> {
        self.through(packet, (&[], true), now)
    }

    fn through(
        &self,
        &(from, ref key): &FlowName,
        (before, to_door): (&[LimitId], bool),
        now: Nanos,
    ) -> Result<FlowProgram, Declined> {
        if self.steered.contains(&from.switch) {
            return Err(MoveReason::Steered.into());
        }
        let snapshot = &*self.tables(from.switch).ok_or(PortReason::Gone)?;
        let resolved = snapshot.resolve(key, &known(key), now);
        if let Some(used) = self.left_at {
            snapshot.learn(&resolved.learns, from.port, (used, now));
        }
        let before = Cell::new(before);
        let asked = Asked { tables: self, switch: from.switch, snapshot, before, to_door };
        let program = FlowProgram::of(from, key, &resolved, &asked)?;
        if !snapshot.has_learned(&program.credits, from.port, now) {
            return Err(FlowReason::LearnsMac.into());
        }
        Ok(program)
    }
}

/// Frames that have so many bytes more each.
pub(super) fn grown(Sent { frames, bytes }: Sent, growth: i16) -> Sent {
    Sent { frames, bytes: bytes.saturating_add_signed(frames as i64 * i64::from(growth)) }
}

impl Tables {
    /// Counts at a port what passed it past the workers.
    pub(super) fn credit_port(&self, at: PortAt, passed: PastWorkers) {
        self.datapath.iter().for_each(|datapath| datapath.credit(at, passed));
    }

    /// Whether the greatest rates of a port and its queue are still those that a flow takes from.
    pub(super) fn keeps_rates(&self, way: (PortAt, u32), shapes: &[LimitId]) -> bool {
        let Some(datapath) = &self.datapath else { return true };
        let now = datapath.greatest_rates(way, &mut |_| None);
        now.is_ok_and(|now| now.into_iter().map(LimitId).eq(shapes.iter().copied()))
    }
}

impl World for Tables {
    fn program(&mut self, flow: &FlowName, now: Nanos) -> Result<FlowProgram, Refusal> {
        self.resolved(flow, &[], now)
    }

    fn meets(&mut self, orphan: &Orphan) -> FlowName {
        let it = (orphan.from, orphan.key);
        let Some(Around::Off { outside, vni }) = orphan.around else { return it };
        let tunnel = self.came_by((orphan.from, outside.key(orphan.from.port)), vni, &orphan.key);
        tunnel.unwrap_or(it)
    }

    fn takes_up(
        &mut self,
        flow: &FlowName,
        orphan: &Orphan,
        now: Nanos,
    ) -> Result<FlowProgram, Declined> {
        let limits: Vec<LimitId> = orphan.limits.iter().chain(&orphan.shapes).copied().collect();
        self.left_at = Some(orphan.counts.used);
        let found = self.resolved(flow, &limits, now);
        self.left_at = None;
        // Without its way it seems to go elsewhere, and bridges forget what they learned when a way comes.
        match orphan.around {
            Some(_) if !self.have_ways() => Err(MoveReason::Adopting.into()),
            _ => found.map_err(|refusal| refusal.why),
        }
    }

    fn share(&mut self, program: &FlowProgram) {
        if let (Some((meter, _)), Some(tables)) =
            (program.credits.meter, self.tables(program.from.switch))
        {
            tables.share_meter(meter);
        }
        if let Some(datapath) = &self.datapath {
            datapath.share_rates((program.exit, program.queue));
        }
    }

    fn holds(&mut self, program: &FlowProgram, now: Nanos) -> bool {
        let is_there = |at| self.check_port(at).is_ok();
        let tables = self.tables(program.from.switch);
        tables.is_some_and(|tables| {
            tables.holds(&program.stamp, now)
                && tables.has_learned(&program.credits, program.from.port, now)
        }) && !program.ports().any(|port| self.steered.contains(&port.switch))
            && is_there(program.inlet())
            && is_there(program.exit)
            && self.ports[&program.exit].exit.is_ok()
            && self.keeps_rates((program.exit, program.queue), &program.shapes)
            && self.holds_underlay(program, now)
            && self.holds_approach(program, now)
    }

    fn credit(&mut self, program: &FlowProgram, counts: Counts) {
        let Counts { frames, bytes, limited, limited_bytes, used } = counts;
        let counted = Counted { packets: frames, bytes };
        let dropped = Counted { packets: limited, bytes: limited_bytes };
        if let Some(tables) = self.tables(program.from.switch) {
            tables.credit(&program.credits, program.from.port, (counted, dropped), used);
        }
        let rx = Sent { frames, bytes };
        let metered = limited;
        self.credit_approach(program, (rx, used));
        self.credit_port(program.from, PastWorkers { rx, metered, ..PastWorkers::default() });
        let left = Sent { frames: frames - limited, bytes: bytes - limited_bytes };
        let left = grown(left, program.growth);
        let tx = match &program.underlay {
            None => left,
            Some(underlay) => self.credit_underlay(program, underlay, (left, used)),
        };
        let queue = program.queue;
        self.credit_port(program.exit, PastWorkers { tx, queue, ..PastWorkers::default() });
    }

    fn quiesce(&mut self) {
        self.datapath.iter().for_each(|datapath| datapath.barrier());
    }
}
