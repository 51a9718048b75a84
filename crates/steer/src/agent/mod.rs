//! # The agent
//!
//! **Question answered**: what has been asked for, what is it like on the cores now, and what follows for each interface?
//!
//! The agent is called, it does not wait: requests come as method calls, and [`Agent::tick`] says when it wants to be called next (every
//! 2 ms while frames flow, 1 ms while a core fills, 50 ms while none do, not at all while nothing is steered). Time comes from the caller as nanoseconds of the monotonic clock.
//!
//! ## A tick
//!
//! 1. What the interfaces decided since the last one goes into the [memory of decisions](decisions), with what the policy thinks of
//!    each core by the table that was in force.
//! 2. Loads are measured, and the core table with them given to every interface.
//! 3. While frames flow, the policy is asked which units should go elsewhere, and the interfaces are told.
//! 4. An interface that is wanted and not steered is tried again, every two seconds.
//!
//! ## Invariants
//!
//! * What was asked for and granted is noted in the journal before the answer; what failed changed nothing: of several rules in one
//!   request all are in force, or none.
//! * Every interface has the entries that its [`claims`] say, or a fault.

mod claims;
mod decisions;
mod interfaces;
mod machines;
mod meter;
mod repair;
mod report;
mod rules;
mod show;
mod table;
mod why;

pub use report::{CoreReport, HostReport, PlacementReport};
pub use rules::Strictness;

use crate::desired::{Change, Desired, Discard, Journal};
use crate::error::SteerError;
use crate::rule::Rule;
use crate::surroundings::{SeenVm, Surroundings};
use api::steer::{PolicyKind, PolicyPatch, PolicySpec};
use api::steer::{SWITCH_PREFIX, called};
use claims::RuleId;
use interfaces::{Interface, kind};
use meter::Meter;
use place::steering::{Enforcer, Opener};
use place::{Arrivals, CoreId, CoreTable, Hash, Load, Moves, Policy, Stage, Vse};
use std::collections::BTreeMap;
use std::time::Duration;

/// Between ticks while frames flow: a fifth of the time that the reaction to overload may take.
const BUSY: Duration = Duration::from_millis(2);
/// Between ticks while a core becomes full: what is to be done about it is done within 10 ms.
const HOT: Duration = Duration::from_millis(1);
/// Between ticks while none do: an idle host must not notice.
const IDLE: Duration = Duration::from_millis(50);

/// While nothing is steered nothing is to be done but by request.
const UNUSED: Duration = Duration::from_secs(3600);

/// The agent. One thread owns it.
pub struct Agent {
    opener: Box<dyn Opener>,
    journal: Box<dyn Journal>,
    interfaces: BTreeMap<String, Interface>,
    rules: BTreeMap<RuleId, Rule>,
    vms: BTreeMap<String, api::steer::VmSpec>,
    seen: Vec<SeenVm>,
    policy: PolicySpec,
    table: CoreTable,
    meter: Meter,
    arrivals: Arrivals,
    mover: repair::Mover,
    now_ns: u64,
    /// Frames that all interfaces had counted at the last tick.
    frames: u64,
    /// When there were more of them than before.
    flowed_at_ns: u64,
}

impl Agent {
    /// An agent of which nothing was asked yet.
    pub fn new(opener: impl Opener + 'static, host: Surroundings) -> Self {
        let mut agent = Self {
            opener: Box::new(opener),
            journal: Box::new(Discard),
            interfaces: BTreeMap::new(),
            rules: BTreeMap::new(),
            vms: BTreeMap::new(),
            seen: Vec::new(),
            policy: PolicySpec::default(),
            table: table::of(&host.cores),
            meter: Meter::default(),
            arrivals: Arrivals::default(),
            mover: repair::Mover::default(),
            now_ns: 0,
            frames: 0,
            flowed_at_ns: 0,
        };
        agent.see(host);
        agent
    }

