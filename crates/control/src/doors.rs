//! Where callers come in: the unix socket, and TLS on an address.
//!
//! A handshake that takes long, or that nobody finishes, keeps nobody else waiting.

use crate::authority::{Authority, sha256};
use crate::caller::Peer;
use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// How long a handshake may take. Chosen: many round trips around the world.
const PATIENCE: Duration = Duration::from_secs(5);
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
    opened: mpsc::Receiver<(TlsStream<TcpStream>, Peer)>,
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
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let (sender, opened) = mpsc::channel(AT_A_TIME);
        tokio::spawn(welcome(listener, authority, now_s, sender));
        Ok(Self { address, opened })
    }

    /// The address, with the port that was had.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Connected<IncomingStream<'_, There>> for Peer {
    fn connect_info(stream: IncomingStream<'_, There>) -> Self {
        stream.remote_addr().clone()
    }
}

impl Listener for There {
    type Io = TlsStream<TcpStream>;
    type Addr = Peer;

    async fn accept(&mut self) -> (TlsStream<TcpStream>, Peer) {
        match self.opened.recv().await {
            Some(opened) => opened,
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<Peer> {
        Ok(Peer::There(self.address, None))
    }
}

async fn welcome(
    listener: TcpListener,
    authority: Arc<Authority>,
    now_s: fn() -> u64,
    opened: mpsc::Sender<(TlsStream<TcpStream>, Peer)>,
) {
    let room = Arc::new(Semaphore::new(AT_A_TIME));
    let mut acceptor: Option<(TlsAcceptor, Instant)> = None;
    loop {
        let Ok(place) = room.clone().acquire_owned().await else { return };
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                pause(&error).await;
                continue;
            }
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
            match shake(acceptor, stream).await {
                // Nobody listens any more when the controller ends.
                Ok((stream, shown)) => drop(opened.send((stream, Peer::There(from, shown))).await),
                Err(error) => tracing::info!("{from}: no TLS connection: {error}"),
            }
            drop(place);
        });
    }
}

async fn shake(
    acceptor: TlsAcceptor,
    stream: TcpStream,
) -> io::Result<(TlsStream<TcpStream>, Option<[u8; 32]>)> {
    stream.set_nodelay(true)?;
    let stream = tokio::time::timeout(PATIENCE, acceptor.accept(stream))
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
