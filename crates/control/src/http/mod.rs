//! The controller's API: HTTP/1.1 with JSON. One function per route; each asks the [`Controller`] and nothing else.
//!
//! The document at `GET /v1/openapi.json` is generated from the handlers and kept in `docs/reference/control-openapi.json`; a test holds both together.
//! Who may ask for what is in [`crate::access`]; [`gate`] asks it before any handler runs.

mod asking;
mod calendar;
mod console;
mod events;
mod gate;
mod guests;
mod headers;
mod nodes;
mod pages;
mod session;
mod slices;
mod switches;
mod users;

use crate::caller::Peer;
use crate::controller::Controller;
use crate::doors::{Caller, Here, There};
use axum::extract::{ConnectInfo, DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::get;
use axum::{Extension, Json, Router};
use domain::Name;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serve::error::{self, ApiError};
use std::io;
use std::sync::Arc;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Largest body: a slice's file of 4 MiB, its guests' files, and JSON around them.
const BODY_MAX: usize = 16 << 20;
/// Largest body of who may be anyone.
const STRANGER_BODY_MAX: usize = 16 << 10;

type Shared = Arc<Controller>;
type App = State<Shared>;
type Answer<T> = Result<Json<T>, ApiError>;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "suiro control",
        description = "The API of a domain's controller, on its unix socket and by TLS. The `suiro` command, nodes and the portal are clients of it. A browser signs in at `/v1/session`; its changes bring `X-CSRF-Token`.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
        contact(name = "", email = "")
    ),
    tags(
        (name = "domain", description = "What the operator declares"),
        (name = "slices", description = "What tenants declare"),
        (name = "nodes", description = "Nodes, and how they join"),
        (name = "events", description = "What happens in the domain"),
        (name = "users", description = "Who may do what, and who did")
    )
)]
struct Document;

fn documented() -> OpenApiRouter<Shared> {
    let stranger = OpenApiRouter::new()
        .routes(routes!(nodes::join))
        .routes(routes!(session::sign_in))
        .layer(DefaultBodyLimit::max(STRANGER_BODY_MAX));
    let others = OpenApiRouter::new()
        .routes(routes!(slices::read))
        .routes(routes!(slices::sites))
        .routes(routes!(calendar::calendar))
        .routes(routes!(calendar::icalendar))
        .routes(routes!(slices::show_domain, slices::put_domain))
        .routes(routes!(slices::list_slices))
        .routes(routes!(slices::show_slice, slices::put_slice, slices::remove_slice))
        .routes(routes!(slices::plan_slice))
        .routes(routes!(slices::status))
        .routes(routes!(slices::history))
        .routes(routes!(switches::show_slice_switch))
        .routes(routes!(switches::list_slice_ports))
        .routes(routes!(switches::list_slice_macs))
        .routes(routes!(switches::list_slice_flows))
        .routes(routes!(switches::list_slice_groups))
        .routes(routes!(switches::list_slice_meters))
        .routes(routes!(switches::why_slice))
        .routes(routes!(guests::show_slice_guest))
        .routes(routes!(guests::show_guest_log))
        .routes(routes!(console::console))
        .routes(routes!(guests::exec_guest))
        .routes(routes!(guests::open_stream))
        .routes(routes!(nodes::list_nodes))
        .routes(routes!(nodes::deviations))
        .routes(routes!(nodes::report))
        .routes(routes!(nodes::part))
        .routes(routes!(nodes::renew))
        .routes(routes!(nodes::forget))
        .routes(routes!(nodes::list_tokens, nodes::add_token))
        .routes(routes!(nodes::remove_token))
        .routes(routes!(users::show_self))
        .routes(routes!(users::list_users))
        .routes(routes!(users::put_user, users::remove_user))
        .routes(routes!(session::show_session, session::sign_out))
        .routes(routes!(session::put_password))
        .routes(routes!(users::list_audit))
        .routes(routes!(events::list_events))
        .layer(DefaultBodyLimit::max(BODY_MAX));
    OpenApiRouter::with_openapi(Document::openapi()).merge(stranger).merge(others)
}

/// The document, as it is served and kept in `docs/reference/control-openapi.json`.
pub fn document() -> String {
    let (_, document) = documented().split_for_parts();
    document.to_pretty_json().expect("the document is plain data") + "\n"
}

/// The routes of a controller.
pub fn router(controller: Shared) -> Router {
    let (router, _) = documented().split_for_parts();
    let served = document();
    let json = [(axum::http::header::CONTENT_TYPE, "application/json")];
    router
        .route("/v1/openapi.json", get(move || async move { (json, served) }))
        .route_layer(from_fn_with_state(controller.clone(), gate::gate))
        .merge(pages::routes())
        .fallback(error::no_route)
        .method_not_allowed_fallback(error::no_method)
        .layer(Extension(Arc::new(session::Turns::default())))
        .layer(from_fn(headers::around))
        .with_state(controller)
}

/// Serves who comes by the unix socket.
///
/// # Errors
/// The socket is broken.
pub async fn serve_here(listener: Here, controller: Shared) -> io::Result<()> {
    let service = router(controller).into_make_service_with_connect_info::<Peer>();
    axum::serve(listener, service).await
}

/// Serves who comes by TLS. Who says nothing is let go.
///
/// # Errors
/// None: this goes on until the controller ends.
pub async fn serve_there(mut listener: There, controller: Shared) -> io::Result<()> {
    let router = router(controller);
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(listener.bounds().idle);
    loop {
        let Caller { stream, peer, place } = listener.next().await;
        let service = TowerToHyperService::new(router.clone().layer(Extension(ConnectInfo(peer))));
        let served = server.serve_connection(TokioIo::new(stream), service).with_upgrades();
        tokio::spawn(async move {
            if let Err(error) = served.await {
                tracing::debug!("a connection ended: {error}");
            }
            drop(place);
        });
    }
}

/// Does what waits for the disk where that stops nobody else.
fn whole<T>(work: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(work)
}

fn name(text: &str) -> Result<Name, ApiError> {
    text.parse().map_err(|error: api::BadText| {
        ApiError::of_request(StatusCode::BAD_REQUEST, error.to_string())
    })
}

#[cfg(test)]
mod tests;
