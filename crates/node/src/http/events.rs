//! The node's feed as server-sent events.

use super::error::ApiError;
use super::extract::Parameters;
use super::handlers::App;
use crate::feed::Feed;
use crate::service::Node;
use api::{ErrorBody, Event, News, Revision};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serve::events::{Selection, Source, answer};
use std::sync::Arc;

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
    answer(All(node), selection, &headers)
}

/// Everybody who may see the node hears of all.
struct All(Arc<Node>);

impl Source for All {
    fn feed(&self) -> &Feed {
        self.0.feed()
    }

    fn present(&self) -> (Revision, Vec<News>) {
        self.0.present()
    }

    fn tells(&self, _: &News) -> bool {
        true
    }
}
