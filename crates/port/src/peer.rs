//! The other end of a veth, in whichever namespace it is.

use crate::interface::Interface;
use crate::netns::{NetnsRef, everywhere};
use crate::settings::Place;
use netlink::Peer;
use std::io;
use std::path::PathBuf;

/// Finds the other end by its namespace's number: among those with a name, then among those of processes.
///
/// # Errors
/// `NotFound`: no name and no process leads there.
pub(crate) fn place(interface: &Interface, peer: Peer) -> io::Result<Place> {
    let Some(wanted) = peer.netns_id else { return Place::new(interface.netns(), peer.index) };
    let is_it = |path: &PathBuf| {
        let file = files::handle(path);
        file.is_ok_and(|file| {
            interface.netlink().netns_id(&file).is_ok_and(|id| id == Some(wanted))
        })
    };
    let path = everywhere().find(is_it).ok_or(io::ErrorKind::NotFound)?;
    Place::new(Some(&NetnsRef::Path(path)), peer.index)
}
