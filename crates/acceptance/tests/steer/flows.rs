//! Where flows go, and why.

use crate::host::ADDRESS;
use crate::{Host, privileged, until};

#[test]
fn each_rule_puts_its_flow_on_the_core_that_it_names_and_detach_leaves_nothing() {
    if !privileged() {
        return;
    }
    let host = Host::new();
    let said = host.suiro(&["steer", "attach", "g1"]);
    assert!(said.contains("no node ran: started one, process "), "{said}");
    assert!(said.contains("interface g1 is steered, native"), "{said}");
    assert!(host.has_program("g1") && host.pins("g1").exists());
    for core in ["0", "1"] {
        let rule = format!("udp,nw_dst={ADDRESS},tp_dst=500{core},actions=place(core={core})");
        host.suiro(&["steer", "flow", "add", &rule]);
    }
    assert_eq!(host.cores_of(5000, 200), [0; 200]);
    assert_eq!(host.cores_of(5001, 200), [1; 200]);
    let dump = host.json(&["steer", "flow", "dump"]);
    for flow in dump.as_array().unwrap() {
        assert!(flow["frames"].as_u64().unwrap() >= 200, "{dump}");
        assert_eq!(flow["reason"], "the rule names the core");
    }
    assert!(host.node().is_some());
    let said = host.suiro(&["steer", "detach", "g1"]);
    assert!(said.contains("not steered any more") && said.contains("node"), "{said}");
    assert!(!host.has_program("g1") && !host.pins("g1").exists());
    until("the node is gone", || host.node().is_none() && !host.lab.socket().exists());
}

#[test]
fn a_rule_that_changes_takes_its_flow_to_the_other_core_and_one_that_goes_lets_it_go() {
    if !privileged() {
        return;
    }
    let host = Host::new();
    host.suiro(&["steer", "attach", "g1", "--unmatched", "stay"]);
    let place = |core: &str| format!("udp,tp_dst=5000,actions=place(core={core})");
    host.suiro(&["steer", "flow", "add", &place("0"), "--on", "g1"]);
    assert_eq!(host.cores_of(5000, 20), [0; 20]);
    host.suiro(&["steer", "flow", "add", &place("1"), "--on", "g1"]);
    let cores = host.cores_of(5000, 50);
    assert_eq!(cores[49], 1, "{cores:?}");
    assert_eq!(host.json(&["steer", "flow", "dump"]).as_array().unwrap().len(), 1);
    host.suiro(&["steer", "flow", "del", "udp"]);
    assert_eq!(host.json(&["steer", "flow", "dump"]).as_array().unwrap().len(), 0);
    let before = host.interface()["frames"].clone();
    host.cores_of(5000, 20);
    let after = host.interface()["frames"].clone();
    let passed = |frames: &serde_json::Value| frames["missed"].as_u64().unwrap_or(0);
    assert!(passed(&after) >= passed(&before) + 20, "{before} {after}");
}

#[test]
fn flows_without_a_rule_go_where_the_policy_says_and_why_names_every_core() {
    if !privileged() {
        return;
    }
    let host = Host::new();
    host.suiro(&["steer", "attach", "g1"]);
    host.suiro(&["steer", "policy", "set", "--cores", "1", "--moves", "off", "--threshold", "100"]);
    assert_eq!(host.cores_of(5000, 50), [1; 50]);
    host.suiro(&["steer", "flow", "add", "udp,tp_dst=5001,actions=place(core=auto,priority)"]);
    assert_eq!(host.cores_of(5001, 50), [1; 50]);
    until("the decision is remembered", || {
        let why = host.json(&["steer", "why", "udp,nw_src=10.0.0.1,nw_dst=10.0.0.100,tp_dst=5001"]);
        why["decision"]["candidates"].as_array().is_some_and(|all| all.len() >= 2)
    });
    let page = host.suiro(&["steer", "why", "udp,nw_src=10.0.0.1,nw_dst=10.0.0.100,tp_dst=5001"]);
    for part in ["core      1", "priority", "excluded", "chosen"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let top = host.json(&["steer", "top", "--once"]);
    assert!(top["cores"].as_array().unwrap().len() >= 2, "{top}");
}

#[test]
fn each_node_of_a_machine_places_by_its_own_policy() {
    if !privileged() {
        return;
    }
    let hosts = [Host::new(), Host::new()];
    for (host, core) in hosts.iter().zip(["0", "1"]) {
        host.suiro(&["steer", "attach", "g1"]);
        let policy = ["--cores", core, "--moves", "off", "--threshold", "100"];
        host.suiro(&[&["steer", "policy", "set"][..], &policy].concat());
    }
    for port in 5000..5020 {
        for (host, core) in hosts.iter().zip(0..) {
            assert_eq!(host.cores_of(port, 2), [core; 2], "port {port}");
        }
    }
}

#[test]
fn a_machine_is_known_by_its_address_and_shown_with_its_cores() {
    if !privileged() {
        return;
    }
    let host = Host::new();
    host.suiro(&["steer", "attach", "g1"]);
    let vm = ["--id", "1", "--tenant", "7", "--cores", "0", "--address", ADDRESS];
    host.suiro(&[&["steer", "vm", "add", "vm1"][..], &vm].concat());
    host.suiro(&["steer", "policy", "set", "--threshold", "100", "--moves", "off"]);
    host.suiro(&["steer", "flow", "add", "vm_id=1,udp,actions=place(core=auto)"]);
    assert_eq!(host.cores_of(5000, 50), [1; 50], "not on the core of a machine");
    host.suiro(&["steer", "flow", "add", "vm_id=1,udp,actions=place(core=auto,own)"]);
    let cores = host.cores_of(5000, 50);
    assert_eq!(cores[49], 0, "on its own machine's core: {cores:?}");
    let shown = host.suiro(&["steer", "vm", "list"]);
    assert!(shown.contains("vm1") && shown.contains("declared"), "{shown}");
    let cores = host.suiro(&["steer", "cores"]);
    assert!(cores.lines().nth(1).is_some_and(|line| line.ends_with("vm1")), "{cores}");
}
