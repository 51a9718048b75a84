//! The rules of a switch, streamed.

use super::error::ApiError;
use super::extract::Parameters;
use super::stream::Stream;
use crate::refusal::Refusal;
use crate::room::Part;
use crate::service::{FlowLines, Node};
use api::{ErrorBody, Fault, FlowsView};
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serve::crowd::{Admission, Pulse};
use std::iter::{Peekable, Take};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use utoipa::IntoParams;

/// Bytes sent at a time. Chosen: large enough that a million rules take no million wake-ups.
const CHUNK: usize = 64 << 10;
/// Chunks that may wait for a slow reader.
const AHEAD: usize = 1;

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
    /// At most so many rules; all of them if left out.
    #[serde(default)]
    #[param(example = 500)]
    limit: Option<usize>,
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
    let (begun, begins) = oneshot::channel();
    let (sender, receiver) = mpsc::channel(AHEAD);
    let asked = node.clone();
    let dump = move || asked.flows(&switch, &selection.filter, selection.names);
    let most = selection.limit.unwrap_or(usize::MAX);
    let room = (node.clone(), node.room().part());
    match node.dumps().admit(|pulse| serve_dump(dump, most, begun, (sender, pulse), room)) {
        Admission::Free => {}
        Admission::InPlace => node.hit_lists("a list that nobody read made room for another"),
        Admission::Refused => {
            node.hit_lists("a list was refused");
            return Err(crowded(node.dumps().most()));
        }
    }
    // One that has made room for another before it began.
    begins.await.unwrap_or_else(|_| Err(crowded(node.dumps().most())))?;
    Ok(([(CONTENT_TYPE, "application/json")], Body::new(Stream(receiver))).into_response())
}

/// Looks the rules up, says whether there is an answer, and prints it.
async fn serve_dump(
    dump: impl FnOnce() -> Result<FlowLines, Refusal> + Send + 'static,
    most: usize,
    begun: oneshot::Sender<Result<(), ApiError>>,
    (sender, pulse): (mpsc::Sender<Bytes>, Arc<Pulse>),
    (node, mut part): (Arc<Node>, Part),
) {
    pulse.set_works(true);
    let found = tokio::task::spawn_blocking(dump).await;
    pulse.set_works(false);
    let found = found.map_err(|failed| ApiError::of_ours(&failed));
    // Who asked may have gone.
    let found = found.and_then(|found| found.map_err(ApiError::from));
    let taken = found.and_then(|lines| {
        let bytes = lines.memory();
        if !part.may(bytes) {
            node.hit_lists("a list found no memory beside what waits");
            return Err(no_room());
        }
        part.set(bytes);
        Ok(lines)
    });
    match taken {
        Err(error) => drop(begun.send(Err(error))),
        Ok(lines) => {
            let _ = begun.send(Ok(()));
            print(lines.take(most).peekable(), sender, pulse).await;
        }
    }
}

fn no_room() -> ApiError {
    let cause = "lists, messages and bodies that wait have the node's memory for them".to_owned();
    let fault =
        Fault::new("switch", "list its flows", cause, "ask again in a second, or for fewer");
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, fault)
}

fn crowded(most: usize) -> ApiError {
    let cause = format!("{most} lists of rules are being read already");
    let fault = Fault::new("switch", "list its flows", cause, "ask again in a second");
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, fault)
}

/// Prints the rules as one JSON document, in chunks; ends early when the reader has gone. While the reader is slow, no thread waits for it.
async fn print(
    mut lines: Peekable<Take<FlowLines>>,
    sender: mpsc::Sender<Bytes>,
    pulse: Arc<Pulse>,
) {
    let mut chunk = Vec::from(b"{\"flows\":[");
    let mut has_more = true;
    while has_more {
        let printed = tokio::task::spawn_blocking(move || {
            let has_more = fill(&mut chunk, &mut lines);
            (chunk, lines, has_more)
        });
        // A panic is in the log already.
        let Ok((full, rest, is_next)) = printed.await else { return };
        if sender.send(full.into()).await.is_err() {
            return;
        }
        pulse.beat();
        (chunk, lines, has_more) = (vec![b','], rest, is_next);
    }
}

/// Appends rules up to a chunk's size; false when these were the last, and the end is appended too.
fn fill(chunk: &mut Vec<u8>, lines: &mut Peekable<Take<FlowLines>>) -> bool {
    while let Some(line) = lines.next() {
        // A Vec takes every byte, and a rule is plain data.
        let _ = serde_json::to_writer(&mut *chunk, &line);
        if lines.peek().is_none() {
            break;
        }
        if chunk.len() >= CHUNK {
            return true;
        }
        chunk.push(b',');
    }
    chunk.extend(b"]}");
    false
}
