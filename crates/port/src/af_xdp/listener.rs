//! Frames for any address: a card hands over only those to its own and to groups that somebody has joined, unless it is asked for all.
//!
//! A packet socket asks, which receives nothing itself. The kernel counts who asks, so it ends with the last one, also after a kill.

use crate::common::Common;
use crate::error::OpenError;
use crate::interface::cannot_enter;
use crate::netns::Netns;
use crate::sys::packet;
use std::io;
use std::os::fd::OwnedFd;

/// Has the interface take all frames as long as the socket lives.
pub(super) fn listen(spec: &Common, netns: &Netns, index: u32) -> Result<OwnedFd, OpenError> {
    let ask = || {
        let socket = packet::socket()?;
        packet::join_promiscuous(&socket, index)?;
        packet::join_all_multicast(&socket, index)?;
        Ok(socket)
    };
    let asked: io::Result<OwnedFd> = netns.run(ask).map_err(|source| cannot_enter(spec, source))?;
    asked.map_err(|source| {
        OpenError::io(&spec.interface, "have it take frames for any address", source)
    })
}
