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
//! * A frame that is too long for a veth because of its second tag leaves by a packet socket, with the outer one beside it.
//! * A worker without a queue of its own sends through a packet socket: no lock, no ring shared by two threads.

mod burst;
mod claim;
mod control;
mod ladder;
mod listener;
mod offloads;
mod past;
mod queue;

pub(crate) use burst::{Transmitters, without};

use crate::af_packet;
use crate::common::Common;
use crate::error::OpenError;
use crate::interface::{Interface, cannot_enter, open_netns};
use crate::opened::OpenPort;
use crate::past::Opening;
use crate::queue::{RxQueue, TxQueue};
use crate::settings::Notes;
use crate::sys::xsk::{RX_HEADROOM, XskRx, XskTx};
use api::AfXdp;
use burst::{Seen, WayOut};
use control::{Watched, XdpControl};
use ladder::Attached;
use netlink::Link;
use offloads::Offloads;
use past::Passage;
use queue::{Checksums, XdpRx, XdpTx};
use std::sync::Arc;
use xdp::offload::{Flows, XdpPort};

/// Ethernet header and two tags.
const FRAME_OVERHEAD: u32 = 14 + 2 * 4;
/// Sizes of a UMEM frame, headroom included: the kernel takes 2048 up to a page.
const CHUNKS: [u32; 2] = [2048, 4096];
/// Frames of each half of a queue: chosen so that a queue of an ordinary MTU fits 4 MiB and 1 ms at 1 Mpps.
const FRAMES: u32 = 1024;

/// Opens AF_XDP sockets on every rx queue of an interface.
pub(crate) fn open<'t>(
    (spec, xdp): (&Common, &AfXdp),
    workers: usize,
    changes: &Notes,
    flows: Option<&Arc<Flows>>,
    transmitters: impl FnOnce() -> Result<&'t Transmitters, &'t str>,
) -> Result<OpenPort, OpenError> {
    let netns = open_netns(spec)?;
    let interface = Interface::new(spec, &netns)?;
    let link = interface.find(spec)?;
    let taken_over = claim::claim((spec, xdp), &netns, &interface, &link)?;
    let queues = queues_of(spec, &interface)?;
    let mut offloads = Offloads::of(&interface, &link, changes)?;
    let link = offloads.told(link);
    let chunk = chunk_of(spec, &link)?;
    let link = offloads.told(interface.configure(spec, &link)?);
    offloads.keep_tags(&link.name)?;
    let Attached { sockets, worker, mode, zero_copy, mut notes } =
        ladder::attach((spec, xdp), &netns, &link, queues, chunk)?;
    notes.extend(more_queues(spec, queues));
    notes.extend(taken_over);
    offloads.keep_small(worker.mode(), &link, &mut notes);
    if flows.is_some() {
        offloads.take_frames(worker.mode(), &mut notes);
    }
    let raised = offloads.set_mtu(&link, link.mtu, interface.netlink());
    raised.map_err(|source| OpenError::io(&link.name, "make room for a second tag", source))?;
    let (told, untold) = af_packet::told(spec, &netns, &link, workers)?;
    notes.extend(untold);
    let seen = Arc::new(Seen::new());
    // Zero-copy sends cheaper still; of several queues each flow must stay with its own; longer frames fit no slot.
    let ways = if !zero_copy && queues == 1 && chunk == CHUNKS[0] {
        let transmitters = transmitters();
        let ways = netns.run(|| ways_out(transmitters, link.index, &seen));
        ways.map_err(|source| cannot_enter(spec, source))?.map_err(|why| notes.push(why)).ok()
    } else {
        None
    };
    let opening = flows.map(|flows| Opening { interface: &interface, link: &link, queues, flows });
    let opened = opening.map(|opening| Passage::open(&opening, &netns, &worker, ways.is_some()));
    let (passage, note) = opened.unwrap_or_default();
    notes.extend(note);
    let past = passage.as_ref().and_then(Passage::port);
    let (rx, mut tx) = halves(sockets, &link, told, past.as_ref());
    if tx.len() < workers {
        let without = workers - tx.len();
        notes.push(format!(
            "{without} of {workers} workers send through packet sockets: {queues} queues"
        ));
        let senders = af_packet::senders(spec, &netns, &link, without)?.0;
        tx.extend(senders.into_iter().map(|queue| Box::new(queue) as Box<dyn TxQueue>));
    }
    if let Some(ways) = ways {
        tx = burst::before(ways, tx, longest(&link), past.as_ref());
    }
    let listener = listener::listen(spec, &netns, link.index)?;
    offloads.own(changes);
    let control = XdpControl {
        index: link.index,
        watched: Watched::new(&interface, &link),
        _listener: listener,
        interface,
        worker,
        passage,
        offloads: offloads.into(),
        mode,
        notes,
        seen,
        chunk,
        queues,
    };
    Ok(OpenPort { facts: control.describe(link), rx, tx, control: Box::new(control) })
}

/// All rx queues that the interface has, which must be as many as are wanted.
fn queues_of(spec: &Common, interface: &Interface) -> Result<u32, OpenError> {
    let available = interface.ethtool().rx_queues();
    if u32::from(spec.queues) <= available {
        return Ok(available);
    }
    let (interface, asked) = (spec.interface.clone(), spec.queues);
    Err(OpenError::Queues { interface, asked, available: available as u16 })
}

fn more_queues(spec: &Common, queues: u32) -> Option<String> {
    let are_more = spec.queues != 0 && u32::from(spec.queues) != queues;
    are_more.then(|| {
        format!("all {queues} rx queues are taken: frames on the others would pass suiro by")
    })
}

/// The UMEM frame for the MTU that the interface has or shall have.
fn chunk_of(spec: &Common, link: &Link) -> Result<u32, OpenError> {
    let mtu = spec.mtu.unwrap_or(link.mtu);
    let interface = spec.interface.clone();
    chunk_for(mtu).map_err(|why| OpenError::Mtu { interface, mtu, why })
}

type Halves = (Vec<Box<dyn RxQueue>>, Vec<Box<dyn TxQueue>>);

/// The halves of the sockets: all that receive, and those that send for a worker.
fn halves(
    sockets: Vec<(XskRx, XskTx)>,
    link: &Link,
    told: Vec<Option<af_packet::ToldTx>>,
    past: Option<&Arc<XdpPort>>,
) -> Halves {
    let checksums = if link.is_virtual() { Checksums::MayBePartial } else { Checksums::Complete };
    let (mut rx, mut tx): Halves = (Vec::new(), Vec::new());
    let mut told = told.into_iter();
    for (receiving, sending) in sockets {
        rx.push(Box::new(XdpRx::new(receiving, checksums, past.cloned())));
        if let Some(told) = told.next() {
            tx.push(Box::new(XdpTx::new(sending, told, longest(link))));
        }
    }
    (rx, tx)
}

/// Bytes of the longest frame that a veth takes with all of its tags in it.
fn longest(link: &Link) -> usize {
    link.mtu as usize + 14 + 4
}

/// Each worker's way out past the socket, in the calling thread's namespace; or why there is none.
fn ways_out(
    transmitters: Result<&Transmitters, &str>,
    index: u32,
    seen: &Arc<Seen>,
) -> Result<Vec<WayOut>, String> {
    transmitters.map_err(str::to_owned)?.ways_out(index, seen)
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
