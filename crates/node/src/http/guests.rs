//! Guests: one function per route, and programs that run in them over an upgraded connection.

use super::error::ApiError;
use super::extract::Body;
use super::handlers::{Answer, App};
use super::program;
use api::exec::{ExecRequest, PROTOCOL};
use api::{CircuitView, ErrorBody, GuestView, LogView, StrayView};
use axum::Json;
use axum::extract::{Path, State};
use axum::response::Response;
use hyper_util::rt::TokioIo;
use serve::upgrade::{Upgrade, switching};

/// All guests.
#[utoipa::path(get, path = "/v1/guests", tag = "guests",
    responses((status = 200, description = "The guests", body = Vec<GuestView>)))]
pub async fn list_guests(State(node): App) -> Json<Vec<GuestView>> {
    Json(node.guests())
}

/// The ends of circuits, with what is wrong where one is not up.
#[utoipa::path(get, path = "/v1/circuits", tag = "guests",
    responses((status = 200, description = "The ends of circuits", body = Vec<CircuitView>)))]
pub async fn list_circuits(State(node): App) -> Json<Vec<CircuitView>> {
    Json(node.circuits())
}

/// Probes of circuits that have no end at this node: they pass by on their way, or it leads astray.
#[utoipa::path(get, path = "/v1/circuits/strays", operation_id = "list_stray_circuits", tag = "guests",
    responses((status = 200, description = "Whose probes they are", body = Vec<StrayView>)))]
pub async fn list_strays(State(node): App) -> Json<Vec<StrayView>> {
    Json(node.strays())
}

/// One guest.
#[utoipa::path(get, path = "/v1/guests/{guest}", tag = "guests",
    params(("guest" = String, Path, description = "Name of the guest, or PART:NAME")),
    responses((status = 200, description = "The guest", body = GuestView),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn show_guest(State(node): App, Path(guest): Path<String>) -> Answer<GuestView> {
    Ok(Json(node.guest(&guest)?))
}

/// The end of what a guest's command has written.
#[utoipa::path(get, path = "/v1/guests/{guest}/log", operation_id = "show_guest_log", tag = "guests",
    params(("guest" = String, Path, description = "Name of the guest, or PART:NAME")),
    responses((status = 200, description = "The log's end", body = LogView),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn show_log(State(node): App, Path(guest): Path<String>) -> Answer<LogView> {
    Ok(Json(node.guest_log(&guest)?))
}

/// Run a program in a guest. The connection becomes its input and output: pieces, each with a head of five bytes, kind (0 input, 1
/// output, 2 errors, 3 end with its status, 4 the terminal's size) and length in network order.
#[utoipa::path(post, path = "/v1/guests/{guest}/exec", operation_id = "exec_guest", tag = "guests", request_body = ExecRequest,
    params(("guest" = String, Path, description = "Name of the guest, or PART:NAME")),
    responses((status = 101, description = "It runs: the connection is its input and output"),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn exec(
    State(node): App,
    Path(guest): Path<String>,
    upgrade: Upgrade,
    Body(request): Body<ExecRequest>,
) -> Result<Response, ApiError> {
    let upgrade = upgrade.to(PROTOCOL)?;
    let program = node.exec_in_guest(&guest, request).await?;
    tokio::spawn(async move {
        // Who has hung up meanwhile has a program that ends with its pipes.
        let Ok(upgraded) = upgrade.await else { return };
        if let Err(error) = program::carry(program, TokioIo::new(upgraded)).await {
            tracing::debug!("guest {guest}: a program's connection broke: {error}");
        }
    });
    Ok(switching(PROTOCOL))
}
