//! Captures: a file that comes as frames are seen.

use super::audit::Peer;
use super::error::ApiError;
use super::extract::Body;
use super::handlers::{App, Gone};
use super::stream::Stream;
use crate::captures::Asker;
use crate::host::Right;
use api::{CAPTURE_HEADER, CAPTURE_TYPE, CaptureSpec, CaptureView, ErrorBody};
use axum::Extension;
use axum::Json;
use axum::extract::{ConnectInfo, Path, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};

/// Show frames at some points, until the connection is closed or the capture is deleted: blocks of a pcapng file. The header `suiro-capture` has its
/// number.
#[utoipa::path(post, path = "/v1/captures", tag = "captures", request_body = CaptureSpec,
    responses((status = 200, description = "A pcapng file, as it comes about", body = [u8], content_type = "application/x-pcapng"),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn capture(
    State(node): App,
    ConnectInfo(peer): ConnectInfo<Peer>,
    right: Option<Extension<Right>>,
    Body(mut spec): Body<CaptureSpec>,
) -> Result<Response, ApiError> {
    let right = right.map(|Extension(right)| right);
    if let Some(most) = right.and_then(|_| node.payload_of_group()) {
        spec.payload = Some(spec.payload.map_or(most, |asked| asked.min(most)));
    }
    let who = asker(peer, right);
    let begin = move || node.begin_capture(spec, who);
    // Memory for its rings is touched, and every worker is asked.
    let begun = tokio::task::spawn_blocking(begin).await;
    let (id, chunks) = begun.map_err(|failed| ApiError::of_ours(&failed))??;
    let head = [
        (CONTENT_TYPE.as_str(), CAPTURE_TYPE.to_owned()),
        (CACHE_CONTROL.as_str(), "no-store".to_owned()),
        (CAPTURE_HEADER, id.to_string()),
    ];
    Ok((head, axum::body::Body::new(Stream(chunks))).into_response())
}

fn asker(Peer(process): Peer, right: Option<Right>) -> Asker {
    Asker { process, is_of_group: right.is_some() }
}

/// The captures under way.
#[utoipa::path(get, path = "/v1/captures", tag = "captures",
    responses((status = 200, description = "The captures", body = Vec<CaptureView>)))]
pub async fn list_captures(State(node): App) -> Json<Vec<CaptureView>> {
    Json(node.captures())
}

/// End a capture in order: its file ends with what was seen until now, and what was counted.
#[utoipa::path(delete, path = "/v1/captures/{capture}", tag = "captures",
    params(("capture" = u32, Path, description = "Number of the capture")),
    responses((status = 204, description = "It ends"),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn end_capture(
    State(node): App,
    ConnectInfo(peer): ConnectInfo<Peer>,
    right: Option<Extension<Right>>,
    Path(capture): Path<u32>,
) -> Gone {
    node.end_capture(capture, &asker(peer, right.map(|Extension(right)| right)))?;
    Ok(StatusCode::NO_CONTENT)
}
