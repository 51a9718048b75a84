//! Ports change and carry on: what can change live does by every door, and a change refused changed nothing.

use crate::sealed::keys;
use acceptance::{Place, privileged, until};
use rustix::process::Signal;
use serde_json::Value;
use std::process::Command;

/// What the kernel says of a guest's interface.
fn link(place: &Place, interface: &str) -> Value {
    let netns = place.guest("g1");
    let words = ["-n", &netns, "-j", "addr", "show", "dev", interface];
    let shown = Command::new("ip").args(words).output().unwrap();
    serde_json::from_slice::<Value>(&shown.stdout).unwrap()[0].clone()
}

fn declare(place: &Place, more: &str) {
    let netns = place.guest("g1");
    place.configure(&format!(
        "[[switch]]\nname = 'sw0'\n[[switch.port]]\nname = 'g1'\ntype = 'tap'\nnetns = '{netns}'\n{more}"
    ));
}

#[test]
fn an_mtu_changed_in_the_file_keeps_interface_index_and_addresses() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&["g1"]);
    declare(&place, "");
    place.start();
    until("the port is open", || place.suiro(&["port", "show", "sw0", "g1"]).contains("tap, 1"));
    place.address("g1", "g1", "192.0.2.1/24");
    let before = link(&place, "g1");
    declare(&place, "mtu = 1400\nrate = '1G'\n");
    place.signal(Signal::HUP);
    until("the MTU is the file's", || link(&place, "g1")["mtu"] == 1400);
    let after = link(&place, "g1");
    assert_eq!(after["ifindex"], before["ifindex"]);
    assert_eq!(after["address"], before["address"]);
    assert!(after["addr_info"].to_string().contains("192.0.2.1"), "{after}");
    until("the rate is the file's", || place.json(&["port", "show", "sw0", "g1"])["rate"] == "1G");
}

#[test]
fn what_was_changed_before_a_refusal_is_taken_back() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&[]);
    place.start();
    place.suiro(&["switch", "add", "sw0"]);
    keys(&place, &[(1, "")]);
    let file = place.path("keys1").display().to_string();
    let tunnel = ["port", "add", "sw0", "tun0", "--type", "vxlan", "--remote", "192.0.2.2"];
    place.suiro(&[&tunnel[..], &["--key", "7", "--mtu", "1300", "--encrypt", &file]].concat());
    std::fs::write(&file, "no keys").unwrap();
    let said = place.says(&["port", "mod", "sw0", "tun0", "--mtu", "1200", "--rekey"]);
    assert!(said.code == 1 && said.err.contains("keys1"), "{}: {}", said.code, said.err);
    assert_eq!(place.json(&["port", "show", "sw0", "tun0"])["mtu"], 1300);
}

#[test]
fn a_change_refused_changed_nothing() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&["g1"]);
    place.start();
    place.suiro(&["switch", "add", "sw0"]);
    let guest = place.guest("g1");
    place.suiro(&["port", "add", "sw0", "g1", "--type", "tap", "--netns", &guest]);
    let refused = |words: &[&str], why: &str| {
        let said = place.says(&[&["port", "mod", "sw0", "g1"], words].concat());
        assert!(said.code == 1 && said.err.contains(why), "{}: {}", said.code, said.err);
        assert_eq!(link(&place, "g1")["mtu"], 1500, "{words:?}");
        let shown = place.json(&["port", "show", "sw0", "g1"]);
        assert_eq!((&shown["mtu"], &shown["rate"]), (&Value::from(1500), &Value::Null));
    };
    refused(
        &["--mtu", "1300", "--seal-core", "0"],
        "`seal_core` means nothing on a port of type tap",
    );
    place.suiro(&["port", "mod", "sw0", "g1", "--mtu", "1300", "--rate", "1G"]);
    place.suiro(&["port", "mod", "sw0", "g1", "--rate", "none"]);
    assert_eq!(link(&place, "g1")["mtu"], 1300);
    assert_eq!(place.json(&["port", "show", "sw0", "g1"])["rate"], Value::Null);
}
