//! The engine with a rung and a switch of our own: nothing is counted twice or lost, and steady traffic does not flap.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

use flow::{Nanos, Pipeline, PortAt, PortState, Serials, SwitchId};
use offload::{
    CardReason, Condition, Counts, Declined, Edit, Engine, Facts, FlowName, FlowProgram,
    FlowReason, Handle, LimitId, MAX_LIMITS, MoveReason, NotSettled, Order, Orphan, Policy,
    PolicyReason, Price, Provider, ProviderName, Rule, Side, World, known,
};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wire::build::{Frame, Ipv4, Tcp};
use wire::{Head, Key};

const MS: u64 = 1_000_000;
const SWITCH: SwitchId = SwitchId(1);

/// What the rung holds: shared with the test, which plays the kernel.
#[derive(Default)]
struct Slot {
    side: Option<Side>,
    wanted: Option<Side>,
    counts: Counts,
}

type Slots = Arc<Mutex<HashMap<Handle, (FlowName, Slot)>>>;

struct Double {
    slots: Slots,
    next: u32,
    size: usize,
    left: Vec<Orphan>,
}

impl Provider for Double {
    fn name(&self) -> ProviderName {
        ProviderName::Tc
    }
    fn check(&self, _: &FlowProgram) -> Result<Price, Declined> {
        Ok(Price {
            slots: 1,
            insert: Duration::from_micros(50),
            per_frame_ns: 100.0,
            per_byte_ns: 0.0,
        })
    }
    fn install(&mut self, flow: &FlowProgram) -> Result<Handle, Declined> {
        let mut slots = self.slots.lock().unwrap();
        if slots.len() == self.size {
            return Err(CardReason::Full { slots: self.size as u32 }.into());
        }
        self.next += 1;
        slots.insert(
            Handle(self.next),
            ((flow.from, flow.key), Slot { side: Some(Side::Worker), ..Slot::default() }),
        );
        Ok(Handle(self.next))
    }
    fn want(&mut self, handle: Handle, side: Side) -> Result<(), Declined> {
        let mut slots = self.slots.lock().unwrap();
        let slot = &mut slots.get_mut(&handle).unwrap().1;
        slot.wanted = Some(side);
        if side == Side::Worker {
            slot.side = Some(side);
        }
        Ok(())
    }
    fn side(&mut self, handle: Handle) -> Side {
        self.slots.lock().unwrap()[&handle].1.side.unwrap()
    }
    fn order(&self) -> Order {
        Order::Counted
    }
    fn remove(&mut self, handle: Handle) -> Counts {
        let (_, slot) = self.slots.lock().unwrap().remove(&handle).unwrap();
        assert_eq!(slot.side, Some(Side::Worker), "removed from its rung");
        slot.counts
    }
    fn read(&mut self, out: &mut Vec<(Handle, Counts)>, budget: usize) {
        out.extend(
            self.slots
                .lock()
                .unwrap()
                .iter()
                .take(budget)
                .map(|(handle, (_, slot))| (*handle, slot.counts)),
        );
    }
    fn settle(&mut self, _: Duration) -> Result<(), NotSettled> {
        Ok(())
    }
    fn adopt(&mut self) -> Vec<Orphan> {
        std::mem::take(&mut self.left)
    }
    fn keep(&mut self, _: Handle, _: &FlowProgram) {}
}

/// A switch that sends all by port 2.
struct Switch {
    pipeline: Pipeline,
    credited: HashMap<FlowName, u64>,
    /// Which tables hold.
    version: u64,
    made: HashMap<FlowName, u64>,
    has_way: bool,
}

impl Facts for Switch {
    fn mtu(&self, _: u32) -> Result<u32, Declined> {
        Ok(1500)
    }
    fn limits(
        &self,
        _: u32,
        _: &mut arrayvec::ArrayVec<LimitId, MAX_LIMITS>,
    ) -> Result<(), Declined> {
        Err(FlowReason::Limits.into())
    }
}

