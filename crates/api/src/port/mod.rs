//! Ports: what may be asked of one, what may change, and what is shown.

mod guest;
mod sealing;
mod tunnel;
mod view;

pub use guest::{GuestErrorView, GuestView, MemoryView, RingView};
pub use sealing::SealCore;
pub use tunnel::{Addresses, FlowId, Forwarding, Remote, TunnelKey};
pub use view::{ForwardingView, PortCountersView, PortView, QueueView, SaView, SealingView};

use crate::{
    Dscp, IfName, KeyPath, Mac, Netns, NewRate, Peer, PortName, PortNumber, QueueSpec, Rate,
    SocketPath,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Least MTU: IPv4's (RFC 791).
pub const MTU_MIN: u32 = 68;
/// Largest MTU: a 64 KiB frame.
pub const MTU_MAX: u32 = 65_521;
/// Most receive queues of one port. Chosen: above the cores of any host that suiro meets.
pub const RX_QUEUES_MAX: u16 = 256;
/// Most queue pairs of a vhost-user port: its protocol names a ring by 8 bits, and a pair has two.
pub const PAIRS_MAX: u16 = 128;

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
    /// A virtual machine's memory, by the vhost-user protocol.
    #[serde(rename = "vhost-user")]
    VhostUser,
    /// Another host, by VXLAN over this one's own network.
    Vxlan,
}

impl PortKind {
    /// The words users write.
    pub const WORDS: &'static [&'static str] =
        &["tap", "af_packet", "af_xdp", "vlink", "vhost-user", "vxlan"];

    /// The kind of that word.
    pub fn of(word: &str) -> Option<Self> {
        match word {
            "tap" => Some(Self::Tap),
            "af_packet" => Some(Self::AfPacket),
            "af_xdp" => Some(Self::AfXdp),
            "vlink" => Some(Self::Vlink),
            "vhost-user" => Some(Self::VhostUser),
            "vxlan" => Some(Self::Vxlan),
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
            Self::VhostUser => "vhost-user",
            Self::Vxlan => "vxlan",
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
    /// Its OpenFlow number, 1 to 65279, or `local` for the switch's local port (`OFPP_LOCAL`); the next one that no port has had when left out: it rotates, and passes over what flows and groups still name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<PortNumber>,
    /// MTU to set; left as it is otherwise. Of `vhost-user`: the most that a guest may be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// MAC address of the guest's side (`tap`), or the one that controllers see (`vhost-user`; the guest's own is its front-end's to set).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<Mac>,
    /// Number of receive queues; when left out one, and for `af_xdp` all that the interface has. Of `vhost-user`: the most queue pairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queues: Option<u16>,
    /// Which XDP attachment (`af_xdp` only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xdp_mode: Option<XdpMode>,
    /// Whether it may take an interface that the host itself uses, which the host then loses; `false` when left out (`af_packet` and `af_xdp` only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub take_over: Option<bool>,
    /// Whether the host's own stack receives the interface's frames, too; `false` when left out (`af_packet` and `af_xdp` only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<bool>,
    /// The other end (`vlink` only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<Peer>,
    /// The socket shared with the guest's front-end (`vhost-user` only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<SocketPath>,
    /// Whether suiro listens on it and the front-end calls (`vhost-user` only); the other way round when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<bool>,
    /// The address of the tunnel's other end; of several the first, and what comes from the others is the tunnel's too; or `flow` for the end
    /// that rules choose for each frame, by `tun_dst` (`vxlan` only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<Remote>,
    /// The address of its near end; of several one for each group of flows; the one of the route when left out (`vxlan` only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<Addresses>,
    /// The tunnel's key: a VNI, 0 to 16777215, or `flow` for the tunnel id of each frame (`vxlan` only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<TunnelKey>,
    /// How a flow shows outside, beside the UDP source port (`vxlan` only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_id: Option<FlowId>,
    /// The UDP port of both ends; 4789 when left out (`vxlan` only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp_port: Option<u16>,
    /// The DSCP outside: 0 to 63, or `uniform` for the inner packet's; 0 when left out (`vxlan` only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dscp: Option<Dscp>,
    /// TTL or hop limit outside; 64 when left out (`vxlan` only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u8>,
    /// Whether the MSS that TCP offers is lowered, both ways, to what the path carries (`vxlan` only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mss_clamp: Option<bool>,
    /// Whether the outer UDP header has a checksum; `true` when left out. With `false` none is sent and, over IPv6 too, none asked for
    /// (`vxlan` only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outer_checksum: Option<bool>,
    /// Who carries its packets between the port and the network: the kernel, or suiro past it, where the kernel's route to the other end leaves by a
    /// TAP of one of its switches; `kernel` when left out (`vxlan` only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forwarding: Option<Forwarding>,
    /// The file of the keys that it is encrypted with (ESP, AES-GCM), to be read by its owner alone; not encrypted when left out (`vxlan`
    /// only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypt: Option<KeyPath>,
    /// Where its packets are encrypted: on a core that a thread of their own is kept on, `auto` for one that has no worker and no guest, or
    /// `with-forwarding`, which it is when left out (`vxlan` with `encrypt` only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal_core: Option<SealCore>,
    /// Bit/s that leave by it in all; what the interface can do when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// What packets wait in that leave by it, with rates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queue: Vec<QueueSpec>,
}

/// Something wrong with one key of a [`PortSpec`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyFault {
    /// The key.
    pub key: &'static str,
    /// What is wrong.
    pub cause: String,
    /// What to do.
    pub remedy: String,
}

