//! Who changed what: a line in the log for each request that is not only a question.

use axum::extract::{ConnectInfo, Request};
use axum::middleware::Next;
use axum::response::Response;
use std::fmt;
use tokio::net::UnixStream;

/// The process at the other end of the socket, as the kernel knows it (unix(7), `SO_PEERCRED`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub(super) Option<(u32, i32)>);

impl Peer {
    pub(super) fn of(stream: &UnixStream) -> Self {
        let credentials = stream.peer_cred().ok();
        Self(credentials.map(|peer| (peer.uid(), peer.pid().unwrap_or(0))))
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some((uid, pid)) => write!(f, "user {uid}, process {pid}"),
            None => f.write_str("somebody"),
        }
    }
}

/// Logs what changes something, with its answer.
pub(super) async fn audit(
    ConnectInfo(peer): ConnectInfo<Peer>,
    request: Request,
    next: Next,
) -> Response {
    if request.method().is_safe() {
        return next.run(request).await;
    }
    let what = format!("{} {}", request.method(), request.uri());
    let response = next.run(request).await;
    let status = response.status();
    let outcome = if status.is_success() || status.is_informational() { "done" } else { "refused" };
    tracing::info!(target: "audit", "{peer}: {what}: {outcome} ({})", status.as_u16());
    response
}
