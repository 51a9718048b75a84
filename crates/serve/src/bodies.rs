//! Bodies of requests, read as they come, within a sum over all callers.
//!
//! A short body is always taken. What is longer counts against a sum for all that are being read, so that callers who begin long bodies and
//! stop cost a bounded memory, and only callers who send long ones are asked to come again.

use crate::crowd::Pulse;
use crate::error::ApiError;
use crate::hit::{Hit, Told};
use api::Fault;
use axum::RequestExt;
use axum::extract::Request;
use axum::http::StatusCode;
use http_body_util::{BodyExt, LengthLimitError};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Bytes of all bodies under way that are longer than [`SHORT`], where there is memory for them. Chosen: the longest body that any path takes, and
/// half of another.
pub const MOST: usize = 96 << 20;
/// A body up to this is not counted. Chosen: all but bodies of thousands of rules; 256 callers have 16 MiB of them.
const SHORT: usize = 64 << 10;
/// How the sum is counted.
const UNIT: usize = 1024;
/// How long a caller may send nothing, and how long all of a body may take. Chosen: a slow host, and 64 MiB over a slow line.
const PIECE_WITHIN: Duration = Duration::from_secs(10);
const ALL_WITHIN: Duration = Duration::from_secs(120);

/// What all bodies of a process take together; clones are the same sum.
#[derive(Clone)]
pub struct Bodies {
    sum: Arc<Semaphore>,
    most: usize,
    told: Told,
}

impl Bodies {
    /// None is under way; so many bytes may be.
    pub fn new(most: usize) -> Self {
        Self { sum: Arc::new(Semaphore::new(most / UNIT)), most, told: Arc::new(|_| ()) }
    }

    /// The same sum, for callers of one socket: of each body of theirs that is refused, `told` hears.
    #[must_use]
    pub fn telling(&self, told: Told) -> Self {
        Self { told, ..self.clone() }
    }
}

impl Default for Bodies {
    fn default() -> Self {
        Self::new(MOST)
    }
}

/// A body's part of the sum.
struct Part {
    sum: Arc<Semaphore>,
    /// The whole of it.
    most: usize,
    held: Option<OwnedSemaphorePermit>,
}

impl Part {
    /// Sees to it that a body of this length is counted.
    fn cover(&mut self, length: usize) -> Result<(), ApiError> {
        let units = length.saturating_sub(SHORT).div_ceil(UNIT);
        let held = self.held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = u32::try_from(units.saturating_sub(held)).unwrap_or(u32::MAX);
        if units > self.most / UNIT {
            return Err(large(self.most));
        }
        let most = self.most;
        let more = self.sum.clone().try_acquire_many_owned(more).map_err(|_| crowded(most))?;
        match &mut self.held {
            Some(held) => held.merge(more),
            held => *held = Some(more),
        }
        Ok(())
    }
}

/// Reads the body of a request.
///
/// # Errors
/// It is longer than its path allows, comes too slowly, breaks off, or there is no room for it beside others'.
pub(crate) async fn read(request: Request) -> Result<Vec<u8>, ApiError> {
    let pulse = request.extensions().get::<Arc<Pulse>>().cloned();
    let Bodies { sum, most, told } =
        request.extensions().get::<Bodies>().cloned().unwrap_or_default();
    let whole = timeout(ALL_WITHIN, gather(request, Part { sum, most, held: None }));
    let read = whole.await.unwrap_or_else(|_| Err(slow()));
    if let Err(error) = &read
        && matches!(error.status(), StatusCode::REQUEST_TIMEOUT | StatusCode::SERVICE_UNAVAILABLE)
    {
        told(Hit::Body);
    }
    let bytes = read?;
    pulse.iter().for_each(|pulse| pulse.set_works(true));
    Ok(bytes)
}

