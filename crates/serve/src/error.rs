//! Refusals as HTTP: a status, and the body that every error has.

use api::{ErrorBody, Fault, chain};
use axum::Json;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};

/// An error on its way out.
pub struct ApiError {
    status: StatusCode,
    body: Box<ErrorBody>,
}

impl ApiError {
    /// A refusal with that status.
    pub fn new(status: StatusCode, body: impl Into<ErrorBody>) -> Self {
        Self { status, body: Box::new(body.into()) }
    }

    /// Its status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// What is told first.
    pub fn into_fault(self) -> Fault {
        self.body.error
    }

    /// Something of ours broke.
    pub fn of_ours(error: &dyn std::error::Error) -> Self {
        let fault = Fault::new(
            "API",
            "do what was asked",
            chain(error),
            "please report this with the node's log",
        );
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, body: Box::new(fault.into()) }
    }

    /// The request itself is wrong; `status` is what axum found.
    pub fn of_request(status: StatusCode, cause: String) -> Self {
        let remedy = "see GET /v1/openapi.json, or use the suiro command";
        Self { status, body: Box::new(Fault::new("request", "read it", cause, remedy).into()) }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let told = self.body.error.clone();
        let mut response = (self.status, Json(self.body)).into_response();
        // Who notes what was refused finds why.
        response.extensions_mut().insert(told);
        response
    }
}

/// The answer to a path that nothing serves.
pub async fn no_route(uri: Uri) -> ApiError {
    ApiError::of_request(StatusCode::NOT_FOUND, format!("there is nothing at {}", uri.path()))
}

/// The answer to a method that a path does not have.
pub async fn no_method(method: Method, uri: Uri) -> ApiError {
    ApiError::of_request(
        StatusCode::METHOD_NOT_ALLOWED,
        format!("{} does not have {method}", uri.path()),
    )
}
