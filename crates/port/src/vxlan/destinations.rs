//! Where the frames of a port without a remote of its own go: each to the end that its rules chose.

use super::path::Path;
use super::senders::Senders;
use crate::ends::Ends;
use crate::sys::datagram::Address;
use crate::vxlan::tunnel::Tunnel;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use wire::DropReason;

/// Ends that a queue knows at a time. Chosen: more than talk at once; a new one costs two allocations.
const KNOWN_MAX: usize = 1024;

/// One family's way out of a port.
#[derive(Clone)]
pub(super) struct Leg {
    /// As if it went over this family alone.
    pub(super) tunnel: Tunnel,
    pub(super) senders: Arc<Senders>,
    pub(super) path: Arc<Path>,
}

/// How one end is reached.
#[derive(Clone)]
pub(super) struct Destination {
    pub(super) to: Address,
    pub(super) senders: Arc<Senders>,
    pub(super) path: Arc<Path>,
}

/// The ends that one queue reaches.
pub(super) struct Destinations {
    ends: Arc<Ends>,
    legs: Vec<Leg>,
    known: HashMap<u16, Destination>,
    /// How often a number had gone to another end by then.
    reused: u32,
}

impl Destinations {
    pub(super) fn new(ends: Arc<Ends>, legs: Vec<Leg>) -> Self {
        Self { ends, legs, known: HashMap::new(), reused: 0 }
    }

    /// The end of this number.
    ///
    /// # Errors
    /// It is none, or of a family that the port has no address of.
    pub(super) fn find(&mut self, number: u16) -> Result<&Destination, DropReason> {
        let reused = self.ends.reused();
        if reused != self.reused {
            (self.reused, self.known) = (reused, HashMap::new());
        }
        if !self.known.contains_key(&number) {
            let found = self.make(number).ok_or(DropReason::TunnelEnd)?;
            if self.known.len() == KNOWN_MAX {
                self.known.clear();
            }
            self.known.insert(number, found);
        }
        self.known.get(&number).ok_or(DropReason::TunnelEnd)
    }

    fn make(&self, number: u16) -> Option<Destination> {
        let end = self.ends.address(number)?;
        let leg = self.legs.iter().find(|leg| leg.tunnel.remote.is_ipv4() == end.is_ipv4())?;
        Some(leg.towards(end))
    }
}

impl Leg {
    fn towards(&self, end: IpAddr) -> Destination {
        let to = Address::new(SocketAddr::new(end, self.tunnel.port));
        Destination { to, senders: self.senders.clone(), path: Arc::new(self.path.towards(end)) }
    }
}
