//! The thread that follows the tables.

use super::Watch;
use super::hop::{Found, Wanted, look_up};
use crate::unprivileged::keep_only;
use arc_swap::ArcSwap;
use netlink::{Netlink, News, TableMonitor, Via};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::thread::CapabilitySet;
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Between two looks at what is used. Chosen: a neighbour's states last for seconds.
const PERIOD: Duration = Duration::from_secs(1);
/// What is announced is looked at a second time after this, as the kernel announces some before it is done. Chosen: it is done within
/// microseconds unless it is interrupted.
const SETTLED: Duration = Duration::from_millis(20);

/// What the thread and the others share.
pub(super) struct Shared {
    tables: Mutex<Tables>,
    /// The namespace's addresses, in order.
    own: ArcSwap<Vec<IpAddr>>,
    /// Ends the thread's wait.
    bell: OwnedFd,
    is_ended: AtomicBool,
}

struct Tables {
    netlink: Netlink,
    watches: Vec<Entry>,
}

struct Entry {
    watch: Weak<Watch>,
    /// The neighbour that its answer hangs on.
    via: Option<Via>,
}

impl Shared {
    pub(super) fn new(netlink: Netlink) -> io::Result<Self> {
        let own = ArcSwap::from_pointee(addresses(&netlink)?);
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let tables = Mutex::new(Tables { netlink, watches: Vec::new() });
        Ok(Self { tables, own, bell, is_ended: false.into() })
    }

    /// Looks it up, and from now on.
    pub(super) fn watch(&self, wanted: Wanted) -> Arc<Watch> {
        // News that come now are looked at after this, with the new watch.
        let mut tables = self.tables();
        let Found { answer, via, .. } = look_up(&tables.netlink, wanted);
        let watch = Arc::new(Watch::new(wanted, answer));
        tables.watches.push(Entry { watch: Arc::downgrade(&watch), via });
        drop(tables);
        self.ring();
        watch
    }

    /// Looks it up, and has the kernel find its neighbour.
    pub(super) fn find(&self, watch: &Arc<Watch>) {
        let Tables { netlink, watches } = &mut *self.tables();
        let mut entries = watches.iter_mut();
        if let Some(entry) = entries.find(|entry| entry.watch.as_ptr() == Arc::as_ptr(watch)) {
            entry.look(netlink, watch, true);
        }
    }

    pub(super) fn is_own(&self, address: IpAddr) -> bool {
        self.own.load().binary_search(&address).is_ok()
    }

    /// Has the thread end soon.
    pub(super) fn end(&self) {
        self.is_ended.store(true, Release);
        self.ring();
    }

    /// What the thread does.
    pub(super) fn follow(&self, mut monitor: TableMonitor) {
        // It asks for neighbours to be confirmed.
        keep_only(CapabilitySet::NET_ADMIN);
        let mut due = Instant::now();
        let (mut last, mut is_watched) = (News::default(), false);
        while !self.is_ended.load(Acquire) {
            let tick = is_watched.then(|| due.saturating_duration_since(Instant::now()));
            let settled = last.is_some().then_some(SETTLED);
            self.wait(&monitor, [tick, settled].into_iter().flatten().min());
            let news = monitor.news();
            if [&news, &last].into_iter().any(News::has_addresses) {
                self.look_at_addresses();
            }
            let now = Instant::now();
            let is_due = now >= due;
            if is_due {
                due = now + PERIOD;
            }
            is_watched = self.tables().look(&[&news, &last], is_due);
            last = news;
        }
    }

    /// Until there are news, the bell rings, or the time is up.
    fn wait(&self, monitor: &TableMonitor, timeout: Option<Duration>) {
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let mut fds = [PollFd::new(&self.bell, PollFlags::IN), PollFd::new(monitor, PollFlags::IN)];
        // Interrupted by a signal: as if the time were up.
        let _ = poll(&mut fds, timeout.as_ref());
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
    }

    fn look_at_addresses(&self) {
        // Those of before are nearer the truth than none.
        if let Ok(addresses) = addresses(&self.tables().netlink) {
            self.own.store(Arc::new(addresses));
        }
    }

    fn ring(&self) {
        // Refused only while it rings already.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tables {
    /// Looks up again what the news concern and, when that is due, what was used. Whether anything is watched.
    fn look(&mut self, news: &[&News], is_due: bool) -> bool {
        let Self { netlink, watches } = self;
        watches.retain_mut(|entry| {
            let Some(watch) = entry.watch.upgrade() else { return false };
            let is_used = is_due && watch.is_used.swap(false, Relaxed);
            let concerns = |news: &&News| news.concerns(watch.wanted.remote, entry.via);
            if is_used || news.iter().any(concerns) {
                entry.look(netlink, &watch, is_used);
            }
            true
        });
        !watches.is_empty()
    }
}

impl Entry {
    fn look(&mut self, netlink: &Netlink, watch: &Watch, is_used: bool) {
        let Found { answer, via, is_doubtful } = look_up(netlink, watch.wanted);
        watch.publish(answer);
        self.via = via;
        if let Some(via) = via.filter(|_| is_used && is_doubtful) {
            // Refused without the privilege: then the kernel asks when others send to it.
            let _ = netlink.use_neighbour(via);
        }
    }
}

/// In order.
fn addresses(netlink: &Netlink) -> io::Result<Vec<IpAddr>> {
    let mut addresses = netlink.addresses()?;
    addresses.sort_unstable();
    Ok(addresses)
}
