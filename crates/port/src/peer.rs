//! The other end of a veth, in whichever namespace it is.

use crate::interface::Interface;
use crate::netns::NetnsRef;
use crate::settings::Place;
use netlink::Peer;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Where namespaces have names: `ip netns` and containerd, Docker.
const NAMED: [&str; 2] = ["/run/netns", "/run/docker/netns"];

/// Finds the other end by its namespace's number: among those with a name, then among those of processes.
///
/// # Errors
/// `NotFound`: no name and no process leads there.
pub(crate) fn place(interface: &Interface, peer: Peer) -> io::Result<Place> {
    let Some(wanted) = peer.netns_id else { return Place::new(interface.netns(), peer.index) };
    let is_it = |path: &PathBuf| {
        let file = File::open(path);
        file.is_ok_and(|file| {
            interface.netlink().netns_id(&file).is_ok_and(|id| id == Some(wanted))
        })
    };
    let found = named().find(is_it).or_else(|| of_processes().find(is_it));
    let path = found.ok_or(io::ErrorKind::NotFound)?;
    Place::new(Some(&NetnsRef::Path(path)), peer.index)
}

fn named() -> impl Iterator<Item = PathBuf> {
    NAMED.into_iter().flat_map(fs::read_dir).flatten().flatten().map(|entry| entry.path())
}

/// One path for each namespace that has a process.
fn of_processes() -> impl Iterator<Item = PathBuf> {
    let mut seen = HashSet::new();
    let paths = fs::read_dir("/proc").into_iter().flatten().flatten();
    let paths = paths.map(|entry| entry.path().join("ns/net"));
    paths.filter(move |path| fs::metadata(path).is_ok_and(|found| seen.insert(found.ino())))
}
