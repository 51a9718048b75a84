//! What faults are put into: rules of two nodes' switches `K`, and the wide-area network's cables.
//!
//! A fault of rules is rules of a higher priority with a cookie of their own. A fault of the wide-area network is a classic BPF program at the end
//! of a cable: `cls_bpf` is in every kernel of the field, `netem` is not.

use super::super::layout::{Layout, Node};
use super::super::user::{at_node, suiro};
use super::super::wide;
use super::NAME;
use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// By it rules of faults are found again.
const COOKIE: &str = "0xbad";
/// `TC_ACT_SHOT` for UDP over IPv4 and IPv6, so for tunnels; what nodes and controller say is TCP, and goes on.
const SHUT: &str = "9,40 0 0 12,21 0 2 2048,48 0 0 23,5 0 0 2,21 0 3 34525,48 0 0 20,21 0 1 17,6 0 0 2,6 0 0 4294967295";

/// Links `a` and `b` between two nodes.
pub struct Scene {
    wide: String,
    /// The near node, the far one, and the third.
    nodes: [Node; 3],
    /// By link: its id, and how it is at either node.
    pub a: Link,
    /// The other one.
    pub b: Link,
    /// From the near node by the far one to the third.
    pub d: Link,
    /// At the far node: a tunnel to the third.
    pub astray: String,
}

/// A link as rules of `K` have it.
pub struct Link {
    /// Its tunnel id.
    pub id: u32,
    /// Where it begins and where it ends.
    pub ends: [End; 2],
}

/// One end of it.
pub struct End {
    /// `K`'s port to the user's switch.
    pub port: String,
    /// `K`'s tunnel to the other node.
    pub way: String,
}

impl Link {
    /// The address by which rules know its probes.
    pub fn address(&self) -> String {
        let [_, a, b, c] = self.id.to_be_bytes();
        format!("02:73:75:{a:02x}:{b:02x}:{c:02x}")
    }
}

impl Scene {
    /// Reads it from the parts of the first two nodes.
    pub fn look(layout: &Layout) -> Result<Self> {
        let [near, far, third] = &layout.nodes[..] else { anyhow::bail!("three nodes") };
        let text = suiro(layout, &["--json", "slice", "show", NAME])?;
        let slice: Value = serde_json::from_str(&text).context("the slice")?;
        let uid = slice["uid"].as_str().context("its uid")?;
        let parts = [part(near, uid)?, part(far, uid)?, part(third, uid)?];
        let link = |name: &str, to: usize| -> Result<Link> {
            let id = circuit_id(&parts[0], name)?;
            let ends = [end(&parts[0], id)?, end(&parts[to], id)?];
            Ok(Link { id, ends })
        };
        let underlay = part(far, "underlay")?;
        let astray = underlay.lines().find_map(|line| {
            let port = line.strip_prefix("name = \"")?.strip_suffix('"')?;
            port.ends_with(&format!(".{}", third.name)).then(|| port.to_owned())
        });
        Ok(Self {
            wide: layout.wide.clone(),
            nodes: [near.clone(), far.clone(), third.clone()],
            a: link("a", 1)?,
            b: link("b", 1)?,
            d: link("d", 2)?,
            astray: astray.context("a tunnel to the third node")?,
        })
    }

    /// Adds a rule at the `K` of the near node (0), the far one (1) or the third (2).
    pub fn rule(&self, at: usize, rule: &str) -> Result<()> {
        let rule = format!("cookie={COOKIE},priority=50000,{rule}");
        at_node(&self.nodes[at], &["flow", "add", "K", &rule]).map(drop)
    }

    /// Takes all faults away.
    pub fn mend(&self) -> Result<()> {
        let ours = format!("cookie={COOKIE}/-1");
        for node in &self.nodes {
            at_node(node, &["flow", "del", "K", &ours])?;
        }
        wide::filter(&self.nodes[0], &self.wide, None)
    }
}

/// Shuts the wide-area network to tunnels.
pub fn shut(layout: &Layout) -> Result<()> {
    layout.nodes.iter().try_for_each(|node| wide::filter(node, &layout.wide, Some(SHUT)))
}

/// Opens it; what comes from the first node then goes through that program.
pub fn open(layout: &Layout, first: Option<&str>) -> Result<()> {
    let pass = |node| wide::filter(node, &layout.wide, None);
    layout.nodes.iter().skip(1).try_for_each(pass)?;
    wide::filter(&layout.nodes[0], &layout.wide, first)
}

fn part(node: &Node, name: &str) -> Result<String> {
    let text = at_node(node, &["--json", "part", "show", name])?;
    let part: Value = serde_json::from_str(&text).context("a part")?;
    Ok(part["declared"]["text"].as_str().context("the part's text")?.to_owned())
}

/// The id of a link, from a part's `[[circuit]]`.
fn circuit_id(part: &str, link: &str) -> Result<u32> {
    let circuit =
        part.split("[[circuit]]").find(|text| text.contains(&format!("link = \"{link}\"")));
    let id = circuit.and_then(|text| text.lines().find_map(|line| line.strip_prefix("id = ")));
    id.context("its id")?.trim().parse().context("a number")
}

/// How a link leaves, from the rule that sends its frames.
fn end(part: &str, id: u32) -> Result<End> {
    let sends = format!("set_field:{id}->tun_id");
    let rules =
        part.split('"').filter(|text| text.starts_with("in_port=c") && text.contains(&sends));
    let rules: Vec<&str> = rules.collect();
    ensure!(rules.len() == 1, "one rule sends link {id}, and not {rules:?}");
    let field = |name: &str| {
        let from = rules[0].find(name).map(|at| at + name.len());
        from.map(|from| rules[0][from..].split(',').next().unwrap_or_default().to_owned())
    };
    Ok(End {
        port: field("in_port=").context("in_port")?,
        way: field("output:").context("output")?,
    })
}
