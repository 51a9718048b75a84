//! What an endpoint is doing and what last went wrong there: what `suiro switch show` says of it.
//!
//! Lock: one mutex a link, held for a few assignments.

use crate::agent::peer::Peer;
use crate::switch::{Connection, Listener};
use crate::tls::Trouble;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

/// What an endpoint is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// A controller's name is looked up.
    Resolving,
    /// A TCP connection is being made.
    Connecting,
    /// A TLS handshake is under way.
    Securing,
    /// Hellos are exchanged.
    Greeting,
    /// A version was agreed on.
    Connected,
    /// Until the next attempt.
    Waiting,
    /// Controllers may call.
    Listening,
}

impl Phase {
    /// The word that users read.
    pub fn word(self) -> &'static str {
        match self {
            Self::Resolving => "resolving",
            Self::Connecting => "connecting",
            Self::Securing => "tls-handshake",
            Self::Greeting => "hello",
            Self::Connected => "connected",
            Self::Waiting => "waiting",
            Self::Listening => "listening",
        }
    }
}

/// One endpoint: a controller that is called, or an address that is listened on.
pub struct Link {
    target: String,
    state: Mutex<State>,
}

struct State {
    phase: Phase,
    since: Instant,
    trouble: Option<(Instant, Trouble)>,
    peer: Option<Arc<Peer>>,
}

/// A link at one moment.
#[derive(Clone, Debug)]
pub struct LinkStatus {
    /// The endpoint as it is configured.
    pub target: String,
    /// What it is doing.
    pub phase: Phase,
    /// Since when.
    pub since: Instant,
    /// What last went wrong, and when.
    pub trouble: Option<(Instant, Trouble)>,
    /// The main connection of a controller that was called.
    pub connection: Option<Connection>,
    /// Auxiliary connections beside it.
    pub auxiliary: usize,
}

impl Link {
    /// An endpoint of that name.
    pub fn new(target: String, phase: Phase) -> Arc<Self> {
        let state = State { phase, since: Instant::now(), trouble: None, peer: None };
        Arc::new(Self { target, state: Mutex::new(state) })
    }

    /// Its name.
    pub fn target(&self) -> &str {
        &self.target
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something else is being done.
    pub fn enter(&self, phase: Phase) {
        let mut state = self.lock();
        if state.phase != phase {
            (state.phase, state.since) = (phase, Instant::now());
        }
        state.peer = None;
    }

    /// A version was agreed on. What went wrong before stays to be read, with its time.
    pub fn connected(&self, peer: &Arc<Peer>) {
        self.enter(Phase::Connected);
        self.lock().peer = Some(peer.clone());
    }

    /// Something went wrong; true if that is not what went wrong the last time.
    pub fn failed(&self, trouble: Trouble) -> bool {
        let mut state = self.lock();
        let is_new = state.trouble.as_ref().is_none_or(|(_, before)| *before != trouble);
        state.trouble = Some((Instant::now(), trouble));
        is_new
    }

    /// As it is now.
    pub fn status(&self) -> LinkStatus {
        let state = self.lock();
        LinkStatus {
            target: self.target.clone(),
            phase: state.phase,
            since: state.since,
            trouble: state.trouble.clone(),
            connection: state.peer.as_ref().map(|peer| peer.describe()),
            auxiliary: state.peer.as_ref().map_or(0, |peer| peer.channel().auxiliaries()),
        }
    }
}
