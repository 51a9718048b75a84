//! One turn: moves go on, counts are read, flows that earn it begin to move.

use super::stay::{Stage, Stay, cooling, retry};
use super::table::ledger_of;
use super::{
    Engine, FORGOTTEN_NS, Flow, FlowName, MOVES, Moved, Refusal, State, World, provider_of,
};
use crate::cost::Benefit;
use crate::declined::{Declined, FlowReason, MoveReason, PolicyReason, PortReason};
use crate::heavy::WINDOW_NS;
use crate::ledger::Admission;
use crate::policy::{Facts, Policy};
use crate::{Handle, Order, Price, Provider, ProviderName, Side};
use flow::{Nanos, SwitchId};
use std::time::Duration;

/// How long the kernel may take to come to rest. Measured: 6 to 20 ms.
const SETTLE: Duration = Duration::from_millis(200);

/// Flows that one reading takes at most.
const READ: usize = 8192;

type Providers<'p, 'r> = &'p mut [&'r mut dyn Provider];

impl Engine {
    /// Does what is due.
    pub fn turn(&mut self, providers: Providers<'_, '_>, world: &mut impl World, now: Nanos) {
        self.follow_underlays(providers, world, now);
        self.go_on(providers, world, now);
        if now.since(self.read_at) >= WINDOW_NS {
            self.read_at = now;
            self.read(providers, world);
            self.reconsider(providers, now);
            self.forget(now);
        }
        if self.on {
            self.begin(providers, world, now);
        }
    }

    /// Reads every rung and credits what came since the last time.
    pub fn read(&mut self, providers: Providers<'_, '_>, world: &mut impl World) {
        let mut readings = Vec::new();
        for provider in providers {
            readings.clear();
            provider.read(&mut readings, READ);
            for (handle, counts) in &readings {
                self.took(provider.name(), *handle, *counts, world);
            }
        }
    }

    /// Takes one reading in.
    fn took(
        &mut self,
        provider: ProviderName,
        handle: Handle,
        counts: crate::Counts,
        world: &mut impl World,
    ) {
        let Some(name) = self.handles.get(&(provider, handle)) else { return };
        let Some(flow) = self.flows.get_mut(name) else { return };
        let more = flow.told.read(counts);
        if more.frames > 0 {
            *self.past.entry(provider).or_default() += more;
            flow.traffic.add(more.frames, more.bytes, more.used);
            if let State::Stay(stay) = &flow.state {
                world.credit(&stay.program, more);
            }
        }
    }

    /// Tables or ports of a switch changed, or whether it is steered: what its flows do by that now. Returns when no frame runs by what was.
    pub fn changed(
        &mut self,
        switch: SwitchId,
        providers: Providers<'_, '_>,
        world: &mut impl World,
        now: Nanos,
    ) {
        let mut fell = false;
        for (name, flow) in &mut self.flows {
            if !flow.passes(name, switch) {
                continue;
            }
            match &mut flow.state {
                State::Worker { why: Declined::Policy(_), .. } => {}
                State::Worker { retry, refusals, .. } => (*retry, *refusals) = (now, 0),
                State::Left(_) => {}
                State::Stay(stay) => {
                    if world.holds(&stay.program, now) {
                        continue;
                    }
                    match renewed(stay, world.program(name, now)) {
                        Ok(()) => world.share(&stay.program),
                        Err(why) => {
                            fell |= !matches!(stay.stage, Stage::Falling { .. });
                            fall(stay, providers, why.into());
                        }
                    }
                }
            }
        }
        if fell {
            self.settle(providers, world);
            self.finish_falls(providers, world, now);
        }
    }

    /// Lets every flow fall that `which` names, and returns when all are on the worker.
    pub fn bring_back(
        &mut self,
        which: impl Fn(&FlowName, &crate::FlowProgram) -> bool,
        why: &Declined,
        (providers, world): (Providers<'_, '_>, &mut impl World),
        now: Nanos,
    ) {
        self.judge_left(providers, world, now);
        let mut fell = false;
        for (name, flow) in &mut self.flows {
            if let State::Stay(stay) = &mut flow.state
                && which(name, &stay.program)
            {
                fall(stay, providers, why.clone());
                fell = true;
            }
        }
        if fell {
            self.settle(providers, world);
            self.finish_falls(providers, world, now);
        }
    }

    /// Tries flows again that stay on the worker for this reason, which no longer holds.
    pub fn try_again(&mut self, reason: &Declined, now: Nanos) {
        for flow in self.flows.values_mut() {
            if let State::Worker { why, retry, refusals, .. } = &mut flow.state
                && why == reason
            {
                (*retry, *refusals) = (now, 0);
            }
        }
    }

