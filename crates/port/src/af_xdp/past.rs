//! Whether flows can go past a port's worker in the interface's XDP hook.
//!
//! Frames of worker and rung must meet in one queue, or they may pass each other: a veth has one ring for both, a TAP too. A card sends
//! redirected frames by queues of their own. And a veth lets a socket's frames pass the rung's, so the worker must be able to send
//! XDP frames, too ([`super::burst`]).

use crate::interface::Interface;
use crate::netns::Netns;
use crate::past::{Opening, Taker, one_queue};
use netlink::{Link, Netdev};
use offload::PortReason;
use std::sync::Arc;
use xdp::offload::{Past, RungPort as _, XdpParts, XdpPort};
use xdp::{Mode, Worker};

/// What takes a port's flows, and whether they can leave by it.
pub(super) struct Passage {
    taker: Taker<XdpPort>,
    /// Who knows whether the interface takes redirected frames; a kernel that is too old has no rung.
    netdev: Option<Netdev>,
    /// The worker can send XDP frames.
    sends_frames: bool,
}

impl Passage {
    /// The passage of a port, and a note where the system refused it.
    pub(super) fn open(
        port: &Opening<'_>,
        netns: &Netns,
        worker: &Worker,
        sends_frames: bool,
    ) -> (Option<Self>, Option<String>) {
        let without = |taker| (Some(Self { taker, netdev: None, sends_frames }), None);
        if worker.mode() == Mode::Generic {
            return without(Err(PortReason::GenericHook));
        }
        let netdev = netns.run(Netdev::open).and_then(|opened| opened).ok().flatten();
        let may_be_unfinished = port.link.is_virtual();
        let exit = exit(netdev.as_ref(), port.interface, (port.link, sends_frames));
        let (taker, note) = port.taker(netns, exit, |flows, interface| {
            Ok(XdpPort::open(flows, &XdpParts { interface, worker, may_be_unfinished })?)
        });
        (taker.map(|taker| Self { taker, netdev, sends_frames }), note)
    }

    /// Looks anew whether flows can leave by the interface; true if that is other than before.
    pub(super) fn look(&self, interface: &Interface, index: u32) -> bool {
        let (Ok(port), Ok(link)) = (&self.taker, interface.link(index)) else { return false };
        port.set_exit(exit(self.netdev.as_ref(), interface, (&link, self.sends_frames)))
    }

    /// As the node sees it.
    pub(super) fn past(&self) -> Result<Past, PortReason> {
        self.taker.clone().map(Past::Xdp)
    }

    /// Who takes flows, for the port's worker.
    pub(super) fn port(&self) -> Option<Arc<XdpPort>> {
        self.taker.as_ref().ok().cloned()
    }
}

/// Whether flows can leave by the interface now: a veth takes redirected frames while its other end has GRO or a program.
fn exit(
    netdev: Option<&Netdev>,
    interface: &Interface,
    (link, sends_frames): (&Link, bool),
) -> Result<(), PortReason> {
    match &*link.kind {
        "tun" => {}
        "veth" if sends_frames => {}
        "veth" => return Err(PortReason::SocketPasses),
        _ => return Err(PortReason::OwnQueues),
    }
    one_queue(interface)?;
    let features = netdev.and_then(|netdev| netdev.xdp_features(link.index).ok().flatten());
    let takes_frames = features.is_some_and(|features| features.takes_frames());
    if takes_frames { Ok(()) } else { Err(PortReason::ExitTakesNoFrames) }
}
