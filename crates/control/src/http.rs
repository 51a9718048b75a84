//! The controller's API: HTTP/1.1 with JSON. One function per route; each asks the [`Controller`] and nothing else.

use crate::controller::{Controller, no_slice};
use crate::fault;
use api::{
    Declaration, Declares, DomainNodeView, PartName, PartText, PlanView, Report, SliceState,
    SliceView, Wanted,
};
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::routing::{get, post};
use axum::{Json, Router};
use domain::{Name, SliceKey};
use serde::Deserialize;
use serve::error::{self, ApiError};
use serve::extract::{Body, Parameters};
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixListener;
use tokio::time::{Instant, timeout, timeout_at};

/// Largest body: a slice's file of 4 MiB, its guests' files, and JSON around them.
const BODY_MAX: usize = 16 << 20;

type App = State<Arc<Controller>>;
type Answer<T> = Result<Json<T>, ApiError>;

/// The routes of a controller.
pub fn router(controller: Arc<Controller>) -> Router {
    Router::new()
        .route("/v1/read", post(read))
        .route("/v1/domain", get(show_domain).put(put_domain))
        .route("/v1/slices", get(list_slices))
        .route("/v1/slices/{tenant}/{slice}", get(show_slice).put(put_slice).delete(remove_slice))
        .route("/v1/slices/{tenant}/{slice}/plan", post(plan_slice))
        .route("/v1/slices/{tenant}/{slice}/status", get(status))
        .route("/v1/slices/{tenant}/{slice}/history", get(history))
        .route("/v1/nodes", get(list_nodes))
        .route("/v1/nodes/{node}/report", post(report))
        .route("/v1/nodes/{node}/parts/{part}", get(part))
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .fallback(error::no_route)
        .method_not_allowed_fallback(error::no_method)
        .with_state(controller)
}

/// Serves until `ended`.
///
/// # Errors
/// The socket is broken.
pub async fn serve(
    listener: UnixListener,
    controller: Arc<Controller>,
    ended: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    axum::serve(listener, router(controller)).with_graceful_shutdown(ended).await
}

/// Does what waits for the disk where that stops nobody else.
fn whole<T>(work: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(work)
}

fn key((tenant, slice): (String, String)) -> Result<SliceKey, ApiError> {
    let key = format!("{tenant}/{slice}").parse();
    key.map_err(|error: api::BadText| {
        ApiError::of_request(StatusCode::BAD_REQUEST, error.to_string())
    })
}

fn name(text: &str) -> Result<Name, ApiError> {
    text.parse().map_err(|error: api::BadText| {
        ApiError::of_request(StatusCode::BAD_REQUEST, error.to_string())
    })
}

async fn read(State(controller): App, Body(declared): Body<Declaration>) -> Answer<Declares> {
    Ok(Json(controller.declares(&declared)?))
}

async fn show_domain(State(controller): App) -> Answer<Declaration> {
    Ok(Json(controller.domain()?))
}

async fn put_domain(State(controller): App, Body(declared): Body<Declaration>) -> Answer<u64> {
    Ok(Json(whole(|| controller.put_domain(declared))?))
}

async fn list_slices(State(controller): App) -> Json<Vec<SliceView>> {
    Json(controller.state().all_slices())
}

async fn show_slice(
    State(controller): App,
    Path(path): Path<(String, String)>,
) -> Answer<SliceView> {
    let key = key(path)?;
    controller.state().slice(&key).map(Json).ok_or_else(|| no_slice(&key))
}

async fn plan_slice(
    State(controller): App,
    Path(path): Path<(String, String)>,
    Body(declared): Body<Declaration>,
) -> Answer<PlanView> {
    let key = key(path)?;
    Ok(Json(whole(|| controller.plan(&key, &declared))?))
}

/// Which plan is applied.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wished {
    plan: Option<String>,
}

