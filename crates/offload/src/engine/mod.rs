//! Who moves, and when: samples and counts in, calls of providers out.
//!
//! A flow is on the worker, or it has a stay on one rung. A stay goes through [`Stage`]s and ends where it began; each of its counts is
//! credited once. What the tables say of a flow is asked when it is to move, and again when they change.

mod adopt;
mod refusal;
mod stay;
mod table;
mod turn;
mod view;

pub use adopt::TakenUp;
pub use refusal::Refusal;
pub use stay::Stage;
pub use turn::first_taker;
pub use view::{Explained, FlowLine, RungLine};

use crate::cost::{Learned, PerFrame, Work};
use crate::counts::Told;
use crate::declined::{Declined, PolicyReason};
use crate::heavy::Traffic;
use crate::ledger::Ledger;
use crate::policy::{Policy, Rule};
use crate::{Counts, FlowProgram, Orphan, Provider, ProviderName};
use adopt::Left;
use flow::{Nanos, PortAt, SwitchId};
use stay::Stay;
use std::collections::HashMap;
use table::Table;
use wire::Key;

/// Flows that are known at most, those on rungs not counted. Chosen: some 400 bytes each.
const KNOWN: usize = 4096;

/// A flow that nothing was seen of for so long is forgotten on the worker, and leaves its rung.
const FORGOTTEN_NS: u64 = 10_000_000_000;

/// Moves that may begin in one turn. With a turn each 20 ms, a thousand a second.
const MOVES: usize = 20;

/// Frames of which a worker samples one. Chosen: a heavy flow is seen hundreds of times a second, and it costs the others nothing.
const SAMPLED: u32 = 64;

/// A flow's name: where it comes in, and its bits that tell flows apart.
pub type FlowName = (PortAt, Key);

/// What the engine asks of the node.
pub trait World {
    /// The program of a flow by the tables as they are.
    ///
    /// # Errors
    /// Why it has none.
    fn program(&mut self, flow: &FlowName, now: Nanos) -> Result<FlowProgram, Refusal>;

    /// Whether a program is still what the tables say.
    fn holds(&mut self, program: &FlowProgram, now: Nanos) -> bool;

    /// The name of a flow that an earlier node left on a rung.
    fn meets(&mut self, orphan: &Orphan) -> FlowName;

    /// Its program. Its limits go on, and bridges learn where it comes in: no worker saw its frames.
    ///
    /// # Errors
    /// Why it has none; [`MoveReason::Adopting`](crate::MoveReason): it may have one soon.
    fn takes_up(
        &mut self,
        flow: &FlowName,
        orphan: &Orphan,
        now: Nanos,
    ) -> Result<FlowProgram, Declined>;

    /// A program is about to be installed: from here on workers take from its limits where rungs do.
    fn share(&mut self, program: &FlowProgram);

    /// Adds what came of a flow on a rung to all that it counts for.
    fn credit(&mut self, program: &FlowProgram, counts: Counts);

    /// Returns when workers have done with the frames that they took before.
    fn quiesce(&mut self);
}

/// A flow that came to another rung.
#[derive(Clone, PartialEq, Debug)]
pub struct Moved {
    /// Which.
    pub name: FlowName,
    /// The rung that its frames take now; `None`: the worker.
    pub to: Option<ProviderName>,
    /// Why.
    pub why: String,
}

/// One flow.
struct Flow {
    traffic: Traffic,
    /// Nanoseconds that it has cost on the worker beyond the rung's.
    spent_ns: f64,
    told: Told,
    state: State,
    /// When it came to where it is.
    since: Nanos,
    /// Moves that failed in a row.
    failures: u8,
    moves: u64,
    /// The policy that moved it last.
    policy: String,
}

enum State {
    /// On the worker.
    Worker {
        why: Declined,
        /// [`Refusal::beyond`].
        beyond: Option<SwitchId>,
        /// Not tried again before, unless what it is refused for changes.
        retry: Nanos,
        /// Refusals in a row.
        refusals: u8,
    },
    /// On a rung, or on its way to or from it.
    Stay(Box<Stay>),
    /// An earlier node left it on a rung, and its way is not there yet.
    Left(Box<Left>),
}

impl State {
    /// On the worker, and tried again then.
    fn worker(why: impl Into<Refusal>, retry: Nanos) -> Self {
        let Refusal { why, beyond } = why.into();
        Self::Worker { why, beyond, retry, refusals: 0 }
    }
}

/// Decides who moves.
pub struct Engine {
    on: bool,
    policies: Vec<Policy>,
    worker: PerFrame,
    learned: Learned,
    flows: HashMap<FlowName, Flow>,
    tables: Vec<Table>,
    /// Which flow a provider's handle is.
    handles: HashMap<(ProviderName, crate::Handle), FlowName>,
    /// What each rung took since the start, as far as it was read.
    past: HashMap<ProviderName, Counts>,
    /// Moves up that ended within a second, since the start: steady traffic has none.
    flaps: u64,
    moves: u64,
    /// Flows that moved and nobody was told of yet.
    moved: Vec<Moved>,
    read_at: Nanos,
    /// Whether there may be flows that an earlier node left and nobody has taken up yet.
    has_left: bool,
}