impl World for Switch {
    fn program(&mut self, flow: &FlowName, now: Nanos) -> Result<FlowProgram, Declined> {
        self.made.insert(*flow, self.version);
        let resolved = self.pipeline.snapshot().resolve(&flow.1, &known(&flow.1), now);
        let mut program = FlowProgram::of(flow.0, &flow.1, &resolved, self)?;
        if self.version > 0 {
            program.edits.push(Edit::PushVlan { tpid: 0x8100, tci: self.version as u16 & 0xfff });
        }
        Ok(program)
    }
    fn meets(&mut self, orphan: &Orphan) -> FlowName {
        (orphan.from, orphan.key)
    }
    fn takes_up(
        &mut self,
        flow: &FlowName,
        _: &Orphan,
        now: Nanos,
    ) -> Result<FlowProgram, Declined> {
        if self.has_way { self.program(flow, now) } else { Err(MoveReason::Adopting.into()) }
    }
    fn share(&mut self, _: &FlowProgram) {}
    fn holds(&mut self, program: &FlowProgram, _: Nanos) -> bool {
        self.made[&(program.from, program.key)] == self.version
    }
    fn credit(&mut self, program: &FlowProgram, counts: Counts) {
        *self.credited.entry((program.from, program.key)).or_default() += counts.frames;
    }
    fn quiesce(&mut self) {}
}

struct Test {
    engine: Engine,
    rung: Double,
    slots: Slots,
    switch: Switch,
    now: u64,
    sent: HashMap<FlowName, u64>,
    by_worker: HashMap<FlowName, u64>,
}

fn name(at: u16) -> FlowName {
    let frame = Frame::ethernet([2; 6], [4; 6]).ipv4(Ipv4::default());
    let bytes = frame.tcp(Tcp { src: at, ..Tcp::default() }).finish();
    let (key, _): (Key, _) = wire::parse(&Head::copy_of(&bytes), 1);
    (PortAt { switch: SWITCH, port: 1 }, key.masked(&offload::told_apart(&key)))
}

impl Test {
    fn new(size: usize) -> Self {
        let mut pipeline = Pipeline::new(flow::Limits::default(), &Serials::default());
        pipeline.set_ports(vec![PortState::up(1), PortState::up(2)]);
        let apply = vec![flow::Action::Output(flow::Output::Port(2))];
        let instructions = flow::Instructions { apply, ..flow::Instructions::default() };
        pipeline
            .flow_mod(&flow::FlowMod { instructions, ..flow::FlowMod::default() }, Nanos(0))
            .unwrap();
        let slots = Slots::default();
        let mut engine = Engine::default();
        engine.set_slots(ProviderName::Tc, size as u32);
        engine.set_on(true);
        Self {
            engine,
            rung: Double { slots: slots.clone(), next: 0, size, left: Vec::new() },
            slots,
            switch: Switch {
                pipeline,
                credited: HashMap::new(),
                version: 0,
                made: HashMap::new(),
                has_way: true,
            },
            now: 1000 * MS,
            sent: HashMap::new(),
            by_worker: HashMap::new(),
        }
    }

    /// Frames of one flow come: by the rung if they may, else to the worker, which tells of them.
    fn send(&mut self, at: u16, frames: u64) {
        let name = name(at);
        *self.sent.entry(name).or_default() += frames;
        let mut slots = self.slots.lock().unwrap();
        let slot = slots.values_mut().find(|(of, _)| *of == name).map(|(_, slot)| slot);
        // None is under way in this test's worker: a wish is met at once.
        if let Some(slot) = slot {
            slot.side = slot.wanted.or(slot.side);
            if slot.side == Some(Side::Rung) {
                slot.counts += Counts {
                    frames,
                    bytes: 1000 * frames,
                    used: Nanos(self.now),
                    ..Counts::default()
                };
                return;
            }
        }
        drop(slots);
        *self.by_worker.entry(name).or_default() += frames;
        self.engine.saw(name, (frames, 1000 * frames), Nanos(self.now));
    }