async fn gather(request: Request, mut part: Part) -> Result<Vec<u8>, ApiError> {
    let mut body = request.into_limited_body();
    let mut bytes = Vec::new();
    while let Some(frame) = timeout(PIECE_WITHIN, body.frame()).await.map_err(|_| slow())? {
        // Trailers say nothing to us.
        let Ok(data) = frame.map_err(|error| broken(&error))?.into_data() else { continue };
        part.cover(bytes.len() + data.len())?;
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}

fn broken(error: &axum::Error) -> ApiError {
    let mut cause = error.source();
    while let Some(inner) = cause.filter(|cause| !cause.is::<LengthLimitError>()) {
        cause = inner.source();
    }
    match cause.is_some() {
        true => {
            let cause = "its body is longer than this path takes".to_owned();
            let remedy =
                "send less at a time; a node's rules and parts may have `bounds.api_body` bytes";
            refused(StatusCode::PAYLOAD_TOO_LARGE, cause, remedy)
        }
        false => ApiError::of_request(StatusCode::BAD_REQUEST, format!("its body: {error}")),
    }
}

fn refused(status: StatusCode, cause: String, remedy: &str) -> ApiError {
    ApiError::new(status, Fault::new("request", "read its body", cause, remedy))
}

fn slow() -> ApiError {
    let cause = format!(
        "nothing came for {} s, or not all of it within {} s",
        PIECE_WITHIN.as_secs(),
        ALL_WITHIN.as_secs()
    );
    refused(StatusCode::REQUEST_TIMEOUT, cause, "send it without pauses, or in smaller parts")
}

fn large(most: usize) -> ApiError {
    let cause = format!("the memory of this node lets bodies have {} KiB", most >> 10);
    refused(StatusCode::PAYLOAD_TOO_LARGE, cause, "send it in parts, or give the node more memory")
}

fn crowded(most: usize) -> ApiError {
    let cause = format!("bodies under way hold {} KiB already", most >> 10);
    let remedy = "send it again when they are done, or in parts of less than 64 KiB";
    refused(StatusCode::SERVICE_UNAVAILABLE, cause, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Stream;
    use axum::body::{Body, Bytes};
    use axum::response::IntoResponse;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use tokio::sync::mpsc::{Sender, channel};

    const SUM: usize = MOST;

    fn begun(bodies: &Bodies) -> (Sender<Bytes>, Request) {
        let (sender, receiver) = channel(1);
        let mut request = Request::new(Body::new(Stream(receiver)));
        request.extensions_mut().insert(bodies.clone());
        request.extensions_mut().insert(axum::extract::DefaultBodyLimit::max(64 << 20));
        (sender, request)
    }

    fn status(read: Result<Vec<u8>, ApiError>) -> Result<usize, StatusCode> {
        read.map(|bytes| bytes.len()).map_err(|error| error.into_response().status())
    }

    #[tokio::test(start_paused = true)]
    async fn callers_who_stop_hold_a_bounded_sum_for_a_bounded_time_and_short_bodies_pass() {
        let refused = Arc::new(AtomicUsize::new(0));
        let counts = refused.clone();
        let bodies = Bodies::new(SUM);
        let told = bodies.telling(Arc::new(move |hit| {
            assert_eq!(hit, Hit::Body);
            counts.fetch_add(1, Relaxed);
        }));
        let mut senders = Vec::new();
        let piece = Bytes::from(vec![7; 1 << 20]);
        let mut readers = tokio::task::JoinSet::new();
        for _ in 0..200 {
            let (sender, request) = begun(&told);
            readers.spawn(async { status(read(request).await) });
            sender.send(piece.clone()).await.unwrap();
            senders.push(sender);
        }
        let (sender, request) = begun(&bodies);
        sender.send(Bytes::from(vec![7; SHORT])).await.unwrap();
        drop(sender);
        assert_eq!(status(read(request).await), Ok(SHORT));
        let ended = readers.join_all().await;
        let count = |status| ended.iter().filter(|end| **end == Err(status)).count();
        // A piece less its short beginning, which is not counted.
        let fit = SUM / ((1 << 20) - SHORT);
        assert_eq!(count(StatusCode::REQUEST_TIMEOUT), fit);
        assert_eq!(count(StatusCode::SERVICE_UNAVAILABLE), 200 - fit);
        assert_eq!(refused.load(Relaxed), 200, "each is told");
        assert_eq!(bodies.sum.available_permits(), SUM / UNIT, "all of it is given back");
    }

    #[tokio::test]
    async fn a_body_for_which_there_is_never_memory_is_refused_as_too_large() {
        let bodies = Bodies::new(1 << 20);
        let (sender, request) = begun(&bodies);
        sender.send(Bytes::from(vec![7; 2 << 20])).await.unwrap();
        assert_eq!(status(read(request).await), Err(StatusCode::PAYLOAD_TOO_LARGE));
    }
}
