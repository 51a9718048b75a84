//! One word of virtual time for worker and rung: what both let through is what it says, to the last 1/1024 ns, however they take turns.

use crate::world::{Numbers, Worker, World, band, frame, frames, meter, now, rule};
use flow::{Band, Counted, MeterUnit, SharedBucket};
use offload::Handle;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use xdp::offload::{Limit, Way};

const SECOND: u64 = 1_000_000_000 * 1024;
const FLOW: u16 = 7;
const METER: u32 = 1;
/// Lengths of frames.
const LENGTHS: [usize; 4] = [60, 61, 590, 1514];

/// A meter of 1 ms, a flow that passes it and is on the rung, and what was let through.
struct Limited {
    world: World,
    handle: Handle,
    limit: Arc<Limit>,
    unit: MeterUnit,
    rate: u32,
    /// The word at the start.
    start: u64,
    /// What those let through cost.
    spent: u64,
    refused: u64,
}

impl Limited {
    fn new(test: &str, unit: MeterUnit, rate: u32) -> Option<Self> {
        let mut world = World::new(test)?;
        world.tables.add_meter(METER, meter(unit, &[band(rate)]), now());
        world.tables.add(&rule(FLOW, Some(METER), None), now());
        let handle = world.raise(FLOW);
        let limit = world.tables.limits.borrow()[0].clone();
        let start = limit.full_at().load(Relaxed);
        let mut limited = Self { world, handle, limit, unit, rate, start, spent: 0, refused: 0 };
        // It rises with the first frame.
        assert_eq!(limited.world.port.rehearse(&frame(FLOW, 60)).unwrap(), Way::Rung);
        limited.spent += cost(unit, rate, 60);
        Some(limited)
    }

    /// The rung takes `many` frames.
    fn rung(&mut self, len: usize, many: u32) {
        let before = self.world.counts(self.handle);
        self.world.port.rehearse_hook(&frame(FLOW, len), many).unwrap();
        let more = self.world.counts(self.handle) - before;
        assert_eq!((more.frames, more.bytes), (many.into(), u64::from(many) * len as u64));
        self.refused += more.limited;
        self.spent += (more.frames - more.limited) * cost(self.unit, self.rate, len);
    }

    fn assert_identity(&self) {
        let moved = self.limit.full_at().load(Relaxed).wrapping_sub(self.start);
        let idle = self.limit.idle().load(Relaxed);
        assert_eq!(moved, self.spent + idle, "rate {} {:?}", self.rate, self.unit);
        assert!(self.refused > 0, "the limit limited nothing");
    }
}

/// What a frame costs: the definition, beside which both sides' arithmetic stands.
fn cost(unit: MeterUnit, rate: u32, len: usize) -> u64 {
    match unit {
        MeterUnit::Kbps => len as u64 * 8 * (SECOND / 1000) / u64::from(rate),
        MeterUnit::Pktps => SECOND / u64::from(rate),
    }
}

/// Frames that the worker takes of `many`, and what those cost that it let through.
fn worker(worker: &mut Worker, snapshot: &flow::Snapshot, frame: &[u8], many: u32) -> u64 {
    (0..many).filter(|_| worker.takes(snapshot, frame, now())).count() as u64
}

#[test]
fn what_passes_in_turns_is_what_virtual_time_says() {
    let all = frames(60_000);
    for (unit, rate) in [
        (MeterUnit::Kbps, 100_000),
        (MeterUnit::Kbps, 1_000_000),
        (MeterUnit::Kbps, 77_777),
        (MeterUnit::Pktps, 50_000),
    ] {
        let Some(mut limited) = Limited::new("turns", unit, rate) else { return };
        let (mut numbers, mut sent) = (Numbers(u64::from(rate)), 0);
        while sent < all / 4 {
            let (len, many) = (LENGTHS[numbers.below(4)], 1 + numbers.below(64) as u32);
            sent += u64::from(many);
            if numbers.below(2) == 0 {
                limited.rung(len, many);
                continue;
            }
            let World { worker: by, tables, .. } = &mut limited.world;
            let passed = worker(by, &tables.snapshot, &frame(FLOW, len), many);
            limited.refused += u64::from(many) - passed;
            limited.spent += passed * cost(unit, rate, len);
        }
        limited.assert_identity();
        println!("{sent} frames in turns, {rate} {unit:?}: {} refused, 0 off", limited.refused);
    }
}

#[test]
fn what_passes_at_once_is_what_virtual_time_says() {
    let all = frames(60_000);
    for (unit, rate, len) in [(MeterUnit::Kbps, 100_000, 1514), (MeterUnit::Kbps, 500_000, 60)] {
        let Some(mut limited) = Limited::new("atonce", unit, rate) else { return };
        let snapshot = limited.world.tables.snapshot.clone();
        let passed = thread::scope(|scope| {
            let beside = scope.spawn(|| {
                testbed::sys::pin(1);
                worker(&mut Worker::default(), &snapshot, &frame(FLOW, len), (all / 4) as u32)
            });
            (0..all / 4 / 100).for_each(|_| limited.rung(len, 100));
            beside.join().unwrap()
        });
        limited.refused += all / 4 - passed;
        limited.spent += passed * cost(unit, rate, len);
        limited.assert_identity();
        println!("{} frames at once, {rate} {unit:?}: {} refused, 0 off", all / 2, limited.refused);
    }
}

/// What two bands drop of 20 frames at once.
fn dropped(world: &mut World, first: Band, second: Band, by_rung: bool) -> Vec<Counted> {
    let id = if by_rung { 10 } else { 11 };
    let flow = id as u16;
    world.tables.add_meter(id, meter(MeterUnit::Pktps, &[first, second]), now());
    world.tables.add(&rule(flow, Some(id), None), now());
    if by_rung {
        world.raise(flow);
    }
    let sent = frame(flow, 60);
    for _ in 0..20 {
        assert_eq!(world.send(&sent).1, by_rung);
    }
    world.tables.pipeline.meters().stats(Some(id), now())[0].bands.clone()
}

#[test]
fn of_two_bands_the_same_one_drops_on_the_rung_as_on_the_worker() {
    // A frame a second or two: the time that a test takes gives none.
    for bursts in [(5, 3), (3, 5), (4, 4)] {
        let Some(mut world) = World::new("bands") else { return };
        let kind = flow::BandKind::Drop;
        let (first, second) =
            (Band { rate: 1, burst: bursts.0, kind }, Band { rate: 2, burst: bursts.1, kind });
        let by_rung = dropped(&mut world, first, second, true);
        assert_eq!(by_rung, dropped(&mut world, first, second, false), "{bursts:?}");
        assert_eq!(
            by_rung.iter().map(|band| band.packets).sum::<u64>(),
            20 - 1 - u64::from(bursts.0.min(bursts.1))
        );
    }
}