    /// Takes up what an earlier agent was asked for, and from now on notes changes in `journal`. An interface that cannot be steered
    /// now has a fault and is tried again.
    pub fn restore(&mut self, desired: Desired, journal: impl Journal + 'static) {
        self.policy = desired.policy;
        self.vms = desired.vms;
        let id = |on: Option<String>, rule: &Rule| RuleId { on, key: rule.key() };
        self.rules = desired.rules.into_iter().map(|(on, rule)| (id(on, &rule), rule)).collect();
        self.refresh_roles();
        for (name, spec) in desired.interfaces {
            self.interfaces.insert(name.clone(), Interface::wanted(spec));
            match self.open(&name) {
                Ok(()) => {}
                // Switches come into service after steering.
                Err(_) if name.starts_with(SWITCH_PREFIX) => {
                    tracing::info!("{}: steered as soon as it is in service", called(&name));
                }
                Err(error) => tracing::error!(
                    remedy = error.remedy(),
                    "{}: {}: {}",
                    error.thing(),
                    error.step(),
                    error.cause()
                ),
            }
        }
        self.journal = Box::new(journal);
    }

    /// Does what the time demands; `now_ns` never goes back. Returns how long to wait for the next call at most.
    pub fn tick(&mut self, now_ns: u64) -> Duration {
        self.now_ns = now_ns;
        self.remember_events();
        let frames = self.count();
        if frames != self.frames {
            self.flowed_at_ns = now_ns;
        }
        self.frames = frames;
        // A pause of a tick or two is none: a full core may bring it about, and is to be watched the more.
        let busy = self.flowed_at_ns > 0
            && now_ns.saturating_sub(self.flowed_at_ns) < IDLE.as_nanos() as u64;
        self.measure();
        self.count_arrivals();
        self.hand_out_table();
        if busy && self.policy.moves {
            self.repair();
        }
        self.look_after_interfaces();
        match (self.interfaces.is_empty(), busy) {
            (true, _) => UNUSED,
            (false, true) if self.is_hot() => HOT,
            (false, true) => BUSY,
            (false, false) => IDLE,
        }
    }

    /// What the host is like now: cores and machines found.
    pub fn see(&mut self, host: Surroundings) {
        table::refresh_cores(&mut self.table, &host.cores);
        self.seen = host.vms;
        self.refresh_roles();
        self.tell_threads();
    }

    /// How cores are chosen.
    pub fn policy(&self) -> &PolicySpec {
        &self.policy
    }

    /// Changes how cores are chosen; placed units stay where they are until they are moved.
    ///
    /// # Errors
    /// The policy contradicts itself or the host.
    pub fn set_policy(&mut self, patch: &PolicyPatch) -> Result<PolicySpec, SteerError> {
        let policy = patch.apply(&self.policy);
        table::check(&policy, &self.table)?;
        self.policy = policy;
        self.refresh_roles();
        self.hand_out_table();
        self.journal.note(Change::Policy(&self.policy));
        Ok(self.policy.clone())
    }

    /// What each core spends on receiving, where its interrupts are.
    pub fn receiving(&self) -> impl Iterator<Item = (CoreId, Load)> {
        self.table.cores().iter().map(|core| (core.id(), core.load[Stage::Driver]))
    }

    /// Whether a core has become full lately, or may be about to.
    fn is_hot(&self) -> bool {
        self.mover.is_rising || self.meter.is_any_filling()
    }

    fn chooser(&self) -> Box<dyn Policy> {
        match self.policy.policy {
            PolicyKind::Vse => Box::new(Vse { moves: self.policy.moves.then(Moves::default) }),
            PolicyKind::Hash => Box::new(Hash),
        }
    }

    fn refresh_roles(&mut self) {
        let machines = machines::known(&self.vms, &self.seen);
        table::set_roles(&mut self.table, &self.policy, &machines);
    }

