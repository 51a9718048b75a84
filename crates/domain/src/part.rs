//! A part as the node takes it: what one slice, or the underlay, is on one node.

use api::{
    CircuitSpec, Controller, Dpid, FailMode, GuestSpec, Netns, PartName, PartText, PortSpec,
    Protocol, SwitchName,
};
use serde::Serialize;

/// The part that every node has beside those of slices: the switch `K`, its tunnels and the port of its prober.
pub const UNDERLAY: &str = "underlay";

/// All of one owner on one node.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Part {
    /// Switches with their ports and rules.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub switch: Vec<PartSwitch>,
    /// Guests and namespaces.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub guest: Vec<GuestSpec>,
    /// Circuits that end here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub circuit: Vec<CircuitSpec>,
}

/// A switch of a part.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PartSwitch {
    /// Its name on the node.
    pub name: SwitchName,
    /// The part that declares it, where this one only adds to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declared_by: Option<PartName>,
    /// Its datapath id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dpid: Option<Dpid>,
    /// What happens to unmatched packets while no controller is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail_mode: Option<FailMode>,
    /// Controllers to call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub controllers: Vec<Controller>,
    /// OpenFlow versions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub protocols: Vec<Protocol>,
    /// Most packets a second sent to controllers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_packet_in_per_s: Option<u32>,
    /// The network namespace that its sessions begin in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_netns: Option<Netns>,
    /// Rules, in `ovs-ofctl`'s syntax.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<String>,
    /// Meters, in the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub meters: Vec<String>,
    /// Ports.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub port: Vec<PortSpec>,
}

impl PartSwitch {
    /// A switch of that name, nothing else said.
    pub fn named(name: SwitchName) -> Self {
        Self {
            name,
            declared_by: None,
            dpid: None,
            fail_mode: None,
            controllers: Vec::new(),
            protocols: Vec::new(),
            max_packet_in_per_s: None,
            session_netns: None,
            flows: Vec::new(),
            meters: Vec::new(),
            port: Vec::new(),
        }
    }
}

impl Part {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// As `PUT /v1/parts/{name}` takes it. Equal parts give equal bytes.
    pub fn text(&self, file: &str) -> PartText {
        let text = toml::to_string(self).expect("a part is tables, lists, texts and numbers");
        PartText { file: Some(file.into()), text }
    }
}
