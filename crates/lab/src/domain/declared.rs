//! What the operator of a lab declares: its sites, underlays and nodes, two tenants, and a door to a network outside.

use super::layout::Layout;
use super::outside;
use super::wide::INTERFACE;
use anyhow::{Context, Result};
use std::fmt::Write;
use std::path::PathBuf;

/// The domain's file, written down.
pub fn write(layout: &Layout) -> Result<PathBuf> {
    let path = layout.directory.join("domain.yaml");
    std::fs::write(&path, text(layout))
        .with_context(|| format!("{}: cannot be written", path.display()))?;
    Ok(path)
}

fn text(layout: &Layout) -> String {
    let sites = layout.sites();
    let named: Vec<_> = sites.iter().map(|site| format!("{site}: {{}}")).collect();
    let mut text = format!("suiro: domain/1\nsites: {{{}}}\n", named.join(", "));
    text += "underlays:\n  wan4: {kind: vxlan, family: ipv4, mtu: 9000}\n  wan6: {kind: vxlan, family: ipv6, mtu: 9000}\n";
    let pairs = || (0..sites.len()).flat_map(|a| (a + 1..sites.len()).map(move |b| (a, b)));
    if sites.len() > 1 {
        text += "segments:\n";
    }
    for (a, b) in pairs() {
        let (from, to) = (sites[a], sites[b]);
        // Neighbours by IPv4, the others by IPv6.
        let underlay = if b - a == 1 { "wan4" } else { "wan6" };
        let segment =
            format!("{{between: [{from}, {to}], underlay: {underlay}, capacity: 10G, delay: 1ms}}");
        // Writing to a text cannot fail.
        let _ = writeln!(text, "  {from}-{to}: {segment}");
    }
    text += "nodes:\n";
    for node in &layout.nodes {
        let joined = |name: &str, address: String| {
            format!("{name}: {{addresses: [\"{address}\"], interface: {INTERFACE}}}")
        };
        let (four, six) =
            (joined("wan4", node.address4.to_string()), joined("wan6", node.address6.to_string()));
        let _ =
            writeln!(text, "  {}: {{site: {}, underlay: {{{four}, {six}}}}}", node.name, node.site);
    }
    text += "tenants:\n  red: {}\n  blue: {}\n";
    if let Some(node) = outside::node(layout) {
        let (name, interface) = (&node.name, outside::INTERFACE);
        let _ = writeln!(
            text,
            "externals:\n  campus: {{node: {name}, interface: {interface}, tenants: [red], rate: 100M}}"
        );
    }
    text
}
