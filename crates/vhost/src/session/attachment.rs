//! What a port, its workers and its users know of the guest on it.
//!
//! Shared by the session's thread, which writes, and everybody else. Lock order: the mutexes are leaves, and slots are asked for their state outside it.

use super::trouble::Trouble;
use crate::{Fault, Features, GuestBounds, Records, RegionFacts, Slot, SlotState};
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use vhost_protocol::vhost_user::VhostUserProtocolFeatures as Protocol;

/// How things stand with the socket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Connection {
    /// No front-end, and why.
    Waiting(String),
    /// A front-end is there.
    Connected {
        /// Since when.
        since: Instant,
        /// Whether it has said anything.
        heard: bool,
    },
}

/// One ring as it was set up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RingReport {
    /// Whether the driver enabled it.
    pub enabled: bool,
    /// Descriptors; 0 when nothing was said.
    pub size: u16,
    /// What must come before it can run.
    pub waits_for: Option<&'static str>,
}

/// What the front-end has said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// What driver and device agreed on.
    pub features: Features,
    /// What front-end and back-end agreed on.
    pub protocol: Protocol,
    /// The guest's memory.
    pub memory: Vec<RegionFacts>,
    /// Rings; empty without a front-end.
    pub rings: Vec<RingReport>,
}

impl Default for Report {
    fn default() -> Self {
        Self {
            features: Features::empty(),
            protocol: Protocol::empty(),
            memory: Vec::new(),
            rings: Vec::new(),
        }
    }
}

/// Why the last connection was given up, in words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LastTrouble {
    /// What happened.
    pub cause: String,
    /// What to do.
    pub remedy: &'static str,
    /// How many there were since the port was opened.
    pub count: u64,
}

/// A look at everything.
#[derive(Clone, Debug)]
pub struct Look {
    /// The socket.
    pub connection: Connection,
    /// The last trouble, also after the front-end came back.
    pub trouble: Option<LastTrouble>,
    /// What was said.
    pub report: Report,
    /// Each ring's slot now.
    pub slots: Vec<SlotState>,
    /// How often a front-end lost its connection because its guest would have cost more than it may.
    pub too_costly: u64,
}

impl Look {
    /// How often the guest hit a bound of what it may cost; rings that stand for that reason now count too.
    pub fn bounds_hit(&self) -> u64 {
        let stands = |slot: &&SlotState| matches!(slot, SlotState::Faulted(Fault::Untouched));
        self.too_costly + self.slots.iter().filter(stands).count() as u64
    }
}

struct Told {
    connection: Connection,
    trouble: Option<LastTrouble>,
    report: Report,
    too_costly: u64,
}

/// A guest's attachment to a port.
pub struct Attachment {
    /// Rings 2q (to the guest) and 2q + 1 (from it) of each queue pair q.
    slots: Box<[Arc<Slot>]>,
    /// Where they stand, for the process after us.
    records: Option<Records>,
    /// What its guest may cost.
    pub(super) guest_bounds: Option<Arc<GuestBounds>>,
    told: Mutex<Told>,
    /// Most that the port carries; 0 is no limit.
    pub(super) mtu: AtomicU32,
    /// What the front-end told the driver; 0 when nothing.
    pub(super) guest_mtu: AtomicU32,
    /// An address to announce: its 48 bits and [`ANNOUNCE`].
    announced: AtomicU64,
    /// Wakes the session's thread.
    bell: Arc<OwnedFd>,
    stop: AtomicBool,
    /// The connection of the moment: a thread that reads or writes there comes back when it is shut down.
    connection: Mutex<Option<UnixStream>>,
    /// Wakes whoever watches the port.
    news: OwnedFd,
}

/// Marks an address as there.
const ANNOUNCE: u64 = 1 << 63;

impl Attachment {
    /// For `pairs` queue pairs, nobody there.
    ///
    /// # Errors
    /// No file descriptor is left.
    pub(super) fn new(
        pairs: u16,
        mtu: u32,
        records: Option<Records>,
        guest_bounds: Option<Arc<GuestBounds>>,
    ) -> io::Result<Arc<Self>> {
        let event = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let bell = Arc::new(event()?);
        let slots = (0..2 * pairs).map(|_| Slot::new(bell.clone())).collect::<io::Result<_>>()?;
        let connection = Connection::Waiting("not tried yet".into());
        Ok(Arc::new(Self {
            slots,
            records,
            guest_bounds,
            told: Mutex::new(Told {
                connection,
                trouble: None,
                report: Report::default(),
                too_costly: 0,
            }),
            mtu: mtu.into(),
            guest_mtu: 0.into(),
            announced: 0.into(),
            bell,
            stop: false.into(),
            connection: Mutex::default(),
            news: event()?,
        }))
    }

    /// The slots, by ring.
    pub fn slots(&self) -> impl ExactSizeIterator<Item = &Arc<Slot>> {
        self.slots.iter()
    }

