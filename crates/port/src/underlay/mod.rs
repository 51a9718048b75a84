//! By which interface, next hop and addresses does the kernel send packets to a host now, and which addresses are this namespace's own?
//!
//! Live, from the kernel's own tables (rtnetlink(7)), so that a tunnel can put its outer headers on itself and yet go where the
//! kernel would have sent it: routes, rules and neighbours stay the administrator's.
//!
//! ## Invariants
//!
//! * One thread for a namespace, `suiro-underlay`, looks up what changed. It ends with the last [`Underlay`] and [`Watched`].
//! * Readers take no lock: an answer is exchanged as a whole, and only for a different one.
//! * One lock, of the tables, which the thread and [`Underlay::watch`] hold while they ask the kernel.
//! * An answer that is not used costs nothing but news; one that is used is looked up once a second besides, as a path MTU that a router
//!   told is announced to nobody, and the kernel is asked to confirm its neighbour.
//!
//! Only tables are followed: who sends by the answer goes past the kernel's packet filter and its IPsec policies (xfrm). Of several
//! equal routes the answer is the one that the kernel takes for this pair of addresses, whatever the ports.

mod follow;
mod hop;
#[cfg(test)]
mod tests;

pub(crate) use hop::{NextHop, NoHop};

use crate::netns::{Netns, NetnsRef};
use arc_swap::{ArcSwap, Guard};
use follow::Shared;
use hop::Wanted;
use netlink::{Netlink, TableMonitor};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;

/// One look, for who asks once: how packets to this address leave now.
///
/// # Errors
/// [`NoHop`].
pub(crate) fn next_hop(
    netlink: &Netlink,
    remote: IpAddr,
    source: Option<IpAddr>,
) -> Result<NextHop, NoHop> {
    hop::look_up(netlink, Wanted { remote, source }).answer
}

/// One namespace's tables.
pub(crate) struct Underlay {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Underlay {
    /// Begins to follow them; `None` is the node's own namespace.
    ///
    /// # Errors
    /// The namespace cannot be entered, its addresses not be read, or the system refuses sockets or a thread.
    pub(crate) fn new(netns: Option<&NetnsRef>) -> io::Result<Arc<Self>> {
        // Listens before it looks: nothing is missed between.
        let open = || -> io::Result<_> { Ok((TableMonitor::new()?, Netlink::new()?)) };
        let (monitor, netlink) = Netns::open(netns)?.run(open)??;
        let shared = Arc::new(Shared::new(netlink)?);
        let followed = shared.clone();
        let name = std::thread::Builder::new().name("suiro-underlay".into());
        let thread = Some(name.spawn(move || followed.follow(monitor))?);
        Ok(Arc::new(Self { shared, thread }))
    }

    /// How packets to this address leave, from this source address if one is given: the answer is there when this returns, and is looked
    /// up again whenever the tables change.
    pub(crate) fn watch(self: &Arc<Self>, remote: IpAddr, source: Option<IpAddr>) -> Watched {
        let watch = self.shared.watch(Wanted { remote, source });
        Watched { watch, underlay: self.clone() }
    }

    /// Whether packets to this address are this namespace's own. Lock-free.
    pub(crate) fn is_own(&self, address: IpAddr) -> bool {
        self.shared.is_own(address)
    }
}

impl Drop for Underlay {
    fn drop(&mut self) {
        self.shared.end();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The answer to one question, for as long as it is held.
pub(crate) struct Watched {
    watch: Arc<Watch>,
    underlay: Arc<Underlay>,
}

impl Watched {
    /// The answer now. Lock-free.
    pub(crate) fn next_hop(&self) -> Guard<Arc<Answer>> {
        self.watch.answer.load()
    }

    /// Looks now, and has the kernel find the neighbour if it does not know it.
    pub(crate) fn find(&self) {
        self.used();
        self.underlay.shared.find(&self.watch);
    }

    /// A frame went this way, or would have if there were a next hop: within a second the kernel is asked to confirm or find the neighbour,
    /// as if it had sent the frame itself.
    pub(crate) fn used(&self) {
        // All workers share the line: it is written once a second, and else only read.
        if !self.watch.is_used.load(Relaxed) {
            self.watch.is_used.store(true, Relaxed);
        }
    }
}

type Answer = Result<NextHop, NoHop>;

/// One question, shared by who asked and the thread.
struct Watch {
    wanted: Wanted,
    answer: ArcSwap<Answer>,
    is_used: AtomicBool,
}

impl Watch {
    fn new(wanted: Wanted, answer: Answer) -> Self {
        Self { wanted, answer: ArcSwap::from_pointee(answer), is_used: false.into() }
    }

    /// Makes it known, if it is a different one. Under the lock of the tables.
    fn publish(&self, answer: Answer) {
        if **self.answer.load() != answer {
            self.answer.store(Arc::new(answer));
        }
    }
}
