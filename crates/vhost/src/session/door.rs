//! How a connection comes about: by calling the front-end's socket, or by waiting for it on ours.

use super::attachment::Attachment;
use super::listening::Listening;
use super::rights::{Access, Rights};
use super::trouble::Trouble;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::thread::CapabilitySet;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Who waits for whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Role {
    /// The front-end listens (QEMU's `server=on`), we call: our restarts cost the guest nothing.
    #[default]
    Client,
    /// We listen, the front-end calls, if these rights let it.
    Server(Rights),
}

/// Between two attempts: doubled from the first to the last. Chosen: a guest that restarts loses no time that anyone notices, and a thousand
/// ports without a guest cost a thousand system calls a second.
const PAUSES: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(50)..=Duration::from_secs(1);

/// A port's end of its socket.
pub(super) struct Door {
    path: PathBuf,
    way: Way,
    pause: Duration,
}

enum Way {
    Call,
    Wait(Own),
}

/// A socket of ours: who may open it, and what we listen on once it is open.
struct Own {
    access: Arc<Access>,
    listening: Option<Listening>,
}

impl Door {
    pub(super) fn new(path: PathBuf, role: Role) -> Self {
        let way = match role {
            Role::Client => Way::Call,
            Role::Server(rights) => {
                Way::Wait(Own { access: Arc::new(Access::new(rights)), listening: None })
            }
        };
        Self { path, way, pause: *PAUSES.start() }
    }

    /// Who may open the socket, where it is ours.
    pub(super) fn access(&self) -> Option<Arc<Access>> {
        match &self.way {
            Way::Call => None,
            Way::Wait(own) => Some(own.access.clone()),
        }
    }

    /// What it takes to come by the door.
    ///
    /// libvirt runs each QEMU as a user of its own (`libvirt-qemu`, `qemu`), who makes the socket in a directory of his, for himself (mode 0755
    /// or 0600). Root without `CAP_DAC_OVERRIDE` may not write to it, so may not call it, nor make or remove a socket there as a server. A socket
    /// of ours is given to its owner, and its mode changes after that. Root's own sockets need nothing.
    pub(super) fn needs(&self) -> CapabilitySet {
        match &self.way {
            Way::Call => CapabilitySet::DAC_OVERRIDE,
            Way::Wait(_) => {
                CapabilitySet::DAC_OVERRIDE | CapabilitySet::CHOWN | CapabilitySet::FOWNER
            }
        }
    }

    /// The next connection; `None` when the session shall end.
    pub(super) fn open(&mut self, attachment: &Attachment) -> Option<UnixStream> {
        while !attachment.answer_bell() {
            match self.attempt(attachment) {
                Ok(Some(socket)) => return Some(socket),
                // The bell rang.
                Ok(None) => {}
                Err(why) => {
                    attachment.waits(&why);
                    self.rest(attachment);
                }
            }
        }
        None
    }

    /// After a connection that came to nothing: the next one is not tried at once.
    pub(super) fn rest(&mut self, attachment: &Attachment) {
        wait(attachment, None, Some(self.pause));
        self.pause = (self.pause * 2).min(*PAUSES.end());
    }

    /// After a connection that served: the next one may come quickly.
    pub(super) fn served(&mut self) {
        self.pause = *PAUSES.start();
    }

    fn attempt(&mut self, attachment: &Attachment) -> Result<Option<UnixStream>, String> {
        match &mut self.way {
            Way::Call => call(&self.path).map(Some),
            Way::Wait(Own { access, listening }) => {
                if listening.is_none() {
                    *listening = Some(Listening::open(&self.path, access)?);
                }
                let Some(Listening { socket, .. }) = listening else { return Ok(None) };
                attachment.waits(&format!("no front-end has called {} yet", self.path.display()));
                accept(socket, attachment)
            }
        }
    }
}

/// Waits for the bell, a socket, or the time.
fn wait(attachment: &Attachment, socket: Option<&UnixListener>, limit: Option<Duration>) {
    let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
    let bell = attachment.bell();
    let mut fds: Vec<_> = std::iter::once(bell.as_fd())
        .chain(socket.map(AsFd::as_fd))
        .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
        .collect();
    // Interrupted by a signal: as if the time were up.
    let _ = poll(&mut fds, limit.as_ref());
}

fn call(path: &Path) -> Result<UnixStream, String> {
    let shown = path.display();
    let connected = connect(path);
    connected.map_err(|error| match error.kind() {
        ErrorKind::NotFound => format!("{shown} does not exist yet: start the guest"),
        ErrorKind::ConnectionRefused => format!("nobody listens on {shown}: start the guest"),
        ErrorKind::WouldBlock => format!("{shown} is busy with another connection: its front-end serves one"),
        ErrorKind::PermissionDenied => format!("{shown} may not be opened: give user root access, or start the guest with another group or umask"),
        _ => format!("{shown} cannot be called: {error}"),
    })
}

/// Never waits: a front-end that listens but does not accept makes us come again.
pub(super) fn connect(path: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    let socket = UnixStream::from(socket);
    socket.set_nonblocking(false)?;
    Ok(socket)
}

fn accept(socket: &UnixListener, attachment: &Attachment) -> Result<Option<UnixStream>, String> {
    wait(attachment, Some(socket), None);
    let accepted = socket.accept().and_then(|(socket, _)| {
        socket.set_nonblocking(false)?;
        Ok(socket)
    });
    match accepted {
        Ok(socket) => Ok(Some(socket)),
        Err(error)
            if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionAborted) =>
        {
            Ok(None)
        }
        Err(error) => Err(Trouble::system("accept a connection")(error).chain()),
    }
}
