//! Sums over worker and rung: what tables, entries and meters count is what was sent, however often flows move.

use crate::world::{Numbers, SWITCH, World, band, frame, frames, meter, name, now, rule};
use flow::{
    Action, Counted, FlowCommand, FlowFilter, FlowMod, Instructions, MeterUnit, Output,
    RemovedReason,
};
use offload::{Engine, Policy, ProviderName, Rule};
use std::array::from_fn;

/// Flows. Those of even number pass the meter.
const FLOWS: usize = 16;
const METER: u32 = 1;
const LENGTHS: [usize; 5] = [60, 61, 200, 590, 1514];
/// Frames between two looks of the engine, at least; in a long run so many that flows move some 15 000 times.
const PER_TURN: u64 = 250;
/// Turns between two changes of the rule that all flows find.
const PER_CHANGE: u64 = 4;

/// What the source knows of one flow.
#[derive(Clone, Copy, Default)]
struct Sent {
    sent: Counted,
    left: Counted,
    by_rung: u64,
}

fn add(sum: &mut Counted, len: usize) {
    sum.packets += 1;
    sum.bytes += len as u64;
}

/// The rule of table 1: all leave by port 2, after an edit that differs from turn to turn.
fn last(command: FlowCommand, turn: u64) -> FlowMod {
    let set = Action::SetField {
        field: wire::Field::EthDst,
        value: u128::from(2 + turn % 2),
        mask: wire::Field::EthDst.full(),
        of: None,
    };
    let apply = vec![set, Action::Output(Output::Port(2))];
    let instructions = Instructions { apply, ..Instructions::default() };
    FlowMod { command, table: Some(1), instructions, ..FlowMod::default() }
}

struct Play {
    world: World,
    engine: Engine,
    flows: [Sent; FLOWS],
    /// Frames, by flow and length.
    frames: [[Vec<u8>; LENGTHS.len()]; FLOWS],
    turns: u64,
}

impl Play {
    fn new() -> Option<Self> {
        let mut world = World::new("sums")?;
        world.tables.add_meter(METER, meter(MeterUnit::Kbps, &[band(10_000)]), now());
        world.tables.add(&last(FlowCommand::Add, 0), now());
        for flow in 0..FLOWS {
            let metered = (flow % 2 == 0).then_some(METER);
            world.tables.add(&rule(flow as u16, metered, Some(1)), now());
        }
        let mut engine = Engine::default();
        engine.set_slots(&[ProviderName::Tc], 64);
        engine.set_on(true);
        engine.set_policies(vec![Policy { rule: Rule::First, ..Policy::default_cost() }]);
        let frames = from_fn(|flow| from_fn(|len| frame(flow as u16, LENGTHS[len])));
        Some(Self { world, engine, flows: [Sent::default(); FLOWS], frames, turns: 0 })
    }

    fn send(&mut self, flow: usize, len: usize) {
        let (left, by_rung) = self.world.send(&self.frames[flow][len]);
        let (of, len) = (&mut self.flows[flow], LENGTHS[len]);
        add(&mut of.sent, len);
        of.by_rung += u64::from(by_rung);
        if left {
            add(&mut of.left, len);
        }
        if !by_rung {
            self.engine.saw(name(flow as u16), (1, len as u64), now());
        }
    }

    /// The engine looks; now and then the rule changes, and all come back.
    fn turn(&mut self) {
        self.turns += 1;
        let World { tc, tables, .. } = &mut self.world;
        if self.turns.is_multiple_of(PER_CHANGE) {
            let change = last(FlowCommand::Modify, self.turns / PER_CHANGE);
            tables.pipeline.flow_mod(&change, now()).unwrap();
            self.engine.read(&mut [&mut *tc], tables);
            let _before = tables.renew();
            self.engine.changed(SWITCH, &mut [&mut *tc], tables, now());
        }
        self.engine.turn(&mut [tc], tables, now());
    }

