//! # The OpenFlow agent
//!
//! **Question answered**: who talks OpenFlow with a switch, how do connections come and go, and what keeps one peer from
//! disturbing another?
//!
//! * [`Agent`]: one switch's connections. A task per controller that calls it until it answers (`connector`, by way of `call`), a task
//!   per address that is listened on and one for the management socket (`listener`). [`Link`] tells what each is doing.
//! * `session`: one connection, from `hello` to `end`. `requests` and `multipart` say what each request does.
//! * [`Peer`]: what the switch knows of a connection; it hears the switch's events. [`Channel`]: what a controller's main and auxiliary
//!   connections share.
//! * [`Outbox`]: what waits to be sent, with a bound for each kind of message.
//! * [`steering`]: suiro's own messages, about the host's cores and machines.
//!
//! ## Invariants
//!
//! * A peer that floods, hangs, reads nothing or sends garbage costs others a bounded turn (`session`) and bounded memory:
//!   its input buffer, its outbox, and the places of an address (`places`).
//! * A connection's membership in its switch ends with its session, however that ends.
//! * Nothing here knows how a version encodes: the codec does. A session's version is a value, agreed on in the hello.

mod assembly;
mod call;
mod channel;
mod connector;
mod end;
mod hello;
mod link;
mod listener;
mod liveness;
mod multipart;
mod names;
mod outbox;
mod peer;
mod places;
mod requests;
mod session;
mod sockets;
pub mod steering;
mod stream;
mod tap;
mod told;
mod zone;

#[cfg(test)]
mod tests;

pub use channel::Channel;
#[doc(hidden)] // As `serve`.
pub use end::End;
pub use link::{Link, LinkStatus, Phase};
pub use listener::BindError;
pub use liveness::Timing;
pub use names::Names;
pub use outbox::Outbox;
pub use peer::{Peer, PeerKind};
pub use places::Lot;
#[doc(hidden)] // For the fuzz target, whose connections have no address.
pub use session::{Caller, serve};
pub use sockets::Sockets;

use crate::switch::Switch;
use crate::tls::Tls;
use api::{Controller, Listen};
use listener::Bound;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::task::JoinSet;

/// Whom a switch calls, and where it waits for calls.
#[derive(Clone, Default)]
pub struct Endpoints {
    /// Controllers to call.
    pub controllers: Vec<Controller>,
    /// Addresses to listen on.
    pub listen: Vec<Listen>,
    /// The management socket, for `ovs-ofctl`.
    pub management: Option<PathBuf>,
    /// Certificates, for endpoints by TLS.
    pub tls: Option<Arc<Tls>>,
    /// Auxiliary connections to each controller that is called.
    pub auxiliaries: u8,
    /// What all of them may do with the host's steering.
    pub steering: Option<steering::Permit>,
    /// Where sockets are made; in the node's own network namespace without it.
    pub sockets: Option<Sockets>,
    /// How many connections the node may have.
    pub lot: Lot,
    /// Who looks up names.
    pub names: Names,
}

/// The connections of one switch. Dropping it ends them all and removes the management socket, some time soon; [`Agent::stop`] waits
/// for that.
pub struct Agent {
    shared: Arc<Shared>,
    tasks: JoinSet<()>,
    listening: Vec<SocketAddr>,
    links: Vec<Arc<Link>>,
}

/// What the tasks of one agent share.
pub(crate) struct Shared {
    switch: Arc<Switch>,
    timing: Timing,
    tls: Option<Arc<Tls>>,
    auxiliaries: u8,
    steering: Option<steering::Permit>,
    sockets: Option<Sockets>,
    lot: Lot,
    names: Names,
    next_id: AtomicU64,
}

impl Shared {
    fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }
}

impl Agent {
    /// Listens and calls from now on; must be called inside a tokio runtime.
    ///
    /// # Errors
    /// An address that cannot be bound. Nothing is listened on then.
    pub async fn start(
        switch: Arc<Switch>,
        endpoints: &Endpoints,
        timing: Timing,
    ) -> Result<Self, BindError> {
        let (tls, auxiliaries) = (endpoints.tls.clone(), endpoints.auxiliaries);
        let next_id = AtomicU64::new(1);
        let steering = endpoints.steering.clone();
        let sockets = endpoints.sockets.clone();
        let (lot, names) = (endpoints.lot.clone(), endpoints.names.clone());
        let shared =
            Shared { switch, timing, tls, auxiliaries, steering, sockets, lot, names, next_id };
        let shared = Arc::new(shared);
        let (listening, links) = (Vec::new(), Vec::new());
        let mut agent = Self { shared, tasks: JoinSet::new(), listening, links };
        agent.connect(endpoints).await?;
        Ok(agent)
    }

    /// Ends all connections and waits until every address and the management socket are free for a successor.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
    }

    /// The addresses that are listened on, with the ports that the kernel chose.
    pub fn listening(&self) -> &[SocketAddr] {
        &self.listening
    }

    /// What the endpoints are doing: controllers as they were given, each once, then addresses.
    pub fn links(&self) -> &[Arc<Link>] {
        &self.links
    }

    async fn connect(&mut self, endpoints: &Endpoints) -> Result<(), BindError> {
        let management = endpoints.management.as_ref().map(Bound::unix).transpose()?;
        let mut listeners = Vec::new();
        for place in &endpoints.listen {
            listeners.push(Bound::tcp(place, endpoints.sockets.as_ref()).await?);
        }
        self.listening = listeners.iter().filter_map(Bound::address).collect();
        // Who is named twice would hear each packet twice, and answer twice.
        let mut called = BTreeSet::new();
        for controller in endpoints.controllers.iter().filter(|&one| called.insert(one)) {
            let link = Link::new(controller.to_string(), Phase::Connecting);
            self.links.push(link.clone());
            self.tasks.spawn(connector::keep_connected(
                controller.clone(),
                link,
                self.shared.clone(),
            ));
        }
        self.links.extend(listeners.iter().filter_map(Bound::link));
        for bound in listeners.into_iter().chain(management) {
            self.tasks.spawn(bound.serve(self.shared.clone()));
        }
        Ok(())
    }
}
