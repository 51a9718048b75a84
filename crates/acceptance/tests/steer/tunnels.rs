//! The flow control field, set by a rule of the sending node, matched by the receiving host outside of the tunnel.

use crate::host::ADDRESS;
use crate::{Host, Kind, Lab, privileged};

/// Machine 5, priority.
const FCF: u32 = 5 << 1 | 1;

/// The sending node: guest `g2`, at port 1 of a switch, has 10.1.0.1, and a rule sets the flow control field of what it sends. The tunnel goes out
/// from the namespace at the other end of the host's cable.
fn sender(host: &Host) -> Lab {
    let lab = Lab::running(&["g2"]);
    lab.suiro(&["switch", "add", "sw0"]);
    lab.connect("sw0", "g2", Kind::Tap);
    lab.address("g2", "eth0", "10.1.0.1/24");
    lab.suiro(&[
        "flow",
        "add",
        "sw0",
        &format!("ip,in_port=1,actions=set_field:{FCF:#x}->fcf,output:9"),
    ]);
    tunnel(&lab, host, &["--flow-id", "tos"]);
    lab
}

/// Gives the sending switch a tunnel with these options, at port 9, instead of the one before.
fn tunnel(lab: &Lab, host: &Host, options: &[&str]) {
    let _ = lab.says(&["port", "del", "sw0", "tun0"]);
    let netns = host.lab.guest("g1");
    let end = ["--remote", ADDRESS, "--key", "7", "--netns", &netns];
    let add = ["port", "add", "sw0", "tun0", "--type", "vxlan", "--number", "9"];
    lab.suiro(&[&add[..], &end, options].concat());
}

/// The receiving node's switch: a tunnel, and the TAP `inner` with 10.1.0.2 in the host's own namespace.
fn receive(host: &Host) {
    host.suiro(&["switch", "add", "sw0"]);
    host.suiro(&["port", "add", "sw0", "inner", "--type", "tap", "--mtu", "1450"]);
    let end = ["--type", "vxlan", "--remote", &Lab::ip("g1"), "--key", "7"];
    host.suiro(&[&["port", "add", "sw0", "tun0"][..], &end].concat());
    for words in
        [&["addr", "add", "10.1.0.2/24", "dev", "inner"][..], &["link", "set", "inner", "up"]]
    {
        acceptance::sh(&[&["ip", "-n", &host.lab.netns][..], words].concat());
    }
}

/// Sends so many pings through the tunnel, one after the other; all are answered.
fn pings(lab: &Lab, count: u32) {
    // One `ping` for all of them would not wait for the last answer longer than the others took.
    let ping = format!("for i in $(seq {count}); do ping -q -c 1 -W 5 10.1.0.2 || exit 1; done");
    acceptance::sh(&["ip", "netns", "exec", &lab.guest("g2"), "sh", "-c", &ping]);
}

/// Frames that the rule of this cookie placed.
fn placed(host: &Host, cookie: u64) -> u64 {
    let dump = host.json(&["steer", "flow", "dump"]);
    let flows = dump.as_array().unwrap();
    let flow = flows
        .iter()
        .find(|flow| flow["rule"].as_str().unwrap_or("").contains(&format!("cookie={cookie:#x}")));
    flow.unwrap_or_else(|| panic!("{dump}"))["frames"].as_u64().unwrap()
}

#[test]
fn a_flow_control_field_that_a_rule_set_is_matched_on_the_tunnels_packets() {
    if !privileged() {
        return;
    }
    let host = Host::new();
    host.suiro(&["steer", "attach", "g1", "--fcf"]);
    receive(&host);
    host.suiro(&["steer", "vm", "add", "vm5", "--id", "5"]);
    let rule = |text: &str| drop(host.suiro(&["steer", "flow", "add", text]));
    rule("cookie=1,vm_id=5,actions=place(core=1)");
    let lab = sender(&host);
    pings(&lab, 30);
    assert_eq!(placed(&host, 1), 30, "machine 5, by all eight bits");
    let shown = lab.suiro(&["port", "show", "sw0", "tun0"]);
    assert!(shown.contains("flow_id tos: the ECN bits outside"), "{shown}");
    // With ECN's two bits left to ECN, six identify it.
    rule("cookie=2,priority=40000,ip,fcf=0x08/0xfc,actions=place(core=0)");
    tunnel(&lab, &host, &["--flow-id", "dscp"]);
    lab.suiro(&["flow", "add", "sw0", "ip,in_port=1,actions=set_field:2->ip_dscp,output:9"]);
    pings(&lab, 30);
    assert_eq!((placed(&host, 1), placed(&host, 2)), (30, 30));
    // What is inside does not count: a tunnel that shows nothing is not told apart.
    tunnel(&lab, &host, &[]);
    pings(&lab, 30);
    assert_eq!((placed(&host, 1), placed(&host, 2)), (30, 30));
}
