//! A question to a node about what a slice has there, as a client of the node's own API.

use super::Shared;
use crate::controller::Placed;
use crate::streams::Sender;
use api::ErrorBody;
use axum::http::header::HOST;
use axum::http::request::Builder;
use axum::http::{Method, Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use serde::de::DeserializeOwned;
use serve::error::ApiError;

/// Largest answer of a node: a log's end, as JSON that escapes each byte of it.
const ANSWER_MAX: usize = 4 << 20;

/// A request of a node.
pub fn to_node(method: Method, path: &str) -> Builder {
    Request::builder().method(method).uri(path).header(HOST, "suiro")
}

/// The answer to a question that changes nothing. The stream is kept for the next one.
pub async fn ask<T: DeserializeOwned>(
    controller: &Shared,
    placed: &Placed,
    question: Request<Full<Bytes>>,
) -> Result<T, ApiError> {
    let _room = controller.room(placed)?;
    let kept = match controller.kept_stream(&placed.node) {
        Some(mut sender) => placed
            .in_time(sender.send_request(question.clone()))
            .await?
            .ok()
            .map(|answer| (sender, answer)),
        None => None,
    };
    // A stream that was kept may have ended at that moment.
    let (sender, answer) = match kept {
        Some(both) => both,
        None => {
            let mut sender = controller.stream(placed).await?;
            let answer = send(&mut sender, placed, question).await?;
            (sender, answer)
        }
    };
    let body = read(placed, answer).await?;
    controller.keep_stream(&placed.node, sender);
    serde_json::from_slice(&body).map_err(|error| ApiError::of_ours(&error))
}

/// A node's first words to a request.
pub async fn send(
    sender: &mut Sender,
    placed: &Placed,
    request: Request<Full<Bytes>>,
) -> Result<Response<Incoming>, ApiError> {
    let answer = placed.in_time(sender.send_request(request)).await?;
    answer.map_err(|error| ApiError::of_ours(&error))
}

/// The body of a node's answer.
async fn read(placed: &Placed, answer: Response<Incoming>) -> Result<Bytes, ApiError> {
    match answer.status().is_success() {
        true => whole(placed, answer).await,
        false => Err(refusal(placed, answer).await),
    }
}

async fn whole(placed: &Placed, answer: Response<Incoming>) -> Result<Bytes, ApiError> {
    let read = placed.in_time(Limited::new(answer.into_body(), ANSWER_MAX).collect()).await?;
    Ok(read.map_err(|error| ApiError::of_ours(&*error))?.to_bytes())
}

/// What a node refuses, in words of the slice.
pub async fn refusal(placed: &Placed, answer: Response<Incoming>) -> ApiError {
    let status = answer.status();
    let said = whole(placed, answer).await;
    let said = said.and_then(|body| {
        serde_json::from_slice::<ErrorBody>(&body).map_err(|error| ApiError::of_ours(&error))
    });
    let mut said = match said {
        Ok(said) => said,
        Err(error) => return error,
    };
    let named = format!("switch {}", placed.named);
    let rest = said.error.thing.strip_prefix(&named).unwrap_or_default().to_owned();
    said.error.thing = format!("{}{rest}", placed.thing);
    // The node's own commands are not the tenant's.
    if said.error.remedy.contains("suiro ") {
        said.error.remedy = format!("see how it is: suiro slice show {}", placed.key);
    }
    ApiError::new(status, said)
}
