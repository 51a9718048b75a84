//! Browsers: sign-in, who is signed in, sign-out; passwords.

use super::gate::Said;
use super::{Answer, App, name, whole};
use crate::caller::{Caller, Peer};
use crate::controller::Failed;
use crate::fault;
use crate::sessions::{IDLE_S, Secret, Session, unset_cookie};
use api::{ErrorBody, PasswordSpec, SessionView, SignIn};
use axum::extract::{ConnectInfo, Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serve::error::ApiError;
use serve::extract::Body;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Passwords that are looked at at a time: each costs 19 MiB and a core.
const AT_A_TIME: usize = 2;
/// How long a sign-in waits for its turn.
const PATIENCE: Duration = Duration::from_secs(10);

/// The turns of those whose passwords are looked at.
pub struct Turns(Semaphore);

impl Default for Turns {
    fn default() -> Self {
        Self(Semaphore::new(AT_A_TIME))
    }
}

/// Signs a user in. The answer gives the browser a cookie, which no script can read. The request's type must be JSON, so that no form of another site can send it.
#[utoipa::path(post, path = "/v1/session", tag = "users", request_body = SignIn,
    responses((status = 200, description = "The session", body = SessionView),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn sign_in(
    State(controller): App,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Extension(turns): Extension<std::sync::Arc<Turns>>,
    headers: HeaderMap,
    Body(SignIn { user, password }): Body<SignIn>,
) -> Result<Response, ApiError> {
    let is_json = headers.get(header::CONTENT_TYPE).is_some_and(|it| it == "application/json");
    if !is_json {
        let cause = "the type of a sign-in is application/json".into();
        return Err(ApiError::of_request(StatusCode::UNSUPPORTED_MEDIA_TYPE, cause));
    }
    // What can be no user's name is not repeated, in no log and no answer.
    let user = if name(&user).is_ok() { user } else { "?".into() };
    let from = peer.address();
    let turn = tokio::time::timeout(PATIENCE, turns.0.acquire()).await;
    let Ok(Ok(_turn)) = turn else { return Err(refused(&user, Failed::Often(30)).1) };
    let said = Said { what: format!("as {user}"), keeps: false };
    match whole(|| controller.sign_in(&user, &password, from)) {
        Ok((secret, session)) => {
            let caller = controller.caller(&peer, &crate::caller::Shown::Cookie(secret.clone()));
            let view = Json(view(caller?, &session, &secret));
            let cookie = [(header::SET_COOKIE, secret.set_cookie(peer.is_near()))];
            Ok((cookie, Extension(said), view).into_response())
        }
        Err(failed) => {
            let wait = match failed {
                Failed::Often(wait) => Some([(header::RETRY_AFTER, wait.to_string())]),
                _ => None,
            };
            let (keeps, error) = refused(&user, failed);
            Ok((wait, Extension(Said { keeps, ..said }), error).into_response())
        }
    }
}

/// Whether the audit keeps it, and what is answered.
fn refused(user: &str, failed: Failed) -> (bool, ApiError) {
    let thing = format!("user {user}");
    let refused = |status, cause: String, remedy: &str| {
        fault::refused(status, thing, "sign in", cause, remedy)
    };
    match failed {
        Failed::Often(wait) => {
            let cause = format!("there were too many tries; the next one is in {wait} s");
            (false, refused(StatusCode::TOO_MANY_REQUESTS, cause, "wait, then try again"))
        }
        Failed::Wrong(keeps) => {
            let remedy = "try again; an operator can give you another password: suiro domain user password NAME";
            let cause = "name and password do not go together".into();
            (keeps, refused(StatusCode::UNAUTHORIZED, cause, remedy))
        }
        Failed::Ours(error) => (false, error),
    }
}

/// The session that the request's cookie is of.
#[utoipa::path(get, path = "/v1/session", tag = "users",
    responses((status = 200, description = "The session", body = SessionView),
              (status = "4XX", description = "There is none", body = ErrorBody)))]
pub async fn show_session(
    State(controller): App,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Answer<SessionView> {
    let secret = Secret::of(&headers, peer.is_near());
    let found = secret.and_then(|secret| Some((controller.session(&secret)?, secret)));
    let (session, secret) = found.ok_or_else(no_session)?;
    Ok(Json(view(caller, &session, &secret)))
}

/// Signs out: the session ends, and the browser forgets its cookie.
#[utoipa::path(delete, path = "/v1/session", tag = "users",
    responses((status = 200, description = "It has ended", body = ()),
              (status = "4XX", description = "There is none", body = ErrorBody)))]
pub async fn sign_out(
    State(controller): App,
    ConnectInfo(peer): ConnectInfo<Peer>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let secret = Secret::of(&headers, peer.is_near()).ok_or_else(no_session)?;
    whole(|| controller.sign_out(&secret))?;
    Ok(([(header::SET_COOKIE, unset_cookie(peer.is_near()))], Json(())).into_response())
}

/// Gives a user a password to sign in with, in place of the one before. The user's sessions end.
#[utoipa::path(put, path = "/v1/users/{user}/password", tag = "users", params(("user" = String, Path, description = "The user")), request_body = PasswordSpec,
    responses((status = 200, description = "It is kept", body = ()),
              (status = "4XX", description = "Refused", body = ErrorBody)))]
pub async fn put_password(
    State(controller): App,
    Path(user): Path<String>,
    Body(PasswordSpec { password }): Body<PasswordSpec>,
) -> Answer<()> {
    let user = name(&user)?;
    Ok(Json(whole(|| controller.put_password(&user, &password))?))
}

fn view(caller: Caller, session: &Session, secret: &Secret) -> SessionView {
    let user = super::users::view(caller);
    SessionView { user, csrf: secret.csrf(), ends_s: session.ends_s(), idle_s: IDLE_S }
}

fn no_session() -> ApiError {
    fault::refused(
        StatusCode::NOT_FOUND,
        "session",
        "find it",
        "the request has no cookie of one",
        "sign in, or show a token",
    )
}

#[cfg(test)]
mod tests;
