//! One kernel interface: found, looked at and changed, in whichever namespace it is.
//!
//! Shared by every kind of port. The sockets inside were made in the interface's namespace, so no call changes a namespace.

use crate::common::Common;
use crate::error::{ControlError, OpenError};
use crate::ethtool::Ethtool;
use crate::facts::PortFacts;
use crate::fitness::{Receives, why_not};
use crate::host_use::{self, HostUse};
use crate::netns::{Netns, NetnsRef};
use crate::sys::ioctl::Name;
use api::PortSpec;
use netlink::{Change, Link, Netlink};
use std::io;

/// TAPs claim 10 Mbit/s whatever they carry: their speed is unknown.
const TUN: &str = "tun";

/// A handle on an interface.
pub(crate) struct Interface {
    name: String,
    netns: Option<NetnsRef>,
    netlink: Netlink,
    ethtool: Ethtool,
}

impl HostUse {
    /// Asks the kernel about the interface of a port; one that is not there has no use.
    ///
    /// # Errors
    /// The namespace cannot be entered, or the kernel refuses to tell.
    pub fn of(spec: &PortSpec) -> Result<Self, OpenError> {
        let spec = &Common::from(spec);
        let interface = Interface::new(spec, &open_netns(spec)?)?;
        let Some(link) = interface.look()? else { return Ok(Self::default()) };
        Self::of_link(&interface, link.index)
    }

    pub(crate) fn of_link(interface: &Interface, index: u32) -> Result<Self, OpenError> {
        let found = host_use::find(&interface.netlink, index);
        found.map_err(|source| {
            OpenError::io(&interface.name, "read the host's addresses and routes", source)
        })
    }
}

impl Interface {
    /// A handle on the interface that `spec` names, which need not exist yet.
    ///
    /// # Errors
    /// The name is impossible, or the namespace cannot be entered.
    pub(crate) fn new(spec: &Common, netns: &Netns) -> Result<Self, OpenError> {
        let name = raw_name(spec)?;
        let sockets = netns.run(|| Ok::<_, io::Error>((Netlink::new()?, Ethtool::new(name)?)));
        let entered = sockets.map_err(|source| cannot_enter(spec, source))?;
        let (netlink, ethtool) = entered
            .map_err(|source| OpenError::io(&spec.interface, "open control sockets", source))?;
        Ok(Self { name: spec.interface.clone(), netns: spec.netns.clone(), netlink, ethtool })
    }

    /// Its state, or `None` when it does not exist.
    pub(crate) fn look(&self) -> Result<Option<Link>, OpenError> {
        self.netlink
            .link(&self.name)
            .map_err(|source| OpenError::io(&self.name, "read the interface's state", source))
    }

    /// Its state, where it must exist.
    pub(crate) fn find(&self, spec: &Common) -> Result<Link, OpenError> {
        self.look()?.ok_or_else(|| OpenError::Missing {
            interface: self.name.clone(),
            place: match &spec.netns {
                Some(netns) => format!("network namespace {netns}"),
                None => "the node's network namespace".into(),
            },
        })
    }

    /// Refuses an interface that cannot be a port, with the reason.
    pub(crate) fn check_fitness(&self, link: &Link, by: Receives) -> Result<(), OpenError> {
        let step = "read the interfaces beside it";
        let links =
            self.netlink.links().map_err(|source| OpenError::io(&self.name, step, source))?;
        match why_not(link, &links, by) {
            Some(why) => Err(OpenError::WrongInterface { interface: self.name.clone(), why }),
            None => Ok(()),
        }
    }

