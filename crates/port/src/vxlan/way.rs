//! The interface by which a tunnel's packets leave: whether it has a link, and whether it is still the one that sockets are bound to.

use super::tunnel::Tunnel;
use super::zone::Link;
use crate::underlay::{self, NextHop};
use netlink::Netlink;
use std::io;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How the first of the other end's addresses is reached.
pub(super) struct Way {
    netlink: Mutex<Netlink>,
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
            netlink: Mutex::new(Netlink::new()?),
            to: (!tunnel.is_flow_based()).then_some(tunnel.remote),
            from: tunnel.local.first().copied(),
            zone: tunnel.zone.clone().zip(Link::of(tunnel)?.index()),
        })
    }

    /// Why nothing can leave, if it is for the interface's link. A route that leads nowhere is not its matter.
    pub(super) fn hindrance(&self) -> Option<String> {
        let netlink = self.netlink();
        let index = match (&self.zone, self.to) {
            (Some((_, index)), _) => *index,
            (None, Some(to)) => netlink.route(to, self.from).ok()?.interface,
            (None, None) => return None,
        };
        match (netlink.link_at(index), &self.zone) {
            (Ok(Some(link)), _) if link.up && link.carrier => None,
            (Ok(Some(link)), _) => {
                let lack = if link.up { "has no carrier" } else { "is down" };
                Some(format!("packets leave by {}, which {lack}", link.name))
            }
            (Ok(None), Some((name, _))) => Some(format!("packets leave by {name}, which is gone")),
            _ => None,
        }
    }

    /// The interface and the neighbour by which packets to an end leave.
    ///
    /// # Errors
    /// Why there is none, in words.
    pub(super) fn next_hop(&self, to: IpAddr, from: Option<IpAddr>) -> Result<NextHop, String> {
        underlay::next_hop(&self.netlink(), to, from).map_err(|none| none.to_string())
    }

    fn netlink(&self) -> MutexGuard<'_, Netlink> {
        self.netlink.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The zone's interface, where it was made anew: sockets are bound to one that is gone.
    pub(super) fn is_another(&self) -> Option<String> {
        let (name, index) = self.zone.as_ref()?;
        let now = self.netlink().link(name).ok()??.index;
        (now != *index).then(|| format!("{name} was made anew"))
    }
}
