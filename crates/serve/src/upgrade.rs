//! Connections that leave HTTP for another protocol (RFC 9110 §7.8).

use crate::error::ApiError;
use axum::extract::FromRequestParts;
use axum::http::header::{CONNECTION, UPGRADE};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use hyper::upgrade::OnUpgrade;
use std::convert::Infallible;

/// What a request says of another protocol.
pub struct Upgrade {
    asked: Option<HeaderValue>,
    promise: Option<OnUpgrade>,
}

impl Upgrade {
    /// The promise of a connection of that protocol.
    ///
    /// # Errors
    /// The request does not ask for it.
    pub fn to(self, protocol: &str) -> Result<OnUpgrade, ApiError> {
        let asks = self.asked.is_some_and(|value| value == protocol);
        let refused = || {
            let cause = format!("it does not ask for an upgrade to {protocol}");
            ApiError::of_request(StatusCode::UPGRADE_REQUIRED, cause)
        };
        self.promise.filter(|_| asks).ok_or_else(refused)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Upgrade {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let asked = parts.headers.get(UPGRADE).cloned();
        Ok(Self { asked, promise: parts.extensions.remove() })
    }
}

/// The answer behind which the connection is the protocol's.
pub fn switching(protocol: &'static str) -> Response {
    let headers = [
        (CONNECTION, HeaderValue::from_static("upgrade")),
        (UPGRADE, HeaderValue::from_static(protocol)),
    ];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}
