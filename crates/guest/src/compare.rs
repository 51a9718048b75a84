//! A guest as it is declared against what the kernel really has of it, read anew.

use crate::groups::Groups;
use crate::{Places, Process, netns};
use api::{GuestInterface, prefix};
use netlink::{InterfaceAddress, Link, Netlink};
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;

/// What differs, and what to do.
pub type Differs = (String, String);

/// What makes everything of a guest anew.
const RESTART: &str = "restart the node: it makes what is missing, and adopts what runs";
/// What gives a guest's interface its addresses again.
const SOON: &str =
    "look again in some seconds: the node gives them again; if it stays so, see suiro guest list";

impl Process {
    /// Each thing of it that is not as it is declared.
    pub fn differences(&self) -> Vec<Differs> {
        let name = &self.spec().netns;
        if !netns::is_there(name) {
            return vec![(format!("its namespace {name} is not there"), RESTART.into())];
        }
        let seen = netns::within(name, || {
            let netlink = Netlink::new()?;
            Ok((netlink.links()?, netlink.interface_addresses()?))
        });
        let mut found = match seen {
            Ok((links, addresses)) => self.interfaces(&links, &addresses),
            Err(error) => {
                vec![(format!("its namespace {name} cannot be read: {error}"), RESTART.into())]
            }
        };
        if self.pid().is_some() {
            found.extend(self.strays_elsewhere());
            found.extend(self.groups().unlike(self.spec()).into_iter().map(|text| {
                (text, "apply another limit and this one again, or write it there".into())
            }));
        }
        found
    }

    fn interfaces(&self, links: &[Link], addresses: &[InterfaceAddress]) -> Vec<Differs> {
        let wanted = &self.spec().interface;
        let missing = wanted.iter().flat_map(|interface| {
            match links.iter().find(|link| link.name == *interface.name) {
                None => {
                    vec![(format!("interface {} is not there", interface.name), RESTART.into())]
                }
                Some(link) => interface_of(interface, link, addresses),
            }
        });
        // Tunnels of IP that the kernel itself puts into each namespace have no Ethernet header.
        let too_much = links
            .iter()
            .filter(|link| link.is_ethernet && !link.is_loopback)
            .filter(|link| wanted.iter().all(|it| *it.name != *link.name));
        let remove = |link: &Link| format!("ip -n {} link del {}", self.spec().netns, link.name);
        missing
            .chain(
                too_much.map(|link| {
                    (format!("nobody declares its interface {}", link.name), remove(link))
                }),
            )
            .collect()
    }

    /// Whether its first process is in another network than its own.
    fn strays_elsewhere(&self) -> Option<Differs> {
        let process = self.first_process()?;
        // One that ends just now differs in nothing.
        let is = std::fs::metadata(format!("/proc/{process}/ns/net")).ok()?.ino();
        let shall = std::fs::metadata(netns::path(&self.spec().netns)).ok()?.ino();
        (is != shall).then(|| {
            let cause = format!("process {process} is not in namespace {}", self.spec().netns);
            (cause, format!("end it: kill {process}; the node starts another"))
        })
    }
}

fn interface_of(
    interface: &GuestInterface,
    link: &Link,
    addresses: &[InterfaceAddress],
) -> Vec<Differs> {
    let name = &interface.name;
    let down = (!link.up).then(|| (format!("interface {name} is down"), SOON.into()));
    let lost = interface.addresses.iter().filter(|text| {
        prefix(text).is_some_and(|(address, prefix_len)| {
            !addresses.contains(&InterfaceAddress { interface: link.index, address, prefix_len })
        })
    });
    let lost = lost.map(|text| (format!("interface {name} lacks {text}"), SOON.into()));
    down.into_iter().chain(lost).collect()
}

/// Control groups of guests that are there, as `part:name`.
pub fn groups_there(places: &Places) -> BTreeSet<String> {
    Groups::at(&places.groups, &places.group).inside()
}
