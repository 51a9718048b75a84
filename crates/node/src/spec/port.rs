//! What a user may ask of a port.

use super::text::{IfName, Mac, Netns, Peer, PortName};
use super::{NewRate, PortNumber, QueueSpec, Rate};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Least MTU: IPv4's (RFC 791).
pub const MTU_MIN: u32 = 68;
/// Largest MTU: a 64 KiB frame.
pub const MTU_MAX: u32 = 65_521;
/// Most receive queues of one port. Chosen: above the cores of any host that suiro meets.
pub const QUEUES_MAX: u16 = 256;

/// The kinds of port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PortKind {
    /// A TAP interface that suiro makes, in the node's or in a guest's network namespace.
    Tap,
    /// An existing interface, by packet socket: works everywhere.
    AfPacket,
    /// An existing interface, by XDP.
    AfXdp,
    /// One end of a link to another switch of this node.
    Vlink,
}

impl PortKind {
    /// The words users write.
    pub const WORDS: &'static [&'static str] = &["tap", "af_packet", "af_xdp", "vlink"];

    /// The kind of that word.
    pub fn of(word: &str) -> Option<Self> {
        match word {
            "tap" => Some(Self::Tap),
            "af_packet" => Some(Self::AfPacket),
            "af_xdp" => Some(Self::AfXdp),
            "vlink" => Some(Self::Vlink),
            _ => None,
        }
    }

    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Tap => "tap",
            Self::AfPacket => "af_packet",
            Self::AfXdp => "af_xdp",
            Self::Vlink => "vlink",
        }
    }
}

/// Which XDP attachment an `af_xdp` port may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum XdpMode {
    /// The best one that works; the port's notes say which faster one is missing and why.
    #[default]
    Auto,
    /// Native, with zero copy.
    ZeroCopy,
    /// Native, with a copy.
    Native,
    /// Generic: any driver.
    Generic,
}

impl XdpMode {
    /// The words users write.
    pub const WORDS: &'static [&'static str] = &["auto", "zero-copy", "native", "generic"];

    /// The mode of that word.
    pub fn of(word: &str) -> Option<Self> {
        match word {
            "auto" => Some(Self::Auto),
            "zero-copy" => Some(Self::ZeroCopy),
            "native" => Some(Self::Native),
            "generic" => Some(Self::Generic),
            _ => None,
        }
    }
}

/// A port as a user wants it. Which keys belong to which kind: [`PortSpec::faults`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PortSpec {
    /// Its name, unique in the switch; the interface's name when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<PortName>,
    /// Its kind.
    #[serde(rename = "type")]
    pub kind: PortKind,
    /// The interface, for `tap` the one to make; the one of the port's name when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<IfName>,
    /// The network namespace of the interface; the node's own when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netns: Option<Netns>,
    /// Its OpenFlow number, 1 to 65279, or `local` for the switch's local port (`OFPP_LOCAL`); the lowest free one when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<PortNumber>,
    /// MTU to set; left as it is otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// MAC address of the guest's side (`tap` only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<Mac>,
    /// Number of receive queues; when left out one, and for `af_xdp` all that the interface has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queues: Option<u16>,
    /// Which XDP attachment (`af_xdp` only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xdp_mode: Option<XdpMode>,
    /// The other end (`vlink` only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<Peer>,
    /// Bit/s that leave by it in all; what the interface can do when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// What packets wait in that leave by it, with rates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queue: Vec<QueueSpec>,
}

/// Something wrong with one key of a [`PortSpec`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The key.
    pub key: &'static str,
    /// What is wrong.
    pub cause: String,
    /// What to do.
    pub remedy: String,
}

impl Fault {
    pub(super) fn new(
        key: &'static str,
        cause: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { key, cause: cause.into(), remedy: remedy.into() }
    }
}

impl PortSpec {
    /// A port of a kind, nothing else said.
    pub fn of(kind: PortKind) -> Self {
        Self {
            name: None,
            kind,
            interface: None,
            netns: None,
            number: None,
            mtu: None,
            mac: None,
            queues: None,
            xdp_mode: None,
            peer: None,
            rate: None,
            queue: Vec::new(),
        }
    }

    /// The port's name: the one given, or the interface's where that is a port name too.
    pub fn effective_name(&self) -> Option<PortName> {
        self.name.clone().or_else(|| self.interface.as_deref()?.parse().ok())
    }

