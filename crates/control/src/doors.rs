//! Where callers come in: the unix socket, TLS on an address, and loopback without TLS for browsers of this host.
//!
//! A handshake that takes long, or that nobody finishes, keeps nobody else waiting; nor does a caller that says nothing, or one that calls and calls: all
//! are bounded ([`Bounds`]). A caller whose host has gone is found out by the kernel (tcp(7), `TCP_KEEPIDLE`).

use crate::authority::{Authority, sha256};
use crate::caller::Peer;
use crate::crowd::{Crowd, Place};
use api::Fault;
use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use rustix::net::sockopt;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serve::error::ApiError;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;

/// What callers by TLS may take.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// How long a handshake may take.
    pub handshake: Duration,
    /// How long a caller may say nothing before a request, or take for the head of one.
    pub idle: Duration,
    /// Connections of one address at a time.
    pub of_an_address: usize,
}

impl Default for Bounds {
    /// Chosen: many round trips around the world; what hyper takes for usual; a class behind one address.
    fn default() -> Self {
        let (handshake, idle) = (Duration::from_secs(5), Duration::from_secs(30));
        Self { handshake, idle, of_an_address: 256 }
    }
}

/// Handshakes of one address at a time: the others' room is never full of one caller's.
const SHAKING: usize = 16;
/// After so long a silent connection is asked whether anybody is there, so often, with so many questions. Chosen: gone is known within a minute.
const ALIVE: (Duration, Duration, u32) = (Duration::from_secs(30), Duration::from_secs(10), 3);
/// Handshakes at a time: a flood of callers costs that much memory and no more.
const AT_A_TIME: usize = 64;
/// After so long the controller makes itself another certificate.
const ANOTHER: Duration = Duration::from_secs(86_400);
/// A pause when no connection can be had, for want of descriptors mostly.
const PAUSE: Duration = Duration::from_millis(100);

/// The unix socket.
pub struct Here(pub UnixListener);

impl Connected<IncomingStream<'_, Here>> for Peer {
    fn connect_info(stream: IncomingStream<'_, Here>) -> Self {
        stream.remote_addr().clone()
    }
}

impl Listener for Here {
    type Io = UnixStream;
    type Addr = Peer;

