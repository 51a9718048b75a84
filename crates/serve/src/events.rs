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

use crate::error::ApiError;
use crate::feed::{Feed, Portion};
use crate::stream::Stream;
use api::{Event, News, Revision};
use axum::body::{Body, Bytes};
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

/// What readers hear of.
pub trait Source: Send + Sync + 'static {
    /// What happens.
    fn feed(&self) -> &Feed;

    /// Everything that there is, for readers that begin, and from which event on they must hear the rest. What changes meanwhile is in both.
    fn present(&self) -> (Revision, Vec<News>);

    /// Whether this reader may hear of it. Who may not gets numbers with gaps.
    fn tells(&self, news: &News) -> bool;
}

/// The answer to a reader.
///
/// # Errors
/// It does not say from where on it wants to hear.
pub fn answer(
    source: impl Source,
    selection: Selection,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let last = headers.get(LAST).map(|last| last.to_str().unwrap_or("?").to_owned());
    let begin = begin(source.feed(), last.or(selection.since))?;
    let (sender, receiver) = mpsc::channel(AHEAD);
    let reader = Reader { source, sender };
    tokio::spawn(reader.read(begin, selection.follow));
    let head = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")];
    Ok((head, Body::new(Stream(receiver))).into_response())
}

fn begin(feed: &Feed, since: Option<String>) -> Result<Begin, ApiError> {
    let bad = |_| {
        let cause = "since is neither a revision nor `oldest` nor `now`".into();
        ApiError::of_request(StatusCode::BAD_REQUEST, cause)
    };
    Ok(match since.as_deref() {
        None => Begin::Present,
        Some("now") => Begin::After(feed.newest()),
        Some("oldest") => Begin::After(feed.oldest()),
        Some(number) => Begin::After(Revision(number.parse().map_err(bad)?)),
    })
}

/// Somebody who reads; the channel is closed when it has gone.
struct Reader<S> {
    source: S,
    sender: mpsc::Sender<Bytes>,
}

impl<S: Source> Reader<S> {
    /// Sends what there is to send, until the reader goes or the process ends.
    async fn read(self, begin: Begin, follow: bool) {
        let mut at = match begin {
            Begin::After(at) => Some(at),
            Begin::Present => self.present(String::new()).await,
        };
        while let Some(since) = at {
            at = match self.source.feed().after(since) {
                Portion::Gone(gone) => self.present(frame("gone", None, &gone)).await,
                Portion::Events(events) => match events.last() {
                    Some(last) => self.send(self.changes(&events)).await.then_some(last.revision),
                    None if follow => self.wait(since).await.then_some(since),
                    None => None,
                },
            };
        }
    }

    /// Sends everything that there is behind `text`; returns from where on the rest comes.
    async fn present(&self, mut text: String) -> Option<Revision> {
        let (since, found) = self.source.present();
        for news in found.iter().filter(|news| self.source.tells(news)) {
            text += &frame("present", None, news);
        }
        // The reader is at `since` when it has all of it.
        text += &frame("present", Some(since), &serde_json::json!({"since": since}));
        self.send(text).await.then_some(since)
    }

    /// Waits for news; false when there is nobody, or nothing, to wait for.
    async fn wait(&self, since: Revision) -> bool {
        let news = self.source.feed().wait(since);
        tokio::select! {
            news = tokio::time::timeout(BEAT, news) => match news {
                Ok(is_there) => is_there,
                Err(_) => self.send(":\n\n".into()).await,
            },
            () = self.sender.closed() => false,
        }
    }

    fn changes(&self, events: &[Arc<Event>]) -> String {
        let told = events.iter().filter(|event| self.source.tells(&event.news));
        told.map(|event| frame("change", Some(event.revision), &**event)).collect()
    }

    /// False when the reader has gone.
    async fn send(&self, text: String) -> bool {
        text.is_empty() || self.sender.send(text.into()).await.is_ok()
    }
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