impl KeyFault {
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
            take_over: None,
            host: None,
            peer: None,
            socket: None,
            server: None,
            remote: None,
            local: None,
            key: None,
            flow_id: None,
            udp_port: None,
            dscp: None,
            ttl: None,
            mss_clamp: None,
            outer_checksum: None,
            forwarding: None,
            encrypt: None,
            seal_core: None,
            rate: None,
            queue: Vec::new(),
        }
    }

    /// The port's name: the one given, or the interface's where that is a port name too.
    pub fn effective_name(&self) -> Option<PortName> {
        self.name.clone().or_else(|| self.interface.as_deref()?.parse().ok())
    }

    /// The interface: the one given, or the one of the port's name; a vlink, a vhost-user and a vxlan port have none.
    pub fn effective_interface(&self) -> Option<IfName> {
        let has_one = matches!(self.kind, PortKind::Tap | PortKind::AfPacket | PortKind::AfXdp);
        let named_alike = || has_one.then(|| self.name.as_deref()?.parse().ok()).flatten();
        self.interface.clone().or_else(named_alike)
    }

    /// Everything wrong with the port taken alone.
    pub fn faults(&self) -> Vec<KeyFault> {
        let mut faults = Vec::new();
        self.check_naming(&mut faults);
        self.check_kind(&mut faults);
        tunnel::check(self, &mut faults);
        self.check_ranges(&mut faults);
        self.check_queues(&mut faults);
        faults
    }

    fn check_naming(&self, faults: &mut Vec<KeyFault>) {
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
        faults.push(KeyFault::new("name", cause, remedy));
    }

    fn check_kind(&self, faults: &mut Vec<KeyFault>) {
        let kind = self.kind.word();
        let mut only = |present: bool, key: &'static str, owners: &[PortKind]| {
            if present && !owners.contains(&self.kind) {
                let words: Vec<_> = owners.iter().map(|owner| owner.word()).collect();
                let remedy = format!("remove it, or make the port one of: {}", words.join(", "));
                faults.push(KeyFault::new(
                    key,
                    format!("`{key}` means nothing on a port of type {kind}"),
                    remedy,
                ));
            }
        };
        let kernel = [PortKind::Tap, PortKind::AfPacket, PortKind::AfXdp];
        only(self.interface.is_some(), "interface", &kernel);
        let in_namespaces = [&kernel[..], &[PortKind::Vxlan]].concat();
        only(self.netns.is_some(), "netns", &in_namespaces);
        let queued = [&in_namespaces[..], &[PortKind::VhostUser]].concat();
        only(self.queues.is_some(), "queues", &queued);
        only(self.mac.is_some(), "mac", &[PortKind::Tap, PortKind::VhostUser, PortKind::Vxlan]);
        only(self.xdp_mode.is_some(), "xdp_mode", &[PortKind::AfXdp]);
        only(self.take_over.is_some(), "take_over", &[PortKind::AfPacket, PortKind::AfXdp]);
        only(self.host.is_some(), "host", &[PortKind::AfPacket, PortKind::AfXdp]);
        only(self.peer.is_some(), "peer", &[PortKind::Vlink]);
        only(self.socket.is_some(), "socket", &[PortKind::VhostUser]);
        only(self.server.is_some(), "server", &[PortKind::VhostUser]);
        let tunnel = [PortKind::Vxlan];
        only(self.remote.is_some(), "remote", &tunnel);
        only(self.local.is_some(), "local", &tunnel);
        only(self.key.is_some(), "key", &tunnel);
        only(self.flow_id.is_some(), "flow_id", &tunnel);
        only(self.udp_port.is_some(), "udp_port", &tunnel);
        only(self.dscp.is_some(), "dscp", &tunnel);
        only(self.ttl.is_some(), "ttl", &tunnel);
        only(self.mss_clamp.is_some(), "mss_clamp", &tunnel);
        only(self.outer_checksum.is_some(), "outer_checksum", &tunnel);
        only(self.forwarding.is_some(), "forwarding", &tunnel);
        only(self.encrypt.is_some(), "encrypt", &tunnel);
        only(self.seal_core.is_some(), "seal_core", &tunnel);
        if self.kind == PortKind::Vlink && self.peer.is_none() {
            faults.push(KeyFault::new(
                "peer",
                "a vlink has two ends and one is missing",
                "add peer = \"SWITCH:PORT\"",
            ));
        }
        if self.kind == PortKind::VhostUser && self.socket.is_none() {
            faults.push(KeyFault::new(
                "socket",
                "a vhost-user port needs the socket that it shares with the guest",
                "add socket = \"/run/suiro/NAME.sock\"",
            ));
        }
    }

    fn check_ranges(&self, faults: &mut Vec<KeyFault>) {
        let mut within = |key: &'static str, value: Option<u32>, low: u32, high: u32| {
            if let Some(value) = value.filter(|value| !(low..=high).contains(value)) {
                let cause = format!("{value} is outside {low} to {high}");
                faults.push(KeyFault::new(
                    key,
                    cause,
                    format!("choose a {key} from {low} to {high}"),
                ));
            }
        };
        within("mtu", self.mtu, MTU_MIN, MTU_MAX);
        let queues_max = if self.kind == PortKind::VhostUser { PAIRS_MAX } else { RX_QUEUES_MAX };
        within("queues", self.queues.map(u32::from), 1, queues_max.into());
        within("udp_port", self.udp_port.map(u32::from), 1, u16::MAX.into());
        within("ttl", self.ttl.map(u32::from), 1, u8::MAX.into());
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
    /// `true`: the file of a tunnel's keys is read again. SAs that it still has go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rekey: Option<bool>,
    /// Where an encrypted tunnel's packets are encrypted from now on; `auto` chooses anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal_core: Option<SealCore>,
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
    fn a_vhost_user_port_needs_a_socket_and_has_no_interface() {
        let mut spec = PortSpec::of(PortKind::VhostUser);
        spec.name = Some("vm1".parse().unwrap());
        spec.queues = Some(129);
        assert_eq!(keys(&spec), ["socket", "queues"]);
        spec.socket = Some("/run/vm1.sock".parse().unwrap());
        spec.queues = Some(128);
        assert_eq!(keys(&spec), [""; 0]);
        assert_eq!(spec.effective_interface(), None);
        spec.kind = PortKind::Tap;
        assert_eq!(keys(&spec), ["socket"]);
    }

    #[test]
    fn a_tunnel_needs_its_other_end_and_its_key() {
        let mut spec = PortSpec::of(PortKind::Vxlan);
        spec.name = Some("tun0".parse().unwrap());
        spec.dscp = Some("46".parse().unwrap());
        assert_eq!(keys(&spec), ["remote", "key"]);
        (spec.remote, spec.local) = ("2001:db8::2".parse().ok(), "192.0.2.1".parse().ok());
        spec.key = Some(TunnelKey::Vni(7));
        assert_eq!(keys(&spec), ["local"]);
        spec.local = None;
        assert_eq!(keys(&spec), [""; 0]);
        assert_eq!(spec.effective_interface(), None);
        spec.kind = PortKind::Tap;
        assert_eq!(keys(&spec), ["remote", "key", "dscp"]);
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