    async fn accept(&mut self) -> (UnixStream, Peer) {
        loop {
            match self.0.accept().await {
                Ok((stream, _)) => {
                    let peer = stream.peer_cred().ok();
                    let peer = peer.map(|peer| (peer.uid(), peer.pid().unwrap_or(0)));
                    return (stream, Peer::Here(peer));
                }
                Err(error) => pause(&error).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<Peer> {
        Ok(Peer::Here(None))
    }
}

/// How a door is.
#[derive(Clone)]
pub enum Door {
    /// By TLS with certificates of the domain's own authority. Nodes show theirs.
    Domain(Arc<Authority>, fn() -> u64),
    /// By TLS with a certificate that browsers know.
    Browsers(Arc<Files>),
    /// Without TLS. On loopback alone.
    Near,
}

/// A certificate with its key, as files that somebody renews.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Files {
    /// The certificate, those behind it after it, in PEM form.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

impl Files {
    /// What they make.
    ///
    /// # Errors
    /// They cannot be read, or do not belong together.
    pub fn server(&self) -> Result<Arc<ServerConfig>, Fault> {
        let bad = |file: &Path, error: &dyn std::error::Error| {
            let thing = format!("portal's certificate: {}", file.display());
            let remedy = "name the certificate with its chain, and its key, in PEM form";
            Fault::new(thing, "use it", error.to_string(), remedy)
        };
        let chain = CertificateDer::pem_file_iter(&self.certificate);
        let chain = chain.and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let chain = chain.map_err(|error| bad(&self.certificate, &error))?;
        let key =
            PrivateKeyDer::from_pem_file(&self.key).map_err(|error| bad(&self.key, &error))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("ring's provider speaks TLS 1.3")
            .with_no_client_auth()
            .with_single_cert(chain, key);
        config.map(Arc::new).map_err(|error| bad(&self.certificate, &error))
    }
}

impl Door {
    /// What a handshake needs; none where there is no TLS.
    fn acceptor(&self) -> Result<Option<TlsAcceptor>, Fault> {
        let config = match self {
            Self::Domain(authority, now_s) => {
                authority.server(now_s()).map_err(ApiError::into_fault)?
            }
            Self::Browsers(files) => files.server()?,
            Self::Near => return Ok(None),
        };
        Ok(Some(config.into()))
    }
}

/// An open door.
pub struct There {
    address: SocketAddr,
    bounds: Bounds,
    opened: mpsc::Receiver<Caller>,
}

/// A connection.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Somebody who came in.
pub struct Caller {
    /// The connection.
    pub stream: Box<dyn Stream>,
    /// Who it is.
    pub peer: Peer,
    /// Its place among those of its address.
    pub place: Place,
}

impl There {
    /// Takes who comes to a socket that listens, within a runtime.
    ///
    /// # Errors
    /// The socket is none.
    pub fn open(listener: TcpListener, door: Door, bounds: Bounds) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let (sender, opened) = mpsc::channel(AT_A_TIME);
        tokio::spawn(welcome(listener, door, bounds, sender));
        Ok(Self { address, bounds, opened })
    }

    /// The address, with the port that was had.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl There {
    /// The next who came in; never, when nobody can any more.
    pub async fn next(&mut self) -> Caller {
        match self.opened.recv().await {
            Some(caller) => caller,
            None => std::future::pending().await,
        }
    }

    /// What callers may take.
    pub fn bounds(&self) -> Bounds {
        self.bounds
    }
}

async fn welcome(listener: TcpListener, door: Door, bounds: Bounds, opened: mpsc::Sender<Caller>) {
    let (shaking, there) = (Crowd::new(SHAKING), Crowd::new(bounds.of_an_address));
    let room = Arc::new(Semaphore::new(AT_A_TIME));
    let mut acceptor: Option<(Option<TlsAcceptor>, Instant)> = None;
    loop {
        let Ok(turn) = room.clone().acquire_owned().await else { return };
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                pause(&error).await;
                continue;
            }
        };
        let (Some(hands), Some(place)) = (shaking.enter(from.ip()), there.enter(from.ip())) else {
            tracing::debug!("{from}: no connection: its address has too many");
            continue;
        };
        if acceptor.as_ref().is_none_or(|(_, made)| made.elapsed() > ANOTHER) {
            match door.acceptor() {
                Ok(made) => acceptor = Some((made, Instant::now())),
                Err(fault) => tracing::error!("{fault}"),
            }
        }
        let Some((acceptor, _)) = acceptor.clone() else { continue };
        let opened = opened.clone();
        tokio::spawn(async move {
            match shake(acceptor, (stream, from), bounds.handshake).await {
                Ok((stream, peer)) => {
                    let caller = Caller { stream, peer, place };
                    // Nobody listens any more when the controller ends.
                    let _ = opened.send(caller).await;
                }
                Err(error) => tracing::info!("{from}: no connection: {error}"),
            }
            drop((turn, hands));
        });
    }
}

async fn shake(
    acceptor: Option<TlsAcceptor>,
    (stream, from): (TcpStream, SocketAddr),
    patience: Duration,
) -> io::Result<(Box<dyn Stream>, Peer)> {
    stream.set_nodelay(true)?;
    let (silent, between, questions) = ALIVE;
    sockopt::set_socket_keepalive(&stream, true)?;
    sockopt::set_tcp_keepidle(&stream, silent)?;
    sockopt::set_tcp_keepintvl(&stream, between)?;
    sockopt::set_tcp_keepcnt(&stream, questions)?;
    let Some(acceptor) = acceptor else { return Ok((Box::new(stream), Peer::Near(from))) };
    let stream = tokio::time::timeout(patience, acceptor.accept(stream))
        .await
        .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    let shown = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
    let shown = shown.map(|certificate| sha256(certificate));
    Ok((Box::new(stream), Peer::There(from, shown)))
}

async fn pause(error: &io::Error) {
    tracing::warn!("no connection can be taken: {error}");
    tokio::time::sleep(PAUSE).await;
}
