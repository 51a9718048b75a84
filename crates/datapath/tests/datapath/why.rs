//! What is foretold of a frame is what then becomes of it: bytes, ports, entries, packet-ins and losses, over rings of switches.

mod world;

use crate::rig::{Rig, at};
use crate::time::{Manual, wait};
use datapath::{Config, Event, Happens, Rules, SwitchId, Way};
use flow::{Asked, FlowFilter, FlowMod, Hit, PacketIn, PortNo, PortState};
use port::PortAt;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestError, TestRng, TestRunner};
use std::collections::BTreeMap;
use wire::{DropReason, Field, Key};
use world::{Arrival, LINES, Plan, SWITCHES, a_plan, an_arrival};

/// Frames of one world.
const FRAMES: usize = 100;

/// Frames in all: those of one seed, or more of another one each time.
fn runner() -> TestRunner {
    let config = |frames: usize| {
        let cases = (frames / FRAMES) as u32;
        ProptestConfig { cases, max_shrink_iters: 0, ..ProptestConfig::default() }
    };
    match std::env::var("SUIRO_WHY_FRAMES") {
        Ok(frames) => TestRunner::new(config(frames.parse().unwrap())),
        Err(_) => {
            let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
            TestRunner::new_with_rng(config(2000), rng)
        }
    }
}

/// Losses by switch and reason.
type Losses = BTreeMap<(u32, DropReason), u64>;
/// Frames that found an entry, by switch and cookie.
type Finds = BTreeMap<(u32, u64), u64>;

/// What becomes of a frame, in no order.
#[derive(Debug, Default, PartialEq, Eq)]
struct Fate {
    sent: Vec<(u32, PortNo, Vec<u8>)>,
    told: Vec<(u32, String)>,
    lost: Losses,
    found: Finds,
}

impl Fate {
    fn sorted(mut self) -> Self {
        self.sent.sort();
        self.told.sort();
        self
    }
}

/// All is known.
struct Whole;

impl Rules for Whole {
    fn open_field(&self, _: SwitchId, _: u8, _: (&Key, &Key), _: Option<&Hit>) -> Option<Field> {
        panic!("nothing is open")
    }
}

/// What a way says.
fn foretold(rig: &mut Rig, way: &Way) -> Fate {
    let mut fate = Fate::default();
    for step in &way.steps {
        let switch = step.switch.0;
        match &step.what {
            Happens::Hit(hit) => {
                let now = flow::Nanos(0);
                let cookie =
                    rig.pipeline(switch, |pipeline| pipeline.found(hit, now)).unwrap().cookie;
                *fate.found.entry((switch, cookie)).or_default() += 1;
            }
            Happens::Leaves(port, _, out) => {
                fate.sent.push((switch, *port, out.bytes()));
            }
            Happens::Controller(why) => fate.told.push((switch, said(why))),
            Happens::Lost(reason) | Happens::Refused(_, reason) => {
                *fate.lost.entry((switch, *reason)).or_default() += 1;
            }
            _ => {}
        }
    }
    fate.sorted()
}

fn said(why: &PacketIn) -> String {
    format!("{why:?}")
}

/// Counters of all switches.
fn counted(rig: &mut Rig) -> (Losses, Finds) {
    let (mut lost, mut found) = (BTreeMap::new(), BTreeMap::new());
    for switch in 1..=SWITCHES {
        let counters = rig.datapath.switch_counters(SwitchId(switch)).unwrap();
        lost.extend(counters.drops.into_iter().map(|(reason, count)| ((switch, reason), count)));
        let flows: Vec<_> = rig.pipeline(switch, |pipeline| {
            pipeline.flows(&FlowFilter::default(), flow::Nanos(0)).collect()
        });
        found.extend(flows.into_iter().map(|flow| ((switch, flow.cookie), flow.packets)));
    }
    (lost, found)
}

fn risen<K: Ord + Copy>(before: &BTreeMap<K, u64>, after: BTreeMap<K, u64>) -> BTreeMap<K, u64> {
    let risen = |(key, count)| (key, count - before.get(&key).copied().unwrap_or_default());
    after.into_iter().map(risen).filter(|&(_, count)| count > 0).collect()
}

/// What becomes of a frame, of which so many copies go on in later passes.
fn real(rig: &mut Rig, arrival: &Arrival, later: u64) -> Fate {
    let (lost, found) = counted(rig);
    let went_on = rig.datapath.worker_stats()[0].went_on;
    rig.line(arrival.switch, arrival.port).pass([arrival.frame.clone()]);
    let begin = std::time::Instant::now();
    wait(|| {
        assert!(begin.elapsed().as_secs() < 3, "{later} go on, and these do not");
        rig.datapath.worker_stats()[0].went_on >= went_on + later
    });
    rig.datapath.barrier();
    let mut fate = Fate::default();
    for (switch, port) in (1..=SWITCHES).flat_map(|switch| LINES.map(|port| (switch, port))) {
        let sent = rig.line(switch, port).take_bytes();
        fate.sent.extend(sent.into_iter().map(|bytes| (switch, port, bytes)));
    }
    rig.events.acknowledge();
    while let Some(event) = rig.events.pop() {
        match event {
            Event::PacketIn(punt) => fate.told.push((punt.switch.0, said(&punt.why))),
            other => panic!("{other:?}"),
        }
    }
    let after = counted(rig);
    (fate.lost, fate.found) = (risen(&lost, after.0), risen(&found, after.1));
    fate.sorted()
}

