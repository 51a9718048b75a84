//! In which network namespace a call happens.
//!
//! Sockets and TAP files belong for ever to the namespace of the thread that made them, so a short-lived thread enters the
//! namespace, makes them, and ends; no thread of the node ever changes its own namespace.

use crate::spec::NetnsRef;
use netlink::LinkMonitor;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;

/// An open namespace; `None` inside is the node's own.
pub(crate) struct Netns {
    file: Option<File>,
}

impl Netns {
    /// # Errors
    /// The file is not there.
    pub(crate) fn open(netns: Option<&NetnsRef>) -> io::Result<Self> {
        Ok(Self { file: netns.map(|netns| File::open(netns.path())).transpose()? })
    }

    /// Does `work` in the namespace and waits for it.
    ///
    /// # Errors
    /// The namespace cannot be entered (no `CAP_SYS_ADMIN`, or the file is not a network namespace).
    pub(crate) fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> io::Result<R> {
        let Some(file) = &self.file else { return Ok(work()) };
        let inside = || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok(work())
        };
        std::thread::scope(|scope| {
            scope.spawn(inside).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

/// Begins to listen to the interfaces of a namespace; `None` is the node's own.
///
/// # Errors
/// The namespace cannot be entered.
pub fn monitor(netns: Option<&NetnsRef>) -> io::Result<LinkMonitor> {
    Netns::open(netns)?.run(LinkMonitor::new)?
}
