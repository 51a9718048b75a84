//! The interface by which a tunnel's packets leave: whether it has a link, and whether it is still the one that sockets are bound to.

use super::tunnel::Tunnel;
use super::zone::Link;
use netlink::Netlink;
use std::io;
use std::net::IpAddr;

/// How the first of the other end's addresses is reached.
pub(super) struct Way {
    netlink: Netlink,
    /// Without one of its own, nothing is known.
    to: Option<IpAddr>,
    from: Option<IpAddr>,
    /// The zone's interface, and its index when the port was opened.
    zone: Option<(String, u32)>,
}

impl Way {
    /// In the calling thread's namespace, of which it stays.
    pub(super) fn new(tunnel: &Tunnel) -> io::Result<Self> {
        Ok(Self {
            netlink: Netlink::new()?,
            to: (!tunnel.is_flow_based()).then_some(tunnel.remote),
            from: tunnel.local.first().copied(),
            zone: tunnel.zone.clone().zip(Link::of(tunnel)?.index()),
        })
    }

    /// Why nothing can leave, if it is for the interface's link. A route that leads nowhere is not its matter.
    pub(super) fn hindrance(&self) -> Option<String> {
        let index = match (&self.zone, self.to) {
            (Some((_, index)), _) => *index,
            (None, Some(to)) => self.netlink.route(to, self.from).ok()?.interface,
            (None, None) => return None,
        };
        match (self.netlink.link_at(index), &self.zone) {
            (Ok(Some(link)), _) if link.up && link.carrier => None,
            (Ok(Some(link)), _) => {
                let lack = if link.up { "has no carrier" } else { "is down" };
                Some(format!("packets leave by {}, which {lack}", link.name))
            }
            (Ok(None), Some((name, _))) => Some(format!("packets leave by {name}, which is gone")),
            _ => None,
        }
    }

    /// The zone's interface, where it was made anew: sockets are bound to one that is gone.
    pub(super) fn is_another(&self) -> Option<String> {
        let (name, index) = self.zone.as_ref()?;
        let now = self.netlink.link(name).ok()??.index;
        (now != *index).then(|| format!("{name} was made anew"))
    }
}
