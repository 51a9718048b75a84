//! Who asks, whether that caller may, and what becomes of it: before any handler, and behind it.

use super::{Shared, whole};
use crate::access::{Access, needed};
use crate::caller::{Caller, Peer, Shown};
use crate::fault;
use api::Fault;
use axum::extract::{ConnectInfo, MatchedPath, RawPathParams, Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serve::error::ApiError;

/// What changes nothing that is declared, though its method could: nodes say what they have every two seconds.
const QUESTIONS: [&str; 5] = [
    "/v1/nodes/{node}/report",
    "/v1/nodes/{node}/streams/{id}",
    "/v1/read",
    "/v1/slices/{tenant}/{slice}/plan",
    "/v1/slices/{tenant}/{slice}/switches/{switch}/why",
];

/// What is asked for by the method of questions because browsers open WebSockets by no other.
const CONSOLE: &str = "/v1/slices/{tenant}/{slice}/guests/{guest}/console";

/// What the audit has of a request beyond its path.
#[derive(Clone)]
pub struct Said {
    /// What it asks for.
    pub what: String,
    /// Whether it is kept although a stranger made it in vain.
    pub keeps: bool,
}

/// Lets a request pass that its caller may make, and notes what changes something.
pub async fn gate(
    State(controller): State<Shared>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    route: MatchedPath,
    path: RawPathParams,
    mut request: Request,
    next: Next,
) -> Response {
    let shown = Shown::by(request.headers(), &peer);
    let value = |wanted: &str| {
        path.iter().find(|(name, _)| *name == wanted).map_or("", |(_, value)| value).to_owned()
    };
    let access = needed(request.method(), route.as_str(), value);
    // That a session was seen is written down now and then.
    let caller = match shown {
        Shown::Cookie(_) => whole(|| controller.caller(&peer, &shown)),
        _ => controller.caller(&peer, &shown),
    };
    let caller = match caller {
        Ok(caller) => caller,
        // What anyone may ask for, one may ask for whose certificate is worth nothing any more: to join again.
        Err(_) if access == Access::Anyone => Caller::Nobody,
        Err(error) => return error.into_response(),
    };
    let is_question = QUESTIONS.contains(&route.as_str());
    let changes = !request.method().is_safe() && !is_question || route.as_str() == CONSOLE;
    let what = format!("{} {}", request.method(), request.uri());
    let who = format!("{caller} ({peer})");
    let may = access.check(&caller).and_then(|()| meant(&request, &shown, &access));
    let response = match may {
        Ok(()) => {
            request.extensions_mut().insert(caller.clone());
            next.run(request).await
        }
        Err(error) => error.into_response(),
    };
    // Strangers must not fill the store: what they try is in the log alone, unless it was done.
    let said = response.extensions().get::<Said>();
    let is_kept = caller != Caller::Nobody
        || response.status().is_success()
        || said.is_some_and(|said| said.keeps);
    let what = said.map_or(what.clone(), |said| format!("{what} {}", said.what));
    if changes {
        note(&controller, (who, what, is_kept), &response);
    }
    response
}

/// A browser sends its cookie with whatever any page asks for: a change must bring what only the session's own pages know.
fn meant(request: &Request, shown: &Shown, access: &Access) -> Result<(), ApiError> {
    match shown {
        Shown::Cookie(secret) if !request.method().is_safe() && *access != Access::Anyone => {
            let is_meant = secret.is_meant(request.headers());
            is_meant.then_some(()).ok_or_else(|| {
                fault::refused(
                    StatusCode::FORBIDDEN,
                    "session",
                    "do what was asked",
                    "the request lacks the session's token in X-CSRF-Token",
                    "send what GET /v1/session calls csrf",
                )
            })
        }
        _ => Ok(()),
    }
}

fn note(controller: &Shared, (who, what, is_kept): (String, String, bool), response: &Response) {
    let refused = response.extensions().get::<Fault>().map(|fault| fault.cause.clone());
    let status = response.status().as_u16();
    let outcome = refused.as_deref().unwrap_or("done");
    tracing::info!(target: "audit", "{who}: {what}: {status} {outcome}");
    if is_kept && let Err(error) = whole(|| controller.note(who, what, status, refused)) {
        tracing::error!("the audit lacks a line: {}", ApiError::into_fault(error));
    }
}
