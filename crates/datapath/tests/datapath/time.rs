//! What depends on time, with time in the test's hands.

use crate::rig::{Rig, controller, from, output, udp};
use datapath::{Clock, Config, PacketOut, SwitchId};
use flow::Nanos;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;
use wire::DropReason;

const MILLISECOND: u64 = 1_000_000;

/// A clock that stands still until it is set on.
#[derive(Clone, Default)]
pub struct Manual(Arc<AtomicU64>);

impl Manual {
    pub fn pass(&self, nanos: u64) {
        self.0.fetch_add(nanos, SeqCst);
    }
}

impl Clock for Manual {
    fn now(&self) -> Nanos {
        Nanos(self.0.load(SeqCst))
    }

    fn cycles(&self) -> u64 {
        self.0.load(SeqCst)
    }
}

pub fn wait(until: impl Fn() -> bool) {
    while !until() {
        std::thread::yield_now();
    }
}

#[test]
fn a_queue_is_polled_until_spin_is_over_and_then_the_worker_sleeps() {
    let clock = Manual::default();
    let config =
        Config { spin: Duration::from_millis(1), cache_entries: 4096, ..Config::default() };
    let mut rig = Rig::with_clock(config, clock.clone());
    rig.switch(1, &[1, 2], &[from(1, vec![output(2)])]);
    rig.line(1, 1).pass([udp(0, 0, 0)]);
    let sleeps = || rig.datapath.worker_stats()[0].sleeps;
    let (slept, polled) = (sleeps(), rig.line(1, 1).rounds());
    clock.pass(MILLISECOND - 1);
    wait(|| rig.line(1, 1).rounds() > polled + 1000);
    assert_eq!(sleeps(), slept);
    clock.pass(1);
    wait(|| sleeps() > slept);
    rig.line(1, 1).pass([udp(0, 0, 0)]);
    assert_eq!(rig.line(1, 2).take().len(), 2, "a frame wakes it");
}

#[test]
fn an_idle_queue_is_looked_at_while_another_is_polled_however_long_that_is() {
    for spin_us in [0, 5, 50, 200, 1000] {
        let spin = Duration::from_micros(spin_us);
        let config = Config { spin, cache_entries: 4096, ..Config::default() };
        let mut rig = Rig::with_clock(config, Manual::default());
        rig.switch(1, &[1, 2, 3], &[from(1, vec![output(2)]), from(3, vec![output(2)])]);
        // Polled from now on, for time stands still; a look costs nothing, so nothing may put it off.
        rig.line(1, 1).pass([udp(0, 0, 0)]);
        rig.line(1, 3).pass([udp(1, 0, 0)]);
        assert_eq!(rig.line(1, 2).take().len(), 2, "with {spin_us} us");
    }
}

/// The worker never sleeps meanwhile, for the next one waits already. 20,000 of them take a while.
#[test]
fn an_idle_queue_is_looked_at_while_packet_outs_wait_one_after_the_other() {
    let config = Config { spin: Duration::ZERO, cache_entries: 4096, ..Config::default() };
    let mut rig = Rig::with_clock(config, Manual::default());
    rig.switch(1, &[1, 2, 3], &[from(1, vec![output(2)])]);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let datapath = &rig.datapath;
        scope.spawn(|| {
            let mut left = 20_000;
            while left > 0 {
                let (frame, offload) = (udp(0, 0, 0), Default::default());
                let actions = vec![output(3); 8];
                let out = PacketOut { switch: SwitchId(1), in_port: 1, frame, offload, actions };
                left -= u32::from(datapath.packet_out(out).is_ok());
            }
            is_over.store(true, SeqCst);
        });
        wait(|| datapath.switch_counters(SwitchId(1)).is_some_and(|counts| counts.packet_outs > 0));
        rig.line(1, 1).pass([udp(0, 0, 0)]);
        assert!(!is_over.load(SeqCst), "it waited for all of them");
    });
    assert_eq!(rig.line(1, 2).take().len(), 1);
}

#[test]
fn packet_ins_keep_to_their_rate() {
    let clock = Manual::default();
    let mut rig =
        Rig::with_clock(Config { cache_entries: 4096, ..Config::default() }, clock.clone());
    rig.switch(1, &[1], &[from(1, vec![controller(64)])]);
    rig.publisher(1).set_packet_in_rate(10, 2);
    let mut refused = 0;
    for (pause_ms, allowed) in [(1000, 2), (100, 1), (50, 0), (50, 1), (10_000, 2)] {
        clock.pass(pause_ms * MILLISECOND);
        rig.line(1, 1).pass((0..5).map(|i| udp(i, 0, 0)));
        refused += 5 - allowed;
        assert_eq!(rig.drops(1, DropReason::PacketInFull), refused, "after {pause_ms} ms");
    }
}
