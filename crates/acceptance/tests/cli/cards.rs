//! Interfaces under `af_xdp` ports: nothing is taken from the host without a question, and all is as before afterwards.

use acceptance::{Place, privileged, sh, until};
use rustix::process::Signal;
use std::process::Command;

/// A veth from the node's namespace, where its end is `up0`, to the guest's `eth0`.
fn cable(place: &Place, guest: &str) {
    let netns = place.guest(guest);
    let near = ["ip", "-n", &place.netns, "link", "add", "up0", "type", "veth"];
    sh(&[&near[..], &["peer", "name", "eth0", "netns", &netns]].concat());
    sh(&["ip", "-n", &place.netns, "link", "set", "up0", "up"]);
    sh(&["ip", "-n", &netns, "link", "set", "eth0", "up"]);
}

fn is_on(netns: &str, interface: &str, offload: &str) -> bool {
    let words = ["netns", "exec", netns, "ethtool", "-k", interface];
    let shown = Command::new("ip").args(words).output().unwrap();
    String::from_utf8(shown.stdout).unwrap().contains(&format!("{offload}: on"))
}

#[test]
fn an_interface_that_the_host_uses_becomes_a_port_only_where_that_is_allowed() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&["r"]);
    cable(&place, "r");
    let on_up0 = ["ip", "-n", &place.netns, "addr", "add", "192.0.2.1/24", "dev", "up0"];
    sh(&on_up0);
    let route = ["ip", "-n", &place.netns, "route", "add", "default", "via", "192.0.2.254"];
    sh(&route);
    place.start();
    place.suiro(&["switch", "add", "sw0"]);
    let add = ["port", "add", "sw0", "up0", "--type", "af_xdp"];
    let refused = place.says(&add);
    assert_eq!(refused.code, 1);
    for part in ["192.0.2.1/24", "default route via 192.0.2.254", "--take-over"] {
        assert!(refused.err.contains(part), "{part}: {}", refused.err);
    }
    assert!(!place.suiro(&["port", "list", "sw0"]).contains("up0"), "nothing is left of it");
    let taken = place.suiro(&[&add[..], &["--take-over"]].concat());
    assert!(taken.contains("taken over from the host"), "{taken}");
    place.end(Signal::KILL);
    place.start();
    until("the port is back", || {
        place.suiro(&["port", "show", "sw0", "up0"]).contains("taken over from the host")
    });
    place.suiro(&["port", "del", "sw0", "up0"]);
    place.end(Signal::TERM);
    let file = "[[switch]]\nname = 'sw1'\n[[switch.port]]\ninterface = 'up0'\ntype = 'af_xdp'\n";
    place.configure(file);
    let checked = place.node_says(&["--check"]);
    assert_eq!(checked.code, 1);
    assert!(
        checked.err.contains("192.0.2.1/24") && checked.err.contains("take_over"),
        "{}",
        checked.err
    );
    place.configure(&format!("{file}take_over = true\n"));
    let checked = place.node_says(&["--check"]);
    assert_eq!(checked.code, 0, "{}", checked.err);
    assert!(checked.out.contains("takes up0 over from the host"), "{}", checked.out);
}

#[test]
fn a_port_follows_its_interface_to_more_queues_and_a_larger_mtu() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&["a"]);
    let (here, there) = (place.netns.clone(), place.guest("a"));
    let queues = ["numrxqueues", "2", "numtxqueues", "2"];
    let near =
        [&["ip", "-n", &here, "link", "add", "up0"][..], &queues, &["type", "veth"]].concat();
    let far = [&["peer", "name", "eth0"][..], &queues, &["netns", &there]].concat();
    sh(&[near, far].concat());
    let channels = |netns: &str, interface: &str, count: &str| {
        let ethtool = ["ethtool", "-L", interface, "rx", count, "tx", "1"];
        sh(&[&["ip", "netns", "exec", netns][..], &ethtool].concat());
    };
    channels(&here, "up0", "1");
    channels(&there, "eth0", "1");
    sh(&["ip", "-n", &there, "link", "set", "eth0", "up"]);
    place.start();
    place.suiro(&["switch", "add", "sw0"]);
    place.suiro(&["port", "add", "sw0", "up0", "--type", "af_xdp"]);
    let shows =
        |place: &Place, what: &str| place.suiro(&["port", "show", "sw0", "up0"]).contains(what);
    assert!(shows(&place, "1 queue"));
    channels(&here, "up0", "2");
    until("the new queue has a socket", || shows(&place, "2 queues"));
    sh(&["ip", "-n", &here, "link", "set", "up0", "mtu", "3000"]);
    until("the port has larger buffers", || place.log().contains("needs larger buffers"));
    until("the port is up", || shows(&place, "2 queues") && shows(&place, "3000"));
}

#[test]
fn what_a_port_switched_off_is_on_again_when_it_is_gone_whatever_became_of_the_node() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&["a"]);
    cable(&place, "a");
    let guest = place.guest("a");
    let both = |wanted: bool| {
        let found = ["generic-segmentation-offload", "tx-vlan-offload", "tx-vlan-stag-hw-insert"];
        found.iter().all(|offload| is_on(&guest, "eth0", offload) == wanted)
    };
    assert!(both(true));
    place.start();
    place.suiro(&["switch", "add", "sw0"]);
    place.suiro(&["port", "add", "sw0", "up0", "--type", "af_xdp", "--xdp-mode", "generic"]);
    assert!(both(false));
    place.end(Signal::KILL);
    assert!(both(false), "nobody was there to put it back");
    place.start();
    until("the port is back", || {
        place.suiro(&["port", "show", "sw0", "up0"]).contains("af_xdp generic")
    });
    assert!(both(false));
    place.suiro(&["port", "del", "sw0", "up0"]);
    assert!(both(true));
    place.suiro(&["port", "add", "sw0", "up0", "--type", "af_xdp", "--xdp-mode", "generic"]);
    place.end(Signal::TERM);
    assert!(both(true), "a node that ends gives back what it borrowed");
}
