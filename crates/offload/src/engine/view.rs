//! What is told of flows: the list, and why one is where it is.

use super::table::Table;
use super::{Engine, Flow, FlowName, Stage, State};
use crate::cost::PerFrame;
use crate::declined::{Declined, MoveReason};
use crate::{Counts, ProviderName};
use flow::Nanos;

/// One flow of the list.
#[derive(Clone, Debug)]
pub struct FlowLine {
    /// Which.
    pub name: FlowName,
    /// The rung that its frames take; `None`: the worker.
    pub rung: Option<ProviderName>,
    /// How a move under way stands.
    pub stage: Option<Stage>,
    /// When it came there.
    pub since: Nanos,
    /// Why it is on the worker.
    pub declined: Option<Declined>,
    /// The policy that moved it last; empty if none did.
    pub policy: String,
    /// All that came of it: on rungs exactly, on the worker by samples.
    pub frames: u64,
    /// Bytes, likewise.
    pub bytes: u64,
    /// What came on rungs.
    pub offloaded: Counts,
    /// Bits a second.
    pub rate: u64,
    /// Frames a second.
    pub pps: u64,
    /// Limits that it passes.
    pub limits: usize,
    /// Where it leaves, if it has a program.
    pub exit: Option<u32>,
    /// Moves up.
    pub moves: u64,
    /// When it is tried next.
    pub next: Option<Nanos>,
}

/// Why a flow is where it is.
#[derive(Clone, Debug)]
pub struct Explained {
    /// What is known of it.
    pub line: FlowLine,
    /// The policy that decides now.
    pub policy: String,
    /// Nanoseconds a second that it costs on the worker.
    pub worker_ns_per_s: u64,
    /// What a frame and a byte cost there.
    pub worker: PerFrame,
}

/// One rung, as `show` prints it.
#[derive(Clone, Debug)]
pub struct RungLine {
    /// Which.
    pub name: ProviderName,
    /// Slots of the table that its flows lie in.
    pub slots: u32,
    /// Of those taken, by flows of any rung.
    pub taken: u32,
    /// Flows whose frames take it.
    pub flows: usize,
    /// Flows on their way up or down.
    pub moving: usize,
    /// What it took since the start.
    pub counts: Counts,
}

impl Engine {
    /// Every known flow, those with the highest rate first.
    pub fn list(&self) -> Vec<FlowLine> {
        let mut lines: Vec<FlowLine> =
            self.flows.iter().map(|(name, flow)| flow.line(name)).collect();
        lines.sort_by_key(|line| std::cmp::Reverse((line.rung, line.rate, line.bytes)));
        lines
    }

    /// Why a flow is where it is; `None` if none of its frames has been seen.
    pub fn why(&self, name: &FlowName) -> Option<Explained> {
        let flow = self.flows.get(name)?;
        let worker_ns_per_s = self.worker.per_s(&flow.traffic) as u64;
        let (line, policy, worker) = (flow.line(name), self.policy(name).name, self.worker);
        Some(Explained { line, policy, worker_ns_per_s, worker })
    }

    /// The rungs.
    pub fn rungs(&self) -> Vec<RungLine> {
        let stays = |rung: ProviderName, is_up: bool| {
            let counts = |flow: &&Flow| match &flow.state {
                State::Stay(stay) => {
                    stay.provider == rung && matches!(stay.stage, Stage::Up) == is_up
                }
                State::Worker { .. } | State::Left(_) => false,
            };
            self.flows.values().filter(counts).count()
        };
        let line = |name: ProviderName, (slots, taken)| {
            let counts = self.past.get(&name).copied().unwrap_or_default();
            let (flows, moving) = (stays(name, true), stays(name, false));
            RungLine { name, slots, taken, flows, moving, counts }
        };
        let of_table = |table: &Table| {
            let slots = table.ledger.slots();
            table.rungs.iter().map(|&rung| line(rung, slots)).collect::<Vec<_>>()
        };
        let mut lines: Vec<RungLine> = self.tables.iter().flat_map(of_table).collect();
        lines.sort_by_key(|line| line.name);
        lines
    }

    /// Moves up since the start, and how many of them were flaps.
    pub fn moves(&self) -> (u64, u64) {
        (self.moves, self.flaps)
    }
}

impl Flow {
    fn line(&self, name: &FlowName) -> FlowLine {
        let (rung, stage, declined, program, next) = match &self.state {
            State::Worker { why, retry, .. } => (None, None, Some(why.clone()), None, Some(*retry)),
            State::Left(left) => {
                (Some(left.provider), None, Some(MoveReason::Adopting.into()), None, None)
            }
            State::Stay(stay) => {
                let is_up = matches!(stay.stage, Stage::Up);
                (
                    is_up.then_some(stay.provider),
                    Some(stay.stage.clone()),
                    None,
                    Some(&stay.program),
                    None,
                )
            }
        };
        FlowLine {
            name: *name,
            rung,
            stage,
            since: self.since,
            declined,
            policy: self.policy.clone(),
            frames: self.traffic.frames,
            bytes: self.traffic.bytes,
            offloaded: self.told.sum(),
            rate: self.traffic.rate as u64,
            pps: self.traffic.pps as u64,
            limits: program.map_or(0, |program| program.limits.len()),
            exit: program.map(|program| program.out().port),
            moves: self.moves,
            next,
        }
    }
}