    /// Sets the MAC address and MTU that `spec` wants, and the interface up; returns its state after that.
    pub(crate) fn configure(&self, spec: &Common, link: &Link) -> Result<Link, OpenError> {
        let step = |step, change| {
            self.netlink
                .change(link.index, change)
                .map_err(|source| OpenError::io(&self.name, step, source))
        };
        if let Some(mac) = spec.mac.filter(|&mac| mac != link.mac) {
            step("set the MAC address", Change::Mac(mac))?;
        }
        if let Some(mtu) = spec.mtu.filter(|&mtu| mtu != link.mtu) {
            in_range(link, mtu).map_err(|why| OpenError::Mtu {
                interface: self.name.clone(),
                mtu,
                why,
            })?;
            step("set the MTU", Change::Mtu(mtu))?;
        }
        step("set the interface up", Change::Up(true))?;
        self.find(spec)
    }

    /// Its state, where it must still be the one opened.
    pub(crate) fn link(&self, index: u32) -> Result<Link, ControlError> {
        let gone = || ControlError::Gone { interface: self.name.clone() };
        let link = self
            .netlink
            .link_at(index)
            .map_err(|source| ControlError::io(&self.name, "read its state", source))?;
        link.filter(|link| link.name == self.name).ok_or_else(gone)
    }

    /// Its facts.
    pub(crate) fn facts(&self, link: Link, mode: &str, notes: &[String]) -> PortFacts {
        PortFacts {
            index: link.index,
            mac: link.mac,
            mtu: link.mtu,
            up: link.up,
            carrier: link.up && link.carrier,
            speed_mbps: if link.kind == TUN { 0 } else { self.ethtool.speed_mbps() },
            interface: link.name,
            mode: mode.to_owned(),
            notes: notes.to_vec(),
            ..PortFacts::default()
        }
    }

    /// Sets it up or down.
    pub(crate) fn set_admin(&self, index: u32, up: bool) -> Result<(), ControlError> {
        let step = if up { "set the interface up" } else { "set the interface down" };
        self.netlink
            .change(index, Change::Up(up))
            .map_err(|source| ControlError::io(&self.name, step, source))
    }

    /// Sets its MTU.
    pub(crate) fn set_mtu(&self, index: u32, mtu: u32) -> Result<(), ControlError> {
        let link = self.link(index)?;
        in_range(&link, mtu).map_err(|why| ControlError::Mtu {
            interface: self.name.clone(),
            mtu,
            why,
        })?;
        let changed = self.netlink.change(index, Change::Mtu(mtu));
        changed.map_err(|source| ControlError::io(&self.name, "set the MTU", source))
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The namespace it is in.
    pub(crate) fn netns(&self) -> Option<&NetnsRef> {
        self.netns.as_ref()
    }

    /// Its ethtool side.
    pub(crate) fn ethtool(&self) -> &Ethtool {
        &self.ethtool
    }

    /// Its netlink side.
    pub(crate) fn netlink(&self) -> &Netlink {
        &self.netlink
    }
}

/// Opens the namespace that `spec` names.
pub(crate) fn open_netns(spec: &Common) -> Result<Netns, OpenError> {
    Netns::open(spec.netns.as_ref()).map_err(|source| cannot_enter(spec, source))
}

/// The error for a namespace that cannot be entered.
pub(crate) fn cannot_enter(spec: &Common, source: io::Error) -> OpenError {
    match &spec.netns {
        Some(netns) => {
            OpenError::Netns { interface: spec.interface.clone(), netns: netns.clone(), source }
        }
        None => OpenError::io(&spec.interface, "open control sockets", source),
    }
}

/// The name as the kernel takes it.
pub(crate) fn raw_name(spec: &Common) -> Result<Name, OpenError> {
    Name::new(&spec.interface)
        .ok_or_else(|| OpenError::BadName { interface: spec.interface.clone() })
}

/// Whether the driver takes the MTU.
pub(crate) fn in_range(link: &Link, mtu: u32) -> Result<(), String> {
    let (least, greatest) = link.mtu_range;
    match mtu {
        mtu if mtu < least => Err(format!("the driver takes {least} or more")),
        mtu if greatest != 0 && mtu > greatest => {
            Err(format!("the driver takes {greatest} or less"))
        }
        _ => Ok(()),
    }
}
