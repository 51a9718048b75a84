//! Time, handed in so that tests decide what it is.

use crate::sys;
use flow::Nanos;
use rustix::time::{ClockId, clock_gettime};

/// Where a worker gets its time from. Read once or a few times per batch, never per packet.
pub trait Clock: Send + Sync + 'static {
    /// Monotonic time: timeouts, meters, quotas.
    fn now(&self) -> Nanos;

    /// A cheaper counter for the cost of stages; any unit that goes up steadily.
    fn cycles(&self) -> u64;

    /// Lets others have the core who wait for it.
    fn give_way(&self) {
        std::thread::yield_now();
    }

    /// How often the calling thread has lost its core to another one, or left it.
    fn switches(&self) -> u64 {
        sys::switches()
    }
}

/// The machine's own clocks: `CLOCK_MONOTONIC` (about 20 ns, no system call) and the timestamp counter.
///
/// Not the coarse clock: its 4 ms step is a hundred times what `spin` has to tell apart.
#[derive(Clone, Copy, Debug, Default)]
pub struct MonotonicClock;

impl Clock for MonotonicClock {
    fn now(&self) -> Nanos {
        let now = clock_gettime(ClockId::Monotonic);
        Nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
    }

    fn cycles(&self) -> u64 {
        sys::cycles()
    }
}
