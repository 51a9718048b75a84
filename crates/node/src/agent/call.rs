//! Reaching a controller step by step: its name, TCP, TLS. Each step has its own error, time limit and remedy.

use crate::agent::names::Names;
use crate::agent::sockets::{self, Sockets};
use crate::agent::{Shared, zone};
use crate::tls::{TlsFault, Trouble};
use api::{Host, IfName, Target, chain};
use rustls::pki_types::ServerName;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

/// How long a refused peer may take to read why. Chosen: a round trip around the world, and some.
const LINGER: Duration = Duration::from_secs(1);

/// Why a controller, or a caller, was not reached.
#[derive(Debug, Error)]
pub enum CallError {
    /// The name could not be looked up.
    #[error("name {name} cannot be resolved")]
    Resolve {
        /// The name.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// The interface of an address is not there.
    #[error("no interface {zone}")]
    Zone {
        /// Its name.
        zone: IfName,
        /// Why.
        source: io::Error,
    },
    /// No TCP connection.
    #[error("no connection to {address}")]
    Connect {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The node has no file left for a connection.
    #[error("the connections of this node have all the files that are for them")]
    NoPlace,
    /// A step took too long.
    #[error("{step}: no answer within {} s", within.as_secs())]
    Slow {
        /// What was tried.
        step: &'static str,
        /// For how long.
        within: Duration,
    },
    /// Our own certificates cannot be used.
    #[error(transparent)]
    Credentials(#[from] TlsFault),
    /// The handshake failed.
    #[error("TLS handshake failed")]
    Handshake(#[source] io::Error),
    /// Somebody speaks plain OpenFlow where TLS is wanted.
    #[error("the peer speaks OpenFlow without TLS")]
    Plain,
}

impl CallError {
    /// For people.
    pub fn trouble(&self) -> Trouble {
        let remedy = match self {
            Self::Handshake(error) => return Trouble::of_handshake(error),
            Self::Resolve { .. } => {
                "correct the name, or /etc/resolv.conf and /etc/hosts; or name the controller by its address".into()
            }
            Self::Zone { .. } => {
                "make the interface, or correct the name behind the % of the controller's address".into()
            }
            Self::Connect { source, .. } if source.kind() == io::ErrorKind::ConnectionRefused => {
                "nothing listens there: start the controller, or correct the switch's controllers".into()
            }
            Self::Connect { .. } => "check the route and the firewalls on the way to it".into(),
            Self::Slow { .. } => "see whether the peer hangs, or a firewall drops what passes".into(),
            Self::Credentials(fault) => fault.remedy(),
            Self::NoPlace => "let suiro open more files (LimitNOFILE= of its unit), or end connections".into(),
            Self::Plain => "let it speak TLS (ssl:), or listen without (ptcp:)".into(),
        };
        Trouble::new(chain(self), remedy)
    }
}

/// Ends a step that takes too long.
pub async fn within<T>(
    limit: Duration,
    step: &'static str,
    work: impl Future<Output = Result<T, CallError>>,
) -> Result<T, CallError> {
    let slow = |_| CallError::Slow { step, within: limit };
    tokio::time::timeout(limit, work).await.map_err(slow)?
}

/// Where a controller is now: one address, or all that its name has.
pub async fn resolve(target: &Target, names: &Names) -> Result<Vec<SocketAddr>, CallError> {
    let name = match &target.host {
        Host::Ip(address) => return Ok(vec![SocketAddr::new(*address, target.port)]),
        Host::OnLink(address, zone) => {
            let found = zone::on_link(SocketAddr::new((*address).into(), target.port), Some(zone));
            let failed = |source| CallError::Zone { zone: zone.clone(), source };
            return found.map(|address| vec![address]).map_err(failed);
        }
        Host::Name(name) => name,
    };
    let failed = |source| CallError::Resolve { name: name.clone(), source };
    let found = names.look_up(name, target.port).await.map_err(failed)?;
    if found.is_empty() {
        return Err(failed(io::ErrorKind::NotFound.into()));
    }
    Ok(found)
}

/// Connects to the first of the addresses that answers; each has the whole time limit.
pub async fn connect(
    addresses: &[SocketAddr],
    from: Option<SocketAddr>,
    shared: &Shared,
) -> Result<TcpStream, CallError> {
    let (limit, sockets) = (shared.timing.hello_within, shared.sockets.as_ref());
    let mut last = Err(CallError::Slow { step: "connect", within: limit });
    for &address in addresses {
        let failed = |source| CallError::Connect { address, source };
        last =
            within(limit, "connect", async { dial(address, from, sockets).await.map_err(failed) })
                .await;
        if last.is_ok() {
            break;
        }
    }
    last
}

async fn dial(
    to: SocketAddr,
    from: Option<SocketAddr>,
    sockets: Option<&Sockets>,
) -> io::Result<TcpStream> {
    let socket = sockets::socket(to, sockets).await?;
    if let Some(from) = from {
        socket.bind(from)?;
    }
    let stream = socket.connect(to).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The calling side of a handshake.
pub async fn secure(
    stream: TcpStream,
    target: &Target,
    shared: &Shared,
) -> Result<TlsStream<TcpStream>, CallError> {
    let connector = TlsConnector::from(credentials(shared).await?.client.clone());
    let shaken = connector.connect(name_of(&target.host), stream).into_fallible().await;
    match shaken {
        Ok(stream) => Ok(stream.into()),
        Err((error, stream)) => Err(refuse(stream, error).await),
    }
}

/// The called side of a handshake.
pub async fn admit(stream: TcpStream, shared: &Shared) -> Result<TlsStream<TcpStream>, CallError> {
    let acceptor = TlsAcceptor::from(credentials(shared).await?.server.clone());
    let mut first = [0; 8];
    let seen = stream.peek(&mut first).await.map_err(CallError::Handshake)?;
    if seen > 0 && is_openflow(&first[..seen]) {
        return Err(tell_to_use_tls(stream, first).await);
    }
    match acceptor.accept(stream).into_fallible().await {
        Ok(stream) => Ok(stream.into()),
        Err((error, stream)) => Err(refuse(stream, error).await),
    }
}

async fn credentials(
    shared: &Shared,
) -> Result<std::sync::Arc<crate::tls::Credentials>, CallError> {
    let tls = shared.tls.clone().ok_or(TlsFault::NotConfigured)?;
    let read = tokio::task::spawn_blocking(move || tls.credentials()).await;
    Ok(read.expect("reading files does not panic, and the runtime outlives its tasks")?)
}

/// What the server's certificate must be for: see [`crate::tls`].
fn name_of(host: &Host) -> ServerName<'static> {
    match host {
        Host::Ip(address) => ServerName::IpAddress((*address).into()),
        Host::OnLink(address, _) => ServerName::IpAddress(IpAddr::from(*address).into()),
        Host::Name(name) => ServerName::try_from(name.clone())
            .expect("a configured host name is a DNS name: spec checks more than webpki"),
    }
}

/// A TLS record begins with 20 to 23, an OpenFlow message with its version.
fn is_openflow(first: &[u8]) -> bool {
    (1..=6).contains(&first[0]) && first.get(1).is_none_or(|&kind| kind == 0)
}

/// The alert is sent already. Closing at once could reset the connection before the peer has read it.
async fn refuse(stream: TcpStream, error: io::Error) -> CallError {
    linger(stream).await;
    CallError::Handshake(error)
}

/// Somebody who speaks OpenFlow understands an OpenFlow error better than an alert (§7.5.4.1; the same in every version).
async fn tell_to_use_tls(
    mut stream: TcpStream,
    [version, _, _, _, xid @ ..]: [u8; 8],
) -> CallError {
    const TEXT: &[u8] = b"this address wants TLS: connect with ssl: instead of tcp:";
    let length = (12 + TEXT.len()) as u16;
    let (error, incompatible) = (1, [0, 0, 0, 0]);
    let header = [&[version, error][..], &length.to_be_bytes(), &xid, &incompatible].concat();
    // The peer may be gone already; then there is nobody to tell.
    let _ = stream.write_all(&[&header, TEXT].concat()).await;
    linger(stream).await;
    CallError::Plain
}

/// Lets the peer read to the end before the connection is closed.
async fn linger(mut stream: TcpStream) {
    let _ = stream.shutdown().await;
    let mut rest = [0; 1024];
    let until_closed =
        async { while matches!(stream.read(&mut rest).await, Ok(read) if read > 0) {} };
    let _ = tokio::time::timeout(LINGER, until_closed).await;
}