async fn put_slice(
    State(controller): App,
    Path(path): Path<(String, String)>,
    Parameters(wished): Parameters<Wished>,
    headers: HeaderMap,
    Body(declared): Body<Declaration>,
) -> Answer<PlanView> {
    let (key, when) = (key(path)?, when(&headers)?);
    Ok(Json(whole(|| controller.put(&key, declared, wished.plan.as_deref(), when))?))
}

/// At which revision the slice shall have been changed last, if the request says so.
fn when(headers: &HeaderMap) -> Result<Option<Option<u64>>, ApiError> {
    if headers.get(header::IF_NONE_MATCH).is_some_and(|value| value == "*") {
        return Ok(Some(None));
    }
    let Some(value) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let revision = value.to_str().ok().and_then(|text| text.trim_matches('"').parse().ok());
    let wrong = || {
        ApiError::of_request(
            StatusCode::BAD_REQUEST,
            "If-Match is no revision, such as \"7\"".into(),
        )
    };
    revision.map(|revision| Some(Some(revision))).ok_or_else(wrong)
}

async fn remove_slice(
    State(controller): App,
    Path(path): Path<(String, String)>,
) -> Answer<PlanView> {
    let key = key(path)?;
    Ok(Json(whole(|| controller.remove(&key))?))
}

/// What is waited for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Until {
    until: Option<Awaited>,
    /// Seconds.
    #[serde(default)]
    timeout: u16,
}

#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Awaited {
    Ready,
    Gone,
}

/// A slice, as it is now or as soon as it is as awaited. Of one that is gone nothing is told.
async fn status(
    State(controller): App,
    Path(path): Path<(String, String)>,
    Parameters(until): Parameters<Until>,
) -> Answer<Option<SliceView>> {
    let key = key(path)?;
    let deadline = Instant::now() + Duration::from_secs(until.timeout.into());
    let mut heard = controller.heard_moves();
    loop {
        heard.mark_unchanged();
        let view = controller.state().slice(&key);
        let is_there = match (until.until, &view) {
            (Some(Awaited::Gone), None) => return Ok(Json(None)),
            (_, None) => return Err(no_slice(&key)),
            (Some(Awaited::Ready), Some(view)) => view.state == SliceState::Ready,
            (Some(Awaited::Gone), Some(_)) => false,
            (None, Some(_)) => true,
        };
        if is_there || timeout_at(deadline, heard.changed()).await.is_err() {
            return Ok(Json(view));
        }
    }
}

async fn history(
    State(controller): App,
    Path(path): Path<(String, String)>,
) -> Answer<Vec<(u64, Declaration)>> {
    let key = key(path)?;
    let found = whole(|| controller.history(&key))?;
    if found.is_empty() { Err(no_slice(&key)) } else { Ok(Json(found)) }
}

async fn list_nodes(State(controller): App) -> Json<Vec<DomainNodeView>> {
    Json(controller.state().all_nodes())
}

/// A node says what it has; the answer says what it shall have, and waits a while if that is the same.
async fn report(
    State(controller): App,
    Path(node): Path<String>,
    Body(report): Body<Report>,
) -> Answer<Wanted> {
    let node = name(&node)?;
    let mut wanted = controller.wanted_moves();
    let hold = whole(|| controller.heard(&node, report))?;
    // Nothing else wanted within the time is no error: the node calls again.
    let _ = timeout(hold, wanted.changed()).await;
    Ok(Json(controller.wanted(&node)))
}

async fn part(
    State(controller): App,
    Path((node, part)): Path<(String, String)>,
) -> Answer<PartText> {
    let bad = |error: api::BadText| {
        fault::refused(
            StatusCode::BAD_REQUEST,
            "part",
            "find it",
            error.to_string(),
            "name it as the answer to the report did",
        )
    };
    let part: PartName = part.parse().map_err(bad)?;
    Ok(Json(controller.part(&name(&node)?, &part)?.text))
}
