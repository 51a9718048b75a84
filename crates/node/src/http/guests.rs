//! Guests: one function per route, and programs that run in them over an upgraded connection.

use super::error::ApiError;
use super::extract::Body;
use super::handlers::{Answer, App};
use api::exec::{
    END, ERRORS, ExecRequest, HEAD, INPUT, OUTPUT, PIECE_MAX, PROTOCOL, head, read_head,
};
use api::{CircuitView, ErrorBody, GuestView, LogView, StrayView};
use axum::Json;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::header::{CONNECTION, UPGRADE};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use tokio::io::{AsyncReadExt, AsyncWriteExt, WriteHalf};
use tokio::net::unix::pipe;
use tokio::sync::Mutex;

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

/// The promise of a connection without HTTP.
pub struct Upgrade(OnUpgrade);

impl<S: Send + Sync> FromRequestParts<S> for Upgrade {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let asked = parts.headers.get(UPGRADE).is_some_and(|value| value == PROTOCOL);
        let upgrade = parts.extensions.remove::<OnUpgrade>().filter(|_| asked);
        let cause = || format!("it does not ask for an upgrade to {PROTOCOL}");
        let refused = || ApiError::of_request(StatusCode::UPGRADE_REQUIRED, cause());
        upgrade.map(Self).ok_or_else(refused)
    }
}

/// Run a program in a guest. The connection becomes its input and output: pieces, each with a head of five bytes, kind (0 input, 1
/// output, 2 errors, 3 end with its status) and length in network order.
#[utoipa::path(post, path = "/v1/guests/{guest}/exec", operation_id = "exec_guest", tag = "guests", request_body = ExecRequest,
    params(("guest" = String, Path, description = "Name of the guest, or PART:NAME")),
    responses((status = 101, description = "It runs: the connection is its input and output"),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn exec(
    State(node): App,
    Path(guest): Path<String>,
    Upgrade(upgrade): Upgrade,
    Body(request): Body<ExecRequest>,
) -> Result<Response, ApiError> {
    let child = node.exec_in_guest(&guest, request.command).await?;
    tokio::spawn(async move {
        // Who has hung up meanwhile has a program that ends with its pipes.
        let Ok(upgraded) = upgrade.await else { return };
        if let Err(error) = carry(child, upgraded).await {
            tracing::debug!("guest {guest}: a program's connection broke: {error}");
        }
    });
    let headers = [
        (CONNECTION, HeaderValue::from_static("upgrade")),
        (UPGRADE, HeaderValue::from_static(PROTOCOL)),
    ];
    Ok((StatusCode::SWITCHING_PROTOCOLS, headers).into_response())
}

type Peer = TokioIo<Upgraded>;

/// Carries pieces both ways until the program has ended and all that it wrote is sent.
async fn carry(mut child: Child, upgraded: Upgraded) -> io::Result<()> {
    let (mut from, to) = tokio::io::split(TokioIo::new(upgraded));
    let to = Mutex::new(to);
    let input = child.stdin.take().map(|pipe| pipe::Sender::from_owned_fd(OwnedFd::from(pipe)));
    let output = child.stdout.take().map(OwnedFd::from);
    let errors = child.stderr.take().map(OwnedFd::from);
    let mut input = input.transpose()?;
    let pid = child.id();
    let ended = tokio::task::spawn_blocking(move || child.wait());
    let typed = async {
        let mut piece = vec![0; PIECE_MAX];
        loop {
            let mut first = [0; HEAD];
            from.read_exact(&mut first).await?;
            let (kind, len) = read_head(first).ok_or(io::ErrorKind::InvalidData)?;
            from.read_exact(&mut piece[..len]).await?;
            match &mut input {
                Some(_) if kind == INPUT && len == 0 => input = None,
                // A program that reads no more is not disturbed.
                Some(pipe) if kind == INPUT => drop(pipe.write_all(&piece[..len]).await),
                _ => {}
            }
        }
    };
    let written = async {
        let both = tokio::join!(send(OUTPUT, output, &to), send(ERRORS, errors, &to));
        both.0.and(both.1)?;
        let status = ended.await.map_err(io::Error::other)??;
        let status = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(255);
        let mut to = to.lock().await;
        to.write_all(&[&head(END, 1)[..], &[status as u8]].concat()).await?;
        to.shutdown().await
    };
    tokio::select! {
        done = written => done,
        hung_up = typed => {
            let hung_up: io::Result<()> = hung_up;
            // Nobody waits for it any more.
            let pid = rustix::process::Pid::from_raw(pid as i32);
            let _ = pid.map(|pid| rustix::process::kill_process(pid, rustix::process::Signal::TERM));
            hung_up
        }
    }
}

/// Sends what comes out of a pipe.
async fn send(kind: u8, pipe: Option<OwnedFd>, to: &Mutex<WriteHalf<Peer>>) -> io::Result<()> {
    let Some(pipe) = pipe else { return Ok(()) };
    let mut pipe = pipe::Receiver::from_owned_fd(pipe)?;
    let mut bytes = vec![0; PIECE_MAX];
    loop {
        let read = pipe.read(&mut bytes).await?;
        if read == 0 {
            return Ok(());
        }
        let mut to = to.lock().await;
        to.write_all(&head(kind, read)).await?;
        to.write_all(&bytes[..read]).await?;
        to.flush().await?;
    }
}
