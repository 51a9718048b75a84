//! Who asks, whether that caller may, and what becomes of it: before any handler, and behind it.

use super::Shared;
use crate::access::{Access, needed};
use crate::caller::{Caller, Peer, bearer};
use api::Fault;
use axum::extract::{ConnectInfo, MatchedPath, RawPathParams, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serve::error::ApiError;

/// What changes nothing that is declared, though its method could: nodes say what they have every two seconds.
const QUESTIONS: [&str; 4] = [
    "/v1/nodes/{node}/report",
    "/v1/nodes/{node}/streams/{id}",
    "/v1/read",
    "/v1/slices/{tenant}/{slice}/plan",
];

/// What a request asks for beyond its path: the audit has it too.
#[derive(Clone)]
pub struct Said(pub String);

/// Lets a request pass that its caller may make, and notes what changes something.
pub async fn gate(
    State(controller): State<Shared>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    route: MatchedPath,
    path: RawPathParams,
    mut request: Request,
    next: Next,
) -> Response {
    let token = bearer(request.headers());
    let value = |wanted: &str| {
        path.iter().find(|(name, _)| *name == wanted).map_or("", |(_, value)| value).to_owned()
    };
    let access = needed(request.method(), route.as_str(), value);
    let caller = match controller.caller(&peer, token.as_ref()) {
        Ok(caller) => caller,
        // What anyone may ask for, one may ask for whose certificate is worth nothing any more: to join again.
        Err(_) if access == Access::Anyone => Caller::Nobody,
        Err(error) => return error.into_response(),
    };
    let changes = !request.method().is_safe() && !QUESTIONS.contains(&route.as_str());
    let what = format!("{} {}", request.method(), request.uri());
    let who = format!("{caller} ({peer})");
    let response = match access.check(&caller) {
        Ok(()) => {
            request.extensions_mut().insert(caller.clone());
            next.run(request).await
        }
        Err(error) => error.into_response(),
    };
    // Strangers must not fill the store: what they try is in the log alone, unless it was done.
    let is_kept = caller != Caller::Nobody || response.status().is_success();
    let said = response.extensions().get::<Said>();
    let what = said.map_or(what.clone(), |said| format!("{what} {}", said.0));
    if changes {
        note(&controller, (who, what, is_kept), &response);
    }
    response
}

fn note(controller: &Shared, (who, what, is_kept): (String, String, bool), response: &Response) {
    let refused = response.extensions().get::<Fault>().map(|fault| fault.cause.clone());
    let status = response.status().as_u16();
    let outcome = refused.as_deref().unwrap_or("done");
    tracing::info!(target: "audit", "{who}: {what}: {status} {outcome}");
    if is_kept && let Err(error) = super::whole(|| controller.note(who, what, status, refused)) {
        tracing::error!("the audit lacks a line: {}", ApiError::into_fault(error));
    }
}
