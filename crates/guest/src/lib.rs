//! # guest: programs in network namespaces of their own
//!
//! **Question answered**: how does a program come to run in a network of its own, within limits, and how does it go again without a trace?
//!
//! ## What there is
//!
//! * [`Guest`]: what a kind of guest can do. [`Process`] is a command in namespaces of network, mount, process, host name and IPC.
//! * [`Life`]: when to start a command and when to wait. Pure.
//! * [`Groups`]: control groups, v1 and v2, under a root that tests choose. What to write is pure ([`limits`]).
//! * [`netns`]: network namespaces with names, as `ip netns` makes them.
//! * [`holder`]: what runs between node and command: it enters the namespaces, gives privileges up and waits.
//!
//! ## Invariants
//!
//! * All that is made can be found by name: namespace, control group, record. So the next node adopts or removes it.
//! * A command never has the node's sockets, state, files that can be written, or privileges over the host.
//! * Blocking, for one thread that has privileges. No thread and no clock here.

mod compare;
mod groups;
pub mod holder;
mod life;
pub mod limits;
pub mod netns;
mod order;
mod process;
mod root;
#[expect(unsafe_code, reason = "leaving a namespace is a call that rustix cannot prove safe")]
mod sys;
mod terminal;

pub use compare::{Differs, groups_there};
pub use groups::Groups;
pub use life::{Life, Next};
pub use process::{Places, Process, Program};
pub use terminal::resize;

use std::io;
use std::path::PathBuf;

/// A step that the host refused.
#[derive(Debug, thiserror::Error)]
#[error("{step} failed ({})", at.display())]
pub struct GuestError {
    /// What was tried.
    pub step: &'static str,
    /// On what.
    pub at: PathBuf,
    /// Why not.
    pub source: io::Error,
}

impl GuestError {
    fn of(step: &'static str, at: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let at = at.into();
        move |source| Self { step, at, source }
    }

    /// What to do.
    pub fn remedy(&self) -> &'static str {
        match self.source.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "run the node as root, or give its service /usr/share/suiro/systemd/guests.conf (docs/how-to/guests.md)"
            }
            io::ErrorKind::NotFound if self.step == START => {
                "install the program on this host, or write its whole path"
            }
            _ => "see what the host says; suiro tries again",
        }
    }
}

pub(crate) const START: &str = "starting its command";

/// What is seen of a guest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Seen {
    /// Nothing of it runs.
    Nothing,
    /// It runs, and this process holds it.
    Runs(u32),
    /// Its command ended so since the last look.
    Ended(End),
}

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// With this status.
    Status(u8),
    /// By this signal.
    Signal(u8),
    /// While nobody could see how: it was adopted.
    Unseen,
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Status(status) => write!(f, "status {status}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
            Self::Unseen => f.write_str("unseen"),
        }
    }
}

/// A kind of guest.
pub trait Guest {
    /// Makes its place: namespace and control groups. What is there already is kept.
    ///
    /// # Errors
    /// The host refuses.
    fn make(&mut self) -> Result<(), GuestError>;

    /// Takes over what an earlier node left running of it; stops what is not as it is wanted now.
    ///
    /// # Errors
    /// The host refuses.
    fn adopt(&mut self) -> Result<(), GuestError>;

    /// Looks at it.
    fn observe(&mut self) -> Seen;

    /// Gives an interface what the guest's own network stack is to know; false while it is not there.
    ///
    /// # Errors
    /// The host refuses.
    fn plug(&mut self, interface: &api::GuestInterface) -> Result<bool, GuestError>;

    /// Takes from an interface what [`Guest::plug`] gave it.
    ///
    /// # Errors
    /// The host refuses.
    fn unplug(&mut self, interface: &api::GuestInterface) -> Result<(), GuestError>;

    /// Starts its command.
    ///
    /// # Errors
    /// The host refuses.
    fn start(&mut self) -> Result<(), GuestError>;

    /// Ends all its processes.
    fn stop(&mut self);

    /// Removes its place and every trace.
    fn remove(&mut self);
}
