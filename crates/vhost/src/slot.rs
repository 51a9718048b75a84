//! Where the session and a worker meet.

use crate::call::Call;
use crate::fault::Fault;
use crate::log::DirtyLog;
use crate::memory::GuestMemory;
use crate::ring::{Base, Chains, Reach, Vring};
use crate::sys::Keeper;
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll};
use std::io;
use std::ops::DerefMut;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// One ring's place, for the port's whole life: empty, or with a ring that runs, or with the reason why it was stopped.
#[derive(Debug)]
pub struct Slot {
    inner: Arc<Mutex<Contents>>,
    links: Arc<Links>,
}

/// What a slot is to others, without its lock.
#[derive(Debug)]
struct Links {
    /// Whether a ring runs.
    running: AtomicBool,
    readiness: Readiness,
    /// Written when the worker stops the ring.
    bell: Arc<OwnedFd>,
}

/// A slot in the hands of who has its lock.
#[derive(Debug)]
pub struct Contents {
    state: State,
    links: Arc<Links>,
}

/// What is in a slot.
#[derive(Debug)]
enum State {
    Empty,
    Running(Box<Vring>),
    Disabled(Box<Discarding>),
    Faulted { fault: Fault, base: Base },
}

/// A transmit queue that is started and not enabled: what the driver sends is taken and not passed on.
#[derive(Debug)]
struct Discarding {
    ring: Vring,
    chains: Chains,
}

/// Frames discarded at once. Chosen: a worker is held up no longer than by a round of its own.
const ROUND: usize = 64;

/// A slot, for people.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlotState {
    /// The front-end has not started the ring, or has stopped it.
    Idle,
    /// Frames flow.
    Running {
        /// Descriptors.
        size: u16,
        /// Buffers that the driver has made available and we have not taken.
        waiting: u16,
        /// Of a driver's receive queue: where the driver was found ([`Vring::reach`]).
        reach: Option<Reach>,
    },
    /// A transmit queue that is not enabled: its frames are discarded.
    Disabled,
    /// The driver broke the rules.
    Faulted(Fault),
}

impl Slot {
    /// An empty slot; `bell`, a non-blocking eventfd, is written when the worker stops the ring.
    ///
    /// # Errors
    /// No file descriptor is left.
    pub fn new(bell: Arc<OwnedFd>) -> io::Result<Arc<Self>> {
        let links = Links { running: AtomicBool::new(false), readiness: Readiness::new()?, bell };
        let links = Arc::new(links);
        let inner = Contents { state: State::Empty, links: Arc::clone(&links) };
        Ok(Arc::new(Self { inner: Arc::new(Mutex::new(inner)), links }))
    }

    /// Puts a ring into service, in place of the one that was there.
    ///
    /// # Errors
    /// The driver's kick is not a file that can be watched; the slot is empty then.
    pub fn start(&self, ring: Vring) -> io::Result<()> {
        self.fill(ring, |ring| State::Running(Box::new(ring)))
    }

    /// Puts a transmit queue there that is not enabled. Once its driver has kicked, everything it sends is discarded ("Ring states": "the back-end
    /// must process and discard any TX packets").
    ///
    /// # Errors
    /// As [`Slot::start`].
    pub fn start_disabled(&self, ring: Vring) -> io::Result<()> {
        let discarding = |ring| Discarding { ring, chains: Chains::default() };
        self.fill(ring, |ring| State::Disabled(Box::new(discarding(ring))))
    }

    fn fill(&self, ring: Vring, state: impl FnOnce(Vring) -> State) -> io::Result<()> {
        let mut inner = self.inner.lock();
        inner.empty();
        if let Some(kick) = ring.kick() {
            self.links.readiness.watch(kick.as_fd())?;
        }
        inner.state = state(ring);
        let runs = matches!(inner.state, State::Running(_));
        self.links.running.store(runs, Ordering::Relaxed);
        drop(inner);
        self.links.readiness.tell();
        Ok(())
    }

    /// Takes the ring out of service; returns where it would go on. Everything taken from it has been given back by then.
    pub fn stop(&self) -> Option<Base> {
        let base = self.inner.lock().empty();
        self.links.readiness.tell();
        base
    }

