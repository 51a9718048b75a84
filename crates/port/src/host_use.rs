//! What a host uses an interface for: addresses and routes that it would lose with it.
//!
//! Looked at are the interface and what stands on it in the same namespace: VLANs, macvlans, and the bridges or bonds that have
//! those as members. IPv6's link-local addresses are everywhere and do not count, nor do the routes that the kernel derives from addresses.

use netlink::{Link, Netlink, Prefix};
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::net::IpAddr;

/// Uses named in one message; a router has thousands of routes.
const NAMED_MAX: usize = 4;

/// What a host uses an interface for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostUse {
    uses: Vec<String>,
}

impl HostUse {
    /// What a port says that took it.
    pub(crate) fn taken_over(&self) -> String {
        format!("taken over from the host, which cannot use it meanwhile: {self}")
    }

    /// Whether the host does without it.
    pub fn is_none(&self) -> bool {
        self.uses.is_empty()
    }
}

/// `192.0.2.1/24, default route via 192.0.2.254`.
impl fmt::Display for HostUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = &self.uses[..self.uses.len().min(NAMED_MAX)];
        f.write_str(&named.join(", "))?;
        match self.uses.len() - named.len() {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// Asks the kernel about an interface and what stands on it.
pub(crate) fn find(netlink: &Netlink, index: u32) -> io::Result<HostUse> {
    let links = netlink.links()?;
    let above = standing_on(&links, index);
    let on = |interface: u32| {
        let link = links.iter().find(|link| link.index == interface && link.index != index);
        link.map_or_else(String::new, |link| format!(" on {}", link.name))
    };
    let mut uses = Vec::new();
    for address in netlink.interface_addresses()? {
        if above.contains(&address.interface) && !is_link_local(address.address) {
            let (ip, len) = (address.address, address.prefix_len);
            uses.push(format!("{ip}/{len}{}", on(address.interface)));
        }
    }
    for route in netlink.routes()? {
        let interface = route.interfaces.iter().find(|interface| above.contains(interface));
        let Some(&interface) = interface else { continue };
        let gateway = route.gateway.map(|gateway| format!(" via {gateway}")).unwrap_or_default();
        uses.push(format!("{}{gateway}{}", destination(route.to), on(interface)));
    }
    Ok(HostUse { uses })
}

fn destination(to: Prefix) -> String {
    if to.is_default() { "default route".into() } else { format!("route to {to}") }
}

/// The interface, and all that frames come to by way of it.
fn standing_on(links: &[Link], index: u32) -> BTreeSet<u32> {
    let mut found = BTreeSet::from([index]);
    loop {
        let before = found.len();
        for link in links {
            if link.lower.is_some_and(|lower| found.contains(&lower)) {
                found.insert(link.index);
            }
            if found.contains(&link.index) {
                found.extend(link.master);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(index: u32, lower: Option<u32>, master: Option<u32>) -> Link {
        Link { index, lower, master, ..Link::default() }
    }

    #[test]
    fn vlans_and_their_bridges_stand_on_a_card_and_its_neighbours_do_not() {
        let links = [
            link(9, None, None),
            link(5, Some(2), Some(9)),
            link(6, Some(5), None),
            link(2, None, None),
            link(3, None, None),
            link(7, Some(3), None),
        ];
        assert_eq!(standing_on(&links, 2), BTreeSet::from([2, 5, 6, 9]));
        assert_eq!(standing_on(&links, 3), BTreeSet::from([3, 7]));
        let circle = [link(1, Some(2), None), link(2, Some(1), None)];
        assert_eq!(standing_on(&circle, 1), BTreeSet::from([1, 2]));
    }

    #[test]
    fn a_few_uses_are_named_and_the_others_counted() {
        let uses =
            |count: usize| HostUse { uses: (0..count).map(|n| format!("10.0.0.{n}/24")).collect() };
        assert_eq!(uses(2).to_string(), "10.0.0.0/24, 10.0.0.1/24");
        assert!(uses(6).to_string().ends_with("10.0.0.3/24 and 2 more"));
    }
}
