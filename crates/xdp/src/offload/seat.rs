//! A port's place on a rung, and when nothing of a flow is under way in its worker.
//!
//! Nothing is when all that was given to the worker was received or lost, all that was received was sent, and the stacks behind the exits have
//! all that was sent, and no frame waits in an exit's queues. Between them may lie a tunnel: what entered it must have left it ([`Passage`]). Frames that a socket lost are nobody's in particular: a moment without any settles them all.

use super::abi::OffloadPort;
use super::error::OffloadError;
use super::flows::Flows;
use super::passage::Passage;
use super::price::Cost;
use offload::{PortReason, ProviderName};
use std::io;
use std::mem::offset_of;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Frames that left by the rung have been received so long after the last one of a flow that fell. Chosen: with 100 ms, thrice the longest wait for
/// a core that had been seen, 2 of 5.4 million frames passed others on a host with four programs for two cores.
const DRAINED: Duration = Duration::from_secs(1);

/// An interface in the calling thread's network namespace.
#[derive(Clone, Debug)]
pub struct Interface<'n> {
    /// Its name.
    pub name: &'n str,
    /// Its index.
    pub index: u32,
    /// Its namespace, by inode.
    pub netns: u64,
    /// Why flows cannot leave by it, if they cannot.
    pub exit: Result<(), PortReason>,
}

/// A port on one of the kernel's rungs.
pub trait RungPort: Send + Sync + Sized + 'static {
    /// The rung.
    const RUNG: ProviderName;
    /// What a frame is taken to cost where the kernel does not tell.
    const ASSUMED: Cost;
    /// Nanoseconds of a frame behind the program that lets it go.
    const AFTER_NS: f32;

    /// Measures what a frame costs.
    ///
    /// # Errors
    /// The kernel does not run programs for that.
    fn measure(flows: &Flows) -> Result<Cost, OffloadError>;

    /// Whether frames come with checksums that are open, and have to be completed.
    fn may_be_open(&self) -> bool;

    /// Its place.
    fn seat(&self) -> &Seat<Self>;

    /// Whether the stack behind the port has all that was sent out of it.
    fn is_sent(&self) -> bool;

    /// Frames that the port's socket was given: each is counted before it is.
    ///
    /// # Errors
    /// The kernel does not tell.
    fn given(&self) -> io::Result<u64>;

    /// Takes the programs off; flows that come in at the port are gone with it.
    fn close(&self) {
        self.seat().flows.release_port(self.seat().place);
    }

    /// Whether a flow waits until nothing of it is under way: then the worker calls [`RungPort::quiet`].
    #[inline]
    fn is_asked(&self) -> bool {
        self.seat().is_rising.load(Ordering::Relaxed)
    }

    /// The worker found its queue empty, has received so many frames since the port was opened, and has sent or dropped each of them; `lost`
    /// reads how many the socket lost since.
    ///
    /// # Errors
    /// `lost` failed, or the kernel does not tell.
    fn quiet(&self, received: u64, lost: impl FnOnce() -> io::Result<u64>) -> io::Result<()> {
        self.seat().quiet(|| {
            let settled = received + lost()?;
            Ok(self.given()? == settled)
        })
    }

    /// Says whether flows can leave by the interface now; true if that is other than before.
    fn set_exit(&self, exit: Result<(), PortReason>) -> bool {
        std::mem::replace(&mut *lock(&self.seat().exit), exit) != exit
    }

    /// Whether frames by the rung may still lie at the port: a flow fell just now, or one may fall by itself at any time. Meanwhile
    /// the worker sends as the rung does, where a driver lets other frames pass the rung's.
    #[inline]
    fn may_lie(&self) -> bool {
        self.seat().may_lie()
    }

    /// Whether flows that come in at the port have a place on the rung.
    fn has_flows(&self) -> bool {
        let Seat { flows, place, .. } = self.seat();
        flows.ports.get(*place as usize).flows != 0
    }
}

/// A port's place. Dropping it leaves flows where they are.
pub struct Seat<P> {
    pub(super) flows: Arc<Flows>,
    /// In map `ports`.
    pub(super) place: u32,
    pub(super) index: u32,
    pub(super) netns: u64,
    exit: Mutex<Result<(), PortReason>>,
    /// Frames that wait in the port's queues, at workers.
    held: OnceLock<Arc<AtomicU64>>,
    /// Flows that shall go up, and those that may come to wait by themselves.
    rising: Mutex<Vec<Rising<P>>>,
    /// Whether there are any: what the worker looks at.
    is_rising: AtomicBool,
    since: Instant,
    /// When a flow that leaves by the port fell last: nanoseconds since `since`; 0: none did.
    fell: AtomicU64,
    /// Flows that leave by the port and fall by themselves: a greatest rate says so, or packets of a tunnel come otherwise.
    falling: AtomicU32,
}

/// A flow that shall go up.
struct Rising<P> {
    place: u32,
    exit: Arc<P>,
    /// Of one that leaves by a tunnel: where its packets go to the switch of the underlay.
    passage: Option<Arc<Passage>>,
    /// What it had been given when it was last looked at, and what had entered the passage by then.
    mark: Option<(u64, Vec<u64>)>,
}