    pub(super) fn settle(&self, providers: Providers<'_, '_>, world: &mut impl World) {
        for provider in providers {
            // What did not come to rest in time comes to rest before it is removed.
            let _late = provider.settle(SETTLE);
        }
        world.quiesce();
    }

    /// Flows fall whose tunnels find another way, or whose packets come by another: no switch publishes that.
    fn follow_underlays(
        &mut self,
        providers: Providers<'_, '_>,
        world: &mut impl World,
        now: Nanos,
    ) {
        for flow in self.flows.values_mut() {
            let State::Stay(stay) = &mut flow.state else { continue };
            if !stay.program.is_tunnelled() || matches!(stay.stage, Stage::Falling { .. }) {
                continue;
            }
            let fell = stay.fell_by_itself(provider_of(providers, stay.provider));
            if fell || !world.holds(&stay.program, now) {
                fall(stay, providers, MoveReason::RulesChange.into());
            }
        }
    }

    /// Stays that are under way go on.
    fn go_on(&mut self, providers: Providers<'_, '_>, world: &mut impl World, now: Nanos) {
        let stage_is = |flow: &Flow, is: fn(&Stage) -> bool| matches!(&flow.state, State::Stay(stay) if is(&stay.stage));
        let is_waiting = |stage: &Stage| matches!(stage, Stage::Installed | Stage::Falling { .. });
        if self.flows.values().any(|flow| stage_is(flow, is_waiting)) {
            self.settle(providers, world);
        }
        let mut risen = 0;
        for (name, flow) in &mut self.flows {
            let State::Stay(stay) = &mut flow.state else { continue };
            let Some(provider) = provider_of(providers, stay.provider) else { continue };
            match stay.stage {
                Stage::Installed if quiet_for(provider, &flow.traffic.last, now) => {
                    match provider.want(stay.handle, Side::Rung) {
                        Ok(()) => (stay.stage, flow.since) = (Stage::Rising, now),
                        Err(why) => fall(stay, providers, why),
                    }
                }
                Stage::Rising if provider.side(stay.handle) == Side::Rung => {
                    (stay.stage, flow.since, stay.was_up) = (Stage::Up, now, true);
                    let why = format!("policy {}", flow.policy);
                    self.moved.push(Moved { name: *name, to: Some(stay.provider), why });
                    (flow.moves, risen) = (flow.moves + 1, risen + 1);
                }
                _ => {
                    if let Some(why) = stay.rises_in_vain(flow.since, flow.traffic.last, now) {
                        fall(stay, providers, why);
                    }
                }
            }
        }
        self.moves += risen;
        self.finish_falls(providers, world, now);
    }

    /// Stays that have come down end.
    pub(super) fn finish_falls(
        &mut self,
        providers: Providers<'_, '_>,
        world: &mut impl World,
        now: Nanos,
    ) {
        let mut ended = Vec::new();
        for (name, flow) in &mut self.flows {
            let State::Stay(stay) = &flow.state else { continue };
            let Stage::Falling { why } = &stay.stage else { continue };
            let Some(provider) = provider_of(providers, stay.provider) else { continue };
            if provider.side(stay.handle) != Side::Worker {
                continue;
            }
            let more = flow.told.read(provider.remove(stay.handle));
            flow.told.end();
            *self.past.entry(stay.provider).or_default() += more;
            world.credit(&stay.program, more);
            flow.traffic.add(more.frames, more.bytes, more.used);
            if stay.was_up {
                self.moved.push(Moved { name: *name, to: None, why: why.to_string() });
            }
            let why = Refusal::of(&stay.program, why.clone());
            ended.push((*name, stay.provider, stay.handle, why));
        }
        for (name, provider, handle, why) in ended {
            self.handles.remove(&(provider, handle));
            ledger_of(&mut self.tables, provider)
                .into_iter()
                .for_each(|ledger| ledger.give_back(name));
            let Some(flow) = self.flows.get_mut(&name) else { continue };
            self.flaps += u64::from(flow.came_back(why, now));
        }
    }

    /// Flows on rungs whose policy calls them back, or of which nothing comes any more.
    fn reconsider(&mut self, providers: Providers<'_, '_>, now: Nanos) {
        let names: Vec<FlowName> = self.flows.keys().copied().collect();
        for name in names {
            let policy = self.policy(&name);
            let (on, worker) = (self.on, self.worker);
            let Some(flow) = self.flows.get_mut(&name) else { continue };
            flow.traffic.tick(now);
            let State::Stay(stay) = &mut flow.state else {
                continue;
            };
            let benefit = Benefit::of(&flow.traffic, &worker, &stay.price);
            let ledger = ledger_of(&mut self.tables, stay.provider);
            ledger.into_iter().for_each(|ledger| ledger.set_benefit(name, benefit.ns_per_s));
            let facts = Facts { traffic: &flow.traffic, benefit, spent_ns: u64::MAX, now };
            let stays = now.since(flow.since) < stay.residence.as_nanos() as u64;
            let why = match () {
                () if matches!(stay.stage, Stage::Falling { .. }) => continue,
                () if !on => PolicyReason::Off,
                () if now.since(flow.traffic.last) > FORGOTTEN_NS => PolicyReason::NotSeen,
                () if stays || !policy.wants_down(&facts) => continue,
                () => down_reason(&policy, &facts),
            };
            fall(stay, providers, why.into());
        }
    }

