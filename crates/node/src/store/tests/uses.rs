//! Idle timeouts over restarts: a switch, its store and one clock for both.

use super::*;
use crate::switch::Switch;
use crate::switch::tests::{TestPlane, entry, switch_with};
use api::FailMode;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

const SECOND: u64 = 1_000_000_000;
const IDLE_S: u64 = 80;

/// One run of a node.
struct Run {
    store: Store,
    switch: Arc<Switch>,
    plane: Arc<TestPlane>,
    clock: Arc<AtomicU64>,
}

impl Run {
    fn start(home: &Path, clock: &Arc<AtomicU64>) -> Self {
        let time = clock.clone();
        let now = move || Moment { boot: 1, monotonic: Nanos(time.load(Relaxed)), wall_ms: 1000 };
        let (store, kept) = Store::open_with(home, &Arc::default(), Arc::new(now)).unwrap();
        let (switch, plane) = switch_with(store.journal(&sw("sw0")), FailMode::Secure);
        plane.now.store(clock.load(Relaxed), Relaxed);
        let mut changes = Vec::new();
        kept.changes(&sw("sw0"), |change| changes.push(change)).unwrap();
        assert_eq!(switch.restore(changes), []);
        Self { store, switch, plane, clock: clock.clone() }
    }

    /// Lives so many seconds.
    fn live(&self, seconds: u64) {
        let began = self.clock.load(Relaxed) / SECOND;
        for second in began..began + seconds {
            self.clock.fetch_add(SECOND, Relaxed);
            self.plane.now.fetch_add(SECOND, Relaxed);
            if self.switch.tick() {
                while self.switch.expire() {}
            }
            self.switch.keep_uses_due(second..second + 1);
        }
    }

    fn flows(&self) -> usize {
        let all = openflow::FlowStatsRequest::default();
        self.switch.flows(&all).unwrap().count()
    }

    fn end(self) {
        self.switch.keep_last_uses();
    }

    fn kill(self) {
        drop(self.store);
    }
}

fn timed(to: u32) -> openflow::FlowMod {
    openflow::FlowMod { idle_timeout_s: IDLE_S as u16, ..entry(to) }
}

#[test]
fn an_idle_timeout_goes_on_over_an_end_to_the_second() {
    let (home, clock) = (tempfile::tempdir().unwrap(), Arc::new(AtomicU64::new(7 * SECOND)));
    let run = Run::start(home.path(), &clock);
    run.switch.flow_mod(&timed(1)).unwrap();
    run.live(33);
    run.end();
    clock.fetch_add(1000 * SECOND, Relaxed);
    let run = Run::start(home.path(), &clock);
    run.live(IDLE_S - 34);
    assert_eq!(run.flows(), 1, "nothing could use it while no node ran");
    run.live(2);
    assert_eq!(run.flows(), 0);
}

#[test]
fn kills_add_a_quarter_of_an_idle_timeout_at_most_however_many() {
    let (home, clock) = (tempfile::tempdir().unwrap(), Arc::new(AtomicU64::new(7 * SECOND)));
    Run::start(home.path(), &clock).switch.flow_mod(&timed(1)).unwrap();
    let mut lived = 0;
    while lived < IDLE_S * 2 {
        let run = Run::start(home.path(), &clock);
        run.live(21);
        lived += 21;
        if run.flows() == 0 {
            break;
        }
        run.kill();
    }
    let kills = lived / 21;
    assert!(
        lived >= IDLE_S && lived <= IDLE_S + 21 + kills * IDLE_S / 4,
        "{lived} s, {kills} kills"
    );
}

#[test]
fn a_rule_that_is_added_anew_after_the_last_look_begins_anew() {
    let (home, clock) = (tempfile::tempdir().unwrap(), Arc::new(AtomicU64::new(7 * SECOND)));
    let run = Run::start(home.path(), &clock);
    run.switch.flow_mod(&timed(1)).unwrap();
    run.live(70);
    run.switch.flow_mod(&timed(1)).unwrap();
    run.kill();
    let run = Run::start(home.path(), &clock);
    run.live(IDLE_S - 2);
    assert_eq!(run.flows(), 1);
}

fn counted(kept: &Kept) -> Vec<u64> {
    let mut found = Vec::new();
    kept.changes(&sw("sw0"), |change| {
        let Change::FlowSet(_, entry) = change else { panic!("{change:?}") };
        found.push(entry.counted.packets);
    })
    .unwrap();
    found
}

#[test]
fn counts_are_taken_back_once() {
    let home = tempfile::tempdir().unwrap();
    let open = || Store::open(home.path(), &Arc::default()).unwrap();
    let counters = datapath::PortCounters { rx_frames: 7, ..Default::default() };
    {
        let (store, _) = open();
        let journal = store.journal(&sw("sw0"));
        (0..2).for_each(|number| journal.record(rule(number)));
        let Change::FlowSet(id, _) = rule(1) else { unreachable!() };
        journal.record(Change::Counted(vec![(id, Counted { packets: 9, bytes: 900 })]));
        store.put_port_counts(&sw("sw0"), [(3, &counters)].into_iter());
    }
    {
        let (store, kept) = open();
        assert_eq!(counted(&kept), [0, 9]);
        assert_eq!(kept.port_counts(&sw("sw0")).unwrap(), [(3, counters)]);
        assert_eq!(kept.port_counts(&sw("sw")).unwrap(), []);
        assert_eq!(kept.rules_up_to(&sw("sw0"), 9).unwrap(), 2);
        assert_eq!(kept.rules_up_to(&sw("sw0"), 1).unwrap(), 1);
        store.forget_counts(&sw("sw0"));
    }
    let (_store, kept) = open();
    assert_eq!(counted(&kept), [0, 0]);
    assert_eq!(kept.port_counts(&sw("sw0")).unwrap(), []);
}
