//! Ports: what may be asked of one, what may change, and what is shown.
//!
//! Each kind has a file with its struct and its table of keys. [`PortSpec::read`] reads a port by those tables, whoever brings it:
//! the configuration file, the API, the store or the command line.

mod af_packet;
mod af_xdp;
mod changes;
mod driver;
mod patch;
mod read;
#[cfg(test)]
mod reference;
mod schema;
mod sealing;
mod shared;
mod tap;
mod tunnel;
mod vhost_user;
mod view;
mod vlink;
mod vxlan;

pub use af_packet::AfPacket;
pub use af_xdp::{AfXdp, XdpMode};
pub use changes::live_keys;
pub use driver::{FrontEndErrorView, FrontEndView, MemoryView, RingView};
pub use patch::{NONE, PortPatch};
pub use read::Reading;
pub use sealing::SealCore;
pub use tap::Tap;
pub use tunnel::{Addresses, FlowId, Forwarding, Remote, TunnelKey};
pub use vhost_user::VhostUser;
pub use view::{ForwardingView, PortCountersView, PortView, QueueView, SaView, SealingView};
pub use vlink::Vlink;
pub use vxlan::Vxlan;

use crate::key::{Form, Key, Keys, stands_for};
use crate::{IfName, Mac, Netns, Peer, PortName, PortNumber, QueueSpec, Rate, SocketPath};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Least MTU: IPv4's (RFC 791).
const MTU_MIN: u64 = 68;
/// Largest MTU: a 64 KiB frame.
const MTU_MAX: u64 = 65_521;
/// Most receive queues of one port. Chosen: above the cores of any host that suiro meets.
const RX_QUEUES_MAX: u16 = 256;

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
    /// Every kind.
    pub const ALL: [Self; 6] =
        [Self::Tap, Self::AfPacket, Self::AfXdp, Self::Vlink, Self::VhostUser, Self::Vxlan];
    /// The words users write, in the order of [`Self::ALL`].
    pub const WORDS: &'static [&'static str] =
        &["tap", "af_packet", "af_xdp", "vlink", "vhost-user", "vxlan"];

    /// Finds the kind of a word.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// The word.
    pub fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }

    /// Keys that ports of this kind have beside [`COMMON`].
    pub fn keys(self) -> &'static [Key] {
        match self {
            Self::Tap => tap::KEYS,
            Self::AfPacket => af_packet::KEYS,
            Self::AfXdp => af_xdp::KEYS,
            Self::Vlink => vlink::KEYS,
            Self::VhostUser => vhost_user::KEYS,
            Self::Vxlan => vxlan::KEYS,
        }
    }

    /// Finds a key of ports of this kind.
    pub fn key(self, name: &str) -> Option<&'static Key> {
        COMMON.iter().chain(self.keys()).find(|key| key.name == name)
    }
}

/// What a key says: each text that some kind has for it, with the kinds that have that text.
pub fn port_help(name: &str) -> Vec<(&'static str, Vec<PortKind>)> {
    let mut texts: Vec<(&'static str, Vec<PortKind>)> = Vec::new();
    for kind in PortKind::ALL {
        let Some(key) = kind.key(name) else { continue };
        match texts.iter_mut().find(|(text, _)| *text == key.help) {
            Some((_, kinds)) => kinds.push(kind),
            None => texts.push((key.help, vec![kind])),
        }
    }
    texts
}

/// Keys that ports of every kind have.
pub const COMMON: &[Key] = &[
    Key::new(
        "name",
        Form::Text(stands_for::<PortName>),
        "NAME",
        "Name, unique in the switch; the interface's name when left out",
    ),
    Key::new("type", Form::Word(PortKind::WORDS), "TYPE", "Kind of port"),
    Key::new(
        "number",
        Form::TextOrNumber(stands_for::<PortNumber>),
        "NUMBER",
        "OpenFlow number, or local for the switch's local port; the next that no port has had when left out",
    ),
    Key::new(
        "mtu",
        Form::Number(MTU_MIN..=MTU_MAX),
        "BYTES",
        "MTU to set, of vhost-user ports the most that a guest may be told; nothing is set when left out",
    )
    .live(),
    Key::new(
        "rate",
        Form::TextOrNumber(stands_for::<Rate>),
        "RATE",
        "Bit/s that leave by the port in all, such as 1G; no limit when left out",
    )
    .live(),
    Key::new("queue", Form::Tables, "", "Queues that packets wait in which leave by the port; one for all when left out")
        .live(),
];

/// A port as a user wants it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "Keys", into = "Keys")]
pub struct PortSpec {
    /// Its name, unique in the switch.
    pub name: PortName,
    /// Its OpenFlow number; the next one that no port has had when left out.
    pub number: Option<PortNumber>,
    /// MTU to set; left as it is otherwise.
    pub mtu: Option<u32>,
    /// Bit/s that leave by it in all; what the interface can do when left out.
    pub rate: Option<Rate>,
    /// Queues that packets wait in which leave by it.
    pub queue: Vec<QueueSpec>,
    /// What it is.
    pub kind: Kind,
}

/// What a port is, and what only such ports have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A TAP interface that suiro makes.
    Tap(Tap),
    /// An existing interface, by packet socket.
    AfPacket(AfPacket),
    /// An existing interface, by XDP.
    AfXdp(AfXdp),
    /// One end of a link to another switch.
    Vlink(Vlink),
    /// A virtual machine.
    VhostUser(VhostUser),
    /// Another host.
    Vxlan(Box<Vxlan>),
}

