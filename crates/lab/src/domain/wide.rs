//! The wide-area network between nodes: a namespace with a bridge, and a cable (a veth pair) from it to each host's namespace.

use super::layout::{Layout, Node};
use anyhow::Result;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use testbed::netns::{self, ip};

/// The node's end of its cable.
pub const INTERFACE: &str = "wan0";
const BRIDGE: &str = "br0";
/// Bytes behind an Ethernet header, as wide-area networks between testbeds have.
const MTU: &str = "9000";

/// Makes what is missing of it.
pub fn make(layout: &Layout) -> Result<String> {
    if space(&layout.wide)? {
        ip(&["-n", &layout.wide, "link", "add", BRIDGE, "mtu", MTU, "type", "bridge"])?;
        ip(&["-n", &layout.wide, "link", "set", BRIDGE, "up"])?;
    }
    let there = cables(&layout.wide)?;
    for node in layout.hosts() {
        let is_new = space(&node.namespace)?;
        if is_new || !there.contains(&cable(node)) {
            connect(&layout.wide, node)?;
        }
    }
    Ok(format!("{} cables, MTU {MTU}", layout.hosts().count()))
}

/// Removes it, and the hosts' namespaces.
pub fn remove(layout: &Layout) -> Result<String> {
    let all = layout.hosts().map(|node| &node.namespace).chain([&layout.wide, &layout.outside]);
    let there: Vec<_> = all.filter(|name| exists(name)).collect();
    there.iter().try_for_each(|name| ip(&["netns", "del", name]).map(drop))?;
    Ok(format!("{} namespaces", there.len()))
}

/// Whether a namespace is there.
pub fn exists(name: &str) -> bool {
    Path::new("/run/netns").join(name).exists()
}

/// Makes a namespace unless it is there; says whether it did.
pub fn space(name: &str) -> Result<bool> {
    let is_missing = !exists(name);
    if is_missing {
        ip(&["netns", "add", name])?;
        ip(&["-n", name, "link", "set", "lo", "up"])?;
    }
    Ok(is_missing)
}

fn connect(wide: &str, node: &Node) -> Result<()> {
    let (inside, cable) = (node.namespace.as_str(), cable(node));
    let pair = ["-n", wide, "link", "add", &cable, "mtu", MTU, "type", "veth"];
    ip(&[&pair[..], &["peer", "name", INTERFACE, "mtu", MTU, "netns", inside]].concat())?;
    ip(&["-n", wide, "link", "set", &cable, "master", BRIDGE, "up"])?;
    ip(&["-n", inside, "address", "add", &format!("{}/24", node.address4), "dev", INTERFACE])?;
    // Nobody else has the address, so nobody needs to be asked for a second whether it is free.
    let address6 = format!("{}/64", node.address6);
    ip(&["-n", inside, "address", "add", &address6, "dev", INTERFACE, "nodad"])?;
    ip(&["-n", inside, "link", "set", INTERFACE, "up"]).map(drop)
}

/// Puts what comes from a node through this classic BPF program, which says 2 (`TC_ACT_SHOT`) of what is lost; or lets it all pass again.
pub fn filter(node: &Node, wide: &str, program: Option<&str>) -> Result<()> {
    let cable = cable(node);
    let tc = |words: &[&str]| {
        netns::run(Command::new("ip").args(["netns", "exec", wide, "tc"]).args(words))
    };
    if tc(&["qdisc", "show", "dev", &cable])?.contains("clsact") {
        tc(&["qdisc", "del", "dev", &cable, "clsact"])?;
    }
    let Some(program) = program else { return Ok(()) };
    tc(&["qdisc", "add", "dev", &cable, "clsact"])?;
    tc(&["filter", "add", "dev", &cable, "ingress", "bpf", "da", "bytecode", program]).map(drop)
}

/// The wide-area network's end of a host's cable.
pub fn cable(node: &Node) -> String {
    format!("n-{}", node.name)
}

fn cables(wide: &str) -> Result<BTreeSet<String>> {
    let text = ip(&["-n", wide, "-br", "link", "show", "type", "veth"])?;
    let first = |line: &str| line.split(['@', ' ']).next().map(str::to_owned);
    Ok(text.lines().filter_map(first).collect())
}
