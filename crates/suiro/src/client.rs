//! A client of the local API: one request, one answer, over a unix socket.

use crate::failure::Failure;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use node::api::ErrorBody;
use node::fault::{Fault, chain};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

/// Knows where the node is.
pub struct Client {
    socket: PathBuf,
}

impl Client {
    /// For the node at that socket.
    pub fn new(socket: PathBuf) -> Self {
        Self { socket }
    }

    /// The socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Whether a node answers there.
    pub fn is_served(&self) -> bool {
        std::os::unix::net::UnixStream::connect(&self.socket).is_ok()
    }

    /// Asks for something.
    ///
    /// # Errors
    /// No node, or it refuses.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.ask(Method::GET, path, Bytes::new())
    }

    /// Sends something with a method that changes.
    ///
    /// # Errors
    /// No node, or it refuses.
    pub fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        let body = serde_json::to_vec(body).expect("requests are plain data");
        self.ask(method, path, body.into())
    }

    /// Deletes something that needs no body, and reads the answer.
    ///
    /// # Errors
    /// No node, or it refuses.
    pub fn take<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.ask(Method::DELETE, path, Bytes::new())
    }

    /// Deletes something that needs no body.
    ///
    /// # Errors
    /// No node, or it refuses.
    pub fn delete(&self, path: &str) -> Result<(), Failure> {
        self.exchange(Method::DELETE, path, Bytes::new()).map(drop)
    }

    fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<T, Failure> {
        let answer = self.exchange(method, path, body)?;
        let remedy = "use the suiro command of the node's own version";
        serde_json::from_slice(&answer).map_err(|error| {
            Failure::Refused(Fault::new("node", "read its answer", error.to_string(), remedy))
        })
    }

    fn exchange(&self, method: Method, path: &str, body: Bytes) -> Result<Bytes, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        let runtime = runtime.map_err(|error| broken(&self.socket, &error))?;
        let request =
            Request::builder().method(method).uri(path).header(hyper::header::HOST, "suiro");
        let request =
            request.body(Full::new(body)).map_err(|error| broken(&self.socket, &error))?;
        runtime.block_on(exchange(&self.socket, request))
    }
}

async fn exchange(socket: &Path, request: Request<Full<Bytes>>) -> Result<Bytes, Failure> {
    let stream =
        tokio::net::UnixStream::connect(socket).await.map_err(|error| no_node(socket, &error))?;
    let opened = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = opened.map_err(|error| broken(socket, &error))?;
    // Ends with the answer; an error of it is the answer's error too.
    tokio::spawn(connection);
    let answer = sender.send_request(request).await.map_err(|error| broken(socket, &error))?;
    let status = answer.status();
    let body =
        answer.into_body().collect().await.map_err(|error| broken(socket, &error))?.to_bytes();
    if status.is_success() {
        return Ok(body);
    }
    let fault = serde_json::from_slice::<ErrorBody>(&body).map(|body| body.error);
    Err(Failure::Refused(fault.unwrap_or_else(|_| {
        let remedy = "check --api: is this the socket of a suiro node?";
        Fault::new(
            format!("{}", socket.display()),
            "read its answer",
            format!("HTTP status {status}"),
            remedy,
        )
    })))
}

fn no_node(socket: &Path, error: &io::Error) -> Failure {
    let remedy = match error.kind() {
        io::ErrorKind::PermissionDenied => "run as root, or as a member of the socket's group",
        _ => {
            "start a node (suiro node --config node.toml), or name its socket with --api or SUIRO_API"
        }
    };
    Failure::NoNode(Fault::new(
        "node",
        format!("connect to {}", socket.display()),
        error.to_string(),
        remedy,
    ))
}

fn broken(socket: &Path, error: &(dyn Error + 'static)) -> Failure {
    let remedy = "look at the node's log: it ended or was restarted meanwhile";
    Failure::NoNode(Fault::new(
        "node",
        format!("talk through {}", socket.display()),
        chain(error),
        remedy,
    ))
}

/// A text as part of a query (RFC 3986 §2.1).
pub fn quoted(text: &str) -> String {
    let quote = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    };
    text.bytes().map(quote).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_passes_through_a_query_unharmed() {
        assert_eq!(quoted("ip,nw_dst=10.0.0.0/8 &é"), "ip%2Cnw_dst%3D10.0.0.0%2F8%20%26%C3%A9");
    }
}
