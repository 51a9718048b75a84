//! The controller: the one owner of what is wanted, and of what nodes have said.

mod admission;
mod audit;
mod deviations;
mod members;
mod news;
mod reports;
mod sessions;
mod streams;
mod times;
mod users;

pub use admission::no_slice;
pub use sessions::Failed;
pub use streams::Placed;

use crate::attempts::Attempts;
use crate::authority::Authority;
use crate::fault;
use crate::kept::{self, SECRET};
use crate::people::People;
use crate::record::hex;
use crate::state::State;
use crate::store::{Revision, Store};
use crate::streams::Streams;
use axum::http::StatusCode;
use serde_json::{Value, json};
use serve::error::ApiError;
use serve::feed::Feed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::watch;

/// A domain's controller.
pub struct Controller {
    store: Arc<dyn Store>,
    /// What uids are made from.
    secret: String,
    /// What signs certificates.
    authority: Arc<Authority>,
    state: Mutex<State>,
    /// Whom it knows. Taken before the state where both are.
    people: Mutex<People>,
    /// The number of the newest line of the audit.
    last_line: Mutex<u64>,
    /// What happened, for whoever listens.
    feed: Feed,
    /// How often who has tried to sign in.
    attempts: Mutex<Attempts>,
    /// Connections that nodes are to open.
    streams: Streams,
    /// Moves with what is wanted.
    wanted: watch::Sender<u64>,
    /// Moves with what nodes say.
    heard: watch::Sender<u64>,
}

impl Controller {
    /// Of what a store has.
    ///
    /// # Errors
    /// It cannot be read, or holds what this release cannot read.
    pub fn new(store: Arc<dyn Store>) -> Result<Self, ApiError> {
        let secret = secret(&*store)?;
        let state = State::read(&*store, now_s() as i64)?;
        let authority = Arc::new(Authority::of(&*store, now_s())?);
        let people = People::read(&*store)?;
        let last_line = Mutex::new(audit::last(&*store)?);
        let feed = news::feed(&store)?;
        Ok(Self {
            feed,
            store,
            secret,
            authority,
            state: Mutex::new(state),
            people: Mutex::new(people),
            last_line,
            attempts: Mutex::default(),
            streams: Streams::default(),
            wanted: watch::Sender::new(0),
            heard: watch::Sender::new(0),
        })
    }

    /// What it knows. The lock is a leaf.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whom it knows.
    fn people(&self) -> MutexGuard<'_, People> {
        self.people.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What signs certificates.
    pub fn authority(&self) -> Arc<Authority> {
        self.authority.clone()
    }

    /// Moves when something else is wanted.
    pub fn wanted_moves(&self) -> watch::Receiver<u64> {
        self.wanted.subscribe()
    }

    /// Moves when a node has called.
    pub fn heard_moves(&self) -> watch::Receiver<u64> {
        self.heard.subscribe()
    }

    fn commit(
        &self,
        when: &[(String, Option<Revision>)],
        put: &[(String, Option<Value>)],
    ) -> Result<Revision, ApiError> {
        kept::commit(&*self.store, when, put)
    }

    fn moved(&self) {
        self.wanted.send_modify(|count| *count += 1);
    }
}
fn secret(store: &dyn Store) -> Result<String, ApiError> {
    if let Some((value, _)) = store.get(SECRET).map_err(|error| fault::store(&error))? {
        return kept::read(SECRET, value);
    }
    let bytes: [u8; 32] = random()?;
    let secret = hex(&bytes);
    let kept = store.commit(&[(SECRET.into(), None)], &[(SECRET.into(), Some(json!(secret)))]);
    kept.map_err(|error| fault::store(&error))?.map(|_| secret).map_err(|conflict| {
        fault::refused(
            StatusCode::CONFLICT,
            conflict.key,
            "start",
            "another controller is starting",
            "start it again",
        )
    })
}

/// Bytes that nobody can guess.
fn random<const N: usize>() -> Result<[u8; N], ApiError> {
    let mut bytes = [0; N];
    let random = ring::rand::SystemRandom::new();
    ring::rand::SecureRandom::fill(&random, &mut bytes).map_err(|_| {
        fault::refused(
            StatusCode::INTERNAL_SERVER_ERROR,
            "controller",
            "make a secret",
            "the kernel gives no random bytes",
            "see that getrandom(2) is allowed",
        )
    })?;
    Ok(bytes)
}

/// Seconds since 1970.
pub fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
