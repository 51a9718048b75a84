//! Waiting for calls: `ptcp:` and `pssl:` addresses, and the management socket.

use crate::agent::Shared;
use crate::agent::call::{CallError, admit, within};
use crate::agent::end::End;
use crate::agent::link::{Link, Phase};
use crate::agent::liveness::Timing;
use crate::agent::peer::PeerKind;
use crate::agent::places::{Answer, Met, Origin, Places};
use crate::agent::session::{Caller, serve};
use crate::agent::sockets::{self, Sockets};
use crate::agent::told::Told;
use crate::agent::zone;
use crate::captures::Wire;
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
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// Calls that the kernel holds until they are accepted.
const BACKLOG: u32 = 64;

/// How long to wait when the kernel cannot accept (no file descriptor is left, as a rule).
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// How long a caller may take for its handshake, and again for its hello. Chosen: a few round trips around the world, or one packet lost.
const CALLER_WITHIN: Duration = Duration::from_secs(3);

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

    async fn accept(&self) -> io::Result<Call> {
        match self {
            Self::Tcp(listener, door) => {
                let (stream, from) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok(Call::Tcp(stream, from, door.clone()))
            }
            Self::Unix(listener, _) => Ok(Call::Unix(listener.accept().await?.0)),
        }
    }

    /// Serves whoever calls, for ever.
    pub async fn serve(self, shared: Arc<Shared>) {
        let mut places = Places::new(shared.lot.clone());
        let here = Arc::new(Here { shared, told: Told::default() });
        loop {
            let accepted = tokio::select! {
                accepted = self.accept() => accepted,
                () = places.wait_for_end() => continue,
            };
            match accepted {
                Ok(call) => here.clone().seat(call, &mut places),
                Err(error) => {
                    here.tell("a caller was not heard", "accept", &error.to_string());
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                }
            }
        }
    }
}

/// Somebody who calls.
enum Call {
    Tcp(TcpStream, SocketAddr, Door),
    Unix(UnixStream),
}

/// Only a socket is removed: a file of somebody else's makes the bind fail, and says so.
fn remove_stale(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => std::fs::remove_file(path),
        _ => Ok(()),
    }
}

/// What all sessions of one address share.
struct Here {
    shared: Arc<Shared>,
    told: Told,
}

impl Here {
    /// Gives a caller a place and serves him, or hangs up.
    fn seat(self: Arc<Self>, call: Call, places: &mut Places) {
        let (name, origin) = match &call {
            Call::Tcp(_, from, _) => (from.to_string(), Origin::from(*from)),
            Call::Unix(_) => ("management socket".to_owned(), Origin::HERE),
        };
        let most = places.most();
        let place = match places.find(origin) {
            Answer::Free(place) => place,
            Answer::GivenUp(place, from) => {
                let what = format!("{most} connections already: another gave its place up");
                let text = format!("{most} connections already: one of its own ended");
                self.shared.switch.hit(api::Bound::Connections, &from.to_string(), &text);
                self.tell(&what, &name, "no place");
                place
            }
            Answer::Full => {
                let what = format!("{most} connections already; close some");
                self.shared.switch.hit(api::Bound::Connections, &origin.to_string(), &what);
                return self.tell(&what, &name, "no place");
            }
        };
        let met = Met::default();
        let session = self.serve(call, met.clone());
        places.begin(place, origin, met, session);
    }

    async fn serve(self: Arc<Self>, call: Call, met: Met) {
        match call {
            Call::Tcp(stream, from, door) => self.receive(stream, from, &door, met).await,
            Call::Unix(stream) => {
                let peer = "management socket";
                let caller = (peer.to_owned(), PeerKind::Visitor, Wire::default());
                let end = self.visit(stream, caller, met).await;
                if end.is_fault_of_peer() {
                    self.tell("OpenFlow session ended", peer, &end.to_string());
                }
            }
        }
    }

    /// Secures a caller's stream if it is to be, and talks until the end.
    async fn receive(&self, stream: TcpStream, from: SocketAddr, door: &Door, met: Met) {
        let link = &door.link;
        let wire = Wire::over(&stream, door.transport);
        let (name, end) = match door.transport {
            Transport::Tcp => {
                let name = format!("tcp:{from}");
                (name.clone(), self.visit(stream, (name, PeerKind::Caller, wire), met).await)
            }
            Transport::Tls => {
                let name = format!("ssl:{from}");
                let limit = CALLER_WITHIN.min(self.shared.timing.hello_within);
                match within(limit, "TLS handshake", admit(stream, &self.shared)).await {
                    Ok(stream) => {
                        let caller = (name.clone(), PeerKind::Caller, wire);
                        (name, self.visit(stream, caller, met).await)
                    }
                    Err(error) => {
                        if let CallError::Slow { .. } = error {
                            let text = "no TLS handshake in time: the connection ended";
                            let host = Origin::from(from).to_string();
                            self.shared.switch.hit(api::Bound::Hello, &host, text);
                        }
                        let what = "a caller was refused";
                        return self.report((&name, from), &error.trouble(), what, link);
                    }
                }
            }
        };
        if end.is_fault_of_peer() {
            self.report((&name, from), &end.trouble(), "OpenFlow session ended", link);
        }
    }

    async fn visit<S>(
        &self,
        stream: S,
        (name, kind, wire): (String, PeerKind, Wire),
        met: Met,
    ) -> End
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let shared = &self.shared;
        let hello_within = CALLER_WITHIN.min(shared.timing.hello_within);
        let caller = Caller {
            id: shared.next_id(),
            name,
            kind,
            wire,
            timing: Timing { hello_within, ..shared.timing },
            main: None,
            on_join: Some(Box::new(move |peer| {
                // Nobody else sets it.
                let _ = met.set(peer.clone());
                Box::new(())
            })),
            steering: shared.steering.clone(),
        };
        serve(stream, caller, shared.switch.clone()).await
    }

    /// Tells of a caller that failed, and shows it as the address's trouble.
    fn report(&self, (peer, from): (&str, SocketAddr), trouble: &Trouble, what: &str, link: &Link) {
        let cause = format!("{}: {}", from.ip(), trouble.cause);
        link.failed(Trouble::new(cause.clone(), trouble.remedy.clone()));
        if let Some(untold) = self.told.note(&cause) {
            let (switch, address) = (self.shared.switch.name(), link.target());
            tracing::warn!(switch, address, peer, cause = %trouble, untold, "{what}");
        }
    }

    fn tell(&self, what: &str, peer: &str, cause: &str) {
        if let Some(untold) = self.told.note(cause) {
            tracing::warn!(switch = self.shared.switch.name(), peer, cause, untold, "{what}");
        }
    }
}
