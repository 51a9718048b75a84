//! What a domain's controller may ask of a node, by a connection that the node has opened to it: about guests and switches of slices, and nothing else.
//! It changes nothing but by a program that it runs in a guest.

use super::{BODY_MAX, flows, guests, handlers, why};
use crate::service::Node;
use api::PartName;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use hyper::server::conn::http1;
use hyper::upgrade::Upgraded;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serve::error::{self, ApiError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// How long a connection may wait for a question. Chosen: twice as long as a controller keeps one; a controller whose host is gone leaves none behind.
const IDLE: Duration = Duration::from_secs(60);
/// Questions about switches that are answered at a time; others wait. Chosen: tenants ask them, and the node has other work.
const AT_A_TIME: usize = 4;

static TURNS: Semaphore = Semaphore::const_new(AT_A_TIME);

/// Answers by a connection, one question after another, until the controller closes it.
///
/// # Errors
/// The connection is broken.
pub async fn serve(connection: TokioIo<Upgraded>, node: Arc<Node>) -> Result<(), hyper::Error> {
    let service = TowerToHyperService::new(router(node));
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(IDLE);
    server.serve_connection(TokioIo::new(connection), service).with_upgrades().await
}

fn router(node: Arc<Node>) -> Router {
    let of_guests = Router::new()
        .route("/v1/guests/{guest}", get(guests::show_guest))
        .route("/v1/guests/{guest}/log", get(guests::show_log))
        .route("/v1/guests/{guest}/exec", post(guests::exec))
        .layer(from_fn(only_guests_of_slices));
    let of_switches = Router::new()
        .route("/v1/switches/{switch}", get(handlers::show_switch))
        .route("/v1/switches/{switch}/ports", get(handlers::list_ports))
        .route("/v1/switches/{switch}/macs", get(handlers::list_macs))
        .route("/v1/switches/{switch}/flows", get(flows::list_flows))
        .route("/v1/switches/{switch}/groups", get(handlers::list_groups))
        .route("/v1/switches/{switch}/meters", get(handlers::list_meters))
        .route("/v1/switches/{switch}/why", post(why::why))
        .layer(from_fn_with_state(node.clone(), only_switches_of_slices));
    Router::new()
        .merge(of_guests)
        .merge(of_switches)
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .fallback(error::no_route)
        .with_state(node)
}

/// The third word of a path: what is asked about.
fn thing(request: &Request) -> Option<&str> {
    request.uri().path().split('/').nth(3)
}

fn forbidden(what: &str) -> Response {
    let cause = format!("a controller asks about {what} of its domain's slices only");
    ApiError::of_request(StatusCode::FORBIDDEN, cause).into_response()
}

/// Lets questions pass about guests that a slice has declared, and notes programs that run in them.
async fn only_guests_of_slices(request: Request, next: Next) -> Response {
    let part = thing(&request).and_then(|guest| guest.split([':', '%']).next()?.parse().ok());
    if !part.is_some_and(|part: PartName| part.is_a_slices()) {
        return forbidden("guests");
    }
    let (what, asks) =
        (format!("{} {}", request.method(), request.uri()), request.method().is_safe());
    let response = next.run(request).await;
    if !asks {
        let status = response.status().as_u16();
        tracing::info!(target: "audit", "the domain's controller: {what}: {status}");
    }
    response
}

/// Lets questions pass about switches that a slice has declared. Portals ask every few seconds, so the log has nothing of it.
async fn only_switches_of_slices(
    State(node): State<Arc<Node>>,
    request: Request,
    next: Next,
) -> Response {
    // It is never closed.
    let _turn = TURNS.acquire().await;
    match thing(&request).and_then(|switch| node.is_a_slices(switch)) {
        Some(false) => forbidden("switches"),
        // Of one that is not there its handler says so.
        Some(true) | None => next.run(request).await,
    }
}
