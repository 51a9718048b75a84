//! What happens in the domain, as server-sent events: a tenant's user hears of its own slices, an operator of all.

use super::{App, Shared};
use crate::caller::{Caller, Peer, Shown};
use api::{ErrorBody, Event, News, Revision};
use axum::Extension;
use axum::extract::{ConnectInfo, State};
use axum::http::HeaderMap;
use axum::response::Response;
use serve::error::ApiError;
use serve::events::{Selection, Source, answer};
use serve::extract::Parameters;
use serve::feed::Feed;

/// Changes of slices, of how they are, and of nodes, each once and in order, as server-sent events.
#[utoipa::path(get, path = "/v1/events", tag = "events",
    params(Selection),
    responses((status = 200, description = "A stream of events; the data of each `change` is an event. Numbers have gaps where the caller may not hear", body = Event, content_type = "text/event-stream"),
              (status = "4XX", description = "Not understood", body = ErrorBody)))]
pub async fn list_events(
    State(controller): App,
    Extension(caller): Extension<Caller>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Parameters(selection): Parameters<Selection>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let shown = Shown::by(&headers, &peer);
    answer(Heard { controller, caller, peer, shown }, selection, &headers)
}

/// What one caller hears.
struct Heard {
    controller: Shared,
    caller: Caller,
    peer: Peer,
    shown: Shown,
}

impl Source for Heard {
    fn feed(&self) -> &Feed {
        self.controller.feed()
    }

    fn present(&self) -> (Revision, Vec<News>) {
        self.controller.present()
    }

    fn tells(&self, news: &News) -> bool {
        // A session or token may have ended since the stream began.
        self.caller.hears(news) && self.controller.still(&self.peer, &self.shown, &self.caller)
    }
}
