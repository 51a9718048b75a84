//! Who may see everything and change nothing: the group of `[node] read_group`, by a socket of its own.

use api::Fault;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serve::error::ApiError;

/// Answers questions (RFC 9110 §9.2.1, safe methods) and refuses the rest.
pub(super) async fn only_questions(request: Request, next: Next) -> Response {
    if request.method().is_safe() {
        return next.run(request).await;
    }
    let step = format!("{} {}", request.method(), request.uri().path());
    let cause = "you may see everything and change nothing";
    let remedy = "run as root, or as a member of the group of api.sock";
    let fault = Fault::new("node", step, cause, remedy);
    ApiError::new(StatusCode::FORBIDDEN, fault).into_response()
}