    fn play(&mut self, frames: u64) {
        let (mut numbers, per_turn) = (Numbers(2026), PER_TURN.max(frames / 4000));
        for sent in 0..frames {
            // Two flows are nearly all of the traffic, as in life.
            let flow = if numbers.below(4) > 0 { numbers.below(2) } else { numbers.below(FLOWS) };
            self.send(flow, numbers.below(LENGTHS.len()));
            if sent % 32 == 0 {
                self.world.quiet();
            }
            if sent % per_turn == 0 {
                self.turn();
            }
        }
        let World { tc, tables, .. } = &mut self.world;
        self.engine.read(&mut [tc], tables);
    }

    fn sum(&self, of: impl Fn(&Sent) -> Counted, which: impl Fn(usize) -> bool) -> Counted {
        let chosen = self.flows.iter().enumerate().filter(|&(flow, _)| which(flow));
        chosen.fold(Counted::default(), |sum, (_, flow)| Counted {
            packets: sum.packets + of(flow).packets,
            bytes: sum.bytes + of(flow).bytes,
        })
    }

    /// Entries, tables and meter say what the source and the sink say.
    fn assert_exact(&mut self) {
        let pipeline = &mut self.world.tables.pipeline;
        for (flow, known) in self.flows.iter().enumerate() {
            let (key, mask) =
                (rule(flow as u16, None, None).key, rule(flow as u16, None, None).mask);
            let filter = FlowFilter { table: Some(0), key, mask, ..FlowFilter::default() };
            let entry = pipeline.aggregate(&filter);
            let sent = known.sent;
            assert_eq!((entry.packets, entry.bytes), (sent.packets, sent.bytes), "flow {flow}");
        }
        let (sent, left) = (self.sum(|of| of.sent, |_| true), self.sum(|of| of.left, |_| true));
        let metered = self.sum(|of| of.sent, |flow| flow % 2 == 0);
        let passed = self.sum(|of| of.left, |flow| flow % 2 == 0);
        let pipeline = &mut self.world.tables.pipeline;
        let last = pipeline.aggregate(&FlowFilter { table: Some(1), ..FlowFilter::default() });
        assert_eq!((last.packets, last.bytes), (left.packets, left.bytes), "table 1");
        for (table, packets) in [(0, sent.packets), (1, left.packets)] {
            let stats = pipeline.table_stats(table);
            assert_eq!((stats.lookups, stats.matches), (packets, packets), "table {table}");
        }
        let stats = &pipeline.meters().stats(Some(METER), now())[0];
        assert_eq!(stats.counted, metered);
        let dropped = Counted {
            packets: metered.packets - passed.packets,
            bytes: metered.bytes - passed.bytes,
        };
        assert_eq!(stats.bands, [dropped]);
        assert!(dropped.packets > 0, "the meter dropped nothing");

        let removed = pipeline.flow_mod(
            &FlowMod { command: FlowCommand::Delete, table: None, ..FlowMod::default() },
            now(),
        );
        let removed = removed.unwrap();
        let first = removed.iter().filter(|removed| removed.flow.table == 0);
        assert!(removed.iter().all(|removed| removed.reason == RemovedReason::Delete));
        assert_eq!(first.map(|removed| removed.flow.bytes).sum::<u64>(), sent.bytes);
    }
}

#[test]
fn sums_over_worker_and_rung_are_exact_however_often_flows_move() {
    let Some(mut play) = Play::new() else { return };
    let all = frames(40_000);
    play.play(all);
    play.assert_exact();
    let by_rung: u64 = play.flows.iter().map(|flow| flow.by_rung).sum();
    let (ups, _) = play.engine.moves();
    println!("{all} frames, {by_rung} by the rung, {ups} times up, all sums exact");
    assert!(by_rung > all / 10 && by_rung < all * 9 / 10, "{by_rung} of {all} by the rung");
    assert!(ups > play.turns / PER_CHANGE, "{ups} times up");
}
