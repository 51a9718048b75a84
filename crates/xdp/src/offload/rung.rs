//! The provider of one of the kernel's rungs: which flows it has, between which ports.

use super::flows::Flows;
use super::passage::Passage;
use super::price::Cost;
use super::seat::RungPort;
use super::{key, value};
use flow::PortAt;
use offload::{
    Around, CardReason, Counts, Declined, EditKind, FlowProgram, Handle, MoveReason, NotSettled,
    Order, Orphan, PortReason, Price, Provider, ProviderName, Side,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// One update of a hash map.
pub(super) const INSERT: Duration = Duration::from_micros(10);

/// Flows between ports of one rung.
pub struct Rung<P> {
    flows: Arc<Flows>,
    ports: HashMap<PortAt, Arc<P>>,
    /// What lies between two switches: of TAPs by which tunnels' packets come in, and of tunnels by which they come out.
    passages: HashMap<PortAt, Arc<Passage>>,
    installed: BTreeMap<Handle, Installed<P>>,
    /// The next flow to read.
    cursor: Handle,
    /// How often the kernel has settled.
    settled: u64,
    /// `None` while it is being measured.
    cost: Option<Cost>,
}

struct Installed<P> {
    from: Arc<P>,
    exit: Arc<P>,
    passage: Option<Arc<Passage>>,
    key: super::abi::OffloadKey,
    /// While it is up, its frames may go to the worker all the same: it keeps greatest rates, or packets come with other headers than they had.
    falls_by_itself: bool,
    /// [`Rung::settled`] when it went down.
    down: u64,
}

impl<P: RungPort> Rung<P> {
    /// Without ports.
    pub fn new(flows: Arc<Flows>) -> Self {
        let (ports, passages, installed) = Default::default();
        let (cursor, settled, cost) = (Handle(0), 0, Some(P::ASSUMED));
        Self { flows, ports, passages, installed, cursor, settled, cost }
    }

    /// What a frame costs; `None`: it is being measured, and no flow moves meanwhile. Before it is said, it is assumed.
    pub fn set_cost(&mut self, cost: Option<Cost>) {
        self.cost = cost;
    }

    /// A port was opened.
    pub fn port_came(&mut self, at: PortAt, port: Arc<P>) {
        self.ports.insert(at, port);
    }

    /// A port is no longer there. Its flows must have been removed.
    pub fn port_went(&mut self, at: PortAt) {
        self.ports.remove(&at);
        self.passages.remove(&at);
    }

    /// Tunnels' packets come to a port this way.
    pub fn passage_came(&mut self, at: PortAt, passage: Arc<Passage>) {
        self.passages.insert(at, passage);
    }

    /// The node ends: programs stay only where a flow comes in or leaves.
    pub fn leave(&self) {
        let serves = |port: &P| {
            let mut flows = self.installed.values();
            let is = |of: &P| of.seat().place == port.seat().place;
            flows.any(|flow| is(&flow.from) || is(&flow.exit))
        };
        let idle = self.ports.values().filter(|port| !serves(port));
        idle.for_each(|port| self.flows.release_port(port.seat().place));
    }

    fn port(&self, at: PortAt) -> Result<&Arc<P>, Declined> {
        self.ports.get(&at).ok_or(Declined::Port(PortReason::Gone))
    }

    /// The two ports of a flow, if it can go from one to the other.
    fn way(&self, flow: &FlowProgram) -> Result<(&Arc<P>, &Arc<P>), Declined> {
        let from = self.port(flow.inlet())?;
        let exit = self.ports.get(&flow.exit).ok_or(PortReason::OtherKind)?;
        exit.seat().exit().map_err(Declined::Port)?;
        let (entry, way_out) = (from.seat(), exit.seat());
        if entry.netns != way_out.netns || entry.index == way_out.index {
            return Err(PortReason::ExitTakesNoFrames.into());
        }
        if flow.is_tunnelled() {
            if P::RUNG != ProviderName::Xdp {
                return Err(CardReason::Action(EditKind::Tunnel).into());
            }
            // Without it nobody knows what is under way.
            self.passage(flow).ok_or(PortReason::NoWay)?;
        }
        if flow.limits.len() > super::abi::LIMITS_EACH {
            return Err(offload::FlowReason::Limits.into());
        }
        Ok((from, exit))
    }

    /// What lies between the two switches of a flow that leaves or comes by a tunnel.
    fn passage(&self, flow: &FlowProgram) -> Option<&Arc<Passage>> {
        let off = flow.approach.as_ref().map(|_| flow.from);
        let at = flow.underlay.as_ref().map(|underlay| underlay.from).or(off)?;
        self.passages.get(&at)
    }

    fn counts(&self, handle: Handle) -> Counts {
        value::counts(&self.flows.flows.get(handle.0 as usize))
    }
}

impl<P: RungPort> Provider for Rung<P> {
    fn name(&self) -> ProviderName {
        P::RUNG
    }

    fn check(&self, flow: &FlowProgram) -> Result<Price, Declined> {
        let (from, _) = self.way(flow)?;
        let cost = self.cost.ok_or(MoveReason::Measuring)?;
        Ok(cost.of(flow, from.may_be_open()))
    }

    fn install(&mut self, flow: &FlowProgram) -> Result<Handle, Declined> {
        let (from, exit) = self.way(flow)?;
        let value = value::of(from.seat().place, flow, exit.seat().index);
        let (key, added) = (value.key, self.flows.add(&value));
        let place = added.map_err(|error| refused(&error))?;
        let place = place.ok_or(CardReason::Full { slots: self.flows.capacity() })?;
        let (from, exit) = (from.clone(), exit.clone());
        let passage = self.passage(flow).cloned();
        let falls_by_itself = !flow.shapes.is_empty() || flow.approach.is_some();
        let down = self.settled;
        exit.seat().count_falling(falls_by_itself.into());
        let installed = Installed { from, exit, passage, key, falls_by_itself, down };
        self.installed.insert(Handle(place), installed);
        Ok(Handle(place))
    }

    fn want(&mut self, handle: Handle, side: Side) -> Result<(), Declined> {
        let found = self.installed.get_mut(&handle).ok_or(CardReason::Gone)?;
        match side {
            Side::Rung => {
                found.from.seat().raise(handle.0, &found.exit, found.passage.as_ref());
            }
            Side::Worker => {
                found.exit.seat().falls();
                found.from.seat().lower(handle.0);
                found.down = self.settled;
            }
        }
        Ok(())
    }

    fn side(&mut self, handle: Handle) -> Side {
        value::side(self.flows.gate(handle.0).load(Ordering::Acquire))
    }

    fn order(&self) -> Order {
        Order::Counted
    }

    fn remove(&mut self, handle: Handle) -> Counts {
        let Some(found) = self.installed.remove(&handle) else { return Counts::default() };
        self.flows.remove(&found.key, handle.0);
        found.exit.seat().falls();
        found.exit.seat().count_falling(u32::from(found.falls_by_itself).wrapping_neg());
        if found.down == self.settled {
            // Else no frame has run by it since. Where the kernel cannot tell, a frame of this moment may miss in the count.
            let _ = self.settle(Duration::MAX);
        }
        self.counts(handle)
    }

    fn read(&mut self, out: &mut Vec<(Handle, Counts)>, budget: usize) {
        let (after, before) =
            (self.installed.range(self.cursor..), self.installed.range(..self.cursor));
        let turn: Vec<Handle> =
            after.chain(before).map(|(&handle, _)| handle).take(budget).collect();
        self.cursor = turn.last().map_or(Handle(0), |last| Handle(last.0 + 1));
        out.extend(turn.into_iter().map(|handle| (handle, self.counts(handle))));
    }

    fn settle(&mut self, within: Duration) -> Result<(), NotSettled> {
        self.settled += 1;
        self.flows.settle().map_err(|_| NotSettled(within))
    }

    fn adopt(&mut self) -> Vec<Orphan> {
        let known: HashMap<u32, PortAt> =
            self.ports.iter().map(|(&at, port)| (port.seat().place, at)).collect();
        let lost = self.flows.ports_taken(P::RUNG).filter(|place| !known.contains_key(place));
        lost.for_each(|place| self.flows.release_port(place));
        let mut orphans = Vec::new();
        for (&place, &at) in &known {
            for (key, handle) in self.flows.flows_of(place) {
                // Ports open before what was left is looked at, so some may be this node's already.
                if !self.installed.contains_key(&Handle(handle)) {
                    orphans.extend(self.take_up(at, key, Handle(handle)));
                }
            }
        }
        orphans
    }

    fn keep(&mut self, handle: Handle, flow: &FlowProgram) {
        let (side, passage) = (self.side(handle), self.passage(flow).cloned());
        let Some(found) = self.installed.get_mut(&handle) else { return };
        found.passage = passage;
        // It may come to wait, and goes up again then.
        if !flow.shapes.is_empty() && side == Side::Rung {
            found.from.seat().raise(handle.0, &found.exit, found.passage.as_ref());
        }
    }
}

#[cfg(feature = "testing")]
impl<P: RungPort> Rung<P> {
    /// Says that nothing of a flow is under way, whatever the truth: what a test of order must notice.
    pub fn claim_done(&self, handle: Handle) {
        self.flows.set_done(handle.0);
    }
}

impl<P: RungPort> Rung<P> {
    /// A flow that is in place already; one whose exit is gone goes down and away.
    fn take_up(
        &mut self,
        from: PortAt,
        key: super::abi::OffloadKey,
        handle: Handle,
    ) -> Option<Orphan> {
        let flow = self.flows.flows.get(handle.0 as usize);
        let port = self.ports.get(&from)?.clone();
        let (index, netns) = (flow.exit, port.seat().netns);
        let is_exit = |exit: &P| exit.seat().index == index && exit.seat().netns == netns;
        let exit = self.ports.iter().find(|(_, exit)| is_exit(exit));
        let Some((exit, way)) = exit.map(|(&exit, way)| (exit, way.clone())) else {
            self.flows.want_worker(handle.0);
            self.flows.remove(&key, handle.0);
            return None;
        };
        let around = value::around(&flow);
        let falls_by_itself = flow.shapes[0] != 0 || matches!(around, Some(Around::Off { .. }));
        way.seat().count_falling(falls_by_itself.into());
        let (passage, down) = (None, self.settled);
        let installed = Installed { from: port, exit: way, passage, key, falls_by_itself, down };
        self.installed.insert(handle, installed);
        Some(Orphan {
            handle,
            from,
            key: key::from_kernel(&key, from.port),
            exit: Some(exit),
            patch: value::patch(&flow),
            around,
            limits: super::limit::places(&flow.limits).collect(),
            shapes: super::limit::places(&flow.shapes).collect(),
            side: value::side(flow.gate),
            counts: value::counts(&flow),
        })
    }
}

fn refused(error: &aya::maps::MapError) -> Declined {
    let errno = crate::error::errno(error).unwrap_or(0);
    CardReason::Refused { words: error.to_string(), errno }.into()
}
