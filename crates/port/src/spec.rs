//! What a port shall be: the values that configuration hands to [`crate::open()`].

use crate::fitness::Receives;
use crate::netns::NetnsRef;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use vhost::Role;
use wire::tunnel::{Dscp, VXLAN_PORT, Vxlan};

/// The port that is wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortSpec {
    /// By which door.
    pub kind: PortKind,
    /// The kernel interface's name, at most 15 bytes; of a port that has none, the port's own.
    pub interface: String,
    /// The namespace where the interface is (or, for a TAP, shall be), or that a tunnel goes out from; `None` is the node's own.
    pub netns: Option<NetnsRef>,
    /// Rx queues wanted, of a vhost-user port the most pairs. 0: one, but for AF_XDP all that the interface has (whose other
    /// queues' frames would pass suiro by).
    pub queues: u16,
    /// MTU to set; `None` leaves the interface's.
    pub mtu: Option<u32>,
    /// MAC address to set; `None` leaves the interface's.
    pub mac: Option<[u8; 6]>,
    /// The AF_XDP mode wanted; other kinds ignore it.
    pub xdp_mode: XdpMode,
    /// Whether AF_PACKET and AF_XDP may take an interface that the host itself uses; other kinds ignore it.
    pub take_over: bool,
    /// The host's own stack receives the interface's frames, too.
    pub host: bool,
    /// The socket that a vhost-user port shares with the front-end; other kinds ignore it.
    pub socket: PathBuf,
    /// Who listens on it.
    pub role: Role,
    /// The tunnel of a VXLAN port; other kinds have none.
    pub tunnel: Option<Tunnel>,
    /// The file of keys that a tunnel is encrypted with; `None`: it is not.
    pub encrypt: Option<PathBuf>,
    /// Where its packets are sealed then.
    pub seal_on: SealOn,
}

/// Where an encrypted port's packets are sealed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SealOn {
    /// The core of a thread of their own; `None`: each packet where its frame is forwarded.
    pub core: Option<usize>,
    /// For people.
    pub why: String,
}

impl Default for SealOn {
    fn default() -> Self {
        Self { core: None, why: "as usual".into() }
    }
}

/// A tunnel to one other end, or to those that rules choose.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tunnel {
    /// The other end: where datagrams go. The unspecified address (`0.0.0.0` or `::`): of each frame the end that rules chose
    /// ([`crate::Ends`]), and received is what anyone sends and no other port has.
    pub remote: IpAddr,
    /// Its other addresses, from which datagrams come as well.
    pub from: Vec<IpAddr>,
    /// This end's addresses, over which flows spread; none: the one of the route.
    pub local: Vec<IpAddr>,
    /// The interface on whose link alone the ends' addresses count (RFC 4007 §11), by name or index: what is sent leaves by it.
    pub zone: Option<String>,
    /// VXLAN network identifier, 24 bits; `None`: of each frame its tunnel id, and received is whatever VNI no other port has.
    pub vni: Option<u32>,
    /// UDP port of both ends.
    pub port: u16,
    /// What becomes of the DSCP, and whether it identifies flows.
    pub dscp: Dscp,
    /// TTL or hop limit of the outer packet.
    pub ttl: u8,
    /// Whether TCP's offers are lowered, both ways, to segments that the path carries.
    pub mss_clamp: bool,
    /// Whether the outer UDP header has a checksum; without one none is asked for either.
    pub checksum: bool,
    /// Who carries its packets between the port and the switch that has the NIC.
    pub forwarding: Forwarding,
}

/// Who carries a tunnel's packets on this host.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Forwarding {
    /// The kernel, by UDP sockets.
    #[default]
    Kernel,
    /// suiro, past the kernel, where the way to the other end leaves by a TAP of one of its switches.
    Own,
}

impl Forwarding {
    /// The name in configuration, API and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Own => "own",
        }
    }
}

impl Tunnel {
    /// To that end, everything else as usual: UDP port 4789, DSCP 0 outside, TTL 64.
    pub fn new(remote: IpAddr, vni: u32) -> Self {
        Self {
            remote,
            from: Vec::new(),
            local: Vec::new(),
            zone: None,
            vni: Some(vni),
            port: VXLAN_PORT,
            dscp: Dscp::Pipe(0),
            ttl: 64,
            mss_clamp: false,
            checksum: true,
            forwarding: Forwarding::Kernel,
        }
    }

    /// Whether each frame has an end of its own.
    pub fn is_flow_based(&self) -> bool {
        self.remote.is_unspecified()
    }

    /// The same tunnel for each family of addresses that it goes over, IPv4 first: that of its ends, and both where nothing tells.
    pub(crate) fn legs(&self) -> Vec<Self> {
        let any: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
        let leg = |remote| Self { remote, ..self.clone() };
        match self.is_flow_based() && self.local.is_empty() {
            true => any.map(leg).into(),
            false => vec![self.clone()],
        }
    }

    /// Every address that datagrams come from.
    pub fn senders(&self) -> Vec<IpAddr> {
        [&[self.remote], &self.from[..]].concat()
    }

    /// Bytes of the headers around a frame: IP, UDP, VXLAN.
    pub fn overhead(&self) -> u32 {
        let ip = if self.remote.is_ipv4() { 20 } else { 40 };
        ip + 8 + Vxlan::LEN as u32
    }
}

impl PortSpec {
    /// A port with everything left to suiro.
    pub fn new(kind: PortKind, interface: impl Into<String>) -> Self {
        let interface = interface.into();
        Self {
            kind,
            interface,
            netns: None,
            queues: 0,
            mtu: None,
            mac: None,
            xdp_mode: XdpMode::Auto,
            take_over: false,
            host: false,
            socket: PathBuf::new(),
            role: Role::Client,
            tunnel: None,
            encrypt: None,
            seal_on: SealOn::default(),
        }
    }

    /// The same port, in a namespace.
    #[must_use]
    pub fn in_netns(mut self, netns: impl Into<NetnsRef>) -> Self {
        self.netns = Some(netns.into());
        self
    }
}

/// The door to the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PortKind {
    /// An interface of ours that a guest uses (`/dev/net/tun`).
    Tap,
    /// Any existing interface, by packet sockets.
    AfPacket,
    /// Any existing interface with XDP, by AF_XDP sockets.
    AfXdp,
    /// A virtual machine's memory, by the vhost-user protocol.
    VhostUser,
    /// Another host, by VXLAN over this one's own network.
    Vxlan,
}

impl PortKind {
    /// The name in configuration, API and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tap => "tap",
            Self::AfPacket => "af_packet",
            Self::AfXdp => "af_xdp",
            Self::VhostUser => "vhost-user",
            Self::Vxlan => "vxlan",
        }
    }
}

impl From<PortKind> for Receives {
    fn from(kind: PortKind) -> Self {
        if kind == PortKind::AfXdp { Self::ByXdp } else { Self::ByPacketSocket }
    }
}

/// How AF_XDP gets its frames.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum XdpMode {
    /// The best that the interface has: zero-copy, else copy, else generic.
    #[default]
    Auto,
    /// The driver's own buffers, or an error.
    ZeroCopy,
    /// The driver's XDP hook and a copy, or an error.
    Native,
    /// The kernel's XDP hook after the driver.
    Generic,
}

impl XdpMode {
    /// The name in configuration, API and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::ZeroCopy => "zero-copy",
            Self::Native => "native",
            Self::Generic => "generic",
        }
    }
}
