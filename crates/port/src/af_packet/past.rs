//! Whether flows can go past a port's worker at the kernel's tc hook, and what for.

use super::tx::PacketTx;
use crate::interface::Interface;
use crate::netns::Netns;
use netlink::Link;
use offload::PortReason;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use xdp::offload::{Flows, Interface as Hooked, TcPort};

/// The calling thread's network namespace.
const OWN_NETNS: &str = "/proc/thread-self/ns/net";

/// A port that is being opened.
pub(super) struct Past<'p> {
    pub(super) interface: &'p Interface,
    pub(super) link: &'p Link,
    /// Sockets among which frames are spread.
    pub(super) queues: u16,
    pub(super) flows: &'p Arc<Flows>,
}

/// What takes its flows, or why nothing does.
type Taker = Result<Arc<TcPort>, PortReason>;
type Refused = Box<dyn std::error::Error + Send + Sync>;

impl Past<'_> {
    /// What takes its flows, and a note where the system refused it.
    pub(super) fn open(
        &self,
        netns: &Netns,
        senders: &[PacketTx],
    ) -> (Option<Taker>, Option<String>) {
        if self.queues > 1 {
            return (Some(Err(PortReason::SeveralQueues { queues: self.queues })), None);
        }
        let exit = self.exit();
        let (flows, link) = (self.flows, self.link);
        let opened = netns.run(|| taker(flows, link, exit, senders));
        match opened.map_err(Into::into).and_then(|opened| opened) {
            Ok(port) => (Some(Ok(Arc::new(port))), None),
            Err(error) => (None, Some(format!("no flow goes past the worker: {}", chain(&*error)))),
        }
    }

    /// Whether flows can leave by the interface: straight into the other end of a veth.
    fn exit(&self) -> Result<(), PortReason> {
        let queues = self.interface.ethtool().queues();
        match self.link.peer {
            _ if self.link.kind != "veth" => Err(PortReason::ExitTakesNoFrames),
            Some(peer) if peer.netns_id.is_none() => Err(PortReason::SameNamespace),
            None => Err(PortReason::ExitTakesNoFrames),
            Some(_) if queues > 1 => Err(PortReason::SeveralQueues { queues: queues as u16 }),
            Some(_) => Ok(()),
        }
    }
}

fn taker(
    flows: &Arc<Flows>,
    link: &Link,
    exit: Result<(), PortReason>,
    senders: &[PacketTx],
) -> Result<TcPort, Refused> {
    let senders = senders.iter().map(PacketTx::socket).collect::<Result<_, _>>()?;
    let netns = fs::metadata(OWN_NETNS)?.ino();
    let interface = Hooked { name: &link.name, index: link.index, netns, exit };
    Ok(TcPort::open(flows, &interface, senders)?)
}

/// An error with its causes, as one clause.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