    /// Loads. Of its own cores an enforcer knows better: to the host a worker that waits for frames is busy.
    fn measure(&mut self) {
        let (mut source, mut sum) = (String::new(), BTreeMap::new());
        for (name, enforcer) in sources(&mut self.interfaces) {
            let is_own = enforcer.cores().is_some();
            let times = match enforcer.times() {
                Ok(times) if times.is_empty() => continue,
                Ok(times) => times,
                Err(error) => {
                    tracing::debug!("interface {name}: {error}: {}", error.why());
                    continue;
                }
            };
            source += name;
            for (core, times) in times {
                if is_own {
                    sum.insert(core, times);
                } else {
                    sum.entry(core).or_insert(times);
                }
            }
        }
        if !sum.is_empty() {
            let times: Vec<_> = sum.into_iter().collect();
            self.meter.measure(self.now_ns, &source, &times);
        }
    }

    /// Counts what came until now; loads were measured just before.
    fn count_arrivals(&mut self) {
        let mut sum: BTreeMap<CoreId, u32> = BTreeMap::new();
        for (name, enforcer) in sources(&mut self.interfaces) {
            match enforcer.arrivals() {
                Ok(came) => {
                    came.into_iter().for_each(|(core, n)| *sum.entry(core).or_default() += n)
                }
                Err(error) => tracing::debug!("interface {name}: {error}: {}", error.why()),
            }
        }
        self.arrivals.count(Duration::from_nanos(self.now_ns), sum);
    }

    fn hand_out_table(&mut self) {
        self.table.at = Duration::from_nanos(self.now_ns);
        self.refresh_loads();
        for (name, interface) in &mut self.interfaces {
            let Some(enforcer) = &mut interface.enforcer else { continue };
            if let Err(error) = enforcer.set_core_table(&self.table, kind(self.policy.policy)) {
                tracing::warn!("interface {name}: {error}: {}", error.why());
            }
        }
    }

    fn refresh_loads(&mut self) {
        table::set_loads(&mut self.table, &self.meter, &self.arrivals);
    }

    /// Frames of all interfaces.
    fn count(&mut self) -> u64 {
        let enforcers = self.interfaces.values_mut().filter_map(|i| i.enforcer.as_mut());
        let counts = enforcers.filter_map(|enforcer| enforcer.counts().ok()).flatten();
        counts.map(|(_, frames)| frames).sum()
    }

    fn remember_events(&mut self) {
        let chooser = self.chooser();
        for interface in self.interfaces.values_mut() {
            let Some(enforcer) = &mut interface.enforcer else { continue };
            enforcer.settle();
            let events = enforcer.events();
            let cores = enforcer.cores().filter(|_| !events.is_empty());
            let mut limited = cores.map(|cores| table::limited(&self.table, &cores));
            for event in events {
                let table = limited.as_mut().unwrap_or(&mut self.table);
                let candidates = event.facts.map(|facts| chooser.candidates(table, &facts));
                // The next one was decided by a table that knew of this one.
                if let (Some(_), Some(core)) = (event.facts, table.core_mut(event.core)) {
                    core.placed += 1;
                }
                interface.decisions.remember(event, candidates.unwrap_or_default());
            }
        }
    }

    fn tell_threads(&mut self) {
        let threads: Vec<_> = self.seen.iter().flat_map(|vm| vm.threads.iter().copied()).collect();
        for (name, interface) in &mut self.interfaces {
            let Some(enforcer) = &mut interface.enforcer else { continue };
            if let Err(error) = enforcer.set_threads(&threads) {
                tracing::debug!("interface {name}: {error}: {}", error.why());
            }
        }
    }
}

/// Enforcers that know of different cores: those of some cores only, and the first of all others, which share what they know.
fn sources(
    interfaces: &mut BTreeMap<String, Interface>,
) -> impl Iterator<Item = (&String, &mut Box<dyn Enforcer>)> {
    let mut is_host_known = false;
    let enforcers = interfaces
        .iter_mut()
        .filter_map(|(name, interface)| Some((name, interface.enforcer.as_mut()?)));
    enforcers.filter(move |(_, enforcer)| {
        enforcer.cores().is_some() || !std::mem::replace(&mut is_host_known, true)
    })
}

#[cfg(test)]
mod tests;
