//! How evenly do flow groups lie on cores? The policies unchanged, on a host of our making: loads are measured every 2 ms and wrong by up to a
//! twentieth, as an agent would see them.
//!
//! Goal (issue 5, M1): the fullest allowed core at most 5 % above the mean, from 256 groups of equal rate on.

use std::collections::BTreeMap;
use std::time::Duration;

use place::{
    Arrivals, Core, CoreId, CoreTable, Decision, Facts, Hash, Hold, Load, Moves, Policy, Role,
    Smoothed, Stage, StageLoads, UnitId, UnitLoad, VmId, Vse,
};

/// A measurement.
const TICK: Duration = Duration::from_millis(2);
/// For so many measurements a unit that came stays: the fastest reaction that we promise, 10 ms.
const REST: u32 = 5;
const EVEN: f64 = 1.05;

/// Pseudo-random, the same in every run (the constants of Knuth's MMIX generator).
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    /// Within a twentieth of 1.
    fn noise(&mut self) -> f64 {
        0.95 + 0.1 * f64::from(self.roll()) / 4_294_967_296.0
    }
}

struct Group {
    /// Of one core.
    load: f64,
    arrives: u32,
    hash: u32,
    vm: Option<VmId>,
    is_priority: bool,
    now: Option<Decision>,
    /// When it came to its core.
    came: u32,
    seen: Smoothed,
}

struct Host<'a> {
    policy: &'a dyn Policy,
    table: CoreTable,
    /// Load that is not ours, by core.
    base: Vec<f64>,
    seen: Vec<Smoothed>,
    /// Groups that ever came to each core.
    came: BTreeMap<CoreId, u32>,
    arrivals: Arrivals,
    groups: Vec<Group>,
    tick: u32,
    dice: Dice,
    moves: usize,
}

const RX_CORE: CoreId = CoreId(0);

impl<'a> Host<'a> {
    /// `count` groups that arrive one by one over `ticks`, together `load` of all cores.
    fn new(policy: &'a dyn Policy, cores: u16, count: usize, load: f64, ticks: u32) -> Self {
        let cores_of = (0..cores).map(|id| Core::new(CoreId(id))).collect();
        let table = CoreTable::new(cores_of).expect("ids rise");
        let mut dice = Dice(u64::from(cores) + count as u64);
        let each = load * f64::from(cores) / count as f64;
        let group = |_| Group {
            load: each,
            arrives: dice.roll() % ticks,
            hash: dice.roll(),
            vm: None,
            is_priority: false,
            now: None,
            came: 0,
            seen: Smoothed::default(),
        };
        let groups = (0..count).map(group).collect();
        let base = vec![0.0; usize::from(cores)];
        let seen = vec![Smoothed::default(); usize::from(cores)];
        let (came, arrivals) = (BTreeMap::new(), Arrivals::default());
        Self { policy, table, base, seen, came, arrivals, groups, tick: 0, dice, moves: 0 }
    }

    /// True loads, what nobody can serve included.
    fn loads(&self) -> Vec<f64> {
        let mut loads = self.base.clone();
        for group in &self.groups {
            if let Some(decision) = group.now {
                loads[usize::from(decision.core.0)] += group.load;
            }
        }
        loads
    }

    fn run(&mut self, ticks: u32) -> &mut Self {
        for _ in 0..ticks {
            self.arrivals();
            self.measure();
            self.repair();
            self.tick += 1;
        }
        self
    }

    fn arrivals(&mut self) {
        for group in self.groups.iter_mut().filter(|group| group.arrives <= self.tick) {
            if group.now.is_some_and(|decision| decision.reason.is_settled()) {
                continue;
            }
            let facts = Facts {
                hash: group.hash,
                vm: group.vm,
                is_priority: group.is_priority,
                wants_own_core: false,
                rx_core: RX_CORE,
            };
            let decision = self.policy.place(&self.table, &facts);
            group.now = Some(decision);
            if decision.reason.is_settled() {
                let core = self.table.core_mut(decision.core);
                core.expect("one of the table's").placed += 1;
                *self.came.entry(decision.core).or_default() += 1;
                group.came = self.tick;
            }
        }
    }