    /// The interface: the one given, or the one of the port's name; a vlink has none.
    pub fn effective_interface(&self) -> Option<IfName> {
        let named_alike =
            || (self.kind != PortKind::Vlink).then(|| self.name.as_deref()?.parse().ok()).flatten();
        self.interface.clone().or_else(named_alike)
    }

    /// Everything wrong with the port taken alone.
    pub fn faults(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        self.check_naming(&mut faults);
        self.check_kind(&mut faults);
        self.check_ranges(&mut faults);
        self.check_queues(&mut faults);
        faults
    }

    fn check_naming(&self, faults: &mut Vec<Fault>) {
        if self.effective_name().is_some() {
            return;
        }
        let (cause, remedy) = match &self.interface {
            Some(interface) => (
                format!("interface {interface} cannot name the port"),
                "give the port a name of its own",
            ),
            None => ("the port has no name".into(), "add name = \"...\""),
        };
        faults.push(Fault::new("name", cause, remedy));
    }

    fn check_kind(&self, faults: &mut Vec<Fault>) {
        let kind = self.kind.word();
        let mut only = |present: bool, key: &'static str, owners: &[PortKind]| {
            if present && !owners.contains(&self.kind) {
                let words: Vec<_> = owners.iter().map(|owner| owner.word()).collect();
                let remedy = format!("remove it, or make the port one of: {}", words.join(", "));
                faults.push(Fault::new(
                    key,
                    format!("`{key}` means nothing on a port of type {kind}"),
                    remedy,
                ));
            }
        };
        let kernel = [PortKind::Tap, PortKind::AfPacket, PortKind::AfXdp];
        only(self.interface.is_some(), "interface", &kernel);
        only(self.netns.is_some(), "netns", &kernel);
        only(self.queues.is_some(), "queues", &kernel);
        only(self.mac.is_some(), "mac", &[PortKind::Tap]);
        only(self.xdp_mode.is_some(), "xdp_mode", &[PortKind::AfXdp]);
        only(self.peer.is_some(), "peer", &[PortKind::Vlink]);
        if self.kind == PortKind::Vlink && self.peer.is_none() {
            faults.push(Fault::new(
                "peer",
                "a vlink has two ends and one is missing",
                "add peer = \"SWITCH:PORT\"",
            ));
        }
    }

    fn check_ranges(&self, faults: &mut Vec<Fault>) {
        let mut within = |key: &'static str, value: Option<u32>, low: u32, high: u32| {
            if let Some(value) = value.filter(|value| !(low..=high).contains(value)) {
                let cause = format!("{value} is outside {low} to {high}");
                faults.push(Fault::new(key, cause, format!("choose a {key} from {low} to {high}")));
            }
        };
        within("mtu", self.mtu, MTU_MIN, MTU_MAX);
        within("queues", self.queues.map(u32::from), 1, QUEUES_MAX.into());
    }
}

/// Changes to a port; what is left out stays.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PortPatch {
    /// MTU to set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// Administrative state: `false` is `OFPPC_PORT_DOWN`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<bool>,
    /// Bit/s that leave by it in all, or `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<NewRate>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(spec: &PortSpec) -> Vec<&'static str> {
        spec.faults().iter().map(|fault| fault.key).collect()
    }

    #[test]
    fn all_faults_of_a_port_are_found_at_once() {
        let mut spec = PortSpec::of(PortKind::Vlink);
        spec.interface = Some("eth0".parse().unwrap());
        spec.mtu = Some(10);
        assert_eq!(keys(&spec), ["interface", "peer", "mtu"]);
    }

    #[test]
    fn a_port_needs_only_a_name() {
        let mut spec = PortSpec::of(PortKind::Tap);
        assert_eq!(keys(&spec), ["name"]);
        spec.name = Some("guest1".parse().unwrap());
        assert_eq!(spec.faults(), []);
        assert_eq!(spec.effective_interface().as_deref(), Some("guest1"));
    }

    #[test]
    fn an_interface_name_that_is_no_port_name_needs_another_one() {
        let mut spec = PortSpec::of(PortKind::AfPacket);
        spec.interface = Some("veth@x".parse().unwrap());
        assert_eq!(keys(&spec), ["name"]);
        spec.name = Some("guest1".parse().unwrap());
        assert_eq!(keys(&spec), [""; 0]);
    }
}
