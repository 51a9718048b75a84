//! Which sites and nodes a lab has: names, namespaces, addresses, directories. Made of two numbers, and kept in a file while the lab is there.

use super::Which;
use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

/// Sites, in the order in which they come. No two begin with the same letter, which is that of their nodes.
const SITES: [&str; 8] =
    ["tokyo", "osaka", "sendai", "nagoya", "kyoto", "fukuoka", "hiroshima", "yokohama"];
/// Nodes of all sites: numbers 10 to 249 of the last byte of an address.
const NODES_MAX: usize = 240;
/// The port of its controller; nobody else has its address.
const PORT: u16 = 7443;
/// Where labs are.
const RUN: &str = "/run";

/// How large a lab is.
#[derive(Args, Clone, Debug)]
pub struct Size {
    /// Sites
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=SITES.len() as i64))]
    pub sites: u8,
    /// Nodes of each site
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=30))]
    pub nodes: u8,
    /// Which lab
    #[command(flatten)]
    pub which: Which,
}

/// A lab.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Layout {
    /// Its name.
    pub name: String,
    /// The namespace of the wide-area network.
    pub wide: String,
    /// The namespace of a network outside of the domain.
    pub outside: String,
    /// Where all its files are.
    pub directory: PathBuf,
    /// Where its controller is: a host of no site.
    pub controller: Node,
    /// Its nodes, site by site.
    pub nodes: Vec<Node>,
}

/// A node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its site.
    pub site: String,
    /// Its network namespace.
    pub namespace: String,
    /// Its addresses on the wide-area network.
    pub address4: Ipv4Addr,
    /// The other one.
    pub address6: Ipv6Addr,
    /// Where its files are.
    pub directory: PathBuf,
}

/// A lab's name: namespaces, interfaces and sockets' paths have room for it.
pub fn name(text: &str) -> Result<String, String> {
    let fine = (1..=8).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    fine.then(|| text.to_owned()).ok_or_else(|| "one to eight letters a-z and digits".into())
}

impl Layout {
    /// Of that size.
    pub fn new(size: &Size) -> Result<Self> {
        let (sites, nodes) = (usize::from(size.sites), usize::from(size.nodes));
        ensure!(sites * nodes <= NODES_MAX, "a lab has at most {NODES_MAX} nodes");
        let name = &size.which.name;
        let directory = directory(name);
        let all =
            SITES[..sites].iter().flat_map(|site| (1..=nodes).map(move |number| (site, number)));
        let nodes = (10..).zip(all).map(|(last, (site, number))| {
            let node = format!("{}{number}", &site[..1]);
            Node::new(name, &directory, (&node, site), last)
        });
        Ok(Self {
            wide: format!("{name}-wide"),
            outside: format!("{name}-outside"),
            controller: Node::new(name, &directory, ("ctl", "-"), 2),
            nodes: nodes.collect(),
            name: name.clone(),
            directory,
        })
    }

    /// The lab of that name, if there is one.
    pub fn kept(name: &str) -> Result<Option<Self>> {
        let path = file(&directory(name));
        if !path.exists() {
            return Ok(None);
        }
        let text =
            std::fs::read(&path).with_context(|| format!("{}: cannot be read", path.display()))?;
        let kept = serde_json::from_slice(&text);
        kept.map(Some).with_context(|| format!("{}: not a lab of this version", path.display()))
    }

    /// Writes it down, whole or not at all.
    pub fn keep(self) -> Result<Self> {
        let cannot = || format!("{}: cannot be made", self.directory.display());
        std::fs::create_dir_all(&self.directory).with_context(cannot)?;
        let new = self.directory.join("new");
        std::fs::write(&new, serde_json::to_vec_pretty(&self)?).with_context(cannot)?;
        std::fs::rename(new, file(&self.directory)).with_context(cannot)?;
        Ok(self)
    }

    /// Removes all its files, the one that says that it is there last.
    pub fn forget(&self) -> Result<()> {
        for entry in std::fs::read_dir(&self.directory)? {
            let path = entry?.path();
            if path == file(&self.directory) {
                continue;
            }
            let removed = if path.is_dir() {
                std::fs::remove_dir_all(&path)
            } else {
                std::fs::remove_file(&path)
            };
            removed.with_context(|| format!("{}: cannot be removed", path.display()))?;
        }
        std::fs::remove_dir_all(&self.directory)
            .with_context(|| format!("{}: cannot be removed", self.directory.display()))
    }

    /// Where its controller listens, on the wide-area network.
    pub fn control_address(&self) -> String {
        format!("{}:{PORT}", self.controller.address4)
    }

    /// The file of the token by which its nodes join.
    pub fn token_file(&self) -> PathBuf {
        self.directory.join("join.token")
    }

    /// All hosts: the controller's first.
    pub fn hosts(&self) -> impl Iterator<Item = &Node> + Clone {
        std::iter::once(&self.controller).chain(&self.nodes)
    }

    /// The sites in order.
    pub fn sites(&self) -> Vec<&str> {
        let mut sites: Vec<_> = self.nodes.iter().map(|node| node.site.as_str()).collect();
        sites.dedup();
        sites
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sites, nodes) = (self.sites().len(), self.nodes.len());
        write!(f, "lab {}: {sites} sites, {nodes} nodes", self.name)
    }
}

impl Node {
    fn new(lab: &str, directory: &Path, (name, site): (&str, &str), last: u8) -> Self {
        Self {
            namespace: format!("{lab}-{name}"),
            directory: directory.join(name),
            name: name.into(),
            site: site.into(),
            // Documentation's addresses (RFC 5737, RFC 3849): nothing outside has them.
            address4: Ipv4Addr::new(192, 0, 2, last),
            address6: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last.into()),
        }
    }

    /// Its run directory, with its sockets and its log.
    pub fn run_dir(&self) -> PathBuf {
        self.directory.join("run")
    }

    /// Its state directory.
    pub fn state_dir(&self) -> PathBuf {
        self.directory.join("state")
    }

    /// Whether it has a certificate of its domain's.
    pub fn has_joined(&self) -> bool {
        let identity = std::fs::read_to_string(self.state_dir().join("domain.identity"));
        identity.is_ok_and(|text| text.contains("\"joined\""))
    }

    /// The socket of its API.
    pub fn socket(&self) -> PathBuf {
        self.run_dir().join("api.sock")
    }
}

fn directory(name: &str) -> PathBuf {
    Path::new(RUN).join(format!("suiro-{name}"))
}

fn file(directory: &Path) -> PathBuf {
    directory.join("layout.json")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn of(sites: u8, nodes: u8) -> Layout {
        Layout::new(&Size { sites, nodes, which: Which { name: "lab".into() } }).unwrap()
    }

    #[test]
    fn three_sites_have_the_nodes_that_the_guides_name() {
        let names: Vec<_> = of(3, 1).nodes.iter().map(|node| node.name.clone()).collect();
        assert_eq!(names, ["t1", "o1", "s1"]);
        assert_eq!(of(3, 1).to_string(), "lab lab: 3 sites, 3 nodes");
    }

    #[test]
    fn of_the_largest_lab_no_two_nodes_share_anything_and_every_name_has_room() {
        let layout = of(8, 30);
        let distinct =
            |of: fn(&Node) -> String| layout.nodes.iter().map(of).collect::<BTreeSet<_>>().len();
        assert_eq!(distinct(|node| node.namespace.clone()), 240);
        assert_eq!(distinct(|node| node.address4.to_string()), 240);
        assert_eq!(distinct(|node| node.address6.to_string()), 240);
        assert!(layout.nodes.iter().all(|node| node.name.len() + 2 <= 15));
    }
}
