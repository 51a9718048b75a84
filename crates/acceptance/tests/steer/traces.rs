//! What others see of steering: `bpftool` its programs, maps and links, `ip link` the program on the interface. After `detach` there is nothing.

use crate::host::ADDRESS;
use crate::{Host, privileged, until};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// A program, a map or a link, as the kernel numbers them.
type Object = (&'static str, u64);

/// What `bpftool` shows of all objects of a kind, or of a pinned one.
fn shown(kind: &str, which: &[&str]) -> Option<Value> {
    let output = Command::new("bpftool").args(["-j", kind, "show"]).args(which).output();
    let output = output.expect("bpftool runs (Debian: bpftool; run 'make setup')");
    output.status.success().then(|| serde_json::from_slice(&output.stdout).unwrap())
}

/// All that is pinned in a directory and below.
fn pinned(directory: &Path) -> Vec<Object> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(pinned(&path));
            continue;
        }
        let which = ["pinned", path.to_str().unwrap()];
        let object = ["prog", "map", "link"]
            .into_iter()
            .find_map(|kind| Some((kind, shown(kind, &which)?["id"].as_u64()?)));
        found.push(object.unwrap_or_else(|| panic!("{}: no object", path.display())));
    }
    found
}

fn is_there(&(kind, id): &Object) -> bool {
    let all = shown(kind, &[]).unwrap();
    all.as_array().is_some_and(|all| all.iter().any(|object| object["id"] == id))
}

#[test]
fn after_detach_bpftool_shows_nothing_of_the_interface_and_ip_link_no_program() {
    if !privileged() {
        return;
    }
    let host = Host::new();
    host.suiro(&["steer", "attach", "g1"]);
    host.suiro(&["steer", "flow", "add", "udp,tp_dst=5001,actions=place(core=1)"]);
    assert_eq!(host.cores_of(5001, 50), [1; 50], "frames for {ADDRESS}");
    let objects = pinned(&host.pins("g1"));
    for kind in ["prog", "map", "link"] {
        assert!(objects.iter().any(|object| object.0 == kind), "no {kind} in {objects:?}");
    }
    assert!(objects.iter().all(is_there) && host.has_program("g1"));
    host.suiro(&["steer", "detach", "g1"]);
    assert!(!host.has_program("g1") && !host.pins("g1").exists());
    // The kernel frees them when the last processor has left them.
    until("they are gone", || !objects.iter().any(is_there));
}
