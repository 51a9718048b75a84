//! AF_PACKET: any existing interface, by packet sockets.
//!
//! `PACKET_VNET_HDR` keeps 64 KiB segments and unfinished checksums as they are, both ways. What the kernel did to the frame on
//! its way to the socket is undone: a VLAN tag that it moved to the side is put back ([`rx`]). Frames that suiro sends are not received again
//! (`PACKET_IGNORE_OUTGOING`). The kernel's own stack also sees the frames; give the interface no addresses.

mod long;
mod past;
mod rx;
mod socket;
mod told;
mod tx;

pub use socket::PacketSocket;
pub(crate) use told::{ToldTx, is_too_long, open as told};
pub(crate) use tx::PacketTx;

use crate::common::Common;
use crate::control::{Keep, PortControl};
use crate::error::{ControlError, OpenError};
use crate::facts::PortFacts;
use crate::interface::{Interface, cannot_enter, open_netns};
use crate::netns::Netns;
use crate::opened::OpenPort;
use crate::past::{Opening, Taker};
use crate::queue::{RxQueue, TxQueue};
use crate::sys::packet::{self, PACKET_FANOUT};
use netlink::Link;
use offload::PortReason;
use rx::PacketRx;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use xdp::offload::{Flows, Past, RungPort as _, TcPort};

/// Frames of a flow stay on one socket (`PACKET_FANOUT_HASH`), in a group that only we are in (`…_FLAG_UNIQUEID`).
const FANOUT_HASH_UNIQUE: i32 = 0x2000 << 16;
/// Chosen: the kernel has no bound, a larger number helps no one.
const QUEUES_MAX: u16 = 64;
/// Chosen: about 10 ms of 64 KiB segments at 20 Gbit/s with their bookkeeping; OVS loses and retransmits with the default of 208 KiB.
const RECEIVE_BUFFER: i32 = 32 << 20;
/// Half of what may be on its way to a guest that is late: the kernel doubles it. Chosen: more full frames (1800) than a core's backlog
/// takes (1000). By the kernel's default 93 filled it, and three segments of 64 KiB.
const SEND_BUFFER: i32 = 2 << 20;

/// Opens packet sockets on an interface; flows may go past them by `flows`.
pub(crate) fn open(
    spec: &Common,
    workers: usize,
    flows: Option<&Arc<Flows>>,
) -> Result<OpenPort, OpenError> {
    let netns = open_netns(spec)?;
    let interface = Interface::new(spec, &netns)?;
    let link = interface.find(spec)?;
    let queues = spec.queues.max(1);
    if queues > QUEUES_MAX {
        let interface = spec.interface.clone();
        return Err(OpenError::Queues { interface, asked: queues, available: QUEUES_MAX });
    }
    let link = interface.configure(spec, &link)?;
    let (tx, untold) = senders(spec, &netns, &link, workers)?;
    let queues = u32::from(queues);
    let opening = flows.map(|flows| Opening { interface: &interface, link: &link, queues, flows });
    let opened = opening.map(|opening| past::open(&opening, &netns, &tx));
    let (past, note) = opened.unwrap_or_default();
    let filter = past.as_ref().and_then(|past| past.as_ref().ok());
    let rx = receivers(spec, &netns, &link, queues, filter)?;
    let plural = if queues == 1 { "" } else { "s" };
    let mode = format!("af_packet, {queues} queue{plural}");
    let notes: Vec<String> = untold.into_iter().chain(note).collect();
    let facts = interface.facts(link, &mode, &notes);
    let rx = rx
        .into_iter()
        .map(|socket| Box::new(PacketRx::new(socket, filter.cloned())) as Box<dyn RxQueue>)
        .collect();
    let control = PacketControl { index: facts.index, interface, mode, notes, past };
    let tx = tx.into_iter().map(|queue| Box::new(queue) as Box<dyn TxQueue>).collect();
    Ok(OpenPort { facts, rx, tx, control: Box::new(control) })
}

