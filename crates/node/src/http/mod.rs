//! # The local API
//!
//! **Question answered**: how does anybody on this host see and change what the node does?
//!
//! HTTP/1.1 with JSON on a unix socket; whoever may open the socket (mode 0660) may do everything. A second socket, if the configuration
//! names a group for it, has the same routes and refuses what is not a question ([`readers`]). The document at
//! `GET /v1/openapi.json` is generated from the handlers and kept in `docs/reference/openapi.json`; a test holds both together.
//!
//! * Errors, bodies and streams are the crate [`mod@serve`]'s.
//! * [`handlers`]: one function per route; each asks the [`Node`] and nothing else.
//! * [`audit`]: who changed what, in the log.
//! * [`readers`]: who may see everything and change nothing.
//! * [`events`]: what happens, as it happens.
//! * [`captures`]: frames, as a file that comes about.
//! * [`metrics`]: what Prometheus reads, here and, if the configuration says so, by TCP.
//! * [`program`]: a program in a guest, over an upgraded connection.
//! * [`asked`]: what a domain's controller may ask, by a connection that the node has opened.
//! * [`flows`]: the rules of a switch, streamed: a million of them never wait in memory as JSON.

mod asked;
mod audit;
mod captures;
mod events;
mod flows;
mod guests;
mod handlers;
mod metrics;
mod offload;
mod parts;
mod program;
mod readers;
mod steering;
mod why;

pub use asked::serve as serve_stream;
pub use metrics::serve as serve_metrics;

use crate::hits::Who;
use crate::host::Right;
use crate::refusal::{Refusal, Why};
use crate::service::Node;
use api::Bound;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::routing::{get, post};
use serve::error::ApiError;
use serve::hit::Hit;
use serve::server::{self, Bounds};
use serve::{error, extract, stream};
use std::sync::Arc;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Largest body of an ordinary request. Chosen: a switch with a thousand controllers fits.
const BODY_MAX: usize = 256 << 10;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "suiro",
        description = "The local API of a suiro node, on its unix socket. The `suiro` command is a client of it.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
        contact(name = "", email = "")
    ),
    tags(
        (name = "node", description = "The node and its workers"),
        (name = "events", description = "What happens on the node"),
        (name = "captures", description = "Frames as they pass, and those that are lost"),
        (name = "parts", description = "What one owner declares, applied whole or not at all"),
        (name = "guests", description = "Programs in network namespaces of their own, and links to those of other nodes"),
        (name = "switches", description = "Switches"),
        (name = "ports", description = "Ports of a switch"),
        (name = "steering", description = "On which core what an interface receives is processed"),
        (name = "offload", description = "Which flows leave the workers, by which policies, and what keeps the others"),
        (name = "rules", description = "Flows, groups and meters of a switch, in the syntax of ovs-ofctl")
    )
)]
struct Document;

const FLOWS: &str = "/v1/switches/{switch}/flows";

/// Bodies of rules and parts have this many bytes at most.
fn documented(rules_body: usize) -> OpenApiRouter<Arc<Node>> {
    let things = OpenApiRouter::new()
        .routes(routes!(handlers::show_node))
        .routes(routes!(handlers::reload_node))
        .routes(routes!(handlers::show_workers))
        .routes(routes!(events::list_events))
        .routes(routes!(captures::list_captures, captures::capture))
        .routes(routes!(captures::end_capture))
        .routes(routes!(handlers::list_switches, handlers::add_switch))
        .routes(routes!(handlers::show_switch, handlers::change_switch, handlers::remove_switch))
        .routes(routes!(handlers::list_macs, handlers::forget_macs))
        .routes(routes!(handlers::list_all_ports))
        .routes(routes!(handlers::list_ports, handlers::add_port))
        .routes(routes!(handlers::show_port, handlers::change_port, handlers::remove_port))
        .routes(routes!(handlers::list_queues))
        .routes(routes!(handlers::put_queue, handlers::remove_queue))
        .layer(DefaultBodyLimit::max(BODY_MAX));
    let parts = OpenApiRouter::new()
        .routes(routes!(parts::list_parts))
        .routes(routes!(parts::export))
        .routes(routes!(parts::audit))
        .routes(routes!(parts::show_part, parts::put_part, parts::remove_part))
        .layer(DefaultBodyLimit::max(rules_body));
    let guests = OpenApiRouter::new()
        .routes(routes!(guests::list_guests))
        .routes(routes!(guests::show_guest))
        .routes(routes!(guests::show_log))
        .routes(routes!(guests::exec))
        .routes(routes!(guests::list_circuits))
        .routes(routes!(guests::list_strays))
        .layer(DefaultBodyLimit::max(BODY_MAX));
    let steering = OpenApiRouter::new()
        .routes(routes!(steering::show_steering))
        .routes(routes!(steering::list_units))
        .routes(routes!(steering::attach, steering::detach))
        .routes(routes!(steering::list_flows, steering::add_flows, steering::remove_flows))
        .routes(routes!(steering::why))
        .routes(routes!(steering::set_policy))
        .routes(routes!(steering::put_vm, steering::remove_vm))
        .layer(DefaultBodyLimit::max(rules_body));
    let offloads = OpenApiRouter::new()
        .routes(routes!(offload::show_offload, offload::set_offload))
        .routes(routes!(offload::put_policy))
        .routes(routes!(offload::remove_policy))
        .routes(routes!(offload::list_offload_flows))
        .routes(routes!(why::why))
        .routes(routes!(why::time_flow))
        .routes(routes!(offload::why_offload))
        .layer(DefaultBodyLimit::max(BODY_MAX));
    let rules = OpenApiRouter::new()
        .routes(routes!(
            flows::list_flows,
            handlers::add_rules,
            handlers::change_rules,
            handlers::remove_rules
        ))
        .routes(routes!(handlers::list_groups))
        .routes(routes!(handlers::list_meters));
    let mut rules = with_changes_of(with_changes_of(rules, "groups"), "meters")
        .layer(DefaultBodyLimit::max(rules_body));
    name_changes_of(&mut rules, FLOWS, "flows");
    OpenApiRouter::with_openapi(Document::openapi())
        .merge(things)
        .merge(parts)
        .merge(guests)
        .merge(steering)
        .merge(offloads)
        .merge(rules)
}