    fn turn(&mut self) {
        self.now += 20 * MS;
        self.engine.turn(&mut [&mut self.rung], &mut self.switch, Nanos(self.now));
    }

    fn rung_of(&self, at: u16) -> Option<ProviderName> {
        self.engine.why(&name(at)).and_then(|told| told.line.rung)
    }

    fn declined(&self, at: u16) -> Option<Declined> {
        self.engine.why(&name(at)).and_then(|told| told.line.declined)
    }

    /// Ends all stays and compares what was sent with what was counted.
    fn assert_conserved(&mut self) {
        self.engine.set_on(false);
        (0..20).for_each(|_| self.turn());
        assert!(self.slots.lock().unwrap().is_empty(), "all came back");
        for (name, sent) in &self.sent {
            let of = |counts: &HashMap<FlowName, u64>| counts.get(name).copied().unwrap_or(0);
            assert_eq!(of(&self.by_worker) + of(&self.switch.credited), *sent);
        }
    }
}

fn when(when: &str, until: Option<&str>) -> Policy {
    let when = Condition::when(when).unwrap();
    let until = Condition::until(until, &when).unwrap();
    Policy { name: "bulk".into(), rule: Rule::When { when, until }, ..Policy::default_cost() }
}

#[test]
fn a_heavy_flow_leaves_the_worker_and_comes_back_when_it_is_light() {
    let mut test = Test::new(8);
    test.engine.set_policies(vec![when("rate>=50M and packets>=100", Some("rate<5M"))]);
    for _ in 0..100 {
        test.send(1, 400); // 160 Mbit/s
        test.send(2, 1);
        test.turn();
    }
    assert_eq!((test.rung_of(1), test.rung_of(2)), (Some(ProviderName::Tc), None));
    assert!(matches!(
        test.declined(2),
        Some(Declined::Policy(PolicyReason::BelowThreshold {
            what: "rate",
            needs: 50_000_000,
            ..
        }))
    ));
    for _ in 0..150 {
        test.send(1, 1);
        test.turn();
    }
    assert_eq!(test.rung_of(1), None);
    test.assert_conserved();
}

#[test]
fn steady_traffic_does_not_flap() {
    for rate in [1, 30, 48, 52, 200] {
        let mut test = Test::new(8);
        test.engine.set_policies(vec![when("rate>=50M", Some("rate<40M"))]);
        for round in 0..3000u64 {
            test.send(1, rate * 5 / 2 + round % 2);
            test.turn();
        }
        let (moves, flaps) = test.engine.moves();
        assert!(moves <= 1 && flaps == 0, "{rate} Mbit/s: {moves} moves, {flaps} flaps");
    }
}

#[test]
fn who_falls_silent_while_it_rises_is_not_said_to_be_never_quiet() {
    let mut test = Test::new(8);
    test.engine.set_policies(vec![Policy { rule: Rule::First, ..Policy::default_cost() }]);
    test.send(1, 1);
    (0..100).for_each(|_| test.turn());
    assert_eq!(test.declined(1), Some(PolicyReason::NotSeen.into()));
    for _ in 0..5 {
        test.send(1, 1);
        test.turn();
    }
    assert_eq!(test.rung_of(1), Some(ProviderName::Tc), "it waits for nothing but frames");
    test.assert_conserved();
}

#[test]
fn a_changed_rule_brings_its_flows_back_before_it_answers() {
    let mut test = Test::new(8);
    test.engine.set_policies(vec![Policy { rule: Rule::First, ..Policy::default_cost() }]);
    for _ in 0..20 {
        test.send(1, 10);
        test.turn();
    }
    assert!(test.rung_of(1).is_some());
    test.switch.version += 1;
    test.engine.changed(SWITCH, &mut [&mut test.rung], &mut test.switch, Nanos(test.now));
    assert!(test.slots.lock().unwrap().is_empty());
    for _ in 0..20 {
        test.send(1, 10);
        test.turn();
    }
    assert!(test.rung_of(1).is_some(), "it goes up again at once");
    test.assert_conserved();
}