impl Kind {
    /// Its name without what belongs to it.
    pub fn kind(&self) -> PortKind {
        match self {
            Self::Tap(_) => PortKind::Tap,
            Self::AfPacket(_) => PortKind::AfPacket,
            Self::AfXdp(_) => PortKind::AfXdp,
            Self::Vlink(_) => PortKind::Vlink,
            Self::VhostUser(_) => PortKind::VhostUser,
            Self::Vxlan(_) => PortKind::Vxlan,
        }
    }
}

impl PortSpec {
    /// A port of that name, nothing else said.
    pub fn new(name: PortName, kind: Kind) -> Self {
        Self { name, number: None, mtu: None, rate: None, queue: Vec::new(), kind }
    }

    /// Its kernel interface: the one given, or the one of the port's name; only some kinds have one.
    pub fn interface(&self) -> Option<IfName> {
        let given = match &self.kind {
            Kind::Tap(tap) => &tap.interface,
            Kind::AfPacket(packet) => &packet.interface,
            Kind::AfXdp(xdp) => &xdp.interface,
            Kind::Vlink(_) | Kind::VhostUser(_) | Kind::Vxlan(_) => return None,
        };
        given.clone().or_else(|| self.name.parse().ok())
    }

    /// The network namespace of its interface, or that its tunnel goes out from; the node's own when left out.
    pub fn netns(&self) -> Option<&Netns> {
        match &self.kind {
            Kind::Tap(tap) => tap.netns.as_ref(),
            Kind::AfPacket(packet) => packet.netns.as_ref(),
            Kind::AfXdp(xdp) => xdp.netns.as_ref(),
            Kind::Vxlan(tunnel) => tunnel.netns.as_ref(),
            Kind::Vlink(_) | Kind::VhostUser(_) => None,
        }
    }

    /// Its receive queues, or queue pairs, if a number of them is asked for.
    pub fn queues(&self) -> Option<u16> {
        match &self.kind {
            Kind::Tap(tap) => tap.queues,
            Kind::AfPacket(packet) => packet.queues,
            Kind::AfXdp(xdp) => xdp.queues,
            Kind::VhostUser(guest) => guest.queues,
            Kind::Vxlan(tunnel) => tunnel.queues,
            Kind::Vlink(_) => None,
        }
    }

    /// The MAC address asked for.
    pub fn mac(&self) -> Option<&Mac> {
        match &self.kind {
            Kind::Tap(tap) => tap.mac.as_ref(),
            Kind::VhostUser(guest) => guest.mac.as_ref(),
            Kind::Vxlan(tunnel) => tunnel.mac.as_ref(),
            Kind::AfPacket(_) | Kind::AfXdp(_) | Kind::Vlink(_) => None,
        }
    }

    /// The other end of a vlink.
    pub fn peer(&self) -> Option<&Peer> {
        match &self.kind {
            Kind::Vlink(vlink) => Some(&vlink.peer),
            _ => None,
        }
    }

    /// The socket shared with a guest's front-end.
    pub fn socket(&self) -> Option<&SocketPath> {
        match &self.kind {
            Kind::VhostUser(guest) => Some(&guest.socket),
            _ => None,
        }
    }

    /// The tunnel to another host.
    pub fn tunnel(&self) -> Option<&Vxlan> {
        match &self.kind {
            Kind::Vxlan(tunnel) => Some(tunnel),
            _ => None,
        }
    }
}
