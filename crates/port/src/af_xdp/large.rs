//! Switching off what would hand AF_XDP frames larger than a UMEM frame.
//!
//! The native hook of a veth makes the kernel switch off its peer's segmentation offload by itself. The generic hook does not: there
//! the interface's own receive merging and the peer's offloads are switched off here, the peer's also in another namespace if that has a
//! name below `/run/netns`. What remains is dropped by the kernel and counted as `too_big`.

use crate::ethtool::{Ethtool, Feature, GRO, GSO, TSO};
use crate::interface::Interface;
use crate::netlink::{Link, Netlink, Peer};
use crate::netns::Netns;
use crate::spec::NetnsRef;
use crate::sys::ioctl::Name;
use std::fs::{self, File};
use std::io;
use xdp::Hook;

/// Does what can be done, and notes it.
pub(super) fn switch_off(interface: &Interface, link: &Link, hook: Hook, notes: &mut Vec<String>) {
    if hook == Hook::Native {
        return;
    }
    let own = off(interface.ethtool(), &[GRO]);
    note(&link.name, own, notes);
    let Some(peer) = link.peer else { return };
    let there = reach(interface, peer).and_then(|netns| {
        let reached = netns.run(|| {
            let link = Netlink::new()?.link_at(peer.index)?.ok_or(io::ErrorKind::NotFound)?;
            let name = Name::new(&link.name).ok_or(io::ErrorKind::InvalidData)?;
            Ok((link.name, off(&Ethtool::new(name)?, &[TSO, GSO])))
        });
        reached.and_then(|reached| reached)
    });
    match there {
        Ok((name, switched)) => note(&format!("its peer {name}"), switched, notes),
        Err(_) => notes.push(
            "its peer cannot be reached: frames above the MTU will be dropped as too_big until you run \
             `ethtool -K <peer> tso off gso off` there"
                .into(),
        ),
    }
}

/// Switches off those that are on; returns their names.
fn off(ethtool: &Ethtool, features: &[Feature]) -> io::Result<Vec<&'static str>> {
    let mut switched = Vec::new();
    for &feature in features {
        if ethtool.is_on(feature)? {
            ethtool.switch_off(feature)?;
            switched.push(feature.name);
        }
    }
    Ok(switched)
}

fn note(of: &str, switched: io::Result<Vec<&'static str>>, notes: &mut Vec<String>) {
    match switched {
        Ok(names) if names.is_empty() => {}
        Ok(names) => notes.push(format!("{} of {of} switched off", names.join(" and "))),
        Err(error) => notes.push(format!("offloads of {of} cannot be switched off ({error}): larger frames will be dropped as too_big")),
    }
}

/// The namespace of a veth's other end.
fn reach(interface: &Interface, peer: Peer) -> io::Result<Netns> {
    let Some(wanted) = peer.netns_id else { return Netns::open(interface.netns()) };
    for entry in fs::read_dir("/run/netns")?.flatten() {
        let file = File::open(entry.path())?;
        if interface.netlink().netns_id(&file).is_ok_and(|id| id == Some(wanted)) {
            return Netns::open(Some(&NetnsRef::Path(entry.path())));
        }
    }
    Err(io::ErrorKind::NotFound.into())
}