/// A new engine for a flow that an earlier one left on the rung, when its tunnel has no way yet.
fn left_without_way() -> Test {
    let mut test = Test::new(8);
    let (from, key) = name(1);
    let program = test.switch.program(&(from, key), Nanos(test.now)).unwrap();
    let handle = test.rung.install(&program).unwrap();
    test.rung.want(handle, Side::Rung).unwrap();
    test.send(1, 10);
    test.rung.left.push(Orphan {
        handle,
        from,
        key,
        exit: Some(program.exit),
        patch: offload::Patch::of(&program),
        around: None,
        limits: Default::default(),
        shapes: Default::default(),
        side: Side::Rung,
        counts: Counts::default(),
    });
    test.switch.has_way = false;
    let found = test.engine.adopt(&mut [&mut test.rung], &mut test.switch, Nanos(test.now));
    assert_eq!((found, test.engine.has_left()), (offload::TakenUp::default(), true));
    test
}

impl Test {
    fn take_up(&mut self) -> offload::TakenUp {
        self.now += 20 * MS;
        self.engine.take_up(&mut [&mut self.rung], &mut self.switch, Nanos(self.now))
    }
}

#[test]
fn a_flow_that_was_left_goes_on_until_its_way_is_there_and_counts_all_that_came_meanwhile() {
    let mut test = left_without_way();
    test.send(1, 5);
    assert!(test.take_up().stayed.is_empty() && test.rung_of(1) == Some(ProviderName::Tc));
    assert_eq!(test.declined(1), Some(MoveReason::Adopting.into()));
    test.switch.has_way = true;
    assert_eq!(test.take_up().stayed, [ProviderName::Tc]);
    assert!(!test.engine.has_left() && test.declined(1).is_none());
    test.send(1, 7);
    test.assert_conserved();
}

#[test]
fn a_flow_whose_way_does_not_come_is_the_workers_after_a_while_and_at_a_barrier_at_once() {
    let mut test = left_without_way();
    let ended = |test: &mut Test| test.take_up().ended == [MoveReason::Adopting.into()];
    assert!((0..149).all(|_| !ended(&mut test)) && ended(&mut test), "after 3 s");
    assert!(test.slots.lock().unwrap().is_empty() && !test.engine.has_stays());

    let mut test = left_without_way();
    let judged = test.engine.judge_left(&mut [&mut test.rung], &mut test.switch, Nanos(test.now));
    assert_eq!(judged.ended, [MoveReason::Adopting.into()]);
    assert!(test.slots.lock().unwrap().is_empty() && !test.engine.has_stays());
}

#[test]
fn when_slots_are_few_the_heaviest_have_them() {
    let mut test = Test::new(2);
    for _ in 0..400 {
        for at in 1..=4 {
            test.send(at, 20 * u64::from(at));
        }
        test.turn();
    }
    let up: Vec<u16> = (1..=4).filter(|&at| test.rung_of(at).is_some()).collect();
    assert_eq!(up, [3, 4]);
    test.assert_conserved();
}

#[test]
fn never_means_never() {
    let mut test = Test::new(2);
    test.engine.set_policies(vec![Policy { rule: Rule::Never, ..Policy::default_cost() }]);
    for _ in 0..50 {
        test.send(1, 1000);
        test.turn();
    }
    assert_eq!(test.declined(1), Some(PolicyReason::Never.into()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_frame_is_counted_once(
        steps in vec((1u16..6, 0u64..2000, 0u8..20), 1..300),
        size in 1usize..4,
    ) {
        let mut test = Test::new(size);
        for (at, frames, what) in steps {
            test.send(at, frames);
            match what {
                0 => {
                    test.switch.version += 1;
                    test.engine.changed(SWITCH, &mut [&mut test.rung], &mut test.switch, Nanos(test.now));
                }
                1 => test.engine.set_on(false),
                2 => test.engine.set_on(true),
                3 => test.engine.set_policies(vec![when("pps>=1000", None)]),
                4 => test.engine.set_policies(vec![]),
                _ => test.turn(),
            }
        }
        test.assert_conserved();
    }
}
