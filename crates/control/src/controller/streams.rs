//! Questions to nodes about what a slice has there: where that is, and the streams by which its node is asked.

use super::{Controller, no_slice};
use crate::fault;
use crate::record::Record;
use crate::state::State;
use crate::streams::{OF_A_TENANT, Sender};
use axum::http::StatusCode;
use domain::{Name, Names, SliceKey};
use hyper::client::conn::http1::handshake;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serve::error::ApiError;
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::timeout;

/// How long a node may take to open a stream. Chosen: longer than it waits between two reports, less than a command's own patience.
const PATIENCE: Duration = Duration::from_secs(10);

/// Something of a slice that a node has.
pub struct Placed {
    /// The slice.
    pub key: SliceKey,
    /// Its node, which is there.
    pub node: Name,
    /// What messages call it: `guest h1 of slice red/demo`.
    pub thing: String,
    /// What its node calls it.
    pub named: String,
}

impl Controller {
    /// A guest of a slice.
    ///
    /// # Errors
    /// There is no such guest, or its node is away.
    pub fn guest(&self, key: &SliceKey, guest: &str) -> Result<Placed, ApiError> {
        let named = {
            let state = self.state();
            let record = begun(&state, key)?;
            let name = found(key, "guest", guest, record.spec.guests.keys())?;
            (record.decision.nodes[name].clone(), format!("{}:{name}", record.part()))
        };
        self.placed(key, "guest", guest, named)
    }

    /// A switch of a slice.
    ///
    /// # Errors
    /// There is no such switch, or its node is away.
    pub fn switch(&self, key: &SliceKey, switch: &str) -> Result<Placed, ApiError> {
        let named = {
            let state = self.state();
            let record = begun(&state, key)?;
            let name = found(key, "switch", switch, record.spec.switches.keys())?;
            let names = Names::new(key, record.decision.uid);
            (record.decision.nodes[name].clone(), names.switch(name).to_string())
        };
        self.placed(key, "switch", switch, named)
    }

    fn placed(
        &self,
        key: &SliceKey,
        kind: &str,
        name: &str,
        (node, named): (Name, String),
    ) -> Result<Placed, ApiError> {
        let thing = thing(key, kind, name);
        if self.state().said(&node).is_none() {
            return Err(fault::refused(
                StatusCode::SERVICE_UNAVAILABLE,
                thing,
                "ask its node",
                format!("node {node} is away: it has not called for some seconds"),
                "see that it runs and reaches the controller: suiro domain nodes",
            ));
        }
        Ok(Placed { key: key.clone(), node, thing, named })
    }

    /// Room for one more question of the tenant's, as long as the permit is held.
    ///
    /// # Errors
    /// The tenant has too many open.
    pub fn room(&self, placed: &Placed) -> Result<OwnedSemaphorePermit, ApiError> {
        let tenant = placed.key.tenant.to_string();
        self.streams.room(&tenant).ok_or_else(|| {
            let cause = format!("tenant {tenant} has {OF_A_TENANT} programs and questions open");
            let (thing, remedy) = (placed.thing.clone(), "end one of them, or ask again");
            fault::refused(StatusCode::TOO_MANY_REQUESTS, thing, "ask its node", cause, remedy)
        })
    }

    /// A stream of a node's that was kept, if any stands.
    pub fn kept_stream(&self, node: &Name) -> Option<Sender> {
        self.streams.kept(node, Instant::now())
    }

    /// Keeps a stream for the next question.
    pub fn keep_stream(&self, node: &Name, sender: Sender) {
        self.streams.keep(node, sender, Instant::now());
    }

    /// A new stream to the node of something.
    ///
    /// # Errors
    /// The node does not call.
    pub async fn stream(&self, placed: &Placed) -> Result<Sender, ApiError> {
        let mut stream = self.streams.ask(&placed.node);
        self.moved();
        let opened = timeout(PATIENCE, &mut stream.opened).await;
        let upgraded = opened.ok().and_then(Result::ok).ok_or_else(|| placed.silent())?;
        let io = TokioIo::new(TokioIo::new(upgraded));
        let (sender, connection) =
            handshake(io).await.map_err(|error| ApiError::of_ours(&error))?;
        tokio::spawn(connection.with_upgrades());
        Ok(sender)
    }

    /// A node has opened a stream; returns who waits for it.
    ///
    /// # Errors
    /// Nobody does.
    pub fn opened(&self, node: &Name, number: u64) -> Result<oneshot::Sender<Upgraded>, ApiError> {
        self.streams.take(node, number).ok_or_else(|| {
            let cause = "nobody waits for it any more";
            fault::refused(
                StatusCode::GONE,
                format!("stream {number}"),
                "open it",
                cause,
                "report again",
            )
        })
    }
}

impl Placed {
    /// Its node was asked, and says nothing.
    pub fn silent(&self) -> ApiError {
        let cause = format!("node {} has not answered for {} s", self.node, PATIENCE.as_secs());
        let remedy = "see the node's log, and that it is of this release";
        let thing = self.thing.clone();
        fault::refused(StatusCode::GATEWAY_TIMEOUT, thing, "ask its node", cause, remedy)
    }

    /// What comes of a question within the time that a node has for it.
    ///
    /// # Errors
    /// It takes longer.
    pub async fn in_time<T>(&self, answer: impl Future<Output = T>) -> Result<T, ApiError> {
        timeout(PATIENCE, answer).await.map_err(|_| self.silent())
    }
}

/// A slice whose time has come.
fn begun<'a>(state: &'a State, key: &SliceKey) -> Result<&'a Record, ApiError> {
    let kept = state.slices.get(key).ok_or_else(|| no_slice(key))?;
    if kept.has_begun {
        return Ok(&kept.record);
    }
    let from = kept.record.spec.from.as_ref().map(ToString::to_string).unwrap_or_default();
    let cause = format!("its time has not come: it begins {from}");
    let remedy = "wait for it, or change `from` in its file";
    Err(fault::refused(
        StatusCode::CONFLICT,
        format!("slice {key}"),
        "ask its nodes",
        cause,
        remedy,
    ))
}

/// One of a slice's own, by its name.
fn found<'a>(
    key: &SliceKey,
    kind: &str,
    wanted: &str,
    all: impl Iterator<Item = &'a Name> + Clone,
) -> Result<&'a Name, ApiError> {
    all.clone().find(|name| name.to_string() == wanted).ok_or_else(|| {
        let all: Vec<_> = all.map(ToString::to_string).collect();
        fault::refused(
            StatusCode::NOT_FOUND,
            thing(key, kind, wanted),
            "find it",
            "there is none of that name",
            &format!("it has: {}", all.join(", ")),
        )
    })
}

/// What messages call something of a slice.
fn thing(key: &SliceKey, kind: &str, name: &str) -> String {
    format!("{kind} {name} of slice {key}")
}
