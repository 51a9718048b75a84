//! Where a tunnel's packets go on this host's own network, for people who ask: workers know it from elsewhere.

use super::path::{ETHERNET, Path};
use super::tunnel::Tunnel;
use super::way::Way;
use crate::detail::{Hop, Outside};
use std::net::IpAddr;
use wire::tunnel::Outer;

/// Where packets to `end` go, of a tunnel that has no end of its own; else to its own. `None`: to no end at all.
pub(super) fn look(
    tunnel: &Tunnel,
    (path, way): (&Path, &Way),
    end: Option<IpAddr>,
    port: u16,
) -> Option<Outside> {
    let to = if tunnel.is_flow_based() { end? } else { tunnel.remote };
    let from = tunnel.local.iter().copied().find(|from| from.is_ipv4() == to.is_ipv4());
    let hop = way.next_hop(to, from).map(|hop| {
        let (mac, from_mac, from) = (hop.mac, hop.from_mac, hop.source);
        let (ttl, checksum) = (tunnel.ttl, tunnel.checksum);
        let headers = Outer { mac, from_mac, from, to, port, ttl, checksum };
        Hop { interface: hop.interface, name: hop.name, headers }
    });
    let longest = match tunnel.is_flow_based() {
        true => path.towards(to).carries(),
        false => path.carries(),
    };
    Some(Outside { to, port, vni: tunnel.vni, hop, longest, overhead: path.overhead() - ETHERNET })
}
