//! Flows that start together go to different cores, whatever the gap between them and wherever the agent's refresh falls in.
//!
//! The host: each core has a little else to do, never the same for two measurements. The agent reads times and counts of arrivals in one moment and
//! has written the table some time later; 2 ms after it saw frames, or 50 ms after it saw none, it looks again. All that decides is the
//! crate's own: [`Vse`], [`Smoothed`], [`Arrivals`].

use std::collections::BTreeMap;
use std::time::Duration;

use place::{
    Arrivals, Core, CoreId, CoreTable, Facts, Load, Policy, Smoothed, Stage, StageLoads, Vse,
};
use proptest::prelude::*;

const BUSY: u64 = 2000;
const IDLE: u64 = 50_000;
/// What else a core has to do, at most, in parts per million.
const NOISE: u32 = 40_000;

/// A flow: microseconds from the one before it (from a refresh, the first), and parts per million of a core that it takes.
type Flow = (u64, u32);

struct Host {
    /// What the program reads. `placed` is as of the last refresh.
    table: CoreTable,
    came: BTreeMap<CoreId, u32>,
    /// `came` as of the reading that `table` is made of.
    read: BTreeMap<CoreId, u32>,
    arrivals: Arrivals,
    seen: Vec<Smoothed>,
    /// Start, core and load of each flow.
    flows: Vec<(u64, CoreId, u32)>,
    noise: Vec<u32>,
}

impl Host {
    fn new(cores: u16, noise: Vec<u32>) -> Self {
        let table = CoreTable::new((0..cores).map(|id| Core::new(CoreId(id))).collect());
        Self {
            table: table.expect("ids rise"),
            came: BTreeMap::new(),
            read: BTreeMap::new(),
            arrivals: Arrivals::default(),
            seen: vec![Smoothed::default(); cores.into()],
            flows: Vec::new(),
            noise,
        }
    }

    /// The agent's reading at `now`, of the time since `last`: the table that it will write.
    fn read(&mut self, last: u64, now: u64) -> CoreTable {
        let mut table = self.table.clone();
        self.arrivals.count(Duration::from_micros(now), self.came.clone());
        self.read = self.came.clone();
        for (at, seen) in self.seen.iter_mut().enumerate() {
            let id = CoreId(at as u16);
            let of_flow = |&(start, core, load): &(u64, CoreId, u32)| {
                let spent = now.saturating_sub(start.max(last)) * u64::from(load);
                if core == id { spent } else { 0 }
            };
            let busy: u64 = self.flows.iter().map(of_flow).sum();
            let window = now - last;
            let mut sample = StageLoads::default();
            sample[Stage::Packet] = Load::of(busy, window * 1_000_000);
            self.noise.rotate_left(1);
            sample.other = Load::ppm(self.noise[0]);
            seen.measure(&sample, Duration::from_micros(window));
            let core = table.core_mut(id).expect("one of the table's");
            (core.load, core.placed) = (seen.loads(), self.arrivals.unmeasured(id));
        }
        table
    }

    /// The program's choice: what came since the reading counts too.
    fn place(&mut self, now: u64, load: u32) {
        let mut table = self.table.clone();
        let count = |counts: &BTreeMap<_, _>, id| counts.get(&id).copied().unwrap_or(0);
        for at in 0..self.seen.len() {
            let id = CoreId(at as u16);
            table.core_mut(id).expect("one of the table's").placed +=
                count(&self.came, id) - count(&self.read, id);
        }
        let facts = Facts {
            hash: 0,
            vm: None,
            is_priority: false,
            wants_own_core: false,
            rx_core: CoreId(0),
        };
        let core = Vse::default().place(&table, &facts).core;
        *self.came.entry(core).or_default() += 1;
        self.flows.push((now, core, load));
    }

    /// Runs until all flows are placed. `writing`: how long the agent takes from its reading to the new table.
    fn run(&mut self, flows: &[Flow], writing: u64) -> Vec<CoreId> {
        let begin = 20 * IDLE;
        let starts = flows.iter().scan(begin, |at, &(gap, load)| {
            *at += gap;
            Some((*at, load))
        });
        let mut starts = starts.peekable();
        let (mut last, mut next) = (0, IDLE);
        while starts.peek().is_some() {
            // `read` belongs to the table that is in force: until it is written, arrivals count from the reading before.
            let (before, came) = (self.read.clone(), self.came.clone());
            let table = self.read(last, next);
            self.read = before;
            while let Some((start, load)) = starts.next_if(|&(start, _)| start < next + writing) {
                self.place(start, load);
            }
            (self.table, self.read) = (table, came);
            let is_busy = !self.flows.is_empty();
            (last, next) = (next, next + if is_busy { BUSY } else { IDLE });
            while let Some((start, load)) = starts.next_if(|&(start, _)| start < next) {
                self.place(start, load);
            }
        }
        self.flows.iter().map(|&(_, core, _)| core).collect()
    }
}

/// As many flows as cores: none, a moment, a tick or any other time apart.
fn flows() -> impl Strategy<Value = Vec<Flow>> {
    let gap = prop_oneof![Just(0), Just(10), Just(1000), Just(BUSY), Just(IDLE), 0..2 * IDLE];
    let flow = (gap, 100_000_u32..800_000);
    prop::collection::vec(flow, 2..7)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4096) })]

    #[test]
    fn flows_that_start_at_any_gap_go_to_different_cores(
        flows in flows(),
        writing in 0_u64..500,
        noise in prop::collection::vec(0..NOISE, 31),
    ) {
        let cores = flows.len() as u16;
        let mut went = Host::new(cores, noise).run(&flows, writing);
        went.sort_unstable();
        went.dedup();
        prop_assert_eq!(went.len(), flows.len(), "{:?}", flows);
    }
}