    /// One refresh of the table, as the agent does it.
    fn measure(&mut self) {
        let sample = |load: f64| {
            let mut sample = StageLoads::default();
            sample[Stage::Packet] = part(load);
            sample
        };
        self.arrivals.count(TICK * self.tick, self.came.clone());
        for (at, load) in self.loads().into_iter().enumerate() {
            let id = self.table.cores()[at].id();
            let core = self.table.core_mut(id).expect("one of the table's");
            core.placed = self.arrivals.unmeasured(id);
            self.seen[at].measure(&sample(load.min(1.0) * self.dice.noise()), TICK);
            core.load = self.seen[at].loads();
        }
        for group in self.groups.iter_mut().filter(|group| group.now.is_some()) {
            group.seen.measure(&sample(group.load * self.dice.noise()), TICK);
        }
    }

    fn repair(&mut self) {
        let unit = |(id, group): (u32, &Group)| {
            let now = group.now?;
            let is_resting = group.came + REST > self.tick;
            Some(UnitLoad {
                unit: UnitId(id),
                core: now.core,
                measured_on: now.core,
                load: group.seen.loads().total(),
                vm: group.vm,
                is_priority: group.is_priority,
                hold: if is_resting { Hold::Resting } else { Hold::Free },
            })
        };
        let units: Vec<_> = (0..).zip(&self.groups).filter_map(unit).collect();
        for step in self.policy.repair(&self.table, &units) {
            let group = &mut self.groups[step.unit.0 as usize];
            group.now = Some(Decision { core: step.to, reason: step.reason });
            group.came = self.tick;
            let load = group.seen.loads().total();
            self.seen[usize::from(step.from.0)].lose(Stage::Packet, load);
            self.seen[usize::from(step.to.0)].gain(Stage::Packet, load);
            self.moves += 1;
        }
    }

    /// Load of the fullest core over the mean, of cores that ordinary flows may use.
    fn unevenness(&self) -> f64 {
        let open = |core: &&Core| core.role == Role::Allowed && core.pinned.is_empty();
        let loads = self.loads();
        let loads: Vec<_> = self
            .table
            .cores()
            .iter()
            .filter(open)
            .map(|core| loads[usize::from(core.id().0)])
            .collect();
        loads.iter().copied().fold(0.0, f64::max) * loads.len() as f64 / loads.iter().sum::<f64>()
    }
}

/// Of one core.
fn part(load: f64) -> Load {
    Load::ppm((load * 1e6) as u32)
}

const PAPER: Vse = Vse { moves: None };

fn moving() -> Vse {
    Vse { moves: Some(Moves::default()) }
}

/// (cores, groups, load of all cores).
const LIGHT: [(u16, usize, f64); 6] =
    [(2, 256, 0.2), (2, 256, 0.4), (4, 256, 0.4), (6, 256, 0.4), (6, 512, 0.3), (16, 1024, 0.4)];
const HEAVY: [(u16, usize, f64); 6] =
    [(2, 256, 0.6), (2, 256, 0.9), (4, 256, 0.8), (6, 256, 0.8), (6, 512, 0.9), (16, 1024, 0.8)];

/// Over how many measurements the groups arrive: all at once, and in up to two seconds.
const ARRIVALS: [u32; 4] = [1, 10, 100, 1000];
const SECOND: u32 = 500;

/// Each case's host, two seconds after the last arrival.
fn hosts<'a>(
    policy: &'a dyn Policy,
    cases: &'a [(u16, usize, f64)],
    arrivals: &'a [u32],
) -> impl Iterator<Item = (String, Host<'a>)> {
    let all = cases.iter().flat_map(move |case| arrivals.iter().map(move |&ticks| (case, ticks)));
    all.map(|(&(cores, groups, load), ticks)| {
        let mut host = Host::new(policy, cores, groups, load, ticks);
        host.run(ticks + 2 * SECOND);
        let name = format!("{cores} cores, {groups} groups, load {load}, {ticks} ticks");
        println!("{}: {name}: {:.3}, {} moves", policy.name(), host.unevenness(), host.moves);
        (name, host)
    })
}

