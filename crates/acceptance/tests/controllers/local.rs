//! A switch's local port (OpenFlow 1.3.5 §4.5): the host's own stack, here the node's namespace, pings a guest through the switch, by
//! flows that `ovs-ofctl` writes in 1.3 and in 1.0.

use crate::ofctl::set_link;
use acceptance::{Kind, Lab, Ofctl, at_once, privileged, sh, until};
use rustix::process::Signal;
use std::process::Command;

/// The interface of the local port in the node's namespace, and its addresses there: those of a guest `h99`.
const INTERFACE: &str = "sw0-local";
const HOST: &str = "h99";

/// A switch that does nothing by itself, with one guest and a local port.
fn lab() -> Lab {
    let lab = Lab::running(&["g1"]);
    lab.suiro(&["switch", "add", "sw0", "--fail-mode", "secure"]);
    lab.connect("sw0", "g1", Kind::AfPacket);
    let add = ["port", "add", "sw0", INTERFACE, "--type", "tap", "--number", "local"];
    lab.suiro(&[&add[..], &["--mac", &Lab::mac(HOST)]].concat());
    let address = format!("{}/24", Lab::ip(HOST));
    sh(&["ip", "-n", &lab.netns, "addr", "add", &address, "dev", INTERFACE]);
    sh(&["ip", "-n", &lab.netns, "link", "set", INTERFACE, "up"]);
    // Both know each other's address: no answer waits for another try of ARP.
    lab.introduce("g1", HOST);
    let neighbour = ["neigh", "replace", &Lab::ip("g1"), "lladdr", &Lab::mac("g1")];
    let there = ["dev", INTERFACE, "nud", "permanent"];
    sh(&[&["ip", "-n", &lab.netns][..], &neighbour, &there].concat());
    lab
}

/// How many of three pings at once from the host to the guest are answered.
fn pings(lab: &Lab) -> usize {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &lab.netns, "ping", &Lab::ip("g1")]).args(at_once(3));
    let output = command.output().unwrap();
    String::from_utf8(output.stdout).unwrap().matches("bytes from").count()
}

#[test]
fn the_host_talks_to_a_guest_by_its_local_port_as_the_flows_of_either_version_say() {
    if !privileged() {
        return;
    }
    let lab = lab();
    assert_eq!(pings(&lab), 0, "nobody has told the switch to forward");
    let (new, old) =
        (Ofctl::management(&lab, "sw0"), Ofctl::management(&lab, "sw0").speaking_1_0());
    for (ofctl, number) in [(&new, "4294967294"), (&old, "65534")] {
        ofctl.run("add-flow", &["in_port=LOCAL,actions=output:1"]);
        assert_eq!(pings(&lab), 0, "the way back is missing");
        ofctl.run("add-flow", &["in_port=1,actions=LOCAL"]);
        assert_eq!(pings(&lab), 3, "{}", lab.log());
        let dump = ofctl.run("dump-flows", &["in_port=LOCAL"]);
        assert!(dump.contains("in_port=LOCAL actions=output:1"), "{dump}");
        let dump = ofctl.run("dump-flows", &["in_port=1"]);
        assert!(dump.contains("actions=LOCAL"), "{dump}");
        ofctl.run("del-flows", &["out_port=LOCAL"]);
        assert_eq!(pings(&lab), 0, "what led to the host is gone");
        ofctl.run("add-flow", &[&format!("in_port=1,actions=output:{number}")]);
        assert_eq!(pings(&lab), 3);
        it_is_shown_counted_and_set_down(&lab, ofctl);
        ofctl.run("del-flows", &[]);
        ofctl.run("add-flow", &["actions=NORMAL"]);
        assert_eq!(pings(&lab), 3);
        ofctl.run("del-flows", &[]);
    }
}

fn it_is_shown_counted_and_set_down(lab: &Lab, ofctl: &Ofctl<'_>) {
    let shown = ofctl.run("show", &[]);
    assert!(shown.contains(&format!("LOCAL({INTERFACE}): addr:")), "{shown}");
    assert!(ofctl.run("dump-ports", &["LOCAL"]).contains("port LOCAL: rx pkts="));
    ofctl.run("mod-port", &[INTERFACE, "down"]);
    assert_eq!(pings(lab), 0);
    let shown = ofctl.run("show", &[]);
    assert!(shown.contains("PORT_DOWN"), "{shown}");
    ofctl.run("mod-port", &[INTERFACE, "up"]);
    until("the local port is up", || pings(lab) == 3);
}

#[test]
fn a_local_port_is_there_once_and_comes_back_with_its_node() {
    if !privileged() {
        return;
    }
    let mut lab = lab();
    lab.suiro(&["flow", "add", "sw0", "in_port=LOCAL,actions=output:g1"]);
    lab.suiro(&["flow", "add", "sw0", "in_port=g1,actions=LOCAL"]);
    let list = lab.suiro(&["port", "list", "sw0"]);
    assert!(list.contains("LOCAL"), "{list}");
    assert_eq!(lab.json(&["port", "show", "sw0", "local"])["number"], 0xffff_fffe_u32);
    let second = lab.says(&["port", "add", "sw0", "other", "--type", "tap", "--number", "local"]);
    assert_eq!(second.code, 1);
    for part in
        ["number LOCAL is already taken by port sw0-local", "remedy: a switch has one local"]
    {
        assert!(second.err.contains(part), "{part} is missing: {}", second.err);
    }
    lab.end(Signal::KILL);
    lab.start();
    until("the guest is reached again", || pings(&lab) == 3);
    set_link(&lab, "g1", "down");
    let dump = lab.suiro(&["flow", "list", "sw0"]);
    assert!(dump.contains("in_port=LOCAL") && dump.contains("actions=LOCAL"), "{dump}");
}
