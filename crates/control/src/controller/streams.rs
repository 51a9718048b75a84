//! Questions to nodes about guests: where a guest is, and the connection by which its node is asked.

use super::{Controller, no_slice};
use crate::fault;
use crate::streams::OF_A_TENANT;
use axum::http::StatusCode;
use domain::{Name, SliceKey};
use hyper::upgrade::Upgraded;
use serve::error::ApiError;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

/// How long a node may take to open a stream. Chosen: longer than it waits between two reports, less than a command's own patience.
const PATIENCE: Duration = Duration::from_secs(10);

/// A node's end of a stream, and its place among the tenant's.
pub struct Line {
    /// The connection.
    pub node: Upgraded,
    /// Given back when the line is.
    pub room: OwnedSemaphorePermit,
    /// What the node calls the guest.
    pub guest: String,
}

impl Controller {
    /// A line to the node where a guest of a slice is.
    ///
    /// # Errors
    /// There is no such guest, its node is away or does not answer, or the tenant has too many.
    pub async fn line(&self, key: &SliceKey, guest: &str) -> Result<Line, ApiError> {
        let (node, name) = self.place(key, guest)?;
        let refused = |status, cause: String, remedy: &str| {
            fault::refused(status, thing(key, guest), "ask its node", cause, remedy)
        };
        let tenant = key.tenant.to_string();
        let room = self.streams.room(&tenant).ok_or_else(|| {
            let cause = format!("tenant {tenant} has {OF_A_TENANT} programs and consoles open");
            refused(StatusCode::TOO_MANY_REQUESTS, cause, "end one of them")
        })?;
        let mut stream = self.streams.ask(&node);
        self.moved();
        let opened = timeout(PATIENCE, &mut stream.opened).await;
        let node = opened.ok().and_then(Result::ok).ok_or_else(|| {
            let cause = format!("node {node} has not called back for {} s", PATIENCE.as_secs());
            let remedy = "see the node's log, and that it is of this release";
            refused(StatusCode::GATEWAY_TIMEOUT, cause, remedy)
        })?;
        Ok(Line { node, room, guest: name })
    }

    /// A node has opened a stream; returns who waits for it.
    ///
    /// # Errors
    /// Nobody does.
    pub fn opened(
        &self,
        node: &Name,
        number: u64,
    ) -> Result<tokio::sync::oneshot::Sender<Upgraded>, ApiError> {
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

    /// The node of a guest, which must be there, and what it calls the guest.
    fn place(&self, key: &SliceKey, guest: &str) -> Result<(Name, String), ApiError> {
        let state = self.state();
        let kept = state.slices.get(key).ok_or_else(|| no_slice(key))?;
        let record = &kept.record;
        let all = record.spec.guests.keys();
        let Some(name) = all.clone().find(|name| name.to_string() == guest) else {
            let all: Vec<_> = all.map(ToString::to_string).collect();
            return Err(fault::refused(
                StatusCode::NOT_FOUND,
                thing(key, guest),
                "find it",
                "there is none of that name",
                &format!("it has: {}", all.join(", ")),
            ));
        };
        let node = &record.decision.nodes[name];
        if state.said(node).is_none() {
            return Err(fault::refused(
                StatusCode::SERVICE_UNAVAILABLE,
                thing(key, guest),
                "ask its node",
                format!("node {node} is away: it has not called for some seconds"),
                "see that it runs and reaches the controller: suiro domain nodes",
            ));
        }
        Ok((node.clone(), format!("{}:{name}", record.part())))
    }
}

/// What messages call a guest.
pub fn thing(key: &SliceKey, guest: &str) -> String {
    format!("guest {guest} of slice {key}")
}
