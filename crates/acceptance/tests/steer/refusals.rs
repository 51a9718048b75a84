//! What cannot be is refused with a thing, a step, a cause and a remedy, and leaves nothing behind.

use crate::{Host, privileged, until};
use acceptance::sh;

#[test]
fn an_interface_that_is_not_there_is_refused_and_the_node_that_was_started_for_it_ends() {
    if !privileged() {
        return;
    }
    let host = Host::new();
    let said = host.says(&["steer", "attach", "nosuch0"]);
    assert_eq!(said.code, 1);
    for part in
        ["interface nosuch0: attach it:", "no interface of that name", "remedy: see `ip link`"]
    {
        assert!(said.err.contains(part), "{part}: {}", said.err);
    }
    until("the node is gone", || host.node().is_none());
}

#[test]
fn an_interface_with_another_program_is_refused_by_name_and_left_as_it_is() {
    if !privileged() {
        return;
    }
    let host = Host::new();
    let source = host.lab.path("other.c");
    let object = host.lab.path("other.o");
    let text = "__attribute__((section(\"xdp\"), used)) int somebody(void *frame) { return 2; }";
    std::fs::write(&source, text).unwrap();
    let (source, object) = (source.to_str().unwrap(), object.to_str().unwrap());
    sh(&["clang", "-O2", "-target", "bpf", "-c", source, "-o", object]);
    let attach = ["link", "set", "dev", "g1", "xdp", "obj", object, "sec", "xdp"];
    sh(&[&["ip", "-n", &host.lab.netns][..], &attach].concat());
    let said = host.says(&["steer", "attach", "g1"]);
    assert_eq!(said.code, 1);
    for part in ["another XDP program", "somebody", "xdp off", "remedy: "] {
        assert!(said.err.contains(part), "{part}: {}", said.err);
    }
    assert!(host.has_program("g1"), "the other program is still there");
    until("the node is gone", || host.node().is_none());
}

#[test]
fn wrong_rules_machines_and_policies_are_refused_with_a_remedy_and_change_nothing() {
    if !privileged() {
        return;
    }
    let host = Host::new();
    host.suiro(&["steer", "attach", "g1"]);
    for (words, part) in [
        (&["steer", "flow", "add", "ip,actions=output:1"][..], "place(core="),
        (&["steer", "flow", "add", "ip,nw_src=1.2.3,actions=place(core=1)"], "column 11"),
        (&["steer", "flow", "add", "in_port=1,actions=place(core=1)"], "--on"),
        (&["steer", "flow", "add", "ip,actions=place(core=1)", "--on", "g7"], "suiro steer list"),
        (&["steer", "flow", "add", "vm_id=300,actions=place(core=auto)"], "--address"),
        (&["steer", "flow", "add", "ip,actions=place(core=99)"], "core 99"),
        (&["steer", "vm", "add", "vm1", "--id", "200"], "addresses"),
        (&["steer", "vm", "del", "vm1"], "vm list"),
        (&["steer", "policy", "set", "--cores", "99"], "no core 99"),
        (&["steer", "attach", "g1", "--groups", "512"], "detach it first"),
        (&["steer", "detach", "g7"], "suiro steer list"),
        (&["steer", "why", "nonsense=1"], "ovs-fields"),
    ] {
        let said = host.says(words);
        assert_eq!(said.code, 1, "{words:?}: {}", said.out);
        assert!(
            said.err.contains("remedy: ") && said.err.contains(part),
            "{words:?}: {}",
            said.err
        );
    }
    for words in [
        &["steer", "attach"][..],
        &["steer", "attach", "g1", "--groups", "100"],
        &["steer", "flow", "add"],
        &["steer", "policy", "set", "--cores", "x"],
        &["steer", "policy", "set", "--threshold", "0"],
    ] {
        assert_eq!(host.says(words).code, 2, "{words:?}");
    }
    assert_eq!(host.json(&["steer", "flow", "dump"]).as_array().unwrap().len(), 0);
    assert_eq!(host.json(&["steer", "policy", "show"])["threshold_percent"], 50);
}

#[test]
fn help_teaches_with_examples_and_without_a_node_the_remedy_is_attach() {
    let suiro = |words: &[&str]| {
        let output = std::process::Command::new(acceptance::suiro())
            .args(words)
            .env("SUIRO_API", "/nonexistent/api.sock")
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8(text).unwrap())
    };
    for words in [
        &["steer", "--help"][..],
        &["steer", "attach", "--help"],
        &["steer", "detach", "--help"],
        &["steer", "flow", "add", "--help"],
        &["steer", "flow", "del", "--help"],
        &["steer", "why", "--help"],
        &["steer", "top", "--help"],
        &["steer", "vm", "add", "--help"],
        &["steer", "policy", "set", "--help"],
        &["doctor", "--help"],
    ] {
        let (code, text) = suiro(words);
        assert_eq!(code, 0, "{words:?}");
        assert!(text.contains("xample") || text.contains("First steps"), "{words:?}:\n{text}");
    }
    let (code, text) = suiro(&["steer", "list"]);
    assert_eq!(code, 3);
    assert!(text.contains("suiro steer attach"), "{text}");
}

#[test]
fn doctor_says_what_the_host_has_and_names_a_missing_interface() {
    let suiro = |words: &[&str]| {
        let output = std::process::Command::new(acceptance::suiro()).args(words).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, text) = suiro(&["doctor", "nosuch0"]);
    assert_eq!(code, 1);
    assert!(text.contains("MISSING  interface nosuch0"), "{text}");
    let (_, text) = suiro(&["--json", "doctor", "lo"]);
    let findings: serde_json::Value = serde_json::from_str(&text).unwrap();
    let things: Vec<_> =
        findings.as_array().unwrap().iter().map(|finding| finding["thing"].clone()).collect();
    for thing in ["kernel", "BTF", "bpffs", "privileges", "irqbalance", "lo: XDP", "lo: RPS"] {
        assert!(things.iter().any(|found| found == thing), "{thing}: {things:?}");
    }
}
