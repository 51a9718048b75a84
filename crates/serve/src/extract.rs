//! Bodies and queries, read so that what is wrong with them is answered like every other error.

use crate::bodies;
use crate::error::ApiError;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use utoipa::IntoParams;

/// Whether an object that is to be made may be there already.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct MayExist {
    /// One that is there becomes what is named; the rest of it stays.
    #[serde(default)]
    pub may_exist: bool,
}

/// Whether an object that is to go may be gone already.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct IfExists {
    /// That it is not there is no error.
    #[serde(default)]
    pub if_exists: bool,
}

/// A JSON body, whatever its content type says. An empty one is `{}`.
pub struct Body<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let bytes = bodies::read(request).await?;
        let text: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        let parsed = serde_json::from_slice(text);
        parsed.map(Body).map_err(|error| {
            ApiError::of_request(StatusCode::BAD_REQUEST, format!("body: {error}"))
        })
    }
}

/// Parameters after the question mark.
pub struct Parameters<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Parameters<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let read = Query::<T>::from_request_parts(parts, state).await;
        read.map(|Query(value)| Self(value))
            .map_err(|error| ApiError::of_request(error.status(), error.body_text()))
    }
}
