//! Waiting for calls: `ptcp:` addresses and the management socket.

use crate::agent::Shared;
use crate::agent::peer::PeerKind;
use crate::agent::session::{Caller, serve};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, UnixListener};
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

/// A bound address.
pub(crate) enum Bound {
    /// `ptcp:`.
    Tcp(TcpListener, SocketAddr),
    /// A management socket, removed when it is dropped.
    Unix(UnixListener, #[expect(dead_code, reason = "its drop removes the file")] SocketFile),
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
    pub fn tcp(address: SocketAddr) -> Result<Self, BindError> {
        let at = |step| move |source| BindError::Tcp { address, step, source };
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
        let socket = socket.map_err(at("socket"))?;
        socket.set_reuseaddr(true).map_err(at("reuse address"))?;
        socket.bind(address).map_err(at("bind"))?;
        let listener = socket.listen(BACKLOG).map_err(at("listen"))?;
        let bound = listener.local_addr().map_err(at("read address"))?;
        Ok(Self::Tcp(listener, bound))
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
            Self::Tcp(_, address) => Some(*address),
            Self::Unix(..) => None,
        }
    }

    /// Serves whoever calls, for ever.
    pub async fn serve(self, shared: Arc<Shared>) {
        let mut sessions = JoinSet::new();
        loop {
            match &self {
                Self::Tcp(listener, _) => {
                    let accepted = listener.accept().await.and_then(|(stream, from)| {
                        stream.set_nodelay(true)?;
                        Ok((stream, format!("tcp:{from}")))
                    });
                    admit(accepted, &mut sessions, &shared).await;
                }
                Self::Unix(listener, _) => {
                    let accepted = listener
                        .accept()
                        .await
                        .map(|(stream, _)| (stream, "management socket".into()));
                    admit(accepted, &mut sessions, &shared).await;
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

async fn admit<S>(
    accepted: io::Result<(S, String)>,
    sessions: &mut JoinSet<()>,
    shared: &Arc<Shared>,
) where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    while sessions.try_join_next().is_some() {}
    match accepted {
        Err(error) => {
            tracing::warn!(switch = shared.switch.name(), step = "accept", cause = %error, "a caller was not heard");
            tokio::time::sleep(ACCEPT_AGAIN).await;
        }
        Ok((_, name)) if sessions.len() >= MOST_VISITORS => {
            tracing::warn!(
                switch = shared.switch.name(),
                peer = name,
                step = "accept",
                "{MOST_VISITORS} connections already; close some"
            );
        }
        Ok((stream, name)) => {
            sessions.spawn(visit(stream, name, shared.clone()));
        }
    }
}

async fn visit<S>(stream: S, name: String, shared: Arc<Shared>)
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let caller = Caller {
        id: shared.next_id(),
        name: name.clone(),
        kind: PeerKind::Visitor,
        timing: shared.timing,
    };
    let end = serve(stream, caller, shared.switch.clone()).await;
    if end.is_fault_of_peer() {
        tracing::warn!(switch = shared.switch.name(), peer = name, cause = %end, "OpenFlow session ended");
    }
}
