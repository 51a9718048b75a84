//! What the ports' thread waits for: requests, news of interfaces in every namespace that has a port, and news that ports tell themselves.

use port::{LinkEvent, LinkMonitor, NetnsRef};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::collections::HashMap;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::Duration;

/// A descriptor that [`fn@ring`] makes readable.
pub fn wake_fd() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?)
}

/// Ends the wait of whoever polls it.
pub fn ring(wake: &OwnedFd) {
    // Refused only when it rings already.
    let _ = rustix::io::write(wake, &1u64.to_ne_bytes());
}

/// A namespace that is listened to.
struct Watched {
    monitor: LinkMonitor,
    /// Device and inode of its file: another one under the same name is another namespace.
    identity: Option<(u64, u64)>,
}

/// News of one namespace.
pub struct News {
    /// Which; `None` is the node's own.
    pub netns: Option<NetnsRef>,
    /// What happened.
    pub events: Vec<LinkEvent>,
}

/// Every namespace with a port in it.
pub struct Watch {
    wake: Arc<OwnedFd>,
    namespaces: HashMap<Option<NetnsRef>, Watched>,
}

impl Watch {
    /// Waits for requests only.
    pub fn new(wake: Arc<OwnedFd>) -> Self {
        Self { wake, namespaces: HashMap::new() }
    }

    /// Listens to a namespace from now on. One that cannot be entered is tried again with its port.
    pub fn add(&mut self, netns: Option<&NetnsRef>) {
        if self.namespaces.contains_key(&netns.cloned()) {
            return;
        }
        if let Ok(monitor) = port::monitor(netns) {
            let identity = netns.and_then(identity);
            self.namespaces.insert(netns.cloned(), Watched { monitor, identity });
        }
    }

    /// Namespaces whose file is gone or stands for another one now. They are let go of: a socket inside would keep them alive.
    pub fn drop_vanished(&mut self) -> Vec<NetnsRef> {
        let is_gone = |(netns, watched): (&Option<NetnsRef>, &Watched)| {
            let netns = netns.as_ref()?;
            (identity(netns) != watched.identity).then(|| netns.clone())
        };
        let gone: Vec<_> = self.namespaces.iter().filter_map(is_gone).collect();
        gone.iter().for_each(|netns| self.forget(netns));
        gone
    }

    /// The namespaces that are listened to; `None` is the node's own.
    pub fn namespaces(&self) -> impl Iterator<Item = Option<&NetnsRef>> {
        self.namespaces.keys().map(Option::as_ref)
    }

    /// Listens to a namespace no longer.
    pub fn forget(&mut self, netns: &NetnsRef) {
        self.namespaces.remove(&Some(netns.clone()));
    }

    /// Waits for a request, news (of these ports, too), or the time; returns the news of namespaces.
    pub fn wait<'p>(
        &mut self,
        ports: impl Iterator<Item = BorrowedFd<'p>>,
        timeout: Duration,
    ) -> Vec<News> {
        let timeout = Timespec::try_from(timeout).ok();
        {
            let monitors = self
                .namespaces
                .values()
                .map(|watched| PollFd::new(&watched.monitor, PollFlags::IN));
            let ports = ports.map(|port| PollFd::from_borrowed_fd(port, PollFlags::IN));
            let wake = PollFd::new(&self.wake, PollFlags::IN);
            let mut fds: Vec<_> = std::iter::once(wake).chain(monitors).chain(ports).collect();
            // Interrupted by a signal: as if the time were up.
            let _ = poll(&mut fds, timeout.as_ref());
        }
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
        self.namespaces.iter_mut().filter_map(|(netns, watched)| read(netns, watched)).collect()
    }
}

fn read(netns: &Option<NetnsRef>, watched: &mut Watched) -> Option<News> {
    // A broken socket: look at everything.
    let events = watched.monitor.events().unwrap_or_else(|_| vec![LinkEvent::Missed]);
    (!events.is_empty()).then(|| News { netns: netns.clone(), events })
}

fn identity(netns: &NetnsRef) -> Option<(u64, u64)> {
    std::fs::metadata(netns.path()).ok().map(|found| (found.dev(), found.ino()))
}