    /// Makes a running ring use another memory table; one whose own words are not in it stops.
    pub fn replace_memory(&self, memory: &Arc<GuestMemory>) {
        let mut inner = self.inner.lock();
        let Some(ring) = inner.any_ring() else { return };
        if let Err(fault) = ring.replace_memory(memory) {
            inner.fail(fault);
        }
    }

    /// Makes a running ring notify by another file, or by none.
    pub fn set_call(&self, call: Option<Arc<Call>>) {
        let old = self.inner.lock().any_ring().and_then(|ring| ring.set_call(call));
        // Here, where no worker waits for the lock: letting go of it may take the kernel a while.
        drop(old);
    }

    /// Makes a running ring listen to another file, or be polled.
    ///
    /// # Errors
    /// The file cannot be watched; the ring is polled then.
    pub fn set_kick(&self, kick: Option<Arc<OwnedFd>>) -> io::Result<()> {
        let mut inner = self.inner.lock();
        let Some(ring) = inner.any_ring() else { return Ok(()) };
        let readiness = &self.links.readiness;
        if let Some(old) = ring.set_kick(None) {
            readiness.forget(old.as_fd());
        }
        if let Some(kick) = kick {
            readiness.watch(kick.as_fd())?;
            ring.set_kick(Some(kick));
        }
        drop(inner);
        readiness.tell();
        Ok(())
    }

    /// Makes a running ring note what it writes, or no longer; `used_at` is where its own words are, for the log.
    pub fn set_log(&self, log: Option<Arc<DirtyLog>>, used_at: Option<u64>) {
        if let Some(ring) = self.inner.lock().any_ring() {
            ring.set_log(log, used_at);
        }
    }

    /// Wakes the worker, as a change would.
    pub fn wake(&self) {
        self.links.readiness.tell();
    }

    /// How it stands.
    pub fn state(&self) -> SlotState {
        match &self.inner.lock().state {
            State::Empty => SlotState::Idle,
            State::Running(ring) => {
                let (size, waiting, reach) = (ring.size(), ring.waiting(), ring.reach());
                SlotState::Running { size, waiting, reach }
            }
            State::Disabled(_) => SlotState::Disabled,
            State::Faulted { fault, .. } => SlotState::Faulted(*fault),
        }
    }

    /// Whether a ring runs; it may stop before it is locked.
    #[inline]
    pub fn is_running(&self) -> bool {
        self.links.running.load(Ordering::Relaxed)
    }

    /// What is in it, for a worker and one batch. While it is held the control thread waits.
    #[inline]
    pub fn lock(&self) -> impl DerefMut<Target = Contents> + '_ {
        self.inner.lock()
    }

    /// To hold it likewise from one call to the next.
    pub fn keeper(&self) -> SlotKeeper {
        SlotKeeper(Keeper::new(Arc::clone(&self.inner)))
    }

    /// Before the worker sleeps: asks the driver to notify. False when buffers came meanwhile, or when it has no way to.
    ///
    /// A notification that came before, and that no one needed, is forgotten; one that comes later is not.
    pub fn arm(&self) -> bool {
        self.links.readiness.drain();
        match &mut self.inner.lock().state {
            State::Running(ring) => ring.arm(),
            State::Disabled(discarding) => discarding.ring.arm() || !discarding.is_started(),
            State::Empty | State::Faulted { .. } => true,
        }
    }

    /// Whether the driver has made buffers available that nobody has taken. `None`: only its kick will tell, of a ring that may not have been started.
    pub fn has_frames(&self) -> Option<bool> {
        match &self.inner.lock().state {
            State::Running(ring) => Some(ring.waiting() > 0),
            State::Disabled(_) => None,
            State::Empty | State::Faulted { .. } => Some(false),
        }
    }

    /// Readable when the driver kicked or the slot changed since [`Slot::arm`]; the same file for ever.
    pub fn readiness(&self) -> BorrowedFd<'_> {
        self.links.readiness.epoll.as_fd()
    }
}

