//! A port's place on a rung, and when nothing of a flow is under way in its worker.
//!
//! Nothing is when all that was given to the worker was received or lost, all that was received was sent, and the stacks behind the exits have
//! all that was sent. Frames that a socket lost are nobody's in particular: a moment without any settles them all.

use super::abi::OffloadPort;
use super::error::OffloadError;
use super::flows::Flows;
use offload::{PortReason, ProviderName};
use std::io;
use std::mem::offset_of;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    /// Nanoseconds that it takes for a frame.
    const FRAME_NS: f32;
    /// Nanoseconds that it takes for a byte.
    const BYTE_NS: f32;

    /// Its place.
    fn seat(&self) -> &Seat<Self>;

    /// Whether the stack behind the port has all that was sent out of it.
    fn is_sent(&self) -> bool;
}

/// A port's place. Dropping it leaves flows where they are.
pub struct Seat<P> {
    pub(super) flows: Arc<Flows>,
    /// In map `ports`.
    pub(super) place: u32,
    pub(super) index: u32,
    pub(super) netns: u64,
    exit: Mutex<Result<(), PortReason>>,
    rising: Mutex<Vec<Rising<P>>>,
    /// Whether there are any: what the worker looks at.
    is_rising: AtomicBool,
}

/// A flow that shall go up.
struct Rising<P> {
    place: u32,
    exit: Arc<P>,
}

impl<P: RungPort> Seat<P> {
    /// The place that the interface had on the rung before, with the flows that an earlier process left there; or a new one.
    pub(super) fn take(
        flows: &Arc<Flows>,
        interface: &Interface<'_>,
    ) -> Result<Self, OffloadError> {
        let &Interface { index, netns, exit, .. } = interface;
        let place = flows.port_of(index, netns, P::RUNG)?;
        let (rising, is_rising) = (Mutex::default(), AtomicBool::new(false));
        let (flows, exit) = (flows.clone(), Mutex::new(exit));
        Ok(Self { flows, place, index, netns, exit, rising, is_rising })
    }

    /// Why flows cannot leave by it, if they cannot.
    pub(super) fn exit(&self) -> Result<(), PortReason> {
        *lock(&self.exit)
    }

    pub(super) fn set_exit(&self, exit: Result<(), PortReason>) -> bool {
        std::mem::replace(&mut *lock(&self.exit), exit) != exit
    }

    pub(super) fn has_flows(&self) -> bool {
        self.flows.ports.get(self.place as usize).flows != 0
    }

    pub(super) fn orphans(&self) -> u64 {
        let at = offset_of!(OffloadPort, orphans);
        self.flows.ports.u64_at(self.place as usize, at).load(Ordering::Relaxed)
    }

    /// Whether a flow waits until nothing of it is under way.
    #[inline]
    pub(super) fn is_asked(&self) -> bool {
        self.is_rising.load(Ordering::Relaxed)
    }

    /// The worker has sent or dropped each frame that it received. `is_settled` tells whether that is all it was given; it reads what was
    /// given last.
    pub(super) fn quiet(&self, is_settled: impl FnOnce() -> io::Result<bool>) -> io::Result<()> {
        let Ok(mut rising) = self.rising.try_lock() else { return Ok(()) };
        rising.retain(|flow| self.flows.is_rising(flow.place));
        self.is_rising.store(!rising.is_empty(), Ordering::Relaxed);
        // In this order: what a flow was given by now is among what the port was given, whatever comes meanwhile.
        let given: Vec<u64> = rising.iter().map(|flow| self.flows.given(flow.place)).collect();
        if !is_settled()? {
            return Ok(());
        }
        for (flow, given) in rising.iter().zip(given) {
            if flow.exit.is_sent() {
                self.flows.done(flow.place).store(given, Ordering::Release);
            }
        }
        Ok(())
    }

    /// The flow goes up to the rung as soon as nothing of it is under way.
    pub(super) fn raise(&self, place: u32, exit: &Arc<P>) {
        self.flows.want_rung(place);
        let mut rising = lock(&self.rising);
        rising.retain(|flow| flow.place != place);
        rising.push(Rising { place, exit: exit.clone() });
        self.is_rising.store(true, Ordering::Relaxed);
    }
}

/// Nothing that a panic could leave half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