/// The switches in a ring.
fn rig(plans: &[Plan], clock: &Manual) -> Rig {
    let config = Config { cache_entries: 4096, ..Config::default() };
    let mut rig = Rig::with_clock(config, clock.clone());
    for switch in 1..=SWITCHES {
        rig.switch(switch, &LINES, &[]);
    }
    for switch in 1..SWITCHES {
        rig.vlink(at(switch, 2), at(switch + 1, 1));
    }
    for (switch, plan) in (1..).zip(plans) {
        rig.datapath.set_up(at(switch, 15), false);
        rig.pipeline(switch, |pipeline| {
            let ports = [1, 2].into_iter().chain(LINES).map(|port| PortState {
                live: port != 12,
                no_recv: port == 13,
                no_fwd: port == 14,
                no_packet_in: port == 11,
                local: port == 10,
                ..PortState::up(port)
            });
            pipeline.set_ports(ports.collect());
            pipeline.set_config(plan.config);
            let now = flow::Nanos(1);
            plan.groups.iter().for_each(|group| _ = pipeline.group_mod(group.clone(), now));
            plan.meters.iter().for_each(|meter| _ = pipeline.meter_mod(meter.clone(), now));
            for (cookie, rule) in (1..).zip(&plan.rules) {
                // What cannot be is refused.
                let _refused = pipeline.flow_mod(&FlowMod { cookie, ..rule.clone() }, now);
            }
        });
    }
    rig
}

#[test]
fn what_is_foretold_is_what_becomes_of_the_frame() {
    let (mut asked, mut storms) = (0, 0);
    let mut kinds = BTreeMap::<&str, usize>::new();
    let worlds = (vec(a_plan(), SWITCHES as usize), vec(an_arrival(), FRAMES));
    let mut runner = runner();
    let counts = std::cell::RefCell::new((&mut asked, &mut storms, &mut kinds));
    runner
        .run(&worlds, |(plans, arrivals)| {
            let clock = Manual::default();
            clock.pass(1_000_000_000);
            let mut rig = rig(&plans, &clock);
            for arrival in &arrivals {
                clock.pass(arrival.pause_ns);
                // The worker may have told the time of its round before.
                rig.datapath.barrier();
                let place: PortAt = at(arrival.switch, arrival.port);
                let frame = Asked::whole(&arrival.frame, arrival.port);
                let way = rig.datapath.why(place, frame, &Whole);
                prop_assert_eq!(way.depends, None);
                let mut counts = counts.borrow_mut();
                *counts.0 += 1;
                if way.is_cut {
                    *counts.1 += 1;
                    continue;
                }
                let fate = foretold(&mut rig, &way);
                for step in &way.steps {
                    *counts.2.entry(kind(&step.what)).or_default() += 1;
                }
                let later = way
                    .steps
                    .iter()
                    .filter(|step| step.hops == 16 && matches!(step.what, Happens::Crosses(..)));
                let real = real(&mut rig, arrival, later.count() as u64);
                let way: Vec<_> = way
                    .steps
                    .iter()
                    .map(|step| (step.switch.0, step.hops, kind(&step.what)))
                    .collect();
                prop_assert!(
                    fate == real,
                    "{arrival:?}\n  foretold {fate:?}\n  real     {real:?}\n  way {way:?}\n  rules {:?}",
                    plans[arrival.switch as usize - 1].rules
                );
            }
            Ok(())
        })
        .unwrap_or_else(|failed| match failed {
            // Worlds are too large to print; the seed is kept.
            TestError::Fail(reason, _) => panic!("{reason}"),
            TestError::Abort(reason) => panic!("{reason}"),
        });
    println!("{asked} frames, {storms} storms left out, steps {kinds:?}");
    assert!(storms * 4 < asked, "{storms} of {asked} are storms");
}

fn kind(what: &Happens) -> &'static str {
    match what {
        Happens::Enters(..) => "switches",
        Happens::Search(..) => "searches",
        Happens::Hit(_) => "hits",
        Happens::Miss(_) => "misses",
        Happens::Meter(_, flow::MeterVerdict::Pass) => "meters that pass",
        Happens::Meter(..) => "meters that do not",
        Happens::Group(..) => "groups",
        Happens::Bucket(..) => "buckets",
        Happens::Bridge => "bridges",
        Happens::Nowhere(_) => "dead ends",
        Happens::Controller(_) => "packet-ins",
        Happens::Crosses(..) => "vlinks",
        Happens::Leaves(..) => "exits",
        Happens::Refused(..) => "refused",
        Happens::Lost(_) => "lost",
    }
}
