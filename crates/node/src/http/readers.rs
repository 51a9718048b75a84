//! Who may see everything and change nothing: the groups of `[node] read_group` and `capture_group`, by a socket of their own each.

use crate::host::Right;
use api::Fault;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serve::error::ApiError;

/// Whether members with this right are answered: questions (RFC 9110 §9.2.1, safe methods), and what goes with captures.
fn is_allowed(right: Right, method: &Method, path: &str) -> bool {
    let is_capture = match path.strip_prefix("/v1/captures") {
        Some("") => *method == Method::POST,
        Some(rest) => rest.starts_with('/') && *method == Method::DELETE,
        None => *method == Method::POST && (path.ends_with("/why") || path.ends_with("/times")),
    };
    method.is_safe() || (right == Right::Capture && is_capture)
}

/// Answers what the right allows and refuses the rest; handlers see the right.
pub(super) async fn within(
    State(right): State<Right>,
    mut request: Request,
    next: Next,
) -> Response {
    let (method, path) = (request.method(), request.uri().path());
    if is_allowed(right, method, path) {
        request.extensions_mut().insert(right);
        return next.run(request).await;
    }
    let step = format!("{method} {path}");
    let (cause, remedy) = match path.starts_with("/v1/captures") {
        true => (
            "you may see everything and capture nothing",
            "run as root, or as a member of [node] capture_group",
        ),
        false => (
            "you may see everything and change nothing",
            "run as root, or as a member of the group of api.sock",
        ),
    };
    let fault = Fault::new("node", step, cause, remedy);
    ApiError::new(StatusCode::FORBIDDEN, fault).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_allows_questions_and_captures_are_a_right_of_their_own() {
        for (method, path, rights) in [
            (Method::GET, "/v1/ports", [true, true]),
            (Method::POST, "/v1/captures", [false, true]),
            (Method::DELETE, "/v1/captures/3", [false, true]),
            (Method::POST, "/v1/switches/sw0/why", [false, true]),
            (Method::POST, "/v1/switches/sw0/times", [false, true]),
            (Method::POST, "/v1/switches", [false, false]),
            (Method::DELETE, "/v1/switches/sw0", [false, false]),
            (Method::POST, "/v1/captures2", [false, false]),
        ] {
            assert_eq!(Right::ALL.map(|right| is_allowed(right, &method, path)), rights, "{path}");
        }
    }
}
