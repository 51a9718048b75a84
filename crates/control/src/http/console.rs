//! A guest's console in a browser: a shell at a terminal, by WebSocket (RFC 6455).
//!
//! A message of bytes is what is typed, or what the shell writes. A message of text is JSON: from the browser [`Window`], the terminal's size;
//! to it an [`api::Fault`], why there is no shell. The close frame's reason says with which status it ended.

use super::guests::{Running, run};
use super::slices::key;
use super::{App, Shared};
use crate::caller::{Caller, Peer, Shown};
use crate::controller::Placed;
use crate::fault;
use api::ErrorBody;
use api::exec::{END, ExecRequest, HEAD, INPUT, PIECE_MAX, RESIZED, Window, head, read_head};
use axum::Extension;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{ConnectInfo, Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use hyper::body::Bytes;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serve::error::ApiError;
use serve::extract::Parameters;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf};
use tokio::sync::mpsc;
use tokio::time::interval;
use utoipa::IntoParams;

/// The best shell that a guest has.
const SHELL: [&str; 3] = ["sh", "-c", "command -v bash >/dev/null && exec bash || exec sh"];
/// How often it is looked whether the session still is.
const LOOK: Duration = Duration::from_secs(2);
/// Pieces of the shell's that wait for a slow browser.
const AHEAD: usize = 4;

/// How large the terminal is at first.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Size {
    /// Lines.
    #[serde(default = "rows")]
    #[param(example = 24)]
    rows: u16,
    /// Characters of a line.
    #[serde(default = "columns")]
    #[param(example = 80)]
    columns: u16,
}

fn rows() -> u16 {
    24
}

fn columns() -> u16 {
    80
}

/// A shell in a guest at a terminal, by WebSocket: messages of bytes are its input and output; a message of text with `rows` and `columns` is the terminal's new size.
#[utoipa::path(get, path = "/v1/slices/{tenant}/{slice}/guests/{guest}/console", tag = "slices", params(("tenant" = String, Path, description = "The tenant"), ("slice" = String, Path, description = "The slice"), ("guest" = String, Path, description = "The guest"), Size),
    responses((status = 101, description = "The connection is a WebSocket"),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn console(
    State(controller): App,
    Extension(caller): Extension<Caller>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Path((tenant, slice, guest)): Path<(String, String, String)>,
    Parameters(Size { rows, columns }): Parameters<Size>,
    headers: HeaderMap,
    socket: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let shown = Shown::by(&headers, &peer);
    if matches!(shown, Shown::Cookie(_)) && !is_of_this_origin(&headers) {
        return Err(of_another_origin());
    }
    let placed = controller.guest(&key((tenant, slice))?, &guest)?;
    let socket =
        socket.map_err(|rejected| ApiError::of_request(rejected.status(), rejected.body_text()))?;
    let request = ExecRequest {
        command: SHELL.map(String::from).to_vec(),
        terminal: Some(Window { rows, columns }),
    };
    let socket = socket.max_message_size(PIECE_MAX);
    Ok(socket.on_upgrade(move |mut socket| async move {
        let still = || controller.still(&peer, &shown, &caller);
        let reason = match begin(&controller, &placed, &request).await {
            Ok((node, running)) => {
                let reason = carry(&mut socket, node, still).await;
                drop(running);
                reason
            }
            Err(error) => {
                let said = serde_json::to_string(&error.into_fault()).unwrap_or_default();
                let _ = socket.send(Message::text(said)).await;
                "there is no shell".into()
            }
        };
        let frame = CloseFrame { code: close_code::NORMAL, reason: reason.into() };
        // Who has gone hears of no end.
        let _ = socket.send(Message::Close(Some(frame))).await;
    }))
}

/// Browsers send cookies with a WebSocket that any page opens, and say which page it was (RFC 6455 §10.2).
fn is_of_this_origin(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let origin = text(header::ORIGIN).and_then(|origin| origin.split_once("://"));
    origin.is_some_and(|(_, origin)| text(header::HOST) == Some(origin))
}

fn of_another_origin() -> ApiError {
    fault::refused(
        StatusCode::FORBIDDEN,
        "session",
        "do what was asked",
        "the page that asks is not the portal's",
        "open the console in the portal, or use a token: suiro slice console",
    )
}

type Node = TokioIo<Upgraded>;

async fn begin(
    controller: &Shared,
    placed: &Placed,
    request: &ExecRequest,
) -> Result<(Node, impl Sized + use<>), ApiError> {
    let Running { answer, room } = run(controller, placed, request).await?;
    let node = hyper::upgrade::on(answer).await.map_err(|error| ApiError::of_ours(&error))?;
    Ok((TokioIo::new(node), room))
}

/// Carries bytes both ways until the shell ends, the browser goes, or the session ends; returns why.
async fn carry(socket: &mut WebSocket, node: Node, still: impl Fn() -> bool) -> String {
    let (from, mut to) = tokio::io::split(node);
    let (sender, mut pieces) = mpsc::channel(AHEAD);
    let reader = tokio::spawn(read(from, sender));
    let mut look = interval(LOOK);
    let reason = loop {
        tokio::select! {
            piece = pieces.recv() => match piece {
                Some((END, status)) => {
                    break format!("ended with status {}", status.first().unwrap_or(&255));
                }
                Some((_, bytes)) => {
                    if socket.send(Message::Binary(bytes)).await.is_err() {
                        break "the browser has gone".into();
                    }
                }
                None => break "its node has gone".into(),
            },
            message = socket.recv() => {
                let (kind, piece) = match message {
                    Some(Ok(Message::Binary(bytes))) => (INPUT, bytes),
                    Some(Ok(Message::Text(text))) => match serde_json::from_str::<Window>(&text) {
                        Ok(window) => (RESIZED, Bytes::copy_from_slice(&window.piece())),
                        Err(error) => break format!("a message of text is no size: {error}"),
                    },
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                    Some(Ok(Message::Close(_)) | Err(_)) | None => break "the browser has gone".into(),
                };
                // An empty piece of input would hang the terminal up.
                if piece.is_empty() {
                    continue;
                }
                let sent = to.write_all(&[&head(kind, piece.len())[..], &piece].concat()).await;
                if sent.is_err() {
                    break "its node has gone".into();
                }
            }
            _ = look.tick() => if !still() {
                break "the session has ended".into();
            }
        }
    };
    reader.abort();
    // A reason has 123 bytes at most (RFC 6455 §5.5).
    reason.chars().take(100).collect()
}

/// Reads pieces of the shell's.
async fn read(mut from: ReadHalf<Node>, sender: mpsc::Sender<(u8, Bytes)>) {
    loop {
        let mut first = [0; HEAD];
        if from.read_exact(&mut first).await.is_err() {
            return;
        }
        let Some((kind, len)) = read_head(first) else { return };
        let mut piece = vec![0; len];
        if from.read_exact(&mut piece).await.is_err() {
            return;
        }
        let is_end = kind == END;
        if (!piece.is_empty() || is_end) && sender.send((kind, piece.into())).await.is_err() {
            return;
        }
        if is_end {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_console_is_opened_by_the_portals_own_pages_alone() {
        let is = |origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "portal.example:8443".parse().unwrap());
            let origin = origin.map(|origin| origin.parse().unwrap());
            origin.map(|origin| headers.insert(header::ORIGIN, origin));
            is_of_this_origin(&headers)
        };
        assert!(is(Some("https://portal.example:8443")));
        for bad in ["https://portal.example", "https://evil.example:8443", "null", ""] {
            assert!(!is(Some(bad)), "{bad}");
        }
        assert!(!is(None));
    }
}
