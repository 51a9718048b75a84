//! The half of an AF_XDP port that the node keeps, and what it says of the interface.

use super::burst::Seen;
use super::chunk_for;
use super::offloads::Offloads;
use super::past::Passage;
use crate::control::{Keep, PortControl};
use crate::error::ControlError;
use crate::facts::PortFacts;
use crate::interface::{Interface, in_range};
use netlink::Link;
use offload::PortReason;
use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use xdp::offload::{Past, RungPort as _};
use xdp::{QUEUES_MAX, Verdict, Worker};

/// Queue disciplines that interfaces have without anybody's asking.
const USUAL_QDISCS: [&str; 6] = ["", "noop", "noqueue", "mq", "pfifo_fast", "fq_codel"];
/// Note on captures.
const UNSEEN: &str =
    "tcpdump on the interface sees no frame of it: AF_XDP passes the kernel's captures by";

pub(super) struct XdpControl {
    pub(super) interface: Interface,
    pub(super) index: u32,
    // Before the offloads: fields drop in order, and no frame may come without its tag.
    pub(super) worker: Worker,
    pub(super) passage: Option<Passage>,
    pub(super) offloads: RefCell<Offloads>,
    pub(super) _listener: OwnedFd,
    pub(super) mode: String,
    pub(super) notes: Vec<String>,
    pub(super) seen: Arc<Seen>,
    /// Bytes of a UMEM frame.
    pub(super) chunk: u32,
    /// Queues with a socket.
    pub(super) queues: u32,
    pub(super) watched: Watched,
}

/// Queues and queue discipline, which change without an event; looked at every few seconds.
#[derive(Default)]
pub(super) struct Watched(RefCell<(u32, String)>);

impl Watched {
    pub(super) fn new(interface: &Interface, link: &Link) -> Self {
        Self(RefCell::new((interface.ethtool().rx_queues(), link.qdisc.clone())))
    }

    /// Whether it differs from the last look.
    fn changed(&self, interface: &Interface, index: u32) -> bool {
        let Ok(link) = interface.link(index) else { return false };
        let now = (interface.ethtool().rx_queues(), link.qdisc);
        self.0.replace(now.clone()) != now
    }
}

impl XdpControl {
    /// The state of the interface, and all that there is to say of it.
    pub(super) fn describe(&self, link: Link) -> PortFacts {
        let link = self.offloads.borrow().told(link);
        let mut notes = self.notes.clone();
        notes.push(UNSEEN.into());
        notes.extend(self.offloads.borrow().note());
        notes.extend(self.seen.note());
        notes.extend(self.of_qdisc(&link));
        notes.extend(self.of_mtu(&link));
        notes.extend(self.of_queues());
        self.interface.facts(link, &self.mode, &notes)
    }

    fn of_qdisc(&self, link: &Link) -> Option<String> {
        let qdisc = &link.qdisc;
        (!USUAL_QDISCS.contains(&&**qdisc)).then(|| {
            format!("its qdisc {qdisc} has no effect: AF_XDP passes it by; use the port's rate, or type = \"af_packet\"")
        })
    }

    fn of_mtu(&self, link: &Link) -> Option<String> {
        let why = chunk_for(link.mtu).err()?;
        Some(format!(
            "MTU {} is more than it can receive: {why}; longer ones are dropped as too_big",
            link.mtu
        ))
    }

    fn of_queues(&self) -> Option<String> {
        let counts = self.worker.counts().ok()?;
        let (_, lost) = counts.into_iter().find(|(verdict, _)| *verdict == Verdict::NoSocket)?;
        (lost.frames > 0).then(|| {
            format!(
                "{} frames came by queues that had no socket yet, and were dropped",
                lost.frames
            )
        })
    }
}

impl PortControl for XdpControl {
    fn facts(&self) -> Result<PortFacts, ControlError> {
        Ok(self.describe(self.interface.link(self.index)?))
    }

    fn has_news(&self) -> bool {
        // All are asked: what is not asked stays news.
        let exit_changed =
            self.passage.as_ref().is_some_and(|passage| passage.look(&self.interface, self.index));
        let tags_changed = self.offloads.borrow_mut().look();
        let watched = self.watched.changed(&self.interface, self.index);
        self.seen.changed() | watched | exit_changed | tags_changed
    }

    fn past(&self) -> Option<Result<Past, PortReason>> {
        self.passage.as_ref().map(Passage::past)
    }

    fn outgrown(&self) -> Option<String> {
        let queues = self.interface.ethtool().rx_queues();
        if queues > self.queues && queues <= QUEUES_MAX {
            return Some(format!("it has {queues} rx queues now, {} have sockets", self.queues));
        }
        let mtu = self.offloads.borrow().told(self.interface.link(self.index).ok()?).mtu;
        let wanted = chunk_for(mtu).ok().filter(|&chunk| chunk > self.chunk);
        wanted.map(|_| format!("its MTU is {mtu} now, which needs larger buffers"))
    }

    fn set_admin(&self, up: bool) -> Result<(), ControlError> {
        self.interface.set_admin(self.index, up)
    }

    /// Bounded by the largest frame of a UMEM; for one larger than those of now the port is opened again ([`PortControl::outgrown`]).
    fn set_mtu(&self, mtu: u32) -> Result<(), ControlError> {
        let refused =
            |why| ControlError::Mtu { interface: self.interface.name().to_owned(), mtu, why };
        chunk_for(mtu).map_err(refused)?;
        let link = self.interface.link(self.index)?;
        in_range(&link, mtu).map_err(refused)?;
        let changed = self.offloads.borrow_mut().set_mtu(&link, mtu, self.interface.netlink());
        changed.map_err(|source| ControlError::io(self.interface.name(), "set the MTU", source))
    }

    /// The programs go with their stages; the interface is not ours and stays, with the offloads that it had. Flows past the worker go on as long
    /// as it is kept, and with them what keeps tags in their frames; the next start puts that back.
    fn close(self: Box<Self>, keep: Keep) -> Result<(), ControlError> {
        let port = self.passage.as_ref().and_then(Passage::port);
        if let (Keep::Nothing, Some(port)) = (keep, &port) {
            port.close();
        }
        drop(self.worker);
        if port.is_some_and(|port| port.has_flows()) {
            self.offloads.into_inner().leave();
            return Ok(());
        }
        let put_back = self.offloads.into_inner().put_back();
        let name = self.interface.name();
        put_back.map_err(|source| ControlError::io(name, "put its offloads back", source))
    }
}
