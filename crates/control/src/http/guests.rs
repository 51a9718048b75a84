//! Guests of slices: what each has written, and programs that run in it. The guest's node answers, by a stream that it opens.

use super::slices::key;
use super::{Answer, App, gate::Said, name};
use crate::controller::{Line, thing};
use api::exec::{ExecRequest, PROTOCOL, STREAM};
use api::{ErrorBody, LogView, quoted};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::header::{CONNECTION, CONTENT_TYPE, HOST, UPGRADE};
use axum::http::{Method, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use domain::SliceKey;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use serve::error::ApiError;
use serve::extract::Body;
use serve::upgrade::{Upgrade, switching};
use tokio::sync::OwnedSemaphorePermit;

/// Largest answer of a node: a log's end, as JSON that escapes each byte of it.
const ANSWER_MAX: usize = 4 << 20;

/// The end of what the command of a guest has written.
#[utoipa::path(get, path = "/v1/slices/{tenant}/{slice}/guests/{guest}/log", tag = "slices", params(("tenant" = String, Path, description = "The tenant"), ("slice" = String, Path, description = "The slice"), ("guest" = String, Path, description = "The guest")),
    responses((status = 200, description = "The log's end", body = LogView),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn show_guest_log(
    State(controller): App,
    Path((tenant, slice, guest)): Path<(String, String, String)>,
) -> Answer<LogView> {
    let key = key((tenant, slice))?;
    let asked = ask(controller.line(&key, &guest).await?, Method::GET, "log", Vec::new()).await?;
    let body = read(asked.answer, &key, &guest).await?;
    serde_json::from_slice(&body).map(Json).map_err(|error| ApiError::of_ours(&error))
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
    let key = key((tenant, slice))?;
    let upgrade = upgrade.to(PROTOCOL)?;
    let body = serde_json::to_vec(&request).map_err(|error| ApiError::of_ours(&error))?;
    let line = controller.line(&key, &guest).await?;
    let Asked { answer, room } = ask(line, Method::POST, "exec", body).await?;
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        let status = answer.status();
        let body = read(answer, &key, &guest).await?;
        return Ok((status, [(CONTENT_TYPE, "application/json")], body).into_response());
    }
    tokio::spawn(async move {
        if let (Ok(node), Ok(user)) = (hyper::upgrade::on(answer).await, upgrade.await) {
            // Either end may have gone: then so does the other.
            let (mut node, mut user) = (TokioIo::new(node), TokioIo::new(user));
            let _ = tokio::io::copy_bidirectional(&mut node, &mut user).await;
        }
        drop(room);
    });
    let mut response = switching(PROTOCOL);
    response.extensions_mut().insert(Said { what: request.command.join(" "), keeps: false });
    Ok(response)
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

/// A node's answer, and the stream's place among the tenant's.
struct Asked {
    answer: axum::http::Response<Incoming>,
    room: OwnedSemaphorePermit,
}

/// Asks a node about a guest.
async fn ask(line: Line, method: Method, what: &str, body: Vec<u8>) -> Result<Asked, ApiError> {
    let Line { node, room, guest } = line;
    let mut request = Request::builder()
        .method(method)
        .uri(format!("/v1/guests/{}/{what}", quoted(&guest)))
        .header(HOST, "suiro");
    if !body.is_empty() {
        let json = "application/json";
        request = request.header(CONTENT_TYPE, json).header(CONNECTION, "upgrade");
        request = request.header(UPGRADE, PROTOCOL);
    }
    let request = request.body(Full::new(Bytes::from(body)));
    let request = request.map_err(|error| ApiError::of_ours(&error))?;
    let broken = |error: hyper::Error| ApiError::of_ours(&error);
    let (mut sender, connection) =
        handshake(TokioIo::new(TokioIo::new(node))).await.map_err(broken)?;
    tokio::spawn(connection.with_upgrades());
    let answer = sender.send_request(request).await.map_err(broken)?;
    Ok(Asked { answer, room })
}

/// The body of a node's answer; what it refuses is told in words of the slice.
async fn read(
    answer: axum::http::Response<Incoming>,
    key: &SliceKey,
    guest: &str,
) -> Result<Bytes, ApiError> {
    let status = answer.status();
    let read = Limited::new(answer.into_body(), ANSWER_MAX).collect().await;
    let body = read.map_err(|error| ApiError::of_ours(&*error))?.to_bytes();
    if status.is_success() {
        return Ok(body);
    }
    let mut said: ErrorBody =
        serde_json::from_slice(&body).map_err(|error| ApiError::of_ours(&error))?;
    said.error.thing = thing(key, guest);
    if said.error.remedy.contains("suiro guest") {
        said.error.remedy = format!("see how it is: suiro slice show {key}");
    }
    Err(ApiError::new(status, said))
}
