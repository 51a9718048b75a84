//! A tenant's slice, as its file says it.

use crate::words::{Address, Cpu, Delay, End, Moment, Name, Size, SliceKey};
use api::{Controller, Dpid, FailMode, Mac, Protocol, Rate, Restart};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// By name.
pub type Named<T> = BTreeMap<Name, T>;

/// A slice.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SliceSpec {
    /// The file's version: `slice/1`.
    pub suiro: String,
    /// Its name, unique in its tenant.
    pub name: Name,
    /// Whose it is.
    pub tenant: Name,
    /// Words of the user's own, which nothing reads.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// When it begins; at once when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Moment>,
    /// When it ends; never when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Moment>,
    /// What its things have that say nothing else.
    #[serde(default, skip_serializing_if = "is_default")]
    pub defaults: Defaults,
    /// What it may use in all.
    #[serde(default, skip_serializing_if = "is_default")]
    pub budget: Budget,
    /// Its switches.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub switches: Named<Switch>,
    /// Its guests.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub guests: Named<Guest>,
    /// Its links.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub links: Named<Link>,
    /// Its doors to outside networks.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub externals: Named<Outside>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// What things have that say nothing else.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Defaults {
    /// Switches.
    pub switch: SwitchSettings,
    /// Guests.
    pub guest: GuestSettings,
    /// Links.
    pub link: LinkSettings,
}

/// What a switch may say, and the defaults may say for it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SwitchSettings {
    /// What happens to unmatched packets while no controller is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail_mode: Option<FailMode>,
    /// OpenFlow versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocols: Option<Vec<Protocol>>,
    /// Controllers to call. A host that is a guest's name is that guest, by the control network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controllers: Option<Vec<Controller>>,
}

/// What a guest may say, and the defaults may say for it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GuestSettings {
    /// Share of cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpu>,
    /// Memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Size>,
    /// Processes and threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pids: Option<u32>,
    /// When it is started again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart: Option<Restart>,
}

/// What a link may say, and the defaults may say for it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinkSettings {
    /// Bytes behind the Ethernet header, beside two tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u16>,
    /// Bit/s each way: reserved on the underlay and enforced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
}

/// What a slice may use in all.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Budget {
    /// Guests, summed over all nodes; what they ask for when left out.
    pub guests: GuestBudget,
    /// Sum of all circuits on the underlay, each way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Packets a second and switch that controllers get.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet_ins: Option<u32>,
}

/// Sums over a slice's guests.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GuestBudget {
    /// Shares of cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpu>,
    /// Memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Size>,
    /// Processes and threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pids: Option<u32>,
}

/// Where among a site's nodes a thing is wished.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Wish {
    /// On this node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<Name>,
    /// On the node of that switch or guest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with: Option<Name>,
    /// On another node than those switches and guests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub apart_from: Vec<Name>,
}

/// A switch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// Where it is.
    pub site: Name,
    /// Its datapath id; made from the slice's uid and its name when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpid: Option<Dpid>,
    /// Which node.
    #[serde(default, skip_serializing_if = "is_default")]
    pub place: Wish,
    /// What happens to unmatched packets while no controller is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_mode: Option<FailMode>,
    /// OpenFlow versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocols: Option<Vec<Protocol>>,
    /// Controllers to call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controllers: Option<Vec<Controller>>,
    /// Words of the user's own, which nothing reads: where it is drawn, for instance.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// Kinds of guest.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GuestKind {
    /// A program in a namespace of its own.
    Process,
    /// A port for something that the user brings.
    Port,
}

impl GuestKind {
    /// The words users write.
    pub const WORDS: &'static [&'static str] = &["process", "port"];
    /// Words of kinds to come.
    pub const LATER: &'static [&'static str] = &["container", "vm"];

    /// The word.
    pub fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }
}

/// A guest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guest {
    /// What it is.
    pub kind: GuestKind,
    /// Where it is.
    pub site: Name,
    /// Which node.
    #[serde(default, skip_serializing_if = "is_default")]
    pub place: Wish,
    /// Whether it has the control network, where switches find it by its name.
    #[serde(default, skip_serializing_if = "is_default")]
    pub control: bool,
    /// Words of the user's own, which nothing reads: where it is drawn, for instance.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Program and arguments of a process; none: the namespace alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Files that it finds in `/files`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, FileText>,
    /// Share of cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Cpu>,
    /// Memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Size>,
    /// Processes and threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pids: Option<u32>,
    /// When it is started again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<Restart>,
    /// Its ports.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ports: Named<GuestPort>,
}

/// A file of a guest: what the client read, or still where it is.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
pub enum FileText {
    /// Beside the slice's file; the client sends its text in place of this.
    From(String),
    /// Its text.
    Text(String),
}

/// Kinds of a guest's port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum PortType {
    /// An interface.
    #[serde(rename = "tap")]
    Tap,
    /// Shared memory, by the vhost-user protocol.
    #[serde(rename = "vhost-user")]
    VhostUser,
}

