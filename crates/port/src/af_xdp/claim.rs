//! Obstacles to an AF_XDP port: another's program, steering that leaves nothing, what the host would lose.

use crate::common::Common;
use crate::error::OpenError;
use crate::host_use::HostUse;
use crate::interface::{Interface, cannot_enter};
use crate::netns::Netns;
use api::AfXdp;
use netlink::Link;
use xdp::{Hook, HookError, Stage};

/// Refuses what may not be taken; what the host loses, as a note, where it may.
pub(super) fn claim(
    (spec, xdp): (&Common, &AfXdp),
    netns: &Netns,
    interface: &Interface,
    link: &Link,
) -> Result<Option<String>, OpenError> {
    unoccupied(netns, spec, link)?;
    taken_over(xdp, interface, link)
}

/// An XDP program of another is never replaced; one of ours may have room for another stage.
fn unoccupied(netns: &Netns, spec: &Common, link: &Link) -> Result<(), OpenError> {
    let taken =
        netns.run(|| Hook::taken(link.index)).map_err(|source| cannot_enter(spec, source))?;
    match taken {
        Err(HookError::Occupied { program, .. }) => Err(occupied(&link.name, program)),
        // What else may be wrong shows when it is attached.
        Err(_) => Ok(()),
        Ok(stages) if stages.contains(&Stage::Steer) => beside_steering(netns, spec, link),
        Ok(_) => Ok(()),
    }
}

/// Steering that leaves nothing for a port is in its way.
fn beside_steering(netns: &Netns, spec: &Common, link: &Link) -> Result<(), OpenError> {
    let places = netns.run(|| xdp::steer::places_missed(link.index));
    let places = places.map_err(|source| cannot_enter(spec, source))?;
    if !places.unwrap_or(false) {
        return Ok(());
    }
    let interface = link.name.clone();
    Err(OpenError::Busy {
        holder: "steering, which places frames that no rule names, too".into(),
        remedy: format!(
            "leave those to the port: suiro steer detach {interface}; suiro steer attach {interface} --unmatched stay"
        ),
        interface,
    })
}

/// Returns the host's loss as a note, if it is allowed.
fn taken_over(
    xdp: &AfXdp,
    interface: &Interface,
    link: &Link,
) -> Result<Option<String>, OpenError> {
    let uses = HostUse::of_link(interface, link.index)?;
    if uses.is_none() {
        return Ok(None);
    }
    if xdp.take_over != Some(true) {
        return Err(OpenError::HostUse { interface: link.name.clone(), uses });
    }
    Ok(Some(uses.taken_over()))
}

pub(super) fn occupied(interface: &str, id: u32) -> OpenError {
    let name = xdp::program_name(id).unwrap_or_else(|| "?".into());
    OpenError::Busy {
        interface: interface.to_owned(),
        holder: format!("XDP program {id}, \"{name}\""),
        remedy: format!(
            "stop its owner, or remove it (`ip link set dev {interface} xdp off`), or use type = \"af_packet\""
        ),
    }
}

/// Another port of ours, or another program's sockets, have its queues.
pub(super) fn taken(interface: &str) -> OpenError {
    OpenError::Busy {
        interface: interface.to_owned(),
        holder: "another AF_XDP socket has its queues: another af_xdp port, or another program"
            .into(),
        remedy: "remove that port, or stop its program (`ss --xdp -ap` names it)".into(),
    }
}