impl<P> Rising<P> {
    /// Whether none of the frames that it was given is between two switches.
    fn is_through(&mut self, given: u64) -> bool {
        let Some(passage) = &self.passage else { return true };
        let mark = self.mark.take().filter(|mark| mark.0 == given);
        let mark = self.mark.insert(mark.unwrap_or_else(|| (given, passage.entered())));
        passage.has_let_through(&mark.1)
    }
}

impl<P: RungPort> Seat<P> {
    /// The port that `load` puts programs on, at the place that its interface had on the rung before; or at a new one. Flows that an earlier
    /// process left there stay where they are, and nothing of them is under way: what the programs before gave to its worker is gone. Who is not up
    /// stays down: by the new programs frames may come to the worker from here on.
    pub(super) fn take(
        flows: &Arc<Flows>,
        interface: &Interface<'_>,
        load: impl FnOnce(Self) -> Result<P, OffloadError>,
    ) -> Result<P, OffloadError> {
        let &Interface { index, netns, exit, .. } = interface;
        let place = flows.port_of(index, netns, P::RUNG)?;
        let (rising, is_rising) = (Mutex::default(), AtomicBool::new(false));
        let (exit, held) = (Mutex::new(exit), OnceLock::new());
        let flows_too = flows.clone();
        let (since, fell, falling) = (Instant::now(), AtomicU64::new(0), AtomicU32::new(0));
        let seat = Self {
            flows: flows_too,
            place,
            index,
            netns,
            exit,
            held,
            rising,
            is_rising,
            since,
            fell,
            falling,
        };
        for (_, flow) in flows.flows_of(place) {
            flows.stay(flow);
            flows.set_done(flow);
        }
        load(seat).inspect_err(|_| flows.release_port(place))
    }

    /// Why flows cannot leave by it, if they cannot.
    pub(super) fn exit(&self) -> Result<(), PortReason> {
        *lock(&self.exit)
    }

    /// A flow that leaves by the port is about to fall.
    pub(super) fn falls(&self) {
        self.fell.store((self.since.elapsed().as_nanos() as u64).max(1), Ordering::Release);
    }

    /// A flow that may fall by itself leaves by the port from now on, or no more.
    pub(super) fn count_falling(&self, more: u32) {
        self.falling.fetch_add(more, Ordering::Release);
    }

    fn may_lie(&self) -> bool {
        let fell = self.fell.load(Ordering::Acquire);
        self.falling.load(Ordering::Acquire) > 0
            || fell != 0 && self.since.elapsed() < Duration::from_nanos(fell) + DRAINED
    }

    /// By which number the worker says how many frames wait in the port's queues.
    pub(super) fn set_held(&self, held: &Arc<AtomicU64>) {
        self.held.get_or_init(|| held.clone());
    }

    fn waiting(&self) -> u64 {
        self.held.get().map_or(0, |held| held.load(Ordering::Relaxed))
    }

    pub(super) fn orphans(&self) -> u64 {
        let at = offset_of!(OffloadPort, orphans);
        self.flows.ports.u64_at(self.place as usize, at).load(Ordering::Relaxed)
    }

    /// The worker has sent or dropped each frame that it received. `is_settled` tells whether that is all it was given; it reads what was
    /// given last.
    fn quiet(&self, is_settled: impl FnOnce() -> io::Result<bool>) -> io::Result<()> {
        let Ok(mut rising) = self.rising.try_lock() else { return Ok(()) };
        let flows = &self.flows;
        rising.retain(|flow| flows.is_rising(flow.place) || flows.may_wait(flow.place));
        self.is_rising.store(!rising.is_empty(), Ordering::Relaxed);
        if !rising.iter().any(|flow| flows.is_rising(flow.place)) {
            return Ok(());
        }
        // In this order: what a flow was given by now is among what the port was given, whatever comes meanwhile.
        let given: Vec<u64> = rising.iter().map(|flow| self.flows.given(flow.place)).collect();
        if !is_settled()? {
            return Ok(());
        }
        for (flow, given) in rising.iter_mut().zip(given) {
            let is_through = flow.is_through(given);
            if is_through && flow.exit.is_sent() && flow.exit.seat().waiting() == 0 {
                self.flows.done(flow.place).store(given, Ordering::Release);
            }
        }
        Ok(())
    }

    /// The flow is the worker's until it is raised again, maybe as another port's.
    pub(super) fn lower(&self, place: u32) {
        self.flows.want_worker(place);
        lock(&self.rising).retain(|flow| flow.place != place);
    }

    /// The flow goes up to the rung as soon as nothing of it is under way.
    pub(super) fn raise(&self, place: u32, exit: &Arc<P>, passage: Option<&Arc<Passage>>) {
        self.flows.want_rung(place);
        let mut rising = lock(&self.rising);
        rising.retain(|flow| flow.place != place);
        let (exit, passage) = (exit.clone(), passage.cloned());
        rising.push(Rising { place, exit, passage, mark: None });
        self.is_rising.store(true, Ordering::Relaxed);
    }
}

/// Nothing that a panic could leave half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
