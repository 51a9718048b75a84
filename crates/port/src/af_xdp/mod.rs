//! AF_XDP: any existing interface with XDP, past the kernel's stack.
//!
//! * The best mode that the interface takes is chosen ([`ladder`]), and each better one is reported with its reason.
//! * A frame's body stays in the UMEM until the destination copies it once.
//! * Checksums: a veth hands over frames whose checksum the sender left unfinished, without saying so. They are recognised
//!   (the field holds the pseudo-header's sum) and marked; towards the interface, the kernel completes them, or suiro does.
//! * Large frames are not for AF_XDP: towards the interface they are cut into UMEM frames, and what could send such frames to us is
//!   switched off where it can be reached ([`offloads`]), counted as `too_big` where it cannot.
//! * XDP sees no VLAN tag that is beside the frame: while the port is open, tags stay in frames ([`offloads`]).
//! * A burst of frames leaves as XDP frames where the driver takes them ([`burst`]), which in copy mode costs half.
//! * The interface takes frames for any address ([`listener`]): a guest's is not its own.
//! * More queues, or a larger MTU than the buffers were made for: the port is opened again ([`control`]).
//! * A worker without a queue of its own sends through a packet socket: no lock, no ring shared by two threads.

mod burst;
mod control;
mod ladder;
mod listener;
mod offloads;
mod queue;

pub(crate) use burst::{Transmitters, without};

use crate::af_packet;
use crate::error::OpenError;
use crate::host_use::HostUse;
use crate::interface::{Interface, cannot_enter, open_netns};
use crate::netns::Netns;
use crate::opened::OpenPort;
use crate::queue::{RxQueue, TxQueue};
use crate::spec::PortSpec;
use crate::sys::xsk::RX_HEADROOM;
use burst::Seen;
use control::{Watched, XdpControl};
use ladder::Attached;
use netlink::Link;
use offloads::Offloads;
use queue::{Checksums, XdpRx, XdpTx};
use std::path::Path;
use std::sync::Arc;
use xdp::{Hook, HookError, Stage};

/// Ethernet header and two tags.
const FRAME_OVERHEAD: u32 = 14 + 2 * 4;
/// Sizes of a UMEM frame, headroom included: the kernel takes 2048 up to a page.
const CHUNKS: [u32; 2] = [2048, 4096];
/// Frames of each half of a queue: chosen so that a queue of an ordinary MTU fits 4 MiB and 1 ms at 1 Mpps.
const FRAMES: u32 = 1024;

