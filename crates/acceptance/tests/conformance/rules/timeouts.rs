//! Idle and hard timeouts (OpenFlow 1.3.5 §5.5), by the switch's clock: what is waited for is its own news.

use super::{from_source, ports_reached, to_port};
use crate::harness::Suite;
use openflow::{FlowMod, FlowModFlags, FlowRemoved, FlowRemovedReason, Match, OxmField};
use std::time::Duration;

/// How exactly the time of an entry's last use is kept, both ways, and how late it may be looked at.
const TICK: Duration = Duration::from_millis(70);
const LATE: Duration = Duration::from_secs(5);

fn reporting(change: FlowMod) -> FlowMod {
    FlowMod { flags: FlowModFlags::SEND_FLOW_REM, ..change }
}

fn age(removed: &FlowRemoved) -> Duration {
    Duration::new(removed.duration_s.into(), removed.duration_ns)
}

fn assert_age(removed: &FlowRemoved, wanted: u64) {
    let (age, wanted) = (age(removed), Duration::from_secs(wanted));
    assert!(age + TICK >= wanted && age <= wanted + LATE, "went after {age:?}, not {wanted:?}");
}

/// The cases.
pub fn cases(suite: &mut Suite) {
    suite.case("rules::an_idle_entry_goes_with_its_reason_counters_and_age", |bench| {
        bench.add(&reporting(FlowMod { idle_timeout_s: 1, ..to_port(1, 5, from_source(), 2) }));
        assert_eq!(ports_reached(bench, 4), [2; 4]);
        let removed = bench.flow_removed();
        assert_eq!((removed.cookie, removed.reason), (1, FlowRemovedReason::IdleTimeout));
        assert_eq!((removed.packet_count, removed.byte_count), (4, 240));
        assert_age(&removed, 1);
        assert!(ports_reached(bench, 1).is_empty());
    });
    suite.case("rules::a_frame_puts_an_idle_timeout_off", |bench| {
        bench.add(&reporting(FlowMod { idle_timeout_s: 2, ..to_port(1, 5, from_source(), 2) }));
        let clock = Match::default().with(OxmField::EthSrc, 1);
        bench.add(&reporting(FlowMod { hard_timeout_s: 1, ..to_port(2, 5, clock, 2) }));
        assert_eq!(bench.flow_removed().cookie, 2, "one second is over");
        assert_eq!(ports_reached(bench, 1), [2]);
        let removed = bench.flow_removed();
        assert_eq!((removed.cookie, removed.packet_count), (1, 1));
        assert_age(&removed, 3);
    });
    suite.case("rules::a_hard_timeout_fires_however_busy_the_entry_is", |bench| {
        let change =
            FlowMod { hard_timeout_s: 1, idle_timeout_s: 9, ..to_port(1, 5, from_source(), 2) };
        bench.add(&reporting(change));
        let mut sent = 0;
        while bench.cookies() == [1] {
            sent += ports_reached(bench, 1).len() as u64;
        }
        let removed = bench.flow_removed();
        assert_eq!(removed.reason, FlowRemovedReason::HardTimeout);
        // Frames that were forwarded while the entry was being removed are counted too.
        assert_eq!(removed.packet_count, sent, "{removed:?}");
        assert_age(&removed, 1);
    });
    suite.case("rules::an_entry_that_did_not_ask_goes_silently", |bench| {
        bench.add(&FlowMod { hard_timeout_s: 1, ..to_port(1, 5, from_source(), 2) });
        let clock = Match::default().with(OxmField::EthSrc, 1);
        bench.add(&reporting(FlowMod { hard_timeout_s: 2, ..to_port(2, 5, clock, 2) }));
        assert_eq!(bench.flow_removed().cookie, 2);
        assert_eq!(bench.flows_removed(), []);
        assert!(bench.cookies().is_empty());
    });
    suite.case("rules::a_modify_leaves_timeouts_and_their_clock_alone", |bench| {
        let change = FlowMod { hard_timeout_s: 2, ..to_port(1, 5, from_source(), 2) };
        bench.add(&reporting(change.clone()));
        let clock = Match::default().with(OxmField::EthSrc, 1);
        bench.add(&reporting(FlowMod { hard_timeout_s: 1, ..to_port(2, 5, clock, 2) }));
        assert_eq!(bench.flow_removed().cookie, 2);
        let command = openflow::FlowModCommand::Modify;
        bench.add(&FlowMod { command, hard_timeout_s: 60, ..to_port(1, 5, from_source(), 3) });
        let removed = bench.flow_removed();
        assert_eq!((removed.cookie, removed.hard_timeout_s), (1, 2));
        assert_age(&removed, 2);
    });
}
