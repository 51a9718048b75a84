//! What has been decided for one slice: which node each thing is on, by which way each link goes, which ids it has.
//!
//! Spec and decision are the only truth; parts are computed from them.

use crate::file::slice::Named;
use crate::words::{Name, Uid};
use api::IfName;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What has been decided for one slice.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// The life of the slice's name that it belongs to.
    pub uid: Uid,
    /// The node of each switch, guest and external.
    pub nodes: Named<Name>,
    /// Numbers of switches' ports that the file knows by name, such as `s1:up`; kept as long as the name is there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ports: BTreeMap<String, u16>,
    /// Wires that go by the switch `K`, by name: a link's, `guest.port` of a guest that is on another node than its switch, or
    /// `_out.external`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub circuits: BTreeMap<String, Circuit>,
    /// The control network, if any guest is on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Control>,
    /// What each external is on its node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub doors: Named<Door>,
}

/// A door to an outside network, as it was when the slice was admitted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Door {
    /// Its name in the domain. One slice at a time has it.
    pub name: Name,
    /// The interface of its node.
    pub interface: IfName,
    /// The VLAN of that, if it is not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
}

/// A wire that goes by the switch `K`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Circuit {
    /// Tunnel id of its path, even. The odd one above is its probes'.
    pub id: u32,
    /// Bit/s each way that are reserved and enforced.
    pub rate: u64,
    /// Bytes behind the Ethernet header, beside two tags.
    pub mtu: u16,
    /// The node of its first end.
    pub from: Name,
    /// The way from there to the node of its second end; none when that is the same node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<Hop>,
}

/// One hop of a way.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hop {
    /// The node that it leads to.
    pub to: Name,
    /// Over which underlay.
    pub underlay: Name,
    /// By which segment; none within a site.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<Name>,
}

/// A slice's control network: a hidden switch on each node that has members, joined as a star.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Control {
    /// The node in the middle.
    pub hub: Name,
    /// Host numbers of guests, kept as long as they are there.
    pub guests: Named<u16>,
    /// Host numbers of nodes, whose switches' sessions begin there.
    pub nodes: Named<u16>,
}

impl Circuit {
    /// The node of its second end.
    pub fn to(&self) -> &Name {
        self.hops.last().map_or(&self.from, |hop| &hop.to)
    }

    /// Its nodes in order, both ends among them.
    pub fn nodes(&self) -> impl Iterator<Item = &Name> {
        std::iter::once(&self.from).chain(self.hops.iter().map(|hop| &hop.to))
    }
}

impl Decision {
    /// Ids that it uses, with the nodes that have rules of each: what is quarantined when they go.
    pub fn ids(&self) -> BTreeMap<u32, Vec<Name>> {
        self.circuits
            .values()
            .map(|circuit| (circuit.id, circuit.nodes().cloned().collect()))
            .collect()
    }

    /// Every node that has a part of the slice.
    pub fn all_nodes(&self) -> std::collections::BTreeSet<Name> {
        self.nodes
            .values()
            .chain(self.circuits.values().flat_map(Circuit::nodes))
            .cloned()
            .collect()
    }
}
