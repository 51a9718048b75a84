//! The rules of a switch, streamed.

use super::error::ApiError;
use super::extract::Parameters;
use super::stream::Stream;
use crate::service::{FlowLines, Node};
use api::{ErrorBody, FlowsView};
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use std::sync::Arc;
use tokio::sync::mpsc;
use utoipa::IntoParams;

/// Bytes sent at a time. Chosen: large enough that a million rules take no million wake-ups.
const CHUNK: usize = 64 << 10;
/// Chunks that may wait for a slow reader.
const AHEAD: usize = 4;

/// Which rules, and how ports are printed.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Selection {
    /// Only rules at least as specific as this match, in the syntax of `ovs-ofctl dump-flows`.
    #[serde(default)]
    #[param(example = "table=0,ip")]
    filter: String,
    /// Print ports by name.
    #[serde(default)]
    names: bool,
}

/// The rules of a switch, with live counters.
#[utoipa::path(get, path = "/v1/switches/{switch}/flows", tag = "rules",
    params(("switch" = String, Path, description = "Name of the switch"), Selection),
    responses((status = 200, description = "The rules", body = FlowsView),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn list_flows(
    State(node): State<Arc<Node>>,
    Path(switch): Path<String>,
    Parameters(selection): Parameters<Selection>,
) -> Result<Response, ApiError> {
    let lines = tokio::task::spawn_blocking(move || {
        node.flows(&switch, &selection.filter, selection.names)
    })
    .await;
    let lines = lines.map_err(|failed| ApiError::of_ours(&failed))??;
    let (sender, receiver) = mpsc::channel(AHEAD);
    tokio::task::spawn_blocking(move || print(lines, &sender));
    Ok(([(CONTENT_TYPE, "application/json")], Body::new(Stream(receiver))).into_response())
}

/// Prints the rules as one JSON document, in chunks; ends early when the reader has gone.
fn print(lines: FlowLines, sender: &mpsc::Sender<Bytes>) {
    let mut chunk = Vec::with_capacity(CHUNK + 1024);
    chunk.extend(b"{\"flows\":[");
    for (index, line) in lines.enumerate() {
        if index > 0 {
            chunk.push(b',');
        }
        // A Vec takes every byte, and a rule is plain data.
        let _ = serde_json::to_writer(&mut chunk, &line);
        if chunk.len() >= CHUNK && sender.blocking_send(std::mem::take(&mut chunk).into()).is_err()
        {
            return;
        }
    }
    chunk.extend(b"]}");
    let _ = sender.blocking_send(chunk.into());
}