/// Groups and meters change by the same handlers as flows, which the document says of each path.
fn with_changes_of(router: OpenApiRouter<Arc<Node>>, kind: &str) -> OpenApiRouter<Arc<Node>> {
    use handlers::{add_rules, change_rules, remove_rules};
    let path = FLOWS.replace("flows", kind);
    let mut router = router.route(&path, post(add_rules).patch(change_rules).delete(remove_rules));
    let paths = &mut router.get_openapi_mut().paths.paths;
    let flows = paths[FLOWS].clone();
    if let Some(item) = paths.get_mut(&path) {
        (item.post, item.patch, item.delete) = (flows.post, flows.patch, flows.delete);
    }
    name_changes_of(&mut router, &path, kind);
    router
}

/// Names the operations of a path after what they change: `add_rules` is `add_groups` there.
fn name_changes_of(router: &mut OpenApiRouter<Arc<Node>>, path: &str, kind: &str) {
    let Some(item) = router.get_openapi_mut().paths.paths.get_mut(path) else { return };
    let operations = [&mut item.post, &mut item.patch, &mut item.delete];
    for operation in operations.into_iter().flatten() {
        operation.operation_id = operation.operation_id.take().map(|id| id.replace("rules", kind));
    }
}

/// The one place where a refusal becomes a status.
impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let status = match refusal.why {
            Why::NotFound => StatusCode::NOT_FOUND,
            Why::Conflict => StatusCode::CONFLICT,
            Why::Invalid => StatusCode::BAD_REQUEST,
            Why::Impossible => StatusCode::UNPROCESSABLE_ENTITY,
            Why::Forbidden => StatusCode::FORBIDDEN,
            Why::NotSaved => StatusCode::INSUFFICIENT_STORAGE,
        };
        Self::new(status, api::ErrorBody { error: *refusal.fault, others: refusal.others })
    }
}

/// The document, as it is served and kept in `docs/reference/openapi.json`.
pub fn document() -> String {
    let (_, document) = documented(0).split_for_parts();
    let mut text = document.to_pretty_json().expect("the document is plain data");
    text.push('\n');
    text
}

/// The routes of a node.
pub fn router(node: Arc<Node>) -> Router {
    routes(node.bounds().api_body).layer(axum::middleware::from_fn(audit::audit)).with_state(node)
}

fn routes(rules_body: usize) -> Router<Arc<Node>> {
    let (router, _) = documented(rules_body).split_for_parts();
    let served = document();
    let json = [(axum::http::header::CONTENT_TYPE, "application/json")];
    router
        .route("/metrics", metrics::route())
        .route("/v1/openapi.json", get(move || async move { (json, served) }))
        .fallback(error::no_route)
        .method_not_allowed_fallback(error::no_method)
}

/// The same routes for those who have only this right.
fn router_of(right: Right, node: Arc<Node>) -> Router {
    routes(node.bounds().api_body)
        .layer(axum::middleware::from_fn_with_state(right, readers::within))
        .layer(axum::middleware::from_fn(audit::audit))
        .with_state(node)
}

