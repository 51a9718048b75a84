//! os-ken's learning switch programs a switch, goes, and comes back.

use crate::{GUESTS, connect_all, pairs};
use acceptance::{Controller, Kind, Lab, Ofctl, Pings, privileged, until};

/// Bytes of the frame of a ping as `ping` sends it: 56 of data, 8 of ICMP, 20 of IPv4, 14 of Ethernet.
const PING_FRAME: u64 = 98;

fn is_connected(lab: &Lab) -> bool {
    let connections = lab.json(&["switch", "show", "sw0"])["connections"].clone();
    connections.as_array().unwrap().iter().any(|peer| peer["controller"] == true)
}

/// Packets and bytes of the entry that the controller learnt for frames of one guest to another.
fn learnt(lab: &Lab, from: usize, to: usize) -> Option<(u64, u64)> {
    let (source, target) = (Lab::mac(GUESTS[from]), Lab::mac(GUESTS[to]));
    let matching = format!("in_port={},dl_src={source},dl_dst={target}", from + 1);
    let flows = lab.json(&["flow", "list", "sw0"]);
    let is_it = |flow: &&serde_json::Value| {
        flow["match"] == *matching && flow["actions"] == *format!("output:{}", to + 1)
    };
    let flow = flows.as_array().unwrap().iter().find(is_it)?.clone();
    Some((flow["packets"].as_u64().unwrap(), flow["bytes"].as_u64().unwrap()))
}

#[test]
fn a_secure_switch_does_what_its_controller_says_and_keeps_doing_it_while_that_is_dead() {
    if !privileged() {
        return;
    }
    let lab = Lab::running(&GUESTS);
    let controller = format!("tcp:{}", Controller::ADDRESS);
    lab.suiro(&["switch", "add", "sw0", "--fail-mode", "secure", "--controller", &controller]);
    connect_all(&lab, "sw0");
    assert!(lab.is_cut_off("g1", "g2") && lab.is_cut_off("g3", "g1"));

    let first = Controller::start(&lab);
    until("the controller is connected", || is_connected(&lab));
    until("the controller knows the switch", || first.output().contains("connected"));
    for (from, to) in pairs() {
        assert!(lab.talk(from, to), "{from} does not reach {to}:\n{}", lab.log());
    }
    entries_count_what_they_forward(&lab);

    let pings = Pings::start(&lab, "g2", "g3");
    first.kill();
    until("the controller is gone", || !is_connected(&lab));
    for (from, to) in pairs() {
        assert_eq!(lab.exchange(from, to, 3), 3, "{from} to {to} was learnt before");
    }
    let management = Ofctl::management(&lab, "sw0");
    let forgotten = format!("dl_src={}", Lab::mac("g1"));
    management.run("del-flows", &[&forgotten]);
    assert!(lab.is_cut_off("g1", "g2"), "what is not learnt is not forwarded without a controller");

    let _second = Controller::start(&lab);
    until("the controller is connected again", || is_connected(&lab));
    assert!(lab.talk("g1", "g2") && lab.talk("g1", "g3"), "{}", lab.log());
    pings.end_without_loss();
}

fn entries_count_what_they_forward(lab: &Lab) {
    for (from, to) in [(0, 1), (1, 2), (2, 0)] {
        // No question for an address passes meanwhile.
        lab.introduce(GUESTS[from], GUESTS[to]);
        lab.introduce(GUESTS[to], GUESTS[from]);
        let both = || {
            [(from, to), (to, from)].map(|(from, to)| learnt(lab, from, to).expect("it was learnt"))
        };
        let before = both();
        assert_eq!(lab.exchange(GUESTS[from], GUESTS[to], 20), 20);
        let after = both();
        for (before, after) in before.into_iter().zip(after) {
            let more = (after.0 - before.0, after.1 - before.1);
            assert_eq!(more, (20, 20 * PING_FRAME), "{} and {}", GUESTS[from], GUESTS[to]);
        }
    }
}

#[test]
fn a_standalone_switch_forwards_without_its_controller_and_obeys_it_when_it_comes() {
    if !privileged() {
        return;
    }
    let lab = Lab::running(&GUESTS);
    let controller = format!("tcp:{}", Controller::ADDRESS);
    lab.suiro(&["switch", "add", "sw0", "--fail-mode", "standalone", "--controller", &controller]);
    connect_all(&lab, "sw0");
    for (from, to) in pairs() {
        assert!(lab.talk(from, to), "{from} does not reach {to}:\n{}", lab.log());
    }
    let controller = Controller::start(&lab);
    until("the controller is connected", || is_connected(&lab));
    until("an entry is learnt", || {
        lab.talk("g1", "g2") && learnt(&lab, 0, 1).is_some_and(|(packets, _)| packets > 0)
    });
    controller.kill();
    until("the controller is gone", || !is_connected(&lab));
    assert!(lab.talk("g1", "g2") && lab.talk("g3", "g2"));
}

#[test]
fn a_standalone_switch_without_any_controller_forwards() {
    if !privileged() {
        return;
    }
    let lab = Lab::running(&["g1", "g2"]);
    lab.suiro(&["switch", "add", "sw0"]);
    lab.connect("sw0", "g1", Kind::AfXdp);
    lab.connect("sw0", "g2", Kind::Tap);
    assert!(lab.talk("g1", "g2") && lab.talk("g2", "g1"), "{}", lab.log());
}