impl PortType {
    /// The words users write.
    pub const WORDS: &'static [&'static str] = &["tap", "vhost-user"];
}

/// A guest's port.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GuestPort {
    /// The switch's port that it is. None: a link names it as an end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<End>,
    /// Addresses of a process's interface.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<Address>,
    /// Its MAC address; made from the slice's uid when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<Mac>,
    /// What it is; an interface when left out.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<PortType>,
    /// Name of the socket of a `vhost-user` port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket: Option<String>,
    /// Queue pairs of a `vhost-user` port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queues: Option<u16>,
}

/// A link.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Its ends.
    pub between: [End; 2],
    /// Bit/s each way: reserved on the underlay and enforced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Bytes behind the Ethernet header, beside two tags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u16>,
    /// Longest time that the underlay may take, one way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_delay: Option<Delay>,
    /// What happens when its way fails.
    #[serde(default, skip_serializing_if = "is_default")]
    pub protection: Protection,
}

/// An outside network that a switch's port leads to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outside {
    /// Which of the domain's externals.
    #[serde(rename = "use")]
    pub door: Name,
    /// The switch's port that it is.
    pub to: End,
    /// Bit/s each way; what the operator allows when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
}

/// What happens when a link's way fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protection {
    /// It is down until the way is back.
    #[default]
    None,
}

impl Protection {
    /// The words users write.
    pub const WORDS: &'static [&'static str] = &["none"];
    /// Words of what is to come.
    pub const LATER: &'static [&'static str] = &["reroute", "failover"];
}

/// A guest's share when nobody says another. Chosen: D2's example.
pub const GUEST_CPU: Cpu = Cpu(100);
/// A guest's memory when nobody says another.
pub const GUEST_MEMORY: Size = Size(64 << 20);
/// A guest's processes when nobody says another.
pub const GUEST_PIDS: u32 = 256;
/// A link's MTU when nobody says another: Ethernet's own.
pub const LINK_MTU: u16 = 1500;
/// The most that a link is given which says no rate.
pub const LINK_RATE: u64 = 100_000_000;

impl SliceSpec {
    /// Which slice it is.
    pub fn key(&self) -> SliceKey {
        SliceKey { tenant: self.tenant.clone(), slice: self.name.clone() }
    }

    /// A switch with the slice's defaults.
    pub fn switch(&self, switch: &Switch) -> SwitchSettings {
        let default = &self.defaults.switch;
        SwitchSettings {
            fail_mode: switch.fail_mode.or(default.fail_mode),
            protocols: switch.protocols.clone().or_else(|| default.protocols.clone()),
            controllers: switch.controllers.clone().or_else(|| default.controllers.clone()),
        }
    }

    /// A guest's share of cores.
    pub fn cpu(&self, guest: &Guest) -> Cpu {
        self.on_our_cores(guest, guest.cpu.or(self.defaults.guest.cpu).unwrap_or(GUEST_CPU))
    }

    /// A guest's memory.
    pub fn memory(&self, guest: &Guest) -> Size {
        self.on_our_cores(
            guest,
            guest.memory.or(self.defaults.guest.memory).unwrap_or(GUEST_MEMORY),
        )
    }

    /// A guest's processes and threads.
    pub fn pids(&self, guest: &Guest) -> u32 {
        self.on_our_cores(guest, guest.pids.or(self.defaults.guest.pids).unwrap_or(GUEST_PIDS))
    }

    /// What a user brings runs by itself and takes nothing of a node.
    fn on_our_cores<T: Default>(&self, guest: &Guest, share: T) -> T {
        if guest.kind == GuestKind::Port { T::default() } else { share }
    }

    /// When a guest is started again.
    pub fn restart(&self, guest: &Guest) -> Restart {
        guest.restart.or(self.defaults.guest.restart).unwrap_or_default()
    }

    /// A link's MTU.
    pub fn mtu(&self, link: &Link) -> u16 {
        link.mtu.or(self.defaults.link.mtu).unwrap_or(LINK_MTU)
    }

    /// A link's rate. One that says none gets its share of the slice's budget, and 100 Mbit/s at most.
    pub fn rate(&self, link: &Link) -> Rate {
        let said = link.rate.or(self.defaults.link.rate);
        let share = || {
            let budget = self.budget.rate.map_or(u64::MAX, |rate| rate.bits().get());
            let bits = (budget / self.links.len().max(1) as u64).clamp(1000, LINK_RATE);
            bits.to_string().parse().expect("1 kbit/s to 100 Mbit/s is a rate")
        };
        said.unwrap_or_else(share)
    }

    /// Files that the client has not sent yet: guest, name, and path beside the slice's file.
    pub fn files_from(&self) -> impl Iterator<Item = (&Name, &str, &str)> {
        self.guests.iter().flat_map(|(guest, spec)| {
            spec.files.iter().filter_map(move |(name, file)| match file {
                FileText::From(path) => Some((guest, name.as_str(), path.as_str())),
                FileText::Text(_) => None,
            })
        })
    }
}