    /// Whether a driver is there to take frames: both rings of a queue pair run.
    pub fn is_ready(&self) -> bool {
        let runs = |slot: &Arc<Slot>| slot.is_running();
        self.slots.chunks(2).any(|pair| pair.iter().all(runs))
    }

    /// The MTU: what the front-end told the driver, else what the user gave the port; 0 when nobody said anything.
    pub fn mtu(&self) -> u32 {
        match self.guest_mtu.load(Relaxed) {
            0 => self.mtu.load(Relaxed),
            told => told,
        }
    }

    /// Sets the most that the port carries; a front-end learns of it when it asks for more.
    pub fn set_mtu(&self, mtu: u32) {
        self.mtu.store(mtu, Relaxed);
    }

    /// An address to announce on the guest's behalf, once (`VHOST_USER_SEND_RARP`).
    pub fn take_announcement(&self) -> Option<[u8; 6]> {
        if !self.has_announcement() {
            return None;
        }
        let word = self.announced.swap(0, AcqRel);
        let [_, _, mac @ ..] = word.to_be_bytes();
        (word != 0).then_some(mac)
    }

    /// Whether there is one.
    pub fn has_announcement(&self) -> bool {
        self.announced.load(Acquire) != 0
    }

    /// Readable when the connection, its trouble or the driver's readiness changed; [`Attachment::heard_news`] ends that.
    pub fn news(&self) -> BorrowedFd<'_> {
        self.news.as_fd()
    }

    /// Whether there was news.
    pub fn heard_news(&self) -> bool {
        drain(&self.news)
    }

    /// Everything, now.
    pub fn look(&self) -> Look {
        let slots = self.slots().map(|slot| slot.state()).collect();
        let Told { connection, trouble, report, too_costly } = &*self.told();
        Look {
            connection: connection.clone(),
            trouble: trouble.clone(),
            report: report.clone(),
            slots,
            too_costly: *too_costly,
        }
    }

    pub(super) fn slot(&self, at: usize) -> &Arc<Slot> {
        &self.slots[at]
    }

    pub(super) fn records(&self) -> Option<&Records> {
        self.records.as_ref()
    }

    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Answers the bell; whether the session shall end.
    pub(super) fn answer_bell(&self) -> bool {
        drain(&self.bell);
        self.stop.load(Acquire)
    }

    pub(super) fn ring_to_stop(&self) {
        self.stop.store(true, Release);
        ring(&self.bell);
        shut_down(self.connection.lock().unwrap_or_else(PoisonError::into_inner).as_ref());
    }

    /// The connection that ends when the session shall; `None` between two.
    pub(super) fn hold(&self, connection: Option<UnixStream>) {
        let mut held = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        *held = connection;
        if self.stop.load(Acquire) {
            shut_down(held.as_ref());
        }
    }

    pub(super) fn announce(&self, [a, b, c, d, e, f]: [u8; 6]) {
        self.announced.store(u64::from_be_bytes([0, 0, a, b, c, d, e, f]) | ANNOUNCE, Release);
        // Whoever serves the guest's first transmit queue takes it.
        self.slots.get(1).into_iter().for_each(|slot| slot.wake());
    }

    pub(super) fn publish(&self, report: Report) {
        self.told().report = report;
        ring(&self.news);
    }

    pub(super) fn waits(&self, why: &str) {
        let mut told = self.told();
        if !matches!(&told.connection, Connection::Waiting(known) if known == why) {
            told.connection = Connection::Waiting(why.into());
            drop(told);
            ring(&self.news);
        }
    }

    pub(super) fn connected(&self, heard: bool) {
        let mut told = self.told();
        let since = match told.connection {
            Connection::Connected { since, .. } => since,
            Connection::Waiting(_) => Instant::now(),
        };
        told.connection = Connection::Connected { since, heard };
        drop(told);
        ring(&self.news);
    }

    pub(super) fn had_trouble(&self, trouble: &Trouble) {
        let mut told = self.told();
        let count = told.trouble.as_ref().map_or(1, |last| last.count + 1);
        let (cause, remedy) = (trouble.chain(), trouble.remedy());
        told.connection = Connection::Waiting(format!("{cause}; {remedy}"));
        told.trouble = Some(LastTrouble { cause, remedy, count });
        told.too_costly += u64::from(trouble.is_a_bound());
        drop(told);
        ring(&self.news);
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn shut_down(connection: Option<&UnixStream>) {
    // Refused only when the other side is gone already.
    let _ = connection.map(|connection| connection.shutdown(Shutdown::Both));
}

fn ring(event: &OwnedFd) {
    // Refused only when it rings already.
    let _ = rustix::io::write(event, &1_u64.to_ne_bytes());
}

fn drain(event: &OwnedFd) -> bool {
    rustix::io::read(event, &mut [0; 8]).is_ok()
}
