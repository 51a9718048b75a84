//! What a domain's controller may ask of a node, by a connection that the node has opened to it: about guests of the domain's parts, and nothing else.

use super::{BODY_MAX, guests};
use crate::service::Node;
use api::PartName;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use hyper::server::conn::http1;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serve::error::{self, ApiError};
use std::sync::Arc;

/// Answers one question by a connection.
///
/// # Errors
/// The connection is broken.
pub async fn serve(connection: TokioIo<Upgraded>, node: Arc<Node>) -> Result<(), hyper::Error> {
    let service = TowerToHyperService::new(router(node));
    let mut server = http1::Builder::new();
    server.keep_alive(false);
    server.serve_connection(TokioIo::new(connection), service).with_upgrades().await
}

fn router(node: Arc<Node>) -> Router {
    Router::new()
        .route("/v1/guests/{guest}/log", get(guests::show_log))
        .route("/v1/guests/{guest}/exec", post(guests::exec))
        .layer(from_fn(only_the_domains))
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .fallback(error::no_route)
        .with_state(node)
}

/// Lets questions pass about guests that a domain has declared, and notes them.
async fn only_the_domains(request: Request, next: Next) -> Response {
    let mut words = request.uri().path().split('/').skip(3);
    let part = words.next().and_then(|guest| guest.split([':', '%']).next()?.parse().ok());
    if !part.is_some_and(|part: PartName| part.is_a_slices()) {
        let cause = "a controller asks about guests of its domain only".into();
        return ApiError::of_request(StatusCode::FORBIDDEN, cause).into_response();
    }
    let what = format!("{} {}", request.method(), request.uri());
    let response = next.run(request).await;
    tracing::info!(target: "audit", "the domain's controller: {what}: {}", response.status().as_u16());
    response
}
