//! Waiting for calls: `ptcp:` and `pssl:` addresses, and the management socket.

use crate::agent::Shared;
use crate::agent::call::{admit, within};
use crate::agent::end::End;
use crate::agent::link::{Link, Phase};
use crate::agent::peer::PeerKind;
use crate::agent::session::{Caller, serve};
use crate::agent::sockets::{self, Sockets};
use crate::agent::zone;
use crate::tls::Trouble;
use api::{Listen, Transport};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::task::JoinSet;

/// Connections that one address serves at a time. Chosen: far more than tools and controllers of one switch, far fewer than
/// file descriptors.
pub const MOST_VISITORS: usize = 256;

/// Calls that the kernel holds until they are accepted.
const BACKLOG: u32 = 64;

/// How long to wait when the kernel cannot accept (no file descriptor is left, as a rule).
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// An address that a switch cannot listen on.
#[derive(Debug, Error)]
pub enum BindError {
    /// A TCP address.
    #[error("OpenFlow address {address}: {step} failed; is another program listening there?")]
    Tcp {
        /// The address.
        address: SocketAddr,
        /// What was tried.
        step: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// A management socket.
    #[error("management socket {}: {step} failed; is the directory there and writable?", path.display())]
    Unix {
        /// The socket's path.
        path: PathBuf,
        /// What was tried.
        step: &'static str,
        /// Why not.
        source: io::Error,
    },
}

impl BindError {
    /// What the user can do.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Unix { source, .. } if source.kind() == io::ErrorKind::InvalidInput => {
                "choose a shorter [node] run_dir, or a shorter name of the switch: a socket's path has 107 bytes at most"
            }
            Self::Unix { .. } | Self::Tcp { .. } => {
                "stop the program that has the address, or give the switch another one"
            }
        }
    }
}

/// A bound address.
pub(crate) enum Bound {
    /// `ptcp:` or `pssl:`.
    Tcp(TcpListener, Door),
    /// A management socket, removed when it is dropped.
    Unix(UnixListener, #[expect(dead_code, reason = "its drop removes the file")] SocketFile),
}

/// A TCP address, bound.
#[derive(Clone)]
pub(crate) struct Door {
    address: SocketAddr,
    transport: Transport,
    link: Arc<Link>,
}

/// A socket's file, removed with the last of its users.
pub(crate) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Gone already means that somebody cleaned up before us.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Bound {
    /// Binds a TCP address; port 0 lets the kernel choose.
    pub async fn tcp(place: &Listen, sockets: Option<&Sockets>) -> Result<Self, BindError> {
        let (address, transport) = (place.address(), place.transport());
        let at = |step| move |source| BindError::Tcp { address, step, source };
        let address = zone::on_link(address, place.zone()).map_err(at("find the interface"))?;
        let socket = sockets::socket(address, sockets).await.map_err(at("socket"))?;
        socket.set_reuseaddr(true).map_err(at("reuse address"))?;
        socket.bind(address).map_err(at("bind"))?;
        let listener = socket.listen(BACKLOG).map_err(at("listen"))?;
        let address = listener.local_addr().map_err(at("read address"))?;
        let link = Link::new(place.to_string(), Phase::Listening);
        Ok(Self::Tcp(listener, Door { address, transport, link }))
    }

    /// Binds a management socket for root alone, over one that a killed node left behind.
    pub fn unix(path: &PathBuf) -> Result<Self, BindError> {
        let at = |step| move |source| BindError::Unix { path: path.clone(), step, source };
        remove_stale(path).map_err(at("replace the old socket"))?;
        let listener = UnixListener::bind(path).map_err(at("bind"))?;
        let file = SocketFile(path.clone());
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
            .map_err(at("set mode"))?;
        Ok(Self::Unix(listener, file))
    }

    /// The TCP address that is listened on.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(_, door) => Some(door.address),
            Self::Unix(..) => None,
        }
    }

    /// What users see of the TCP address.
    pub fn link(&self) -> Option<Arc<Link>> {
        match self {
            Self::Tcp(_, door) => Some(door.link.clone()),
            Self::Unix(..) => None,
        }
    }

    /// Serves whoever calls, for ever.
    pub async fn serve(self, shared: Arc<Shared>) {
        let mut sessions = JoinSet::new();
        loop {
            match &self {
                Self::Tcp(listener, door) => {
                    let accepted = listener.accept().await.and_then(|(stream, from)| {
                        stream.set_nodelay(true)?;
                        Ok((stream, from))
                    });
                    let Some((stream, from)) = has_room(accepted, &mut sessions, &shared).await
                    else {
                        continue;
                    };
                    sessions.spawn(receive(stream, from, door.clone(), shared.clone()));
                }
                Self::Unix(listener, _) => {
                    let accepted = listener.accept().await;
                    let Some((stream, _)) = has_room(accepted, &mut sessions, &shared).await else {
                        continue;
                    };
                    let name = "management socket".to_owned();
                    sessions.spawn(drop_end(visit(
                        stream,
                        (name, PeerKind::Visitor),
                        shared.clone(),
                    )));
                }
            }
        }
    }
}