/// The receiving sockets, sharing the flows by hash when there are several.
fn receivers(
    spec: &Common,
    netns: &Netns,
    link: &Link,
    queues: u32,
    filter: Option<&Arc<TcPort>>,
) -> Result<Vec<OwnedFd>, OpenError> {
    let make = || {
        let mut group = FANOUT_HASH_UNIQUE;
        let mut sockets = Vec::new();
        for _ in 0..queues {
            let socket = receiver(link.index, filter)?;
            if queues > 1 {
                packet::set_int(&socket, libc::SOL_PACKET, PACKET_FANOUT, group)?;
                // The kernel chose the group's number; the others join it by number.
                group = packet::get_int(&socket, libc::SOL_PACKET, PACKET_FANOUT)?
                    & !FANOUT_HASH_UNIQUE;
            }
            sockets.push(socket);
        }
        Ok(sockets)
    };
    made(spec, netns, "open receiving packet sockets", make)
}

fn receiver(index: u32, filter: Option<&Arc<TcPort>>) -> io::Result<OwnedFd> {
    let socket = packet::socket()?;
    packet::set_int(&socket, libc::SOL_PACKET, packet::PACKET_VNET_HDR, 1)?;
    packet::set_int(&socket, libc::SOL_PACKET, packet::PACKET_AUXDATA, 1)?;
    packet::set_int(&socket, libc::SOL_PACKET, packet::PACKET_IGNORE_OUTGOING, 1)?;
    // Beyond net.core.rmem_max needs CAP_NET_ADMIN; without it, as much as that allows.
    packet::set_int(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, RECEIVE_BUFFER)
        .or_else(|_| packet::set_int(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, RECEIVE_BUFFER))?;
    packet::join_promiscuous(&socket, index)?;
    if let Some(filter) = filter {
        // Before the first frame, so that all are counted.
        filter.filter(&socket).map_err(io::Error::other)?;
    }
    packet::bind(&socket, index, libc::ETH_P_ALL as u16)?;
    Ok(socket)
}

/// One sender for each worker, and a note of what they lack.
pub(crate) fn senders(
    spec: &Common,
    netns: &Netns,
    link: &Link,
    count: usize,
) -> Result<(Vec<PacketTx>, Option<String>), OpenError> {
    let (told, note) = told::open(spec, netns, link, count)?;
    let make =
        || told.into_iter().map(|told| Ok(PacketTx::new(sender(link.index)?, told))).collect();
    Ok((made(spec, netns, "open sending packet sockets", make)?, note))
}

/// By the kernel's ordinary way out: `PACKET_QDISC_BYPASS` would pass by queue disciplines, those to come as well, and captures.
fn sender(index: u32) -> io::Result<OwnedFd> {
    let socket = packet::socket()?;
    packet::set_int(&socket, libc::SOL_PACKET, packet::PACKET_VNET_HDR, 1)?;
    packet::set_int(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, SEND_BUFFER)
        .or_else(|_| packet::set_int(&socket, libc::SOL_SOCKET, libc::SO_SNDBUF, SEND_BUFFER))?;
    // Protocol 0: bound for sending, receives nothing.
    packet::bind(&socket, index, 0)?;
    Ok(socket)
}

/// Makes something in the interface's namespace.
fn made<T: Send>(
    spec: &Common,
    netns: &Netns,
    step: &'static str,
    make: impl FnOnce() -> io::Result<T> + Send,
) -> Result<T, OpenError> {
    let entered = netns.run(make).map_err(|source| cannot_enter(spec, source))?;
    entered.map_err(|source| OpenError::io(&spec.interface, step, source))
}

struct PacketControl {
    interface: Interface,
    index: u32,
    mode: String,
    notes: Vec<String>,
    past: Option<Taker<TcPort>>,
}

impl PortControl for PacketControl {
    fn facts(&self) -> Result<PortFacts, ControlError> {
        let link = self.interface.link(self.index)?;
        Ok(self.interface.facts(link, &self.mode, &self.notes))
    }

    fn past(&self) -> Option<Result<Past, PortReason>> {
        self.past.clone().map(|past| past.map(Past::Tc))
    }

    fn set_admin(&self, up: bool) -> Result<(), ControlError> {
        self.interface.set_admin(self.index, up)
    }

    fn set_mtu(&self, mtu: u32) -> Result<(), ControlError> {
        self.interface.set_mtu(self.index, mtu)
    }

    /// The interface is not ours: it stays either way. Flows past the worker go on as long as it is kept.
    fn close(self: Box<Self>, keep: Keep) -> Result<(), ControlError> {
        if let (Keep::Nothing, Some(Ok(past))) = (keep, &self.past) {
            past.close();
        }
        Ok(())
    }
}
