//! A network outside of the domain, for slices that have a door to it: a namespace that is one host, at the other end of a node's
//! interface.

use super::layout::{Layout, Node};
use super::wide;
use anyhow::Result;
use testbed::netns::ip;

/// The interface of the node that leads there.
pub const INTERFACE: &str = "out0";
/// What the host there has (RFC 5737: nobody has it outside of documents).
pub const ADDRESS: &str = "198.51.100.1/24";

/// The node that has the door: the first.
pub fn node(layout: &Layout) -> Option<&Node> {
    layout.nodes.first()
}

/// Makes it unless it is there.
pub fn make(layout: &Layout) -> Result<String> {
    let Some(node) = node(layout) else { return Ok("no node".into()) };
    let outside = layout.outside.as_str();
    let is_new = wide::space(outside)?;
    let is_there = ip(&["-n", &node.namespace, "link", "show", INTERFACE]).is_ok();
    if is_new || !is_there {
        let pair = ["-n", outside, "link", "add", "to0", "type", "veth", "peer", "name", INTERFACE];
        ip(&[&pair[..], &["netns", &node.namespace]].concat())?;
        ip(&["-n", outside, "link", "set", "to0", "up"])?;
        ip(&["-n", &node.namespace, "link", "set", INTERFACE, "up"])?;
        ip(&["-n", outside, "address", "add", ADDRESS, "dev", "to0"])?;
    }
    Ok(format!("{ADDRESS} by {INTERFACE} of {}", node.name))
}