    /// Forgets flows of the worker that nothing comes of.
    fn forget(&mut self, now: Nanos) {
        self.flows.retain(|_, flow| {
            let is_known = !matches!(flow.state, State::Worker { .. })
                || now.since(flow.traffic.last) < FORGOTTEN_NS;
            let is_counted =
                flow.told.sum().frames > 0 && now.since(flow.traffic.last) < 6 * FORGOTTEN_NS;
            is_known || is_counted
        });
    }

    /// Flows that earn it begin a stay.
    fn begin(&mut self, providers: Providers<'_, '_>, world: &mut impl World, now: Nanos) {
        let is_due =
            |flow: &Flow| matches!(flow.state, State::Worker { retry, .. } if retry <= now);
        let mut due: Vec<(FlowName, f64)> = self
            .flows
            .iter()
            .filter(|(_, flow)| is_due(flow) && flow.traffic.last >= flow.since)
            .map(|(name, flow)| (*name, flow.traffic.rate))
            .collect();
        due.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut budget = MOVES;
        for (name, _) in due {
            if budget == 0 {
                break;
            }
            match self.try_stay(&name, providers, world, now) {
                Ok(()) => budget -= 1,
                Err(why) => self.declined(&name, why, now),
            }
        }
    }

    fn declined(&mut self, name: &FlowName, refusal: Refusal, now: Nanos) {
        let Some(flow) = self.flows.get_mut(name) else { return };
        let State::Worker { why, beyond, retry: at, refusals } = &mut flow.state else { return };
        (*at, *refusals) = if refusal.why.is_remembered() {
            (retry(now, *refusals), refusals.saturating_add(1))
        } else {
            (Nanos(now.0 + WINDOW_NS), 0)
        };
        (*why, *beyond) = (refusal.why, refusal.beyond);
    }

    /// Begins a flow's stay on the first rung that takes it.
    fn try_stay(
        &mut self,
        name: &FlowName,
        providers: Providers<'_, '_>,
        world: &mut impl World,
        now: Nanos,
    ) -> Result<(), Refusal> {
        let policy = self.policy(name);
        if policy.rule == crate::policy::Rule::Never {
            return Err(PolicyReason::Never.into());
        }
        let program = world.program(name, now)?;
        let refused = |why| Refusal::of(&program, why);
        let (at, price) = choose(&policy, providers, &program).map_err(refused)?;
        let flow = self.flows.get_mut(name).ok_or(PolicyReason::NotSeen)?;
        let benefit = Benefit::of(&flow.traffic, &self.worker, &price);
        flow.spent_ns += benefit.ns_per_s.max(0.0) * WINDOW_NS as f64 / 1e9;
        let facts = Facts { traffic: &flow.traffic, benefit, spent_ns: flow.spent_ns as u64, now };
        policy.wants_up(&facts)?;
        let provider = &mut providers[at];
        let (rung, slots) = (provider.name(), u32::from(price.slots));
        let admission = ledger_of(&mut self.tables, rung)
            .map(|ledger| ledger.admits(name.0.switch, slots, benefit.ns_per_s))
            .transpose()?;
        if let Some(Admission::After(worst)) = admission {
            // It comes back first; the newcomer is tried again then.
            if let Some(Flow { state: State::Stay(stay), .. }) = self.flows.get_mut(&worst) {
                fall(stay, providers, PolicyReason::BetterFlows.into());
            }
            return Err(MoveReason::Busy.into());
        }
        if provider.order() == Order::Unknown {
            return Err(MoveReason::OrderUnknown.into());
        }
        world.share(&program);
        let handle = provider.install(&program).map_err(refused)?;
        let ledger = ledger_of(&mut self.tables, rung).into_iter();
        ledger.for_each(|ledger| ledger.take(*name, name.0.switch, slots, benefit.ns_per_s));
        self.handles.insert((rung, handle), *name);
        flow.policy.clone_from(&policy.name);
        flow.since = now;
        let (stage, residence) = (Stage::Installed, policy.residence);
        flow.state = State::Stay(Box::new(Stay {
            provider: rung,
            handle,
            program,
            price,
            stage,
            was_up: false,
            residence,
        }));
        Ok(())
    }
}