/// Opens AF_XDP sockets on every rx queue of an interface.
pub(crate) fn open<'t>(
    spec: &PortSpec,
    workers: usize,
    notes_of_offloads: Option<&Path>,
    transmitters: impl FnOnce() -> Result<&'t Transmitters, &'t str>,
) -> Result<OpenPort, OpenError> {
    let netns = open_netns(spec)?;
    let interface = Interface::new(spec, &netns)?;
    let link = interface.find(spec)?;
    unoccupied(&netns, spec, &link)?;
    let taken_over = taken_over(spec, &interface, &link)?;
    let available = interface.ethtool().rx_queues();
    if u32::from(spec.queues) > available {
        let interface = spec.interface.clone();
        return Err(OpenError::Queues {
            interface,
            asked: spec.queues,
            available: available as u16,
        });
    }
    let chunk = chunk_for(spec.mtu.unwrap_or(link.mtu)).map_err(|why| OpenError::Mtu {
        interface: spec.interface.clone(),
        mtu: spec.mtu.unwrap_or(link.mtu),
        why,
    })?;
    let link = interface.configure(spec, &link)?;
    let mut offloads = Offloads::of(&interface, &link, notes_of_offloads)?;
    offloads.keep_tags(&link.name)?;
    let Attached { sockets, worker, mode, zero_copy, mut notes } =
        ladder::attach(spec, &netns, &link, available, chunk)?;
    if u32::from(spec.queues) != available && spec.queues != 0 {
        notes.push(format!(
            "all {available} rx queues are taken: frames on the others would pass suiro by"
        ));
    }
    notes.extend(taken_over);
    offloads.keep_small(worker.mode(), &link, &mut notes);
    let checksums =
        if link.kind.is_empty() { Checksums::Complete } else { Checksums::MayBePartial };
    let seen = Arc::new(Seen::default());
    let mut rx: Vec<Box<dyn RxQueue>> = Vec::new();
    let mut tx: Vec<Box<dyn TxQueue>> = Vec::new();
    for (receiving, sending) in sockets {
        rx.push(Box::new(XdpRx::new(receiving, checksums)));
        if tx.len() < workers {
            tx.push(Box::new(XdpTx::new(sending)));
        }
    }
    let without = workers - tx.len();
    if without > 0 {
        notes.push(format!(
            "{without} of {workers} workers send through packet sockets: {available} queues"
        ));
        let senders = af_packet::senders(spec, &netns, &link, without)?;
        tx.extend(senders.into_iter().map(|queue| Box::new(queue) as Box<dyn TxQueue>));
    }
    // Zero-copy sends cheaper still; of several queues each flow must stay with its own; longer frames fit no slot.
    if !zero_copy && available == 1 && chunk == CHUNKS[0] {
        match transmitters() {
            Ok(transmitters) => {
                let ways = netns.run(|| transmitters.ways_out(link.index, &seen));
                match ways.map_err(|source| cannot_enter(spec, source))? {
                    Ok(ways) => tx = burst::before(ways, tx),
                    Err(why) => notes.push(why),
                }
            }
            Err(why) => notes.push(why.to_owned()),
        }
    }
    let listener = listener::listen(spec, &netns, link.index)?;
    let control = XdpControl {
        index: link.index,
        watched: Watched::new(&interface, &link),
        interface,
        worker,
        offloads,
        _listener: listener,
        mode,
        notes,
        seen,
        chunk,
        queues: available,
    };
    Ok(OpenPort { facts: control.describe(link), rx, tx, control: Box::new(control) })
}

/// An XDP program of another is never replaced; one of ours may have room for another stage.
fn unoccupied(netns: &Netns, spec: &PortSpec, link: &Link) -> Result<(), OpenError> {
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
fn beside_steering(netns: &Netns, spec: &PortSpec, link: &Link) -> Result<(), OpenError> {
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

/// What the host loses, as a note, if it may.
fn taken_over(
    spec: &PortSpec,
    interface: &Interface,
    link: &Link,
) -> Result<Option<String>, OpenError> {
    let uses = HostUse::of_link(interface, link.index)?;
    if uses.is_none() {
        return Ok(None);
    }
    if !spec.take_over {
        return Err(OpenError::HostUse { interface: link.name.clone(), uses });
    }
    Ok(Some(uses.taken_over()))
}

fn occupied(interface: &str, id: u32) -> OpenError {
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
fn taken(interface: &str) -> OpenError {
    OpenError::Busy {
        interface: interface.to_owned(),
        holder: "another AF_XDP socket has its queues: another af_xdp port, or another program"
            .into(),
        remedy: "remove that port, or stop its program (`ss --xdp -ap` names it)".into(),
    }
}

/// The smallest UMEM frame for an MTU.
fn chunk_for(mtu: u32) -> Result<u32, String> {
    let largest = |chunk: u32| chunk - RX_HEADROOM - FRAME_OVERHEAD;
    let chunk = CHUNKS.into_iter().find(|&chunk| mtu <= largest(chunk));
    chunk.ok_or_else(|| format!("an AF_XDP frame holds {} or less", largest(CHUNKS[1])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_mtu_takes_the_small_frame_and_a_jumbo_one_is_refused() {
        assert_eq!(chunk_for(1500), Ok(2048));
        assert_eq!(chunk_for(1770), Ok(2048));
        assert_eq!(chunk_for(1771), Ok(4096));
        assert_eq!(chunk_for(3818), Ok(4096));
        assert!(chunk_for(9000).is_err());
    }
}
