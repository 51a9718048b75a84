//! A client of a node's API, or of a controller's: one request, one answer, over a unix socket or TLS.
//!
//! No request waits for ever: a node that is silent for longer than the client's patience is given up. A node that is just starting
//! is waited for: it holds the lock of its run directory, and does not listen yet.

mod capture;
mod exec;
mod remote;

pub use capture::Stop;
pub use exec::Outputs;
pub use remote::{As, ControllerAt};

use crate::message::{Message, Messages};
use crate::{CAPTURE_SOCKET, ErrorBody, Fault, LOCK, READ_SOCKET, chain};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::error::Error;
use std::fmt;
use std::fs::{File, TryLockError};
use std::future::Future;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

/// More patience for each MiB that is sent: a node carries out all of it before it answers. Chosen: many times what it takes.
const PATIENCE_PER_MIB: Duration = Duration::from_secs(2);

/// How long a node that is starting, or making place for its successor, is waited for. Chosen: one with a million rules starts within it.
const START: Duration = Duration::from_secs(3);
/// Between two looks whether it listens.
const PAUSE: Duration = Duration::from_millis(10);
/// A node that has no events to send sends something else at least this often.
const BEAT: Duration = Duration::from_secs(15);

/// Asks the node at one socket, or a controller.
pub struct Client {
    door: Door,
    patience: Duration,
}

/// Where who is asked listens.
enum Door {
    Socket(PathBuf),
    Remote(Box<ControllerAt>),
    /// Nobody can be asked, for that reason.
    Nowhere(Box<Fault>),
}

impl fmt::Display for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(socket) => socket.display().fmt(f),
            Self::Remote(remote) => f.write_str(remote.address()),
            Self::Nowhere(fault) => f.write_str(&fault.thing),
        }
    }
}

/// A connection, of either kind.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClientError {
    /// The node refused, and says everything that it found wrong.
    Refused(Box<ErrorBody>),
    /// No node is at the socket.
    NoNode(Fault),
    /// The node does not answer.
    Silent(Fault),
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(body) => body.fmt(f),
            Self::NoNode(fault) | Self::Silent(fault) => fault.fmt(f),
        }
    }
}

impl Error for ClientError {}

impl Client {
    /// For the node at that socket, which may be silent for so long.
    pub fn new(socket: PathBuf, patience: Duration) -> Self {
        Self { door: Door::Socket(socket), patience }
    }

    /// For a controller somewhere else, which may be silent for so long.
    pub fn remote(remote: ControllerAt, patience: Duration) -> Self {
        Self { door: Door::Remote(Box::new(remote)), patience }
    }

    /// For nobody: whatever is asked fails by that reason.
    pub fn nowhere(reason: Fault, patience: Duration) -> Self {
        Self { door: Door::Nowhere(Box::new(reason)), patience }
    }

    /// The socket, if it is one.
    pub fn socket(&self) -> Option<&Path> {
        match &self.door {
            Door::Socket(socket) => Some(socket),
            Door::Remote(_) | Door::Nowhere(_) => None,
        }
    }

    /// How long the node may be silent.
    pub fn patience(&self) -> Duration {
        self.patience
    }

    /// Whether a node listens at its socket.
    pub fn is_served(&self) -> bool {
        self.socket().is_some_and(|socket| std::os::unix::net::UnixStream::connect(socket).is_ok())
    }

