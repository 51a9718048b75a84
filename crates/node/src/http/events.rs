//! The feed as server-sent events (HTML, "Server-sent events").
//!
//! ```text
//! event: gone      data: what is not kept any more
//! event: present   data: one thing that is there; of all of them the last has an id, from which on the rest is told
//! event: change    id: the revision; data: the event
//! ```
//!
//! A task pulls from the feed as its reader takes chunks: a slow reader holds a few chunks and nothing of the node's. One that falls behind what
//! is kept is told `gone`, then what there is, as at the beginning.

use super::error::ApiError;
use super::extract::Parameters;
use super::handlers::App;
use super::stream::Stream;
use crate::feed::Portion;
use crate::service::Node;
use api::{ErrorBody, Event, Revision};
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use utoipa::IntoParams;

/// Chunks that may wait for a slow reader.
const AHEAD: usize = 2;
/// How often a reader without news gets a comment: one that has gone is found out by it.
const BEAT: Duration = Duration::from_secs(15);
/// What a browser says of the last event that it has.
const LAST: &str = "last-event-id";

/// From where on, and how long.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Selection {
    /// The revision of the last event that the reader has; `oldest` for all that are kept, `now` for none of them. Left out: first what there is
    /// now, then what comes. The header `Last-Event-ID` says the same.
    #[param(example = "1042")]
    since: Option<String>,
    /// Go on with what comes; otherwise the answer ends with the newest event.
    #[serde(default)]
    follow: bool,
}

/// Where a reader begins.
enum Begin {
    /// With everything that there is.
    Present,
    /// After this event.
    After(Revision),
}

/// Changes of switches, ports, controllers, rules and parts, each once and in order, as server-sent events.
#[utoipa::path(get, path = "/v1/events", tag = "events",
    params(Selection),
    responses((status = 200, description = "A stream of events; the data of each `change` is an event", body = Event, content_type = "text/event-stream"),
              (status = "4XX", description = "Not understood", body = ErrorBody)))]
pub async fn list_events(
    State(node): App,
    Parameters(selection): Parameters<Selection>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let last = headers.get(LAST).map(|last| last.to_str().unwrap_or("?").to_owned());
    let begin = begin(&node, last.or(selection.since))?;
    let (sender, receiver) = mpsc::channel(AHEAD);
    let reader = Reader { node, sender };
    tokio::spawn(reader.read(begin, selection.follow));
    let head = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")];
    Ok((head, Body::new(Stream(receiver))).into_response())
}

fn begin(node: &Node, since: Option<String>) -> Result<Begin, ApiError> {
    let bad = |_| {
        let cause = "since is neither a revision nor `oldest` nor `now`".into();
        ApiError::of_request(StatusCode::BAD_REQUEST, cause)
    };
    Ok(match since.as_deref() {
        None => Begin::Present,
        Some("now") => Begin::After(node.feed().newest()),
        Some("oldest") => Begin::After(node.feed().oldest()),
        Some(number) => Begin::After(Revision(number.parse().map_err(bad)?)),
    })
}

/// Somebody who reads; the channel is closed when it has gone.
struct Reader {
    node: Arc<Node>,
    sender: mpsc::Sender<Bytes>,
}

impl Reader {
    /// Sends what there is to send, until the reader goes or the node ends.
    async fn read(self, begin: Begin, follow: bool) {
        let mut at = match begin {
            Begin::After(at) => Some(at),
            Begin::Present => self.present(String::new()).await,
        };
        while let Some(since) = at {
            at = match self.node.feed().after(since) {
                Portion::Gone(gone) => self.present(frame("gone", None, &gone)).await,
                Portion::Events(events) => match events.last() {
                    Some(last) => self.send(changes(&events)).await.then_some(last.revision),
                    None if follow => self.wait(since).await.then_some(since),
                    None => None,
                },
            };
        }
    }

    /// Sends everything that there is behind `text`; returns from where on the rest comes.
    async fn present(&self, mut text: String) -> Option<Revision> {
        let (since, found) = self.node.present();
        for news in &found {
            text += &frame("present", None, news);
        }
        // The reader is at `since` when it has all of it.
        text += &frame("present", Some(since), &serde_json::json!({"since": since}));
        self.send(text).await.then_some(since)
    }

    /// Waits for news; false when there is nobody, or nothing, to wait for.
    async fn wait(&self, since: Revision) -> bool {
        let news = self.node.feed().wait(since);
        tokio::select! {
            news = tokio::time::timeout(BEAT, news) => match news {
                Ok(is_there) => is_there,
                Err(_) => self.send(":\n\n".into()).await,
            },
            () = self.sender.closed() => false,
        }
    }

    /// False when the reader has gone.
    async fn send(&self, text: String) -> bool {
        self.sender.send(text.into()).await.is_ok()
    }
}

fn changes(events: &[Arc<Event>]) -> String {
    events.iter().map(|event| frame("change", Some(event.revision), &**event)).collect()
}

/// One message. JSON has no line breaks, so its data is one line.
fn frame(name: &str, id: Option<Revision>, data: &impl Serialize) -> String {
    let mut text = format!("event: {name}\n");
    // A String takes every text.
    let _ = id.map(|id| writeln!(text, "id: {id}"));
    let data = serde_json::to_string(data).expect("events are plain data");
    let _ = writeln!(text, "data: {data}\n");
    text
}
