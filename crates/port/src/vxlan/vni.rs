//! Which VNIs a port receives.

use super::group::Others;
use std::net::IpAddr;

/// What a port's sockets get.
pub(super) enum Received {
    /// One VNI.
    One(u32),
    /// Every VNI of the other end, or of all ends, but those that other ports have: whether it is one of that sender's.
    Rest(Box<dyn Fn(u32, Option<IpAddr>) -> bool + Send>),
}

impl Received {
    /// Of a tunnel with this VNI, or none of its own.
    pub(super) fn of(vni: Option<u32>, others: &Others) -> Self {
        let others = others.clone();
        vni.map_or_else(|| Self::Rest(Box::new(move |vni, from| others.own(vni, from))), Self::One)
    }

    /// Whether a datagram of this VNI is the port's, which came in a run that begins with one of `first`.
    ///
    /// The kernel was asked for the first only, and puts together what its outer headers do not tell apart. Whose the others are is asked
    /// again if they are of another VNI: by a system call, which two tenants' frames of one length from one source port are rare enough for.
    pub(super) fn has(&self, vni: u32, from: Option<IpAddr>, first: Option<u32>) -> bool {
        match self {
            Self::One(own) => vni == *own,
            Self::Rest(others_own) => Some(vni) == first || !others_own(vni, from),
        }
    }
}
