//! The vhost-user back-end: one session for each port, for the port's whole life.
//!
//! **Question answered**: which rings of which memory may workers serve now, and what does the front-end get to hear?
//!
//! ```text
//!   Door ── connection ──▶ Conversation: Inbox ── whole message ──▶ protocol crate, or `own` ──▶ Device ── start, stop ──▶ Slot
//!     ▲                          │ end, or Trouble                                                  │
//!     └──────── next one ────────┘                                            Attachment ◀── what was said, for people
//! ```
//!
//! ## Invariants
//!
//! * One thread for each port, which sleeps in `poll` or `epoll`: a port without a guest tries its socket once a second, one with a quiet guest does
//!   nothing. A front-end that is slow, silent or hostile holds up nobody else.
//! * Messages are read whole or not at all; what cannot be right ends the connection with a [`Trouble`], which `port show` tells, and the next connection
//!   is tried after a pause.
//! * A connection's end stops every ring before anything else happens, and frees the guest's memory and every file descriptor that came.
//! * The bell (an eventfd) is rung by workers that stopped a ring, and by whoever ends the session.
//!
//! Source: QEMU's *Vhost-user Protocol*; names in quotation marks are its sections.

mod attachment;
mod conversation;
mod device;
mod door;
mod inbox;
mod listening;
mod own;
mod requests;
mod rights;
mod ring_setup;
mod trouble;

pub use attachment::{Attachment, Connection, LastTrouble, Look, Report, RingReport};
pub use device::OFFERED;
pub use door::Role;
pub use rights::{Rights, UnknownAccount};
pub use trouble::Trouble;

use crate::{GuestBounds, Records};
use conversation::{Conversation, End};
use door::Door;
use rights::Access;
use rustix::thread::CapabilitySet;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a message may take to come whole. Chosen: front-ends write one in a single call.
const PATIENCE: Duration = Duration::from_secs(5);

/// The thread needs few frames, and a node may have a thousand.
const STACK: usize = 128 << 10;

/// What a port shall be attached to.
#[derive(Debug)]
pub struct Settings {
    /// The port's name, for the thread's.
    pub name: String,
    /// The socket.
    pub socket: PathBuf,
    /// Who listens on it.
    pub role: Role,
    /// Queue pairs at most.
    pub pairs: u16,
    /// Most that the port carries; 0 for no limit.
    pub mtu: u32,
    /// Where packed rings stand, if that shall outlive this process.
    pub records: Option<Records>,
    /// What its guest may cost this process by memory that nobody touched before; `None`: that is not counted.
    pub guest_bounds: Option<Arc<GuestBounds>>,
    /// What the thread does first: it gives up what it does not need.
    pub confine: fn(),
}

/// A port's session; dropping it ends the connection and joins the thread.
pub struct Session {
    attachment: Arc<Attachment>,
    /// Of a socket of ours.
    access: Option<Arc<Access>>,
    thread: Option<JoinHandle<()>>,
}

impl Session {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system refuses a thread or a file descriptor.
    pub fn start(settings: Settings) -> io::Result<Self> {
        let Settings { name, socket, role, pairs, mtu, records, guest_bounds, confine } = settings;
        let attachment = Attachment::new(pairs, mtu, records, guest_bounds)?;
        let theirs = attachment.clone();
        let door = Door::new(socket, role);
        let access = door.access();
        // The kernel keeps 15 bytes of a thread's name.
        let thread = std::thread::Builder::new().name(format!("vu-{name}")).stack_size(STACK);
        let thread = thread.spawn(move || {
            confine();
            serve(door, &theirs);
        })?;
        Ok(Self { attachment, access, thread: Some(thread) })
    }

    /// What others may know of it.
    pub fn attachment(&self) -> &Arc<Attachment> {
        &self.attachment
    }

    /// Changes who may open a socket of ours; a front-end's is its own. Connections that are there stay.
    ///
    /// # Errors
    /// The system refuses: the rights are as they were.
    pub fn set_rights(&self, rights: Rights) -> io::Result<()> {
        self.access.as_ref().map_or(Ok(()), |access| access.change(rights))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.attachment.ring_to_stop();
        // A thread that panicked was reported by the panic.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Serves one connection on this thread until its end, without a door: returns why it was given up, if it was.
///
/// # Errors
/// No file descriptor is left.
pub fn converse(socket: UnixStream, pairs: u16) -> io::Result<Option<Trouble>> {
    let attachment = Attachment::new(pairs, 0, None, None)?;
    Ok(Conversation::new(socket, attachment, PATIENCE).and_then(Conversation::run).err())
}

/// Where the thread is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// At the socket's path.
    Door,
    /// With a stranger's messages, and no path of its own choosing to open.
    Conversation,
}

/// Of what the thread inherits it keeps what its door needs, and uses it there only.
fn keep_what_is_needed(door: &Door, place: Place) -> io::Result<()> {
    let mut held = rustix::thread::capabilities(None)?;
    held.permitted &= door.needs();
    held.effective = match place {
        Place::Door => held.permitted,
        Place::Conversation => CapabilitySet::empty(),
    };
    held.inheritable = CapabilitySet::empty();
    Ok(rustix::thread::set_capabilities(None, held)?)
}

/// One connection after the other.
fn serve(mut door: Door, attachment: &Arc<Attachment>) {
    loop {
        if let Err(error) = keep_what_is_needed(&door, Place::Door) {
            return attachment
                .waits(&format!("the session's thread cannot drop its privileges: {error}"));
        }
        let Some(socket) = door.open(attachment) else { return };
        let ended = keep_what_is_needed(&door, Place::Conversation)
            .map_err(Trouble::system("drop privileges"))
            .and_then(|()| Conversation::new(socket, attachment.clone(), PATIENCE))
            .and_then(Conversation::run);
        match ended {
            Ok(End::Stopped) => {
                // A socket of ours is removed: at worst it stays, and the next one takes its place.
                let _ = keep_what_is_needed(&door, Place::Door);
                return;
            }
            Ok(End::Closed { heard }) => {
                attachment.waits("the front-end closed the connection");
                if heard {
                    door.served();
                }
            }
            Err(trouble) => attachment.had_trouble(&trouble),
        }
        door.rest(attachment);
    }
}

#[cfg(test)]
mod tests;
