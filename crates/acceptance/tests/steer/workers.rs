//! A switch of the node, steered between its workers.

use crate::{Kind, Lab, privileged, until};
use acceptance::Said;
use rustix::process::Signal;
use serde_json::Value;

/// A node with workers on cores 0 and 1, and switch `sw0` with guests `g1` and `g2` who know each other.
fn two_workers() -> Lab {
    let mut lab = Lab::new(&["g1", "g2"]);
    let home = lab.path("");
    let home = home.display();
    let text =
        format!("[node]\nrun_dir = \"{home}/run\"\nstate_dir = \"{home}/state\"\ncores = [0, 1]\n");
    std::fs::write(lab.file(), text).unwrap();
    lab.start();
    lab.suiro(&["switch", "add", "sw0"]);
    for guest in ["g1", "g2"] {
        lab.connect("sw0", guest, Kind::AfPacket);
    }
    lab.introduce("g1", "g2");
    lab.introduce("g2", "g1");
    assert!(lab.talk("g1", "g2"), "{}", lab.log());
    lab
}

fn frames(lab: &Lab, word: &str) -> u64 {
    let list: Value = lab.json(&["steer", "list"]);
    assert_eq!(
        (&list[0]["name"], &list[0]["hook"]),
        (&"switch:sw0".into(), &"workers".into()),
        "{list}"
    );
    list[0]["frames"][word].as_u64().unwrap()
}

#[test]
fn a_switchs_flow_is_processed_by_the_worker_that_a_rule_names_and_why_says_so() {
    if !privileged() {
        return;
    }
    let lab = two_workers();
    let said = lab.suiro(&["steer", "attach", "switch:sw0", "--unmatched", "stay"]);
    assert!(said.contains("switch sw0 is steered, workers"), "{said}");
    assert_eq!(lab.exchange("g1", "g2", 30), 30);
    assert_eq!((frames(&lab, "sent"), frames(&lab, "stayed")), (0, 0), "no rule yet");
    let place = |core: u32| format!("icmp,nw_src={},actions=place(core={core})", Lab::ip("g1"));
    let mut counted = Vec::new();
    for core in [0, 1] {
        lab.suiro(&["steer", "flow", "add", &place(core)]);
        assert_eq!(lab.exchange("g1", "g2", 40), 40);
        counted.push((frames(&lab, "sent"), frames(&lab, "stayed")));
        let why = lab.json(&[
            "steer",
            "why",
            &format!("icmp,nw_src={},nw_dst={}", Lab::ip("g1"), Lab::ip("g2")),
        ]);
        assert_eq!(why["core"], core, "{why}");
    }
    // One of the two workers receives what g1 sends: its core is where frames stay, the other where they are sent.
    assert!(counted == [(0, 40), (40, 40)] || counted == [(40, 0), (40, 40)], "{counted:?}");
    let view = lab.json(&["steer", "list"]);
    assert_eq!(view[0]["frames_by_core"], serde_json::json!({"0": 40, "1": 40}), "{view}");
    let said = lab.suiro(&["steer", "detach", "switch:sw0"]);
    assert!(said.contains("switch sw0 is not steered any more"), "{said}");
    assert_eq!(lab.exchange("g1", "g2", 10), 10);
}

#[test]
fn a_switch_is_steered_again_after_kill_9() {
    if !privileged() {
        return;
    }
    let mut lab = two_workers();
    lab.suiro(&["steer", "attach", "switch:sw0"]);
    lab.suiro(&["steer", "flow", "add", "icmp,actions=place(core=1)"]);
    lab.end(Signal::KILL);
    lab.start();
    let hook = |lab: &Lab| lab.json(&["steer", "list"])[0]["hook"].clone();
    until("the switch is steered again", || hook(&lab) == "workers");
    assert_eq!(lab.exchange("g1", "g2", 20), 20);
    let flows = lab.json(&["steer", "flow", "dump"]);
    assert!(flows[0]["frames"].as_u64().unwrap() >= 40, "{flows}");
}

#[test]
fn what_cannot_be_steered_says_why_and_what_to_do() {
    if !privileged() {
        return;
    }
    let mut lab = Lab::running(&[]);
    lab.suiro(&["switch", "add", "sw0"]);
    let refused = |lab: &Lab, name: &str| -> Said { lab.says(&["steer", "attach", name]) };
    let said = refused(&lab, "switch:sw0");
    assert!(
        said.code != 0
            && said.err.contains("one worker runs")
            && said.err.contains("cores = [0, 1]"),
        "{}",
        said.err
    );
    let said = refused(&lab, "switch:none");
    assert!(
        said.err.contains("no switch of that name") && said.err.contains("suiro switch list"),
        "{}",
        said.err
    );
    let said = refused(&lab, "switch:");
    assert!(said.code != 0 && said.err.contains("switch:NAME"), "{}", said.err);
    lab.end(Signal::TERM);
}
