//! Where callers come in: the unix socket, and TLS on an address.
//!
//! A handshake that takes long, or that nobody finishes, keeps nobody else waiting; nor does a caller that says nothing, or one that calls and calls: all
//! are bounded ([`Bounds`]). A caller whose host has gone is found out by the kernel (tcp(7), `TCP_KEEPIDLE`).

use crate::authority::{Authority, sha256};
use crate::caller::Peer;
use crate::crowd::{Crowd, Place};
use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use rustix::net::sockopt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

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

/// TLS on an address.
pub struct There {
    address: SocketAddr,
    bounds: Bounds,
    opened: mpsc::Receiver<Caller>,
}

/// Somebody who came in by TLS.
pub struct Caller {
    /// The connection.
    pub stream: TlsStream<TcpStream>,
    /// Who it is.
    pub peer: Peer,
    /// Its place among those of its address.
    pub place: Place,
}

impl There {
    /// Listens, and shakes hands with whoever comes, within a runtime.
    ///
    /// # Errors
    /// The address cannot be had.
    pub async fn open(
        address: SocketAddr,
        authority: Arc<Authority>,
        now_s: fn() -> u64,
        bounds: Bounds,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let (sender, opened) = mpsc::channel(AT_A_TIME);
        tokio::spawn(welcome(listener, (authority, now_s), bounds, sender));
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

async fn welcome(
    listener: TcpListener,
    (authority, now_s): (Arc<Authority>, fn() -> u64),
    bounds: Bounds,
    opened: mpsc::Sender<Caller>,
) {
    let (shaking, there) = (Crowd::new(SHAKING), Crowd::new(bounds.of_an_address));
    let room = Arc::new(Semaphore::new(AT_A_TIME));
    let mut acceptor: Option<(TlsAcceptor, Instant)> = None;
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
            tracing::debug!("{from}: no TLS connection: its address has too many");
            continue;
        };
        if acceptor.as_ref().is_none_or(|(_, made)| made.elapsed() > ANOTHER) {
            match authority.server(now_s()) {
                Ok(config) => acceptor = Some((config.into(), Instant::now())),
                Err(error) => tracing::error!("{}", error.into_fault()),
            }
        }
        let Some((acceptor, _)) = acceptor.clone() else { continue };
        let opened = opened.clone();
        tokio::spawn(async move {
            match shake(acceptor, stream, bounds.handshake).await {
                Ok((stream, shown)) => {
                    let caller = Caller { stream, peer: Peer::There(from, shown), place };
                    // Nobody listens any more when the controller ends.
                    let _ = opened.send(caller).await;
                }
                Err(error) => tracing::info!("{from}: no TLS connection: {error}"),
            }
            drop((turn, hands));
        });
    }
}

async fn shake(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    patience: Duration,
) -> io::Result<(TlsStream<TcpStream>, Option<[u8; 32]>)> {
    stream.set_nodelay(true)?;
    let (silent, between, questions) = ALIVE;
    sockopt::set_socket_keepalive(&stream, true)?;
    sockopt::set_tcp_keepidle(&stream, silent)?;
    sockopt::set_tcp_keepintvl(&stream, between)?;
    sockopt::set_tcp_keepcnt(&stream, questions)?;
    let stream = tokio::time::timeout(patience, acceptor.accept(stream))
        .await
        .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    let shown = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
    let shown = shown.map(|certificate| sha256(certificate));
    Ok((stream, shown))
}

async fn pause(error: &io::Error) {
    tracing::warn!("no connection can be taken: {error}");
    tokio::time::sleep(PAUSE).await;
}