impl Default for Engine {
    fn default() -> Self {
        Self {
            on: false,
            policies: Vec::new(),
            worker: PerFrame::WORKER,
            learned: Learned::default(),
            flows: HashMap::new(),
            tables: Vec::new(),
            handles: HashMap::new(),
            past: HashMap::new(),
            flaps: 0,
            moves: 0,
            moved: Vec::new(),
            read_at: Nanos::default(),
            has_left: false,
        }
    }
}

impl Engine {
    /// Says how many slots these rungs have together, for their flows lie in one table; before they have any.
    pub fn set_slots(&mut self, rungs: &[ProviderName], slots: u32) {
        self.tables.push(Table { rungs: rungs.into(), ledger: Ledger::new(slots) });
    }

    /// Switches offload on or off. Off, all flows come back.
    pub fn set_on(&mut self, on: bool) {
        self.on = on;
    }

    /// Whether it is on.
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Puts policies in force, in place of those that were.
    pub fn set_policies(&mut self, mut policies: Vec<Policy>) {
        policies.sort_by_key(|policy| std::cmp::Reverse(policy.priority));
        self.policies = policies;
        for flow in self.flows.values_mut() {
            if let State::Worker { retry, why: Declined::Policy(_), .. } = &mut flow.state {
                *retry = Nanos::default();
            }
        }
    }

    /// The policies, those asked first before the others.
    pub fn policies(&self) -> &[Policy] {
        &self.policies
    }

    /// Whether a flow on the worker has been seen.
    pub fn has_candidates(&self) -> bool {
        self.flows.values().any(|flow| matches!(flow.state, State::Worker { .. }))
    }

    /// Whether flows of an earlier node wait for their way.
    pub fn has_left(&self) -> bool {
        self.has_left
    }

    /// Whether any flow has a stay, or was left on a rung.
    pub fn has_stays(&self) -> bool {
        !self.handles.is_empty() || self.has_left
    }

    /// What the workers did since the last time: what a frame costs there is learned from it.
    pub fn worked(&mut self, work: Work) {
        self.learned.add(work);
        self.worker = self.learned.cost();
    }

    /// What a worker takes for a frame.
    pub fn worker_cost(&self) -> PerFrame {
        self.worker
    }

    /// Flows that moved since the last time.
    pub fn take_moved(&mut self) -> Vec<Moved> {
        std::mem::take(&mut self.moved)
    }

    /// Frames that a sample stands for: one in so many, and every one while a policy asks for first frames.
    pub fn samples_one_in(&self) -> u32 {
        match self.policies.iter().any(|policy| policy.rule == Rule::First) {
            _ if !self.on => 0,
            true => 1,
            false => SAMPLED,
        }
    }

    /// A worker saw a frame of a flow; it stands for `frames`.
    pub fn saw(&mut self, name: FlowName, (frames, bytes): (u64, u64), now: Nanos) {
        if !self.flows.contains_key(&name) {
            if self.flows.len() >= KNOWN {
                self.forget_lesser();
            }
            self.flows.insert(name, Flow::begin(now));
        }
        let flow = self.flows.get_mut(&name).expect("it was put there");
        flow.traffic.add(frames, bytes, now);
    }

    /// Makes room: of flows on the worker, the half with the lower rates goes.
    fn forget_lesser(&mut self) {
        let on_worker = |flow: &Flow| matches!(flow.state, State::Worker { .. });
        let mut rates: Vec<f64> = self
            .flows
            .values()
            .filter(|flow| on_worker(flow))
            .map(|flow| flow.traffic.rate)
            .collect();
        let half = rates.len() / 2;
        if rates.is_empty() {
            return;
        }
        let (_, &mut limit, _) = rates.select_nth_unstable_by(half, f64::total_cmp);
        let mut to_go = half.max(1);
        self.flows.retain(|_, flow| {
            let goes = on_worker(flow) && flow.traffic.rate <= limit && to_go > 0;
            to_go -= usize::from(goes);
            !goes
        });
    }

    /// The policy for a flow.
    fn policy(&self, name: &FlowName) -> Policy {
        self.policies
            .iter()
            .find(|policy| policy.fits(name.0.switch, &name.1))
            .cloned()
            .unwrap_or_else(Policy::default_cost)
    }
}

impl Flow {
    fn begin(now: Nanos) -> Self {
        Self {
            traffic: Traffic::begin(now),
            spent_ns: 0.0,
            told: Told::default(),
            state: State::worker(PolicyReason::NotSeen, now),
            since: now,
            failures: 0,
            moves: 0,
            policy: String::new(),
        }
    }
}

/// The provider of that name.
fn provider_of<'p, 'r>(
    providers: &'p mut [&'r mut dyn Provider],
    name: ProviderName,
) -> Option<&'p mut (dyn Provider + 'r)> {
    providers.iter_mut().find(|provider| provider.name() == name).map(|provider| &mut **provider)
}
