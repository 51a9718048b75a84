//! Keeps what a port's interface receives from the host's own stack.
//!
//! **Invariants**: nothing reaches the stack from the moment that the port opens until it is removed. The kernel keeps the filter while the node
//! does not run, also after a kill, and the next start finds it again. A removed port gives the interface back as it was.

use crate::common::Common;
use crate::control::{Keep, PortControl};
use crate::error::{ControlError, OpenError};
use crate::facts::PortFacts;
use crate::fitness::Receives;
use crate::host_use::HostUse;
use crate::interface::{Interface, open_netns};
use crate::netns::{Netns, NetnsRef};
use crate::opened::OpenPort;
use api::{AfPacket, AfXdp, PortSpec};
use netlink::{EGRESS, Filter, INGRESS, Netlink};
use offload::PortReason;
use std::io;
use std::os::fd::BorrowedFd;
use xdp::offload::Past;

/// "sui" and a number: we made the qdisc below the filter, and it goes with it.
const OVER_OURS: u32 = 0x7375_6901;
/// The qdisc was there before, and stays.
const OVER_THEIRS: u32 = 0x7375_6902;

/// What a port says of an interface that the host goes on using.
const SHARED: &str = "host: the host's own stack receives its frames, too";

/// How a port takes an interface that exists.
#[derive(Clone, Copy)]
pub(crate) struct Taking {
    by: Receives,
    /// Whether it may be one that the host itself uses.
    take_over: bool,
    /// Whether the host's own stack receives its frames, too.
    host: bool,
}

impl From<&AfPacket> for Taking {
    fn from(&AfPacket { take_over, host, .. }: &AfPacket) -> Self {
        let (take_over, host) = (take_over.unwrap_or_default(), host.unwrap_or_default());
        Self { by: Receives::ByPacketSocket, take_over, host }
    }
}

impl From<&AfXdp> for Taking {
    fn from(&AfXdp { take_over, host, .. }: &AfXdp) -> Self {
        let (take_over, host) = (take_over.unwrap_or_default(), host.unwrap_or_default());
        Self { by: Receives::ByXdp, take_over, host }
    }
}

/// Opens a port on an interface that the host's stack gets nothing of, unless it is told to share it.
pub(crate) fn isolated(
    spec: &Common,
    taking: Taking,
    owner: u32,
    open: impl FnOnce() -> Result<OpenPort, OpenError>,
) -> Result<OpenPort, OpenError> {
    let interface = Interface::new(spec, &open_netns(spec)?)?;
    let link = interface.find(spec)?;
    interface.check_fitness(&link, taking.by)?;
    let mut isolation = Isolation { interface, index: link.index, note: None };
    let was_there = isolation.begin(taking, owner)?;
    match open() {
        Ok(opened) => Ok(isolation.around(opened)),
        Err(error) => {
            if !was_there {
                // What was to be said is why the port did not open.
                let _ = isolation.end();
            }
            Err(error)
        }
    }
}

/// Gives an interface back that a port without a control half had isolated; whether it was.
///
/// # Errors
/// The namespace cannot be entered, or the kernel refuses.
pub fn release(spec: &PortSpec) -> Result<bool, OpenError> {
    let spec = &Common::from(spec);
    let interface = Interface::new(spec, &open_netns(spec)?)?;
    let Some(link) = interface.look()? else { return Ok(false) };
    give_back(interface.netlink(), link.index)
        .map_err(|source| OpenError::io(&spec.interface, "give it back to the host", source))
}

/// Gives every interface of a namespace back that `owner` has isolated, but those whose names are `wanted`. Returns their names.
///
/// # Errors
/// The namespace cannot be entered, or the kernel refuses.
pub fn release_others(
    netns: Option<&NetnsRef>,
    owner: u32,
    wanted: impl Fn(&str) -> bool,
) -> io::Result<Vec<String>> {
    let netlink = Netns::open(netns)?.run(Netlink::new)??;
    let mut released = Vec::new();
    for index in netlink.filtered()? {
        let Some(link) = netlink.link_at(index)? else { continue };
        let owned = |filter: &Filter| filter.owner == Some(owner);
        if !wanted(&link.name) && netlink.filters(index, INGRESS)?.iter().any(owned) {
            give_back(&netlink, index)?;
            released.push(link.name);
        }
    }
    Ok(released)
}

/// Takes our filter away, and the qdisc if it was ours and nobody else uses it; whether there was one.
fn give_back(netlink: &Netlink, index: u32) -> io::Result<bool> {
    let filters = netlink.filters(index, INGRESS)?;
    let Some(ours) = filters.iter().find(|filter| filter.owner.is_some()) else { return Ok(false) };
    netlink.del_taker(index, ours.handle)?;
    let empty = filters.len() == 1 && netlink.filters(index, EGRESS)?.is_empty();
    if ours.handle == OVER_OURS && empty {
        netlink.del_clsact(index)?;
    }
    Ok(true)
}