impl Discarding {
    /// "The back-end must start ring upon receiving a kick"; one without a file for it is started as it is.
    fn is_started(&self) -> bool {
        let Some(kick) = self.ring.kick() else { return true };
        let mut fds = [PollFd::from_borrowed_fd(kick.as_fd(), PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
    }

    /// Takes a round's frames and gives them back; how many.
    fn discard(&mut self) -> Result<usize, Fault> {
        if !self.is_started() {
            return Ok(0);
        }
        let count = self.ring.take(ROUND, &mut self.chains)?;
        self.ring.give_back();
        self.chains.forget();
        Ok(count)
    }
}

impl Contents {
    /// The ring, if one runs.
    #[inline]
    pub fn ring(&mut self) -> Option<&mut Vring> {
        match &mut self.state {
            State::Running(ring) => Some(ring),
            State::Empty | State::Disabled(_) | State::Faulted { .. } => None,
        }
    }

    /// Discards what a driver sends by a ring that is not enabled; how many frames. Nothing if there is none.
    #[cold]
    pub fn discard(&mut self) -> u64 {
        let State::Disabled(discarding) = &mut self.state else { return 0 };
        match discarding.discard() {
            Ok(count) => count as u64,
            Err(fault) => {
                self.fail(fault);
                0
            }
        }
    }

    /// Stops the ring: nobody touches it any more.
    #[cold]
    pub fn fail(&mut self, fault: Fault) {
        if let Some(base) = self.empty() {
            self.state = State::Faulted { fault, base };
            // Refused only at a count of 2^64 - 1.
            let _ = rustix::io::write(&self.links.bell, &1_u64.to_ne_bytes());
        }
    }

    /// The ring, enabled or not.
    fn any_ring(&mut self) -> Option<&mut Vring> {
        match &mut self.state {
            State::Running(ring) => Some(ring),
            State::Disabled(discarding) => Some(&mut discarding.ring),
            State::Empty | State::Faulted { .. } => None,
        }
    }

    fn empty(&mut self) -> Option<Base> {
        self.links.running.store(false, Ordering::Relaxed);
        if let Some(kick) = self.any_ring().and_then(|ring| ring.kick().cloned()) {
            self.links.readiness.forget(kick.as_fd());
        }
        match std::mem::replace(&mut self.state, State::Empty) {
            State::Empty => None,
            State::Running(ring) => Some(ring.base()),
            State::Disabled(discarding) => Some(discarding.ring.base()),
            State::Faulted { base, .. } => Some(base),
        }
    }
}

/// A slot whose lock one worker keeps from one call to the next.
#[derive(Debug)]
pub struct SlotKeeper(Keeper<Contents>);

impl SlotKeeper {
    /// Locks it, if it is not kept already, until [`SlotKeeper::release`].
    #[inline]
    pub fn keep(&mut self) -> &mut Contents {
        self.0.keep()
    }

    /// What is in it, if it is kept.
    #[inline]
    pub fn kept(&mut self) -> Option<&mut Contents> {
        self.0.kept()
    }

    /// Lets go of it.
    #[inline]
    pub fn release(&mut self) {
        self.0.release();
    }
}

/// One file for ever that becomes readable with the kick of the moment: an epoll instance.
///
/// Both files in it are watched by edge, so nobody has to read them: the kick is the front-end's and could be made to block.
#[derive(Debug)]
struct Readiness {
    epoll: OwnedFd,
    /// Written at each change of the slot.
    changed: OwnedFd,
}

const EDGE: epoll::EventFlags = epoll::EventFlags::IN.union(epoll::EventFlags::ET);

impl Readiness {
    fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let changed = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let readiness = Self { epoll, changed };
        readiness.watch(readiness.changed.as_fd())?;
        Ok(readiness)
    }

    fn watch(&self, file: BorrowedFd<'_>) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, file, epoll::EventData::new_u64(0), EDGE)?)
    }

    fn forget(&self, file: BorrowedFd<'_>) {
        // It was added, and is still open: its front-end may have others of it, so closing would not be enough.
        let _ = epoll::delete(&self.epoll, file);
    }

    fn tell(&self) {
        // Refused only at a count of 2^64 - 1.
        let _ = rustix::io::write(&self.changed, &1_u64.to_ne_bytes());
    }

    /// Forgets what happened so far.
    fn drain(&self) {
        let none =
            epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) };
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let _ = epoll::wait(&self.epoll, &mut [none; 2], Some(&now));
    }
}
