//! Sockets of ends whose addresses count on one link alone (RFC 4007): bound to its interface, which says where `fe80::2` is.

use super::tunnel::Tunnel;
use crate::sys::datagram;
use netlink::Netlink;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsFd, OwnedFd};

/// The interface of that link, by its index; `None`: the kernel's routes choose.
#[derive(Clone, Copy)]
pub(super) struct Link(Option<u32>);

impl Link {
    /// In the calling thread's namespace.
    ///
    /// # Errors
    /// The interface is not there.
    pub(super) fn of(tunnel: &Tunnel) -> io::Result<Self> {
        let index = |zone: &String| Netlink::new()?.zone(zone);
        tunnel.zone.as_ref().map(index).transpose().map(Self)
    }

    /// A socket for what the tunnel sends.
    pub(super) fn socket(self, tunnel: &Tunnel) -> io::Result<OwnedFd> {
        let socket = datagram::socket(tunnel.remote)?;
        self.bind(&socket)?;
        Ok(socket)
    }

    /// Has a socket send by it, once more if it was disconnected, for that takes it away.
    pub(super) fn bind(self, socket: impl AsFd) -> io::Result<()> {
        self.0.map_or(Ok(()), |index| datagram::bind_to(socket, index))
    }

    /// The addresses that the tunnel sends from, if any are chosen: its own or, on a link, the one that has most bits in common with the
    /// other end's. Of several the kernel would take the first, which the other end need not know.
    pub(super) fn sources(self, tunnel: &Tunnel) -> io::Result<Vec<IpAddr>> {
        match (self.0, tunnel.remote) {
            (Some(index), IpAddr::V6(remote)) if tunnel.local.is_empty() => {
                let all = Netlink::new()?.interface_addresses()?;
                let here = all.iter().filter(|found| found.interface == index);
                Ok(nearest(here.map(|found| found.address), remote).into_iter().collect())
            }
            _ => Ok(tunnel.local.clone()),
        }
    }

    /// Its index.
    pub(super) fn index(self) -> Option<u32> {
        self.0
    }
}

/// Of the addresses of a link the one with most leading bits of `remote`.
fn nearest(addresses: impl Iterator<Item = IpAddr>, remote: Ipv6Addr) -> Option<IpAddr> {
    let of_link = addresses.filter_map(|address| match address {
        IpAddr::V6(address) if address.is_unicast_link_local() => Some(address),
        _ => None,
    });
    let differing = |address: &Ipv6Addr| address.to_bits() ^ remote.to_bits();
    of_link.min_by_key(differing).map(IpAddr::V6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_addresses_of_a_link_the_nearest_to_the_other_end_sends() {
        let remote: Ipv6Addr = "fe80::2".parse().unwrap();
        let of = |all: &[&str]| nearest(all.iter().map(|text| text.parse().unwrap()), remote);
        let far = "fe80::903d:b5ff:fecd:a644";
        assert_eq!(
            of(&[far, "fe80::1", "2001:db8::2", "192.0.2.2"]),
            Some("fe80::1".parse().unwrap())
        );
        assert_eq!(of(&[far]), Some(far.parse().unwrap()));
        assert_eq!(of(&["2001:db8::2"]), None);
    }
}
