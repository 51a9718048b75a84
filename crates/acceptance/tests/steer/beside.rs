//! An interface that is steered and a port at once: a rule takes a frame to the host, all others are the switch's.

use crate::{Host, Lab, privileged, until};
use acceptance::sh;
use std::process::Command;
use std::time::Duration;

/// The host's port that the rule names.
const NAMED: u16 = 5022;
/// The host by way of the switch: its local port.
const BY_SWITCH: &str = "10.0.1.100";

fn mac(netns: &str, interface: &str) -> String {
    let path = format!("/sys/class/net/{interface}/address");
    let shown = Command::new("ip").args(["netns", "exec", netns, "cat", &path]).output().unwrap();
    String::from_utf8(shown.stdout).unwrap().trim().to_owned()
}

/// Both ends of the cable know each other without asking.
fn introduce(host: &Host) {
    let (near, far) = (host.lab.netns.clone(), host.lab.guest("g1"));
    let know = |netns: &str, address: &str, mac: &str, interface: &str| {
        let words = ["ip", "-n", netns, "neigh", "replace", address, "lladdr", mac];
        sh(&[&words[..], &["dev", interface, "nud", "permanent"]].concat());
    };
    know(&far, crate::host::ADDRESS, &mac(&near, "g1"), "eth0");
    know(&near, &Lab::ip("g1"), &mac(&far, "eth0"), "g1");
}

/// Neither end of the cable knows the other any more.
fn forget(host: &Host) {
    for (netns, interface) in [(host.lab.netns.clone(), "g1"), (host.lab.guest("g1"), "eth0")] {
        sh(&["ip", "-n", &netns, "neigh", "flush", "dev", interface]);
    }
}

fn reaches_switch(host: &Host) -> bool {
    let (guest, ping) = (host.lab.guest("g1"), ["ping", "-c", "1", "-W", "1", BY_SWITCH]);
    let words = [&["netns", "exec", &guest][..], &ping].concat();
    Command::new("ip").args(words).output().unwrap().status.success()
}

/// A node whose switch has the host's interface `g1`, and a local port with an address of the host.
fn with_port() -> Host {
    let host = Host::new();
    host.suiro(&["steer", "attach", "g1"]);
    host.suiro(&["switch", "add", "sw0"]);
    host.suiro(&["steer", "detach", "g1"]);
    host.suiro(&["port", "add", "sw0", "g1", "--type", "af_xdp", "--take-over", "--host"]);
    host.suiro(&["port", "add", "sw0", "local0", "--type", "tap", "--number", "local"]);
    sh(&["ip", "-n", &host.lab.netns, "addr", "add", &format!("{BY_SWITCH}/24"), "dev", "local0"]);
    sh(&["ip", "-n", &host.lab.guest("g1"), "addr", "add", "10.0.1.1/24", "dev", "eth0"]);
    host
}

#[test]
fn a_rule_keeps_a_port_of_the_host_and_the_switch_has_all_else_over_kill_and_restart() {
    if !privileged() {
        return;
    }
    let host = with_port();
    until("the switch forwards", || reaches_switch(&host));
    let refused = host.says(&["steer", "attach", "g1"]);
    assert_eq!(refused.code, 1);
    for part in ["af_xdp port", "--unmatched stay"] {
        assert!(refused.err.contains(part), "{part}: {}", refused.err);
    }
    assert!(
        !refused.err.contains("xdp off"),
        "its own program is not to be removed: {}",
        refused.err
    );
    host.suiro(&["steer", "attach", "g1", "--unmatched", "stay"]);
    let rule = format!("udp,nw_dst={},tp_dst={NAMED} actions=place(core=1)", crate::host::ADDRESS);
    let asked = format!("arp,arp_tpa={} actions=place(core=1)", crate::host::ADDRESS);
    let add_rules = || {
        for rule in [&rule, &asked] {
            host.suiro(&["steer", "flow", "add", rule, "--on", "g1"]);
        }
        forget(&host);
    };
    add_rules();
    let named = || host.cores_of(NAMED, 20).iter().all(|&core| core == 1);
    assert!(named() && reaches_switch(&host), "both have theirs");
    host.kill_node();
    assert!(named(), "steering needs no process");
    assert!(!reaches_switch(&host), "what is the switch's waits for it");
    host.suiro(&["steer", "attach", "g1", "--unmatched", "stay"]);
    until("the port is back", || reaches_switch(&host));
    assert!(named());
    host.suiro(&["steer", "detach", "g1"]);
    assert!(reaches_switch(&host), "the port goes on without steering");
    host.suiro(&["steer", "attach", "g1", "--unmatched", "stay"]);
    add_rules();
    assert!(named());
    host.suiro(&["port", "del", "sw0", "g1"]);
    assert!(named(), "steering goes on without the port");
    assert_eq!(host.cores_of(NAMED + 1, 5).len(), 5, "and all else is the host's again");
    host.suiro(&["steer", "detach", "g1"]);
    assert!(!host.has_program("g1") && !host.pins("g1").exists());
    host.suiro(&["switch", "del", "sw0"]);
}

/// Whether a datagram that no rule names comes to the host's socket.
fn reaches_host(host: &Host) -> bool {
    let (receiver, sender) = host.pair(NAMED + 1);
    receiver.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    sender.send(&[7]).unwrap();
    receiver.recv(&mut [0; 8]).is_ok()
}

#[test]
fn a_port_that_does_not_come_back_after_a_kill_gives_its_frames_back_to_the_host() {
    if !privileged() {
        return;
    }
    let host = with_port();
    host.suiro(&["steer", "attach", "g1", "--unmatched", "stay"]);
    until("the switch forwards", || reaches_switch(&host));
    let shown = host.suiro(&["status"]);
    let state = shown.lines().find_map(|line| line.strip_prefix("state in ")).unwrap().to_owned();
    host.kill_node();
    introduce(&host);
    assert!(!reaches_host(&host), "it is the switch's, which may come back");
    std::fs::remove_file(state).unwrap();
    host.suiro(&["steer", "attach", "g1", "--unmatched", "stay"]);
    until("the host has its frames again", || reaches_host(&host));
    host.suiro(&["steer", "detach", "g1"]);
    assert!(!host.has_program("g1"));
    until("the node is gone", || host.node().is_none());
    sh(&["ip", "-n", &host.lab.netns, "link", "del", "local0"]);
}

#[test]
fn a_port_is_refused_where_steering_places_what_no_rule_names() {
    if !privileged() {
        return;
    }
    let host = Host::new();
    host.suiro(&["steer", "attach", "g1"]);
    host.suiro(&["switch", "add", "sw0"]);
    let refused = host.says(&["port", "add", "sw0", "g1", "--type", "af_xdp", "--take-over"]);
    assert_eq!(refused.code, 1);
    for part in ["steering", "--unmatched stay"] {
        assert!(refused.err.contains(part), "{part}: {}", refused.err);
    }
    assert!(host.has_program("g1"), "steering goes on");
    host.suiro(&["steer", "detach", "g1"]);
    assert!(!host.has_program("g1"));
    host.suiro(&["switch", "del", "sw0"]);
}
