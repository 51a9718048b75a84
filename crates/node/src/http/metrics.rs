//! `GET /metrics`: what the node shows, as Prometheus reads it (crate `metrics`).

use super::error;
use super::error::ApiError;
use super::extract::Parameters;
use super::handlers::App;
use crate::service::Node;
use ::metrics::{Detail, Seen, Snapshot, page};
use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use serde::Deserialize;
use serve::server;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// "Exposition formats", basic information.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Narrow {
    /// One switch alone, with all of its queues and reasons.
    switch: Option<String>,
    /// `tunnel`: security associations too.
    detail: Option<String>,
}

/// The route of one door, with the series that its reader has seen.
pub(super) fn route() -> MethodRouter<Arc<Node>> {
    let seen = Arc::new(Mutex::new(Seen::default()));
    get(move |node: App, narrow: Parameters<Narrow>| show(node, narrow, seen))
}

async fn show(
    State(node): App,
    Parameters(narrow): Parameters<Narrow>,
    seen: Arc<Mutex<Seen>>,
) -> Result<Response, ApiError> {
    let (steering, offload) = tokio::join!(node.steering(), node.offload_view());
    let (mut switches, mut ports) = (node.switches(), node.all_ports());
    let mut one = Seen::all();
    let mut kept = seen.lock().unwrap_or_else(PoisonError::into_inner);
    let seen = match &narrow.switch {
        Some(name) => {
            node.switch(name)?;
            switches.retain(|switch| *switch.name == **name);
            ports.retain(|port| *port.switch == **name);
            &mut one
        }
        None => &mut *kept,
    };
    let snapshot = Snapshot {
        node: &node.view(),
        workers: &node.workers(),
        switches: &switches,
        ports: &ports,
        steering: steering.as_ref().ok(),
        offload: offload.as_ref().ok(),
        revision: node.feed().newest().0,
    };
    let detail = Detail {
        tunnels: narrow.detail.as_deref() == Some("tunnel"),
        latency: narrow.switch.is_some(),
    };
    Ok(([(CONTENT_TYPE, TEXT)], page(&snapshot, detail, seen)).into_response())
}

/// Serves the page, and nothing else, by TCP until `ended` says so.
pub async fn serve(listener: TcpListener, node: Arc<Node>, mut ended: watch::Receiver<()>) {
    let socket = listener.local_addr().map_or_else(|_| "metrics".into(), |at| at.to_string());
    let bounds = super::bounds(&node, &socket);
    let router = Router::new()
        .route("/metrics", route())
        .fallback(error::no_route)
        .method_not_allowed_fallback(error::no_method)
        .with_state(node);
    let ended = async move {
        let _ = ended.changed().await;
    };
    server::serve(listener, router, |_, from| from, bounds, ended).await;
}