    /// Asks for something.
    ///
    /// # Errors
    /// No node, or it refuses.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.ask(Method::GET, path, Bytes::new())
    }

    /// Asks for something that is text.
    ///
    /// # Errors
    /// No node, or it refuses.
    pub fn text(&self, path: &str) -> Result<String, ClientError> {
        let body = self.exchange(Method::GET, path, Bytes::new())?;
        Ok(String::from_utf8_lossy(&body).into_owned())
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
    ) -> Result<T, ClientError> {
        let body = serde_json::to_vec(body).expect("requests are plain data");
        self.ask(method, path, body.into())
    }

    /// Deletes something that needs no body, and reads the answer.
    ///
    /// # Errors
    /// No node, or it refuses.
    pub fn take<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.ask(Method::DELETE, path, Bytes::new())
    }

    /// Deletes something that needs no body.
    ///
    /// # Errors
    /// No node, or it refuses.
    pub fn delete(&self, path: &str) -> Result<(), ClientError> {
        self.exchange(Method::DELETE, path, Bytes::new()).map(drop)
    }

    /// Reads server-sent events until the node ends them, or `hear` says that it has enough. A node that is silent for longer than a heart
    /// beat is given up only when it is silent for the client's patience beyond that.
    ///
    /// # Errors
    /// No node, or it refuses; what came before was heard.
    pub fn watch<E: From<ClientError>>(
        &self,
        path: &str,
        mut hear: impl FnMut(Message) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let runtime = self.runtime()?;
        let call = Call { door: &self.door, patience: self.patience + BEAT };
        let request = self.request(Method::GET, path, Bytes::new())?;
        runtime.block_on(async {
            let mut body = call.accepted(request).await?;
            let mut messages = Messages::default();
            while let Some(bytes) = call.next(&mut body).await? {
                for message in messages.read(&bytes) {
                    if hear(message)?.is_break() {
                        return Ok(());
                    }
                }
            }
            Ok(())
        })
    }

    fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<T, ClientError> {
        let answer = self.exchange(method, path, body)?;
        let remedy = "use the suiro command of the node's own version";
        serde_json::from_slice(&answer).map_err(|error| {
            let fault = Fault::new("node", "read its answer", error.to_string(), remedy);
            ClientError::Refused(Box::new(fault.into()))
        })
    }

    fn exchange(&self, method: Method, path: &str, body: Bytes) -> Result<Bytes, ClientError> {
        let patience = self.patience + PATIENCE_PER_MIB * (body.len() >> 20) as u32;
        let runtime = self.runtime()?;
        let request = self.request(method, path, body)?;
        let call = Call { door: &self.door, patience };
        runtime.block_on(call.exchange(request))
    }

    fn runtime(&self) -> Result<tokio::runtime::Runtime, ClientError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(|error| broken(&self.door, &error))
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Request<Full<Bytes>>, ClientError> {
        let mut request =
            Request::builder().method(method).uri(path).header(hyper::header::HOST, "suiro");
        if let Door::Remote(remote) = &self.door
            && let Some(who) = remote.authorization()
        {
            request = request.header(hyper::header::AUTHORIZATION, who);
        }
        request.body(Full::new(body)).map_err(|error| broken(&self.door, &error))
    }
}

/// One exchange with a node.
struct Call<'a> {
    door: &'a Door,
    patience: Duration,
}

impl Call<'_> {
    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<Bytes, ClientError> {
        let body = self.accepted(request).await?;
        Ok(self.read(body).await?.into())
    }

    /// Sends the request; returns the body of an answer that is no refusal.
    async fn accepted(&self, request: Request<Full<Bytes>>) -> Result<Incoming, ClientError> {
        let answer = self.heard(self.begin(request)).await??;
        match answer.status().is_success() {
            true => Ok(answer.into_body()),
            false => Err(self.refusal(answer).await),
        }
    }

    /// What an answer says that is a refusal.
    async fn refusal(&self, answer: Response<Incoming>) -> ClientError {
        let status = answer.status();
        let body = match self.read(answer.into_body()).await {
            Ok(body) => body,
            Err(error) => return error,
        };
        let said = serde_json::from_slice::<ErrorBody>(&body);
        ClientError::Refused(Box::new(said.unwrap_or_else(|_| {
            let remedy = "check --api: is this the socket of a suiro node?";
            let cause = format!("HTTP status {status}");
            Fault::new(self.door.to_string(), "read its answer", cause, remedy).into()
        })))
    }

    /// Sends the request; returns the head of the answer.
    async fn begin(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, ClientError> {
        if let Door::Nowhere(reason) = self.door {
            return Err(ClientError::NoNode((**reason).clone()));
        }
        let stream = self.connect().await.map_err(|error| no_node(self.door, &error))?;
        let opened = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = opened.map_err(|error| broken(self.door, &error))?;
        // Ends with the answer; an error of it is the answer's error too.
        tokio::spawn(connection.with_upgrades());
        sender.send_request(request).await.map_err(|error| broken(self.door, &error))
    }

    /// Connects, as soon as a node that is starting listens.
    async fn connect(&self) -> io::Result<Box<dyn Stream>> {
        let socket = match self.door {
            Door::Socket(socket) => socket,
            Door::Remote(remote) => return Ok(Box::new(remote.connect().await?)),
            Door::Nowhere(_) => return Err(io::ErrorKind::NotConnected.into()),
        };
        let deadline = tokio::time::Instant::now() + START.min(self.patience);
        loop {
            match tokio::net::UnixStream::connect(socket).await {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    return read_door(socket).await.map_err(|_| error);
                }
                Err(_) if is_starting(socket) && tokio::time::Instant::now() < deadline => {
                    tokio::time::sleep(PAUSE).await;
                }
                outcome => return Ok(Box::new(outcome?)),
            }
        }
    }

    /// Reads a body, which may take as long as it likes if some of it comes now and then.
    async fn read(&self, mut body: Incoming) -> Result<Vec<u8>, ClientError> {
        let mut bytes = Vec::new();
        while let Some(more) = self.next(&mut body).await? {
            bytes.extend(more);
        }
        Ok(bytes)
    }

    /// Reads the next bytes of a body, if there are more.
    async fn next(&self, body: &mut Incoming) -> Result<Option<Bytes>, ClientError> {
        let Some(frame) = self.heard(body.frame()).await? else { return Ok(None) };
        let frame = frame.map_err(|error| broken(self.door, &error))?;
        Ok(Some(frame.into_data().unwrap_or_default()))
    }

    /// Waits for something of the node, but not for ever.
    async fn heard<T>(&self, wait: impl Future<Output = T>) -> Result<T, ClientError> {
        tokio::time::timeout(self.patience, wait).await.map_err(|_| self.silent())
    }

    fn silent(&self) -> ClientError {
        let cause = format!("it has not answered for {} s", self.patience.as_secs());
        let remedy = "see whether it is stopped or its disk hangs (systemctl status suiro), or give it longer with --timeout; a change may still come into force";
        let step = format!("wait for its answer at {}", self.door);
        ClientError::Silent(Fault::new("node", step, cause, remedy))
    }
}

