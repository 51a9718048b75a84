//! Whether flows can go past a port's worker in the kernel, and what for.

use crate::interface::Interface;
use crate::netns::Netns;
use netlink::Link;
use offload::PortReason;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use xdp::offload::{Flows, Interface as Hooked};

/// The calling thread's network namespace.
const OWN_NETNS: &str = "/proc/thread-self/ns/net";

/// A port that is being opened.
pub(crate) struct Opening<'p> {
    pub(crate) interface: &'p Interface,
    pub(crate) link: &'p Link,
    /// Sockets among which frames are spread.
    pub(crate) queues: u32,
    pub(crate) flows: &'p Arc<Flows>,
}

/// What takes a port's flows, or why nothing does.
pub(crate) type Taker<P> = Result<Arc<P>, PortReason>;
pub(crate) type Refused = Box<dyn std::error::Error + Send + Sync>;

impl Opening<'_> {
    /// What takes its flows, which `open` makes in the interface's namespace, and a note where the system refused it. `exit` says whether flows
    /// can leave by it.
    pub(crate) fn taker<P: Send + Sync>(
        &self,
        netns: &Netns,
        exit: Result<(), PortReason>,
        open: impl FnOnce(&Arc<Flows>, Hooked<'_>) -> Result<P, Refused> + Send,
    ) -> (Option<Taker<P>>, Option<String>) {
        if self.queues > 1 {
            return (Some(Err(PortReason::SeveralQueues { queues: self.queues as u16 })), None);
        }
        let (flows, link) = (self.flows, self.link);
        let opened = netns.run(|| {
            let netns = fs::metadata(OWN_NETNS)?.ino();
            open(flows, Hooked { name: &link.name, index: link.index, netns, exit })
        });
        match opened.map_err(Into::into).and_then(|opened| opened) {
            Ok(port) => (Some(Ok(Arc::new(port))), None),
            Err(error) => (None, Some(format!("no flow goes past the worker: {}", chain(&*error)))),
        }
    }
}

/// Whether an interface has one way in and out only.
pub(crate) fn one_queue(interface: &Interface) -> Result<(), PortReason> {
    match interface.ethtool().queues() {
        queues @ 2.. => Err(PortReason::SeveralQueues { queues: queues as u16 }),
        _ => Ok(()),
    }
}

/// An error with its causes, as one clause.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
