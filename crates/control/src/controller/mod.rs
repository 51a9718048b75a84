//! The controller: the one owner of what is wanted, and of what nodes have said.

mod admission;
mod reports;

pub use admission::no_slice;

use crate::fault;
use crate::kept::{self, SECRET};
use crate::record::hex;
use crate::state::State;
use crate::store::{Revision, Store};
use axum::http::StatusCode;
use serde_json::{Value, json};
use serve::error::ApiError;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::watch;

/// A domain's controller.
pub struct Controller {
    store: Arc<dyn Store>,
    /// What uids are made from.
    secret: String,
    state: Mutex<State>,
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
        let state = State::read(&*store)?;
        Ok(Self {
            store,
            secret,
            state: Mutex::new(state),
            wanted: watch::Sender::new(0),
            heard: watch::Sender::new(0),
        })
    }

    /// What it knows. The lock is a leaf.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
        let done = self.store.commit(when, put).map_err(|error| fault::store(&error))?;
        done.map_err(|conflict| {
            fault::refused(
                StatusCode::CONFLICT,
                conflict.key,
                "keep it",
                "another controller has changed it",
                "ask again",
            )
        })
    }

    fn moved(&self) {
        self.wanted.send_modify(|count| *count += 1);
    }
}
fn secret(store: &dyn Store) -> Result<String, ApiError> {
    if let Some((value, _)) = store.get(SECRET).map_err(|error| fault::store(&error))? {
        return kept::read(SECRET, value);
    }
    let mut bytes = [0; 32];
    let random = ring::rand::SystemRandom::new();
    ring::rand::SecureRandom::fill(&random, &mut bytes).map_err(|_| {
        fault::refused(
            StatusCode::INTERNAL_SERVER_ERROR,
            "controller",
            "start",
            "the kernel gives no random bytes",
            "see that getrandom(2) is allowed",
        )
    })?;
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

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