/// The sockets beside it, for those who may read and capture, and for those who may only read.
async fn read_door(socket: &Path) -> io::Result<Box<dyn Stream>> {
    let open = |name: &str| tokio::net::UnixStream::connect(socket.with_file_name(name));
    match open(CAPTURE_SOCKET).await {
        Ok(stream) => Ok(Box::new(stream)),
        Err(_) => Ok(Box::new(open(READ_SOCKET).await?)),
    }
}

/// Whether a node holds the run directory of that socket.
fn is_starting(socket: &Path) -> bool {
    let lock = socket.parent().map(|directory| File::open(directory.join(LOCK)));
    lock.is_some_and(|lock| {
        lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
    })
}

fn no_node(door: &Door, error: &io::Error) -> ClientError {
    let (thing, remedy) = match (door, error.kind()) {
        (Door::Socket(_), io::ErrorKind::PermissionDenied) => (
            "node",
            "run as root, or as a member of the socket's group, or of [node] read_group or capture_group to look only",
        ),
        (Door::Socket(_), _) => (
            "node",
            "start one (suiro node --background, as root, or systemctl start suiro), or name its socket with --api or SUIRO_API",
        ),
        (Door::Remote(_) | Door::Nowhere(_), _) => (
            "controller",
            "see that suiro control --listen runs there, and that nothing between drops what passes",
        ),
    };
    let (cause, remedy) = remote::in_words(error).unwrap_or((error.to_string(), remedy));
    ClientError::NoNode(Fault::new(thing, format!("connect to {door}"), cause, remedy))
}

fn broken(door: &Door, error: &(dyn Error + 'static)) -> ClientError {
    let step = format!("talk through {door}");
    // In TLS 1.3 who was called judges our certificate only now.
    let mut source = Some(error);
    while let Some(one) = source {
        if let Some((cause, remedy)) = one.downcast_ref().and_then(remote::in_words) {
            return ClientError::NoNode(Fault::new("controller", step, cause, remedy));
        }
        source = one.source();
    }
    let (thing, remedy) = match door {
        Door::Socket(_) => ("node", "look at the node's log: it ended or was restarted meanwhile"),
        Door::Remote(_) | Door::Nowhere(_) => {
            ("controller", "look at its log: it ended or was restarted meanwhile")
        }
    };
    ClientError::NoNode(Fault::new(thing, step, chain(error), remedy))
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

    #[test]
    fn a_node_that_holds_its_lock_and_does_not_listen_yet_is_waited_for() {
        let directory = std::env::temp_dir().join(format!("suiro-api-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let socket = directory.join("api.sock");
        let lock = File::create(directory.join(LOCK)).unwrap();
        assert!(!is_starting(&socket));
        lock.lock().unwrap();
        assert!(is_starting(&socket));
        let client = Client::new(socket.clone(), Duration::from_secs(3));
        let answer = std::thread::scope(|scope| {
            let asked = scope.spawn(|| client.get::<crate::NodeView>("/v1/node"));
            let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
            // Whoever was accepted has waited, or came just now.
            drop(listener.accept().unwrap());
            asked.join().unwrap()
        });
        std::fs::remove_dir_all(directory).unwrap();
        let Err(ClientError::NoNode(fault)) = answer else { panic!("{answer:?}") };
        assert!(fault.step.contains("talk through"), "{fault}");
    }

    #[test]
    fn a_node_that_listens_and_says_nothing_is_given_up() {
        let name = format!("suiro-api-silent-{}.sock", std::process::id());
        let socket = std::env::temp_dir().join(name);
        let silent = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let client = Client::new(socket.clone(), Duration::from_millis(50));
        let answer = client.get::<crate::NodeView>("/v1/node");
        drop(silent);
        std::fs::remove_file(socket).unwrap();
        let Err(ClientError::Silent(fault)) = answer else { panic!("{answer:?}") };
        assert!(fault.remedy.contains("--timeout"), "{fault}");
    }
}
