//! A capture, read until it is stopped, and then to its end in order.

use super::{Call, Client, ClientError, broken};
use crate::{CAPTURE_HEADER, CaptureSpec};
use http_body_util::BodyExt;
use hyper::Method;
use hyper::body::Bytes;
use std::ops::ControlFlow;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

/// What ends a capture beside its node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stop {
    /// This time is over.
    pub after: Option<Duration>,
}

impl Client {
    /// Has frames shown; `hear` gets the bytes of a pcapng file as they come, until the node has no more. When time is over, on SIGINT and SIGTERM, and
    /// when `hear` says that it has enough, the node is asked to end: what it sends then ends the file.
    ///
    /// # Errors
    /// No node, or it refuses; what came before was heard.
    pub fn capture<E: From<ClientError>>(
        &self,
        spec: &CaptureSpec,
        stop: Stop,
        mut hear: impl FnMut(&[u8]) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let runtime = self.runtime()?;
        let call = Call { door: &self.door, patience: self.patience };
        let body = serde_json::to_vec(spec).expect("requests are plain data");
        let request = self.request(Method::POST, "/v1/captures", body.into())?;
        runtime.block_on(async {
            let broken = |error: std::io::Error| broken(&self.door, &error);
            let mut signals = [SignalKind::interrupt(), SignalKind::terminate()].map(signal);
            let answer = call.heard(call.begin(request)).await.map_err(E::from)??;
            if !answer.status().is_success() {
                return Err(call.refusal(answer).await.into());
            }
            let number = answer.headers().get(CAPTURE_HEADER).and_then(|id| id.to_str().ok());
            let path = format!("/v1/captures/{}", number.unwrap_or_default());
            let mut body = answer.into_body();
            let deadline = stop.after.map(|after| Instant::now() + after);
            let mut asked = false;
            loop {
                let frame = tokio::select! {
                    frame = body.frame() => frame,
                    () = wants_end(deadline, &mut signals), if !asked => {
                        asked = true;
                        self.end(&call, &path).await?;
                        continue;
                    }
                };
                let Some(frame) = frame else { return Ok(()) };
                let frame = frame.map_err(|error| broken(std::io::Error::other(error)))?;
                let bytes = frame.into_data().unwrap_or_default();
                if hear(&bytes)?.is_break() && !asked {
                    asked = true;
                    self.end(&call, &path).await?;
                }
            }
        })
    }

    /// Asks the node to end the capture. It may have ended by itself.
    async fn end(&self, call: &Call<'_>, path: &str) -> Result<(), ClientError> {
        let request = self.request(Method::DELETE, path, Bytes::new())?;
        match call.exchange(request).await {
            Ok(_) | Err(ClientError::Refused(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Ready when the time is over or a signal came.
async fn wants_end(deadline: Option<Instant>, signals: &mut [std::io::Result<Signal>; 2]) {
    let [interrupt, terminate] = signals;
    tokio::select! {
        () = until(deadline) => {}
        () = came(interrupt) => {}
        () = came(terminate) => {}
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

async fn came(signal: &mut std::io::Result<Signal>) {
    let heard = match signal {
        Ok(signal) => signal.recv().await,
        Err(_) => None,
    };
    if heard.is_none() {
        std::future::pending().await
    }
}
