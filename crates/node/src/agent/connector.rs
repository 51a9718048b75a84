//! Calling a controller until it answers, and again whenever it is gone; and the auxiliary connections beside a main one
//! (OpenFlow 1.3.5 §6.3.7).

use crate::agent::Shared;
use crate::agent::call::{CallError, connect, resolve, secure, within};
use crate::agent::end::End;
use crate::agent::link::{Link, Phase};
use crate::agent::liveness::Backoff;
use crate::agent::peer::{Peer, PeerKind};
use crate::agent::session::{Caller, OnJoin, serve};
use crate::captures::Wire;
use api::{Bound, Controller, Happening, Host, Noun, Transport};
use openflow::Version;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How long a name server may take. Chosen: one that is asked a second time answers by then.
const RESOLVED_WITHIN: Duration = Duration::from_secs(2);

/// Calls `controller` for ever. What goes wrong is logged when it is not what went wrong before, with the remedy.
pub async fn keep_connected(controller: Controller, link: Arc<Link>, shared: Arc<Shared>) {
    let mut backoff = Backoff::new(shared.timing);
    loop {
        let mut session = None;
        let ended = call(&controller, &link, &shared, &mut session).await;
        let was_good = matches!(&ended, Ok(end) if !end.is_fault_of_peer());
        report(&ended, &controller, &link, &shared);
        link.enter(Phase::Waiting);
        let wait = match session.filter(|_| was_good) {
            Some(began) => backoff.after_session(began.elapsed(), chance()),
            None => backoff.after_failure(chance()),
        };
        tokio::time::sleep(wait).await;
    }
}

/// Unpredictable bits: the standard library draws the keys of its hash maps from the operating system.
fn chance() -> u32 {
    RandomState::new().build_hasher().finish() as u32
}

fn report(ended: &Result<End, CallError>, controller: &Controller, link: &Link, shared: &Shared) {
    let switch = shared.switch.name();
    let (trouble, what) = match ended {
        Ok(End::Closed) => {
            tracing::info!(switch, %controller, "the controller closed the connection");
            return;
        }
        Ok(end) => (end.trouble(), "controller disconnected. Trying on"),
        Err(error) => (error.trouble(), "no controller. Trying on"),
    };
    if link.failed(trouble.clone()) {
        tracing::warn!(switch, %controller, cause = %trouble, "{what}");
        let object = (Noun::Controller, &*controller.to_string());
        shared.switch.tell(object, Happening::Fault, trouble.to_string());
    }
}

/// A place among the node's connections.
fn place(shared: &Shared, to: &str) -> Result<OwnedSemaphorePermit, CallError> {
    shared.lot.take().ok_or_else(|| {
        let text = "the node's connections have all the files that are for them";
        shared.switch.hit(Bound::Connections, to, text);
        CallError::NoPlace
    })
}

/// One call, from its name's resolution to the session's end. `session` hears when the connection stood.
async fn call(
    controller: &Controller,
    link: &Arc<Link>,
    shared: &Arc<Shared>,
    session: &mut Option<Instant>,
) -> Result<End, CallError> {
    let _place = place(shared, &controller.to_string())?;
    link.enter(Phase::Resolving);
    if matches!(controller.target().host, Host::Name(_)) && shared.names.is_busy() {
        let (who, text) = (controller.to_string(), "its name waits for others' look-ups");
        shared.switch.hit(Bound::NameLookups, &who, text);
    }
    let named = resolve(controller.target(), &shared.names);
    let addresses = within(RESOLVED_WITHIN, "resolve the name", named).await?;
    link.enter(Phase::Connecting);
    let stream = connect(&addresses, None, shared).await?;
    *session = Some(Instant::now());
    let on_join = main_joined(&stream, controller, link, shared);
    let caller = Caller {
        id: shared.next_id(),
        name: controller.to_string(),
        kind: PeerKind::Controller,
        wire: wire_of(&stream, controller),
        timing: shared.timing,
        main: None,
        on_join,
        steering: shared.steering.clone(),
    };
    converse(stream, caller, (controller, Some(link)), shared).await
}

/// What carries a session over this stream.
fn wire_of(stream: &TcpStream, controller: &Controller) -> Wire {
    Wire::over(stream, controller.target().transport)
}

/// Secures the stream if it is to be, and talks until the end.
async fn converse(
    stream: TcpStream,
    caller: Caller,
    (controller, link): (&Controller, Option<&Link>),
    shared: &Arc<Shared>,
) -> Result<End, CallError> {
    let enter = |phase| link.iter().for_each(|link| link.enter(phase));
    let switch = shared.switch.clone();
    match controller.target().transport {
        Transport::Tcp => {
            enter(Phase::Greeting);
            Ok(serve(stream, caller, switch).await)
        }
        Transport::Tls => {
            enter(Phase::Securing);
            let handshake = secure(stream, controller.target(), shared);
            let stream = within(shared.timing.hello_within, "TLS handshake", handshake).await?;
            enter(Phase::Greeting);
            Ok(serve(stream, caller, switch).await)
        }
    }
}

/// When the main connection stands, the link says so and the auxiliary ones are made; they end with it.
fn main_joined(
    stream: &TcpStream,
    controller: &Controller,
    link: &Arc<Link>,
    shared: &Arc<Shared>,
) -> Option<OnJoin> {
    // A connection without addresses is broken already, and its session will say so.
    let (mut from, to) = (stream.local_addr().ok()?, stream.peer_addr().ok()?);
    from.set_port(0);
    let (controller, link, shared) = (controller.clone(), link.clone(), shared.clone());
    Some(Box::new(move |main| {
        link.connected(main);
        let mut auxiliaries = JoinSet::new();
        // OpenFlow 1.0 knows none.
        let wanted = if main.version() >= Version::V1_3 { shared.auxiliaries } else { 0 };
        for number in 1..=wanted {
            let auxiliary = Auxiliary {
                main: main.clone(),
                number,
                route: (from, to),
                controller: controller.clone(),
                shared: shared.clone(),
            };
            auxiliaries.spawn(auxiliary.keep());
        }
        Box::new(auxiliaries)
    }))
}

/// An auxiliary connection: from the main one's address to the same address and port.
struct Auxiliary {
    main: Arc<Peer>,
    number: u8,
    route: (SocketAddr, SocketAddr),
    controller: Controller,
    shared: Arc<Shared>,
}

impl Auxiliary {
    /// Keeps it up for as long as this is not dropped.
    async fn keep(self) {
        let mut backoff = Backoff::new(self.shared.timing);
        loop {
            let ended = self.call().await;
            let trouble = match &ended {
                Ok(end) => end.trouble(),
                Err(error) => error.trouble(),
            };
            tracing::info!(switch = self.shared.switch.name(), controller = %self.controller, auxiliary = self.number,
                cause = trouble.cause, "auxiliary connection ended");
            tokio::time::sleep(backoff.after_failure(chance())).await;
        }
    }

    async fn call(&self) -> Result<End, CallError> {
        let (from, to) = self.route;
        let _place = place(&self.shared, &to.to_string())?;
        let stream = connect(&[to], Some(from), &self.shared).await?;
        let caller = Caller {
            id: self.shared.next_id(),
            name: format!("{} auxiliary {}", self.controller, self.number),
            kind: PeerKind::Controller,
            wire: wire_of(&stream, &self.controller),
            timing: self.shared.timing,
            main: Some((self.main.clone(), self.number)),
            on_join: None,
            steering: self.shared.steering.clone(),
        };
        converse(stream, caller, (&self.controller, None), &self.shared).await
    }
}