/// Only a socket is removed: a file of somebody else's makes the bind fail, and says so.
fn remove_stale(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => std::fs::remove_file(path),
        _ => Ok(()),
    }
}

/// Passes a caller on, unless there was none or too many are here.
async fn has_room<S, A: std::fmt::Debug>(
    accepted: io::Result<(S, A)>,
    sessions: &mut JoinSet<()>,
    shared: &Shared,
) -> Option<(S, A)> {
    while sessions.try_join_next().is_some() {}
    let switch = shared.switch.name();
    match accepted {
        Err(error) => {
            tracing::warn!(switch, step = "accept", cause = %error, "a caller was not heard");
            tokio::time::sleep(ACCEPT_AGAIN).await;
            None
        }
        Ok((_, peer)) if sessions.len() >= MOST_VISITORS => {
            tracing::warn!(
                switch,
                ?peer,
                step = "accept",
                "{MOST_VISITORS} connections already; close some"
            );
            None
        }
        Ok(caller) => Some(caller),
    }
}

async fn drop_end(session: impl Future<Output = End>) {
    session.await;
}

/// Secures a caller's stream if it is to be, and talks until the end.
async fn receive(stream: TcpStream, from: SocketAddr, door: Door, shared: Arc<Shared>) {
    let (name, end) = match door.transport {
        Transport::Tcp => {
            let name = format!("tcp:{from}");
            (name.clone(), visit(stream, (name, PeerKind::Caller), shared.clone()).await)
        }
        Transport::Tls => {
            let name = format!("ssl:{from}");
            let handshake = admit(stream, &shared);
            match within(shared.timing.hello_within, "TLS handshake", handshake).await {
                Ok(stream) => {
                    (name.clone(), visit(stream, (name, PeerKind::Caller), shared.clone()).await)
                }
                Err(error) => {
                    let what = "a caller was refused";
                    return report((&name, from), &error.trouble(), what, (&door.link, &shared));
                }
            }
        }
    };
    if end.is_fault_of_peer() {
        let what = "OpenFlow session ended";
        report((&name, from), &end.trouble(), what, (&door.link, &shared));
    }
}

/// Tells of a caller that failed; of a machine that fails the same way again and again, once.
fn report(
    (peer, from): (&str, SocketAddr),
    trouble: &Trouble,
    what: &str,
    (link, shared): (&Link, &Shared),
) {
    let (switch, address) = (shared.switch.name(), link.target());
    let seen = Trouble::new(format!("{}: {}", from.ip(), trouble.cause), trouble.remedy.clone());
    if link.failed(seen) {
        tracing::warn!(switch, address, peer, cause = %trouble, "{what}");
    } else {
        tracing::debug!(switch, address, peer, cause = %trouble, "{what}, again");
    }
}

async fn visit<S>(stream: S, (name, kind): (String, PeerKind), shared: Arc<Shared>) -> End
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let (id, timing) = (shared.next_id(), shared.timing);
    let steering = shared.steering.clone();
    let caller =
        Caller { id, name: name.clone(), kind, timing, main: None, on_join: None, steering };
    let end = serve(stream, caller, shared.switch.clone()).await;
    if kind == PeerKind::Visitor && end.is_fault_of_peer() {
        tracing::warn!(switch = shared.switch.name(), peer = name, cause = %end, "OpenFlow session ended");
    }
    end
}