impl Flow {
    /// Whether what a switch does with it may change.
    fn passes(&self, name: &FlowName, switch: SwitchId) -> bool {
        match &self.state {
            State::Worker { why, beyond, .. } => {
                why.is_anybodys() || name.0.switch == switch || *beyond == Some(switch)
            }
            State::Stay(stay) => stay.program.ports().any(|port| port.switch == switch),
            State::Left(_) => false,
        }
    }

    /// It is on the worker again; true if it was up for less than its residence.
    fn came_back(&mut self, Refusal { why, beyond }: Refusal, now: Nanos) -> bool {
        let is_flap = now.since(self.since) < 1_000_000_000
            && matches!(
                why,
                Declined::Policy(
                    PolicyReason::BelowThreshold { .. } | PolicyReason::CostsMore { .. }
                )
            );
        // Who fell for no fault of its own may rise again at once.
        let is_innocent = matches!(
            &why,
            Declined::Flow(FlowReason::Captured)
                | Declined::Move(MoveReason::RulesChange | MoveReason::Steered)
                | Declined::Policy(PolicyReason::Off | PolicyReason::NotSeen)
        );
        let waits = !is_innocent;
        let until = if waits { cooling(now, self.failures) } else { now };
        self.failures = if waits { self.failures.saturating_add(1) } else { 0 };
        let why = if waits && matches!(why, Declined::Policy(_)) {
            PolicyReason::Cooling { until }.into()
        } else {
            why
        };
        (self.since, self.spent_ns) = (now, 0.0);
        self.state = State::worker(Refusal { why, beyond }, until);
        is_flap
    }
}

/// Whether a provider that moves at pauses only has one.
fn quiet_for(provider: &dyn Provider, last: &Nanos, now: Nanos) -> bool {
    match provider.order() {
        Order::Pause(pause) => now.since(*last) >= pause.as_nanos() as u64,
        Order::Counted | Order::Unknown => true,
    }
}

/// Sends a stay down.
pub(super) fn fall(stay: &mut Stay, providers: Providers<'_, '_>, why: Declined) {
    if let Some(provider) = provider_of(providers, stay.provider) {
        // Down is always possible; what cannot be asked now is asked again when it is to be removed.
        let _asked = provider.want(stay.handle, Side::Worker);
    }
    stay.stage = Stage::Falling { why };
}

/// Takes a program made anew in, if it does the same.
///
/// # Errors
/// Why the flow falls.
fn renewed(
    stay: &mut Stay,
    program: Result<crate::FlowProgram, Refusal>,
) -> Result<(), MoveReason> {
    match program {
        Ok(program) if program.does_what(&stay.program) => {
            stay.program = program;
            Ok(())
        }
        Err(Refusal { why: Declined::Move(MoveReason::Steered), .. }) => Err(MoveReason::Steered),
        _ => Err(MoveReason::RulesChange),
    }
}

/// The first rung that takes a program, in the policy's order, and what it costs there.
fn choose(
    policy: &Policy,
    providers: &[&mut dyn Provider],
    program: &crate::FlowProgram,
) -> Result<(usize, Price), Declined> {
    let is_wanted = |name| policy.rungs.is_empty() || policy.rungs.contains(&name);
    let mut wanted: Vec<usize> =
        (0..providers.len()).filter(|&at| is_wanted(providers[at].name())).collect();
    wanted.sort_by_key(|&at| policy.rungs.iter().position(|&rung| rung == providers[at].name()));
    let rungs = wanted.iter().map(|&at| &*providers[at]);
    first_taker(rungs, program).map(|(at, price)| (wanted[at], price))
}

/// The place of the first rung that takes a program, and what it costs there.
///
/// # Errors
/// Why the first one does not that knows the port which its frames come in by.
pub fn first_taker<'r>(
    rungs: impl Iterator<Item = &'r (dyn Provider + 'r)>,
    program: &crate::FlowProgram,
) -> Result<(usize, Price), Declined> {
    let is_strange = |why: &Declined| *why == PortReason::Gone.into();
    let mut refusal = None;
    for (at, rung) in rungs.enumerate() {
        match rung.check(program) {
            Ok(price) => return Ok((at, price)),
            Err(why) if refusal.as_ref().is_none_or(is_strange) => refusal = Some(why),
            Err(_) => {}
        }
    }
    Err(refusal.unwrap_or(crate::CardReason::Gone.into()))
}

fn down_reason(policy: &Policy, facts: &Facts<'_>) -> PolicyReason {
    policy.wants_up(facts).err().unwrap_or(PolicyReason::NotSeen)
}
