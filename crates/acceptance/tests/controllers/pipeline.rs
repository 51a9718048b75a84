//! An os-ken application (`programs/pipeline.py`) with three tables, metadata, a group and a meter, under datagrams that are counted.

use crate::ofctl::reached;
use crate::{GUESTS, connect_all};
use acceptance::{Controller, Lab, privileged, send_datagrams, until};
use serde_json::{Value, json};

/// An address that nobody has: what is sent there goes where the rules say.
const NOBODY: &str = "n99";
const PROGRAM: &str = "crates/acceptance/tests/controllers/programs/pipeline.py";
/// Of the meter, in packets.
const BURST: u64 = 20;

/// Lines that the application printed, oldest first.
fn said(controller: &Controller) -> Vec<Value> {
    controller.output().lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The last line of a kind.
fn last(controller: &Controller, kind: &str) -> Option<Value> {
    said(controller).into_iter().rev().find(|line| line["said"] == kind)
}

fn count(controller: &Controller, kind: &str) -> usize {
    said(controller).iter().filter(|line| line["said"] == kind).count()
}

/// Sends a command by a datagram and waits until the switch has answered the barrier behind what it led to.
fn command(lab: &Lab, controller: &Controller, port: u16) {
    let before = count(controller, "done");
    send_datagrams(lab, "g1", &format!("{}:{port}", Lab::ip(NOBODY)), (1, 10));
    until("the command is carried out", || count(controller, "done") > before);
    let heard = last(controller, "packet-in").unwrap();
    assert_eq!(heard, json!({"said": "packet-in", "command": port, "metadata": 0x10, "table": 1}));
}

/// Frames that reach g2 and g3 of so many datagrams to the metered port.
fn metered(lab: &Lab, datagrams: u64) -> (u64, u64) {
    let target = format!("{}:9", Lab::ip(NOBODY));
    reached(lab, || {
        send_datagrams(lab, "g1", &target, (datagrams as usize, 100));
        until("the switch has seen every datagram", || {
            let meter = lab.json(&["flow", "list", "sw0", "table=1,udp,tp_dst=9"]);
            meter[0]["packets"].as_u64().is_some_and(|seen| seen % datagrams == 0 && seen > 0)
        });
    })
}

#[test]
fn os_ken_programs_tables_with_metadata_a_group_and_a_meter() {
    if !privileged() {
        return;
    }
    let lab = Lab::running(&GUESTS);
    lab.suiro(&["switch", "add", "sw0", "--fail-mode", "secure"]);
    connect_all(&lab, "sw0");
    lab.introduce("g1", NOBODY);
    let controller = Controller::start_program(&lab, PROGRAM);
    lab.suiro(&["switch", "mod", "sw0", "--controller", &format!("tcp:{}", Controller::ADDRESS)]);
    until("the application has programmed the switch", || count(&controller, "done") == 1);
    let role = json!({"said": "role", "role": 2, "generation": 5});
    assert_eq!(last(&controller, "role"), Some(role), "{}", controller.output());

    let (g2, g3) = metered(&lab, 300);
    assert_eq!(g2, g3, "the group copies");
    assert!((BURST..300).contains(&g2), "{g2} passed the meter");
    statistics_agree(&lab, &controller, g2);

    command(&lab, &controller, 7002);
    let (g2, g3) = metered(&lab, 300);
    assert_eq!(g2, 0, "the group has one bucket left");
    assert!((1..300).contains(&g3), "{g3} passed the meter");

    command(&lab, &controller, 7003);
    let removed =
        last(&controller, "removed").expect("the entry with the meter is gone, and told of");
    assert_eq!((&removed["cookie"], &removed["packets"]), (&json!(0x11e), &json!(600)));
    command(&lab, &controller, 7004);
    let errors: Vec<_> =
        said(&controller).into_iter().filter(|line| line["said"] == "error").collect();
    // OFPET_ROLE_REQUEST_FAILED, OFPRRFC_STALE: the only thing that was refused.
    assert_eq!(errors, [json!({"said": "error", "type": 11, "code": 0})]);
}

fn statistics_agree(lab: &Lab, controller: &Controller, passed: u64) {
    command(lab, controller, 7001);
    let expect = |kind: &str, facts: Value| {
        let found = last(controller, kind).unwrap_or_else(|| panic!("{kind}: no answer"));
        for (key, value) in facts.as_object().unwrap() {
            assert_eq!(&found[key], value, "{kind}, {key}");
        }
    };
    expect("group", json!({"packets": passed, "buckets": [passed, passed], "users": 1}));
    expect("meter", json!({"packets": 300, "dropped": 300 - passed, "users": 1}));
    expect("tables", json!({"entries": [3, 6, 1, 0]}));
    expect("ports", json!({"names": {"1": "g1", "2": "g2", "3": "g3"}}));
    let flows = last(controller, "flows").unwrap();
    assert_eq!(flows["packets"]["0x20a"], passed, "entry of table 2: {flows}");
}