/// An interface, and what there is to say about it and the host.
struct Isolation {
    interface: Interface,
    index: u32,
    note: Option<String>,
}

impl Isolation {
    /// Isolates the interface, or gives it back where the host is to share it. Whether it was isolated before.
    fn begin(&mut self, taking: Taking, owner: u32) -> Result<bool, OpenError> {
        let name = self.name();
        let failed = |source| OpenError::Isolation { interface: name.clone(), source };
        if taking.host {
            self.note = Some(SHARED.to_owned());
        } else if taking.by == Receives::ByPacketSocket {
            self.note = self.taken_over(taking)?;
        }
        let netlink = self.interface.netlink();
        if taking.host {
            return give_back(netlink, self.index).map(|_| true).map_err(failed);
        }
        let filters = netlink.filters(self.index, INGRESS).map_err(failed)?;
        if let Some(other) = filters.iter().find(|filter| filter.owner.is_none()) {
            return Err(self.held_by(other));
        }
        if let Some(ours) = filters.first() {
            if ours.owner != Some(owner) {
                netlink.del_taker(self.index, ours.handle).map_err(failed)?;
                netlink.add_taker(self.index, ours.handle, owner).map_err(failed)?;
            }
            return Ok(true);
        }
        self.add(owner).map_err(failed)?;
        Ok(false)
    }

    fn add(&self, owner: u32) -> io::Result<()> {
        let netlink = self.interface.netlink();
        let made = netlink.add_clsact(self.index)?;
        let handle = if made { OVER_OURS } else { OVER_THEIRS };
        netlink.add_taker(self.index, handle, owner).inspect_err(|_| {
            if made {
                // The error that stands says why.
                let _ = netlink.del_clsact(self.index);
            }
        })
    }

    /// What the host loses, as a note, if it may: it would be off the network at once.
    fn taken_over(&self, taking: Taking) -> Result<Option<String>, OpenError> {
        let uses = HostUse::of_link(&self.interface, self.index)?;
        match uses.is_none() {
            true => Ok(None),
            false if taking.take_over => Ok(Some(uses.taken_over())),
            false => Err(OpenError::HostUse { interface: self.name(), uses }),
        }
    }

    fn held_by(&self, filter: &Filter) -> OpenError {
        let interface = self.name();
        let Filter { kind, priority, .. } = filter;
        OpenError::Busy {
            holder: format!("tc filter {kind} of priority {priority} at ingress"),
            remedy: format!(
                "remove it (`tc filter del dev {interface} ingress prio {priority}`), or let the host receive the interface's frames, too (`--host`, `host = true`)"
            ),
            interface,
        }
    }

    fn end(&self) -> io::Result<()> {
        match give_back(self.interface.netlink(), self.index) {
            // It went, and its filters with it.
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(()),
            given => given.map(drop),
        }
    }

    fn around(self, opened: OpenPort) -> OpenPort {
        let facts = self.told(opened.facts);
        let control = Box::new(IsolatedControl { inner: opened.control, isolation: self });
        OpenPort { facts, control, ..opened }
    }

    fn told(&self, mut facts: PortFacts) -> PortFacts {
        facts.notes.extend(self.note.clone());
        facts
    }

    fn name(&self) -> String {
        self.interface.name().to_owned()
    }
}

/// A port's control half, and what keeps its interface from the host.
struct IsolatedControl {
    inner: Box<dyn PortControl>,
    isolation: Isolation,
}

impl PortControl for IsolatedControl {
    fn facts(&self) -> Result<PortFacts, ControlError> {
        self.inner.facts().map(|facts| self.isolation.told(facts))
    }

    fn has_news(&self) -> bool {
        self.inner.has_news()
    }

    fn news(&self) -> Option<BorrowedFd<'_>> {
        self.inner.news()
    }

    fn outgrown(&self) -> Option<String> {
        self.inner.outgrown()
    }

    fn past(&self) -> Option<Result<Past, PortReason>> {
        self.inner.past()
    }

    fn set_admin(&self, up: bool) -> Result<(), ControlError> {
        self.inner.set_admin(up)
    }

    fn set_mtu(&self, mtu: u32) -> Result<(), ControlError> {
        self.inner.set_mtu(mtu)
    }

    fn close(self: Box<Self>, keep: Keep) -> Result<(), ControlError> {
        let Self { inner, isolation } = *self;
        let closed = inner.close(keep);
        let given = match keep {
            Keep::Interface => Ok(()),
            Keep::Nothing => isolation.end(),
        };
        closed.and(given.map_err(|source| {
            ControlError::io(&isolation.name(), "give the interface back to the host", source)
        }))
    }
}
