//! The waker of a worker: it ends the thread's sleep, and costs one load while the worker is awake.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

/// Wake-up of one worker, shared by all who leave work for it.
pub(crate) struct Waker {
    asleep: AtomicBool,
    wake: OwnedFd,
}

impl Waker {
    /// Makes the waker of a worker that is awake.
    ///
    /// # Errors
    /// No file descriptor is left.
    pub(crate) fn new() -> io::Result<Arc<Self>> {
        let wake = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Arc::new(Self { asleep: AtomicBool::new(false), wake }))
    }

    /// Wakes the worker if it sleeps; what it is to see was published before.
    pub(crate) fn wake(&self) {
        fence(Ordering::SeqCst); // what was published before the look at `asleep`; pairs with `fall_asleep`
        if self.asleep.load(Ordering::SeqCst) {
            self.force();
        }
    }

    /// Makes the descriptor readable, whether or not the worker sleeps.
    pub(crate) fn force(&self) {
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes()); // refused only when it is readable anyway
    }

    /// Announces that the worker is about to sleep; false, and no sleep, unless `is_idle` holds after that.
    pub(crate) fn fall_asleep(&self, is_idle: impl FnOnce() -> bool) -> bool {
        self.asleep.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let idle = is_idle();
        if !idle {
            self.asleep.store(false, Ordering::Relaxed);
        }
        idle
    }

    /// Announces that the worker is awake again.
    pub(crate) fn awake(&self) {
        self.asleep.store(false, Ordering::SeqCst);
    }

    /// Clears the wake-up.
    pub(crate) fn heard(&self) {
        let _ = rustix::io::read(&self.wake, &mut [0u8; 8]); // empty already: as well
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}
