//! Guests of slices: what each has written, and programs that run in it. The guest's node answers, by a stream that it opens.

use super::asking::{ask, refusal, send, to_node};
use super::slices::key;
use super::{Answer, App, Shared, gate::Said, name};
use crate::controller::Placed;
use api::exec::{ExecRequest, PROTOCOL, STREAM};
use api::{ErrorBody, GuestView, LogView, quoted};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::header::{CONNECTION, CONTENT_TYPE, UPGRADE};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use serve::error::ApiError;
use serve::extract::Body;
use serve::upgrade::{Upgrade, switching};
use tokio::sync::OwnedSemaphorePermit;

/// A guest as its node has it: how it is, what it uses.
#[utoipa::path(get, path = "/v1/slices/{tenant}/{slice}/guests/{guest}", tag = "slices", params(("tenant" = String, Path, description = "The tenant"), ("slice" = String, Path, description = "The slice"), ("guest" = String, Path, description = "The guest")),
    responses((status = 200, description = "The guest", body = GuestView),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn show_slice_guest(
    State(controller): App,
    Path((tenant, slice, guest)): Path<(String, String, String)>,
) -> Answer<GuestView> {
    let placed = controller.guest(&key((tenant, slice))?, &guest)?;
    get(&controller, &placed, "").await
}

/// The end of what the command of a guest has written.
#[utoipa::path(get, path = "/v1/slices/{tenant}/{slice}/guests/{guest}/log", tag = "slices", params(("tenant" = String, Path, description = "The tenant"), ("slice" = String, Path, description = "The slice"), ("guest" = String, Path, description = "The guest")),
    responses((status = 200, description = "The log's end", body = LogView),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn show_guest_log(
    State(controller): App,
    Path((tenant, slice, guest)): Path<(String, String, String)>,
) -> Answer<LogView> {
    let placed = controller.guest(&key((tenant, slice))?, &guest)?;
    get(&controller, &placed, "/log").await
}

async fn get<T: DeserializeOwned>(controller: &Shared, placed: &Placed, what: &str) -> Answer<T> {
    let question = to_node(Method::GET, &path(placed, what)).body(Full::default());
    let question = question.map_err(|error| ApiError::of_ours(&error))?;
    ask(controller, placed, question).await.map(Json)
}

fn path(placed: &Placed, what: &str) -> String {
    format!("/v1/guests/{}{what}", quoted(&placed.named))
}

/// Run a program in a guest. The connection becomes its input and output: pieces, each with a head of five bytes, kind (0 input, 1
/// output, 2 errors, 3 end with its status, 4 the terminal's size) and length in network order.
#[utoipa::path(post, path = "/v1/slices/{tenant}/{slice}/guests/{guest}/exec", tag = "slices", params(("tenant" = String, Path, description = "The tenant"), ("slice" = String, Path, description = "The slice"), ("guest" = String, Path, description = "The guest")), request_body = ExecRequest,
    responses((status = 101, description = "It runs: the connection is its input and output"),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn exec_guest(
    State(controller): App,
    Path((tenant, slice, guest)): Path<(String, String, String)>,
    upgrade: Upgrade,
    Body(request): Body<ExecRequest>,
) -> Result<Response, ApiError> {
    let placed = controller.guest(&key((tenant, slice))?, &guest)?;
    let upgrade = upgrade.to(PROTOCOL)?;
    let running = run(&controller, &placed, &request).await?;
    tokio::spawn(async move {
        if let (Ok(node), Ok(user)) = (hyper::upgrade::on(running.answer).await, upgrade.await) {
            // Either end may have gone: then so does the other.
            let (mut node, mut user) = (TokioIo::new(node), TokioIo::new(user));
            let _ = tokio::io::copy_bidirectional(&mut node, &mut user).await;
        }
        drop(running.room);
    });
    let mut response = switching(PROTOCOL);
    response.extensions_mut().insert(Said { what: request.command.join(" "), keeps: false });
    Ok(response)
}

/// A program that runs in a guest.
pub(super) struct Running {
    /// The node's answer: its connection is the program's input and output, in pieces.
    pub answer: axum::http::Response<Incoming>,
    /// Its place among the tenant's.
    pub room: OwnedSemaphorePermit,
}

/// Has a guest's node run a program there.
pub(super) async fn run(
    controller: &Shared,
    placed: &Placed,
    request: &ExecRequest,
) -> Result<Running, ApiError> {
    let body = serde_json::to_vec(request).map_err(|error| ApiError::of_ours(&error))?;
    let room = controller.room(placed)?;
    let question = to_node(Method::POST, &path(placed, "/exec"))
        .header(CONTENT_TYPE, "application/json")
        .header(CONNECTION, "upgrade")
        .header(UPGRADE, PROTOCOL)
        .body(Full::from(body))
        .map_err(|error| ApiError::of_ours(&error))?;
    let mut sender = controller.stream(placed).await?;
    let answer = send(&mut sender, placed, question).await?;
    match answer.status() {
        StatusCode::SWITCHING_PROTOCOLS => Ok(Running { answer, room }),
        status if status.is_success() => {
            let cause = format!("its node answers {status}");
            Err(ApiError::of_request(StatusCode::BAD_GATEWAY, cause))
        }
        _ => Err(refusal(placed, answer).await),
    }
}

/// A node opens a connection by which the controller asks it about guests.
#[utoipa::path(post, path = "/v1/nodes/{node}/streams/{id}", tag = "nodes", params(("node" = String, Path, description = "The node"), ("id" = u64, Path, description = "Which one, as the answer to its report says")),
    responses((status = 101, description = "The connection is HTTP again, with the node as server"),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn open_stream(
    State(controller): App,
    Path((node, id)): Path<(String, u64)>,
    upgrade: Upgrade,
) -> Result<Response, ApiError> {
    let upgrade = upgrade.to(STREAM)?;
    let waiting = controller.opened(&name(&node)?, id)?;
    tokio::spawn(async move {
        if let Ok(upgraded) = upgrade.await {
            // Who waited may have given up.
            let _ = waiting.send(upgraded);
        }
    });
    Ok(switching(STREAM))
}