#[test]
fn vse_is_even_while_no_core_is_above_the_threshold() {
    for (name, host) in hosts(&PAPER, &LIGHT, &ARRIVALS) {
        assert!(host.unevenness() <= EVEN, "{name}: {}", host.unevenness());
    }
}

/// The baseline. Not always: with few cores and luck it is even too.
#[test]
fn hash_is_not_even_with_256_groups_on_6_cores() {
    for (name, host) in hosts(&Hash, &[(6, 256, 0.4)], &ARRIVALS) {
        assert!(host.unevenness() > EVEN, "{name}: {}", host.unevenness());
    }
}

/// The paper's fallback: with no core at or below the threshold, whatever comes stays where it was received.
#[test]
fn without_moves_what_comes_above_the_threshold_piles_up_on_the_interrupted_core() {
    for (name, host) in hosts(&PAPER, &HEAVY[1..], &[100]) {
        assert!(host.unevenness() > EVEN, "{name}: {}", host.unevenness());
    }
}

#[test]
fn vse_with_moves_is_even_at_every_load_and_then_nearly_still() {
    let policy = moving();
    let cases = [LIGHT, HEAVY].concat();
    for (name, mut host) in hosts(&policy, &cases, &ARRIVALS) {
        assert!(host.unevenness() <= EVEN, "{name}: {}", host.unevenness());
        let before = host.moves;
        host.run(2 * SECOND);
        assert!(host.unevenness() <= EVEN, "{name}: {}", host.unevenness());
        let moves = host.moves - before;
        assert!(moves <= 40, "{name}: {moves} moves in two seconds of steady traffic");
    }
}

#[test]
fn no_group_is_on_a_guests_core_once_another_is_free() {
    let policy = moving();
    let mut host = Host::new(&policy, 4, 256, 0.35, 100);
    host.base[0] = 0.3; // The interrupted core is a guest's: what stays there collides with it.
    host.table.core_mut(RX_CORE).unwrap().pinned.add(VmId::new(1));
    let on_guests_core = |host: &Host| {
        let is_there = |group: &&Group| group.now.is_some_and(|now| now.core == RX_CORE);
        host.groups.iter().filter(is_there).count()
    };
    host.run(SECOND);
    assert_eq!(on_guests_core(&host), 0);
    assert!(host.unevenness() <= EVEN, "{}", host.unevenness());
}

/// A core takes on a second job: its groups leave, as many as make the others equally full.
#[test]
fn a_step_of_load_is_evened_out_and_its_first_group_moves_within_five_measurements() {
    let policy = moving();
    let mut host = Host::new(&policy, 4, 256, 0.6, 10);
    host.run(SECOND);
    host.base[2] = 0.35;
    let before = host.moves;
    let first = (1..).find(|_| host.run(1).moves > before).unwrap();
    let even = first + (0..SECOND).find(|_| host.run(1).unevenness() <= EVEN).expect("evens out");
    println!("first move after {first}, even after {even} measurements of 2 ms");
    assert!(first <= 5, "{first}");
    assert!(even <= 50, "{even}");
}

/// The n-th heaviest group has 1/n of the heaviest one's load. On 6 cores that one nearly fills a core, and is left together with one of the next:
/// a plan makes single moves, no exchanges.
#[test]
fn groups_of_very_unequal_load_are_evened_as_far_as_single_moves_can() {
    let policy = moving();
    for (cores, most) in [(2, EVEN), (4, EVEN), (6, 1.2)] {
        let mut host = Host::new(&policy, cores, 512, 0.0, 100);
        let parts: f64 = (1..=512).map(|nth| 1.0 / f64::from(nth)).sum();
        let total = 0.6 * f64::from(cores);
        for (nth, group) in (1..).zip(&mut host.groups) {
            group.load = total / parts / f64::from(nth);
        }
        host.run(2 * SECOND);
        println!("{cores} cores: {:.3}, {} moves", host.unevenness(), host.moves);
        assert!(host.unevenness() <= most, "{cores} cores: {}", host.unevenness());
    }
}
