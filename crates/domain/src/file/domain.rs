//! The operator's domain, as its file says it: where things can be, what joins them, and what each tenant may have.

use super::slice::{GuestKind, Named};
use crate::words::{Cpu, Delay, Name, Size};
use api::{IfName, Rate};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// The domain.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DomainSpec {
    /// The file's version: `domain/1`.
    pub suiro: String,
    /// Places.
    pub sites: Named<Site>,
    /// What joins nodes.
    #[serde(default)]
    pub underlays: Named<Underlay>,
    /// Stretches of underlay between two sites.
    #[serde(default)]
    pub segments: Named<Segment>,
    /// Hosts.
    #[serde(default)]
    pub nodes: Named<Node>,
    /// Who may have slices.
    #[serde(default)]
    pub tenants: Named<Tenant>,
    /// Doors to outside networks.
    #[serde(default)]
    pub externals: Named<External>,
}

/// A place where nodes are.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Site {}

/// Kinds of underlay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnderlayKind {
    /// VXLAN over IP.
    Vxlan,
}

impl UnderlayKind {
    /// The words users write.
    pub const WORDS: &'static [&'static str] = &["vxlan"];
    /// Words of kinds to come.
    pub const LATER: &'static [&'static str] = &["pbb"];
}

/// Which IP an underlay is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
}

impl Family {
    /// The words users write.
    pub const WORDS: &'static [&'static str] = &["ipv4", "ipv6"];
}

/// How an underlay is sealed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encrypt {
    /// It is not.
    #[default]
    None,
}

impl Encrypt {
    /// The words users write.
    pub const WORDS: &'static [&'static str] = &["none"];
    /// Words of what is to come.
    pub const LATER: &'static [&'static str] = &["esp"];
}

/// What joins nodes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Underlay {
    /// What carries links over it.
    pub kind: UnderlayKind,
    /// Which IP.
    pub family: Family,
    /// The largest packet that it carries.
    pub mtu: u16,
    /// How it is sealed.
    #[serde(default)]
    pub encrypt: Encrypt,
}

impl Underlay {
    /// Bytes that a link's frame grows by, and that two tags take: VXLAN (RFC 7348) over UDP and IP, its inner Ethernet header, two tags.
    pub fn overhead(&self) -> u16 {
        match self.family {
            Family::Ipv4 => 20 + 8 + 8 + 14 + 8,
            Family::Ipv6 => 40 + 8 + 8 + 14 + 8,
        }
    }

    /// The largest MTU that a link over it may have.
    pub fn link_mtu(&self) -> u16 {
        self.mtu.saturating_sub(self.overhead())
    }
}

/// A stretch of underlay between two sites.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    /// Its sites.
    pub between: [Name; 2],
    /// Of which underlay.
    pub underlay: Name,
    /// Bit/s each way.
    pub capacity: Rate,
    /// Time that frames take, one way.
    pub delay: Delay,
    /// What paths over it cost.
    #[serde(default = "cost")]
    pub cost: u32,
    /// What fails together with others of the same word.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub risk: Vec<Name>,
}

/// Chosen: room for cheaper and dearer ones.
fn cost() -> u32 {
    10
}

/// A host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Where it is.
    pub site: Name,
    /// How it is joined with each underlay.
    #[serde(default)]
    pub underlay: Named<Attachment>,
    /// What suiro and the host keep.
    #[serde(default)]
    pub reserve: Reserve,
    /// Kinds of guest that it may have; all that it proved when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<GuestKind>>,
}

/// How a node is joined with an underlay.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attachment {
    /// Its addresses there; the first is the one that others send to.
    pub addresses: Vec<IpAddr>,
    /// The interface that has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<IfName>,
}

/// What suiro and the host keep of a node.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reserve {
    /// Cores.
    pub cpu: Cpu,
    /// Memory.
    pub memory: Size,
}

/// Who may have slices.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tenant {
    /// What all its slices may use together.
    pub quota: Quota,
    /// Who belongs to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<Name>,
    /// Hosts outside that its switches may have as controllers: names or addresses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub controllers: Vec<String>,
}

/// What all slices of a tenant may use together; what is left out has no bound.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Quota {
    /// Guests.
    pub guests: GuestQuota,
    /// Sum of links between nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Slices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slices: Option<u32>,
    /// Switches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switches: Option<u32>,
    /// Links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<u32>,
}

/// Sums over a tenant's guests.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GuestQuota {
    /// Shares of cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpu>,
    /// Memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Size>,
}

/// A door to an outside network: an interface of a node, or one VLAN of it. One slice at a time has it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct External {
    /// The node that has the interface.
    pub node: Name,
    /// The interface. It carries nothing but doors.
    pub interface: IfName,
    /// The VLAN of it (IEEE 802.1Q); all its frames when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// Tenants that may use it.
    #[serde(default)]
    pub tenants: Vec<Name>,
    /// Bit/s each way.
    pub rate: Rate,
    /// Bytes behind the Ethernet header that the outside carries, beside the VLAN's tag.
    #[serde(default = "external_mtu")]
    pub mtu: u16,
}

/// Ethernet's own.
fn external_mtu() -> u16 {
    super::slice::LINK_MTU
}

impl DomainSpec {
    /// Nodes of a site.
    pub fn nodes_at<'a>(&'a self, site: &'a Name) -> impl Iterator<Item = (&'a Name, &'a Node)> {
        self.nodes.iter().filter(move |(_, node)| node.site == *site)
    }
}
