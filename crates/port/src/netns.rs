//! In which network namespace a call happens.
//!
//! Sockets and TAP files belong for ever to the namespace of the thread that made them, so a short-lived thread enters the
//! namespace, makes them, and ends; no thread of the node ever changes its own namespace.

use netlink::LinkMonitor;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::collections::HashSet;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where namespaces have names: `ip netns` and containerd, Docker.
const NAMED: [&str; 2] = ["/run/netns", "/run/docker/netns"];

/// A network namespace as users name it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum NetnsRef {
    /// A name that `ip netns` knows: a file in `/run/netns`.
    Name(String),
    /// A path such as `/proc/1234/ns/net`.
    Path(PathBuf),
}

impl NetnsRef {
    /// The file that stands for the namespace.
    pub fn path(&self) -> PathBuf {
        match self {
            Self::Name(name) => Path::new("/run/netns").join(name),
            Self::Path(path) => path.clone(),
        }
    }
}

/// Text with a slash is a path, else a name.
impl From<&str> for NetnsRef {
    fn from(text: &str) -> Self {
        if text.contains('/') { Self::Path(text.into()) } else { Self::Name(text.into()) }
    }
}

impl From<&api::Netns> for NetnsRef {
    fn from(netns: &api::Netns) -> Self {
        Self::from(&**netns)
    }
}

impl fmt::Display for NetnsRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Path(path) => write!(f, "{}", path.display()),
        }
    }
}

/// An open namespace; `None` inside is the node's own.
pub(crate) struct Netns {
    file: Option<File>,
}

impl Netns {
    /// # Errors
    /// The file is not there.
    pub(crate) fn open(netns: Option<&NetnsRef>) -> io::Result<Self> {
        Ok(Self { file: netns.map(|netns| files::handle(&netns.path())).transpose()? })
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

/// The namespace that this is an open file of.
impl From<OwnedFd> for Netns {
    fn from(file: OwnedFd) -> Self {
        Self { file: Some(file.into()) }
    }
}

/// A TCP socket in a namespace, of IPv6 if that is true; it does not block.
///
/// # Errors
/// The namespace is not there or cannot be entered, or the kernel refuses.
pub fn tcp_socket(netns: &NetnsRef, is_v6: bool) -> io::Result<OwnedFd> {
    let family = if is_v6 { AddressFamily::INET6 } else { AddressFamily::INET };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let make = || socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP));
    Ok(Netns::open(Some(netns))?.run(make)??)
}

/// Begins to listen to the interfaces of a namespace; `None` is the node's own.
///
/// # Errors
/// The namespace cannot be entered.
pub fn monitor(netns: Option<&NetnsRef>) -> io::Result<LinkMonitor> {
    Netns::open(netns)?.run(LinkMonitor::new)?
}

/// Paths of all namespaces that can be reached: those with a name first, then one for each that a process is in.
pub(crate) fn everywhere() -> impl Iterator<Item = PathBuf> {
    let named = NAMED.into_iter().flat_map(fs::read_dir).flatten().flatten();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let of_processes = processes.map(|entry| entry.path().join("ns/net"));
    let mut seen = HashSet::new();
    let paths = named.map(|entry| entry.path()).chain(of_processes);
    paths.filter(move |path| fs::metadata(path).is_ok_and(|found| seen.insert(found.ino())))
}
