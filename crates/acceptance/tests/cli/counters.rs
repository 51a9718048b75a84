//! What counters say after a node was started anew.

use acceptance::{Kind, Lab, privileged, until};
use rustix::process::Signal;

/// Packets of the rule from g1, frames into its port, and frames out of the other's.
fn counted(lab: &Lab) -> [u64; 3] {
    let flows = lab.json(&["flow", "list", "sw0"]);
    let rules = flows["flows"].as_array().or_else(|| flows.as_array()).unwrap();
    let packets = rules.iter().map(|rule| rule["packets"].as_u64().unwrap()).sum();
    let of = |port: &str, key: &str| {
        lab.json(&["port", "show", "sw0", port])["counters"][key].as_u64().unwrap()
    };
    [packets, of("g1", "rx_frames"), of("g2", "tx_frames")]
}

fn at_least(now: [u64; 3], before: [u64; 3]) -> bool {
    now.iter().zip(before).all(|(now, before)| *now >= before)
}

#[test]
fn counters_of_rules_and_ports_go_on_over_an_orderly_stop_and_a_kill_forgets_them() {
    if !privileged() {
        return;
    }
    let mut lab = Lab::running(&["g1", "g2"]);
    lab.suiro(&["switch", "add", "sw0", "--fail-mode", "secure"]);
    lab.connect("sw0", "g1", Kind::Tap);
    lab.connect("sw0", "g2", Kind::Tap);
    lab.suiro(&["flow", "add", "sw0", "actions=normal"]);
    assert_eq!(lab.exchange("g1", "g2", 10), 10);
    let before = counted(&lab);
    assert!(at_least(before, [20, 10, 10]), "{before:?}");
    lab.end(Signal::TERM);
    lab.start();
    let after = counted(&lab);
    assert!(at_least(after, before), "{before:?} became {after:?}");
    until("the guests are linked again", || lab.talk("g1", "g2"));
    assert_eq!(lab.exchange("g1", "g2", 10), 10);
    let more = counted(&lab);
    assert!(at_least(more, [after[0] + 20, after[1] + 10, after[2] + 10]), "they go on: {more:?}");
    // What was kept is taken back once: a kill does not bring old figures back.
    lab.suiro(&["flow", "del", "sw0", "--all"]);
    lab.suiro(&["flow", "add", "sw0", "arp,actions=drop"]);
    lab.end(Signal::KILL);
    lab.start();
    assert_eq!(counted(&lab)[0], 0);
}