/// Serves all sockets until `ended` says so, or nobody is there to say it.
pub async fn serve(
    listener: UnixListener,
    groups: Vec<(Right, UnixListener)>,
    node: Arc<Node>,
    ended: watch::Receiver<()>,
) {
    let mut all = tokio::task::JoinSet::new();
    for (right, listener) in groups {
        let routes = (router_of(right, node.clone()), node.clone());
        all.spawn(serve_one(listener, routes, ended.clone()));
    }
    serve_one(listener, (router(node.clone()), node), ended).await;
    while all.join_next().await.is_some() {}
}

async fn serve_one(
    listener: UnixListener,
    (router, node): (Router, Arc<Node>),
    mut ended: watch::Receiver<()>,
) {
    let address = listener.local_addr().ok();
    let socket = address.as_ref().and_then(|address| address.as_pathname());
    let socket = socket.map_or_else(|| "API".into(), |path| path.display().to_string());
    let ended = async move {
        let _ = ended.changed().await;
    };
    let bounds = bounds(&node, &socket);
    let peer = |stream: &UnixStream, _| audit::Peer::of(stream);
    server::serve(listener, router, peer, bounds, ended).await;
}

/// Of a socket of this name.
fn bounds(node: &Node, socket: &str) -> Bounds {
    let (hits, who) = (node.hits().clone(), Who::caller(socket));
    let told = move |hit| {
        let (bound, text) = match hit {
            Hit::Connection => (Bound::ApiConnections, "a still connection made room for another"),
            Hit::Refused => (Bound::ApiConnections, "all are at work: a caller was sent away"),
            Hit::Body => {
                (Bound::ApiBodies, "a body that came too slowly or beside others was refused")
            }
        };
        hits.tell(bound, who.clone(), 1, text);
    };
    let most = node.bounds().api_connections;
    Bounds::new(crate::host::open_files(), most, node.bodies(), Arc::new(told))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_document_in_the_repository_is_the_one_that_is_served() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/openapi.json");
        let (kept, served) = (std::fs::read_to_string(path).unwrap_or_default(), document());
        if kept != served {
            if std::env::var_os("SUIRO_UPDATE").is_some() {
                std::fs::write(path, served).unwrap();
                return;
            }
            panic!(
                "docs/reference/openapi.json is out of date: run this test with SUIRO_UPDATE=1 and review the change"
            );
        }
    }

    /// But for the rules, which are answered as they are sent: `{"flows": […]}`.
    #[test]
    fn what_answers_with_nothing_but_a_list_is_that_list() {
        let document: serde_json::Value = serde_json::from_str(&document()).unwrap();
        let paths = document["paths"].as_object().unwrap().values();
        let answers = paths.filter_map(|methods| {
            let answer = &methods["get"]["responses"]["200"]["content"]["application/json"];
            answer["schema"]["$ref"].as_str()?.strip_prefix("#/components/schemas/")
        });
        let wraps = |name: &&str| {
            let keys = document["components"]["schemas"][name]["properties"].as_object();
            keys.is_some_and(|keys| {
                keys.len() == 1 && keys.values().all(|key| key["type"] == "array")
            })
        };
        let answers: Vec<_> = answers.collect();
        assert!(answers.len() > 8, "{answers:?}");
        assert_eq!(answers.into_iter().filter(wraps).collect::<Vec<_>>(), ["FlowsView"]);
    }

    #[test]
    fn the_document_is_openapi_3_1_and_describes_every_route_and_error() {
        let document: serde_json::Value = serde_json::from_str(&document()).unwrap();
        assert_eq!(document["openapi"], "3.1.0");
        let paths = document["paths"].as_object().unwrap();
        assert_eq!(paths.len(), 41);
        let operations =
            || paths.values().flat_map(|methods| methods.as_object().unwrap().values());
        let ids: BTreeSet<_> = operations()
            .map(|operation| &operation["operationId"])
            .map(ToString::to_string)
            .collect();
        assert_eq!(ids.len(), operations().count(), "each operation has a name of its own");
        for (path, methods) in paths {
            for (method, operation) in methods.as_object().unwrap() {
                for parameter in operation["parameters"].as_array().into_iter().flatten() {
                    let is_in_path =
                        path.contains(&format!("{{{}}}", parameter["name"].as_str().unwrap()));
                    assert_eq!(
                        parameter["in"] == "path",
                        is_in_path,
                        "{method} {path}: {parameter}"
                    );
                }
                let described = operation["responses"]
                    .as_object()
                    .unwrap()
                    .keys()
                    .any(|status| status == "4XX");
                assert!(
                    described || method == "get",
                    "{method} {path} does not describe its errors"
                );
            }
        }
    }
}
