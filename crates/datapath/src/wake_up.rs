//! What a wake-up costs on this machine: the time from a write until a thread runs that the kernel woke for it.
//!
//! Who polls in vain for as long as that, and sleeps then, never loses more than twice what the best choice in hindsight would have cost
//! (ski rental; Karlin et al., "Competitive snoopy caching", 1988).

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::thread::CpuSet;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// So many are measured; the median counts. With their pauses they take three milliseconds.
const COUNT: usize = 9;

/// Before each, so that the thread sleeps and its core has nothing to do.
const PAUSE: Duration = Duration::from_micros(300);

/// A thread that is not woken for so long is not measured.
const PATIENCE: Duration = Duration::from_millis(100);

/// Where it cannot be measured. Chosen: what the machines seen take.
const USUAL: Duration = Duration::from_micros(40);

/// What is taken for possible: a look at the clock, and more than a host's own pauses.
const POSSIBLE: std::ops::RangeInclusive<Duration> =
    Duration::from_micros(5)..=Duration::from_micros(100);

/// Measures it with a thread on this core.
pub fn wake_up_cost(core: usize) -> Duration {
    let cost = measured(core).unwrap_or(USUAL);
    cost.clamp(*POSSIBLE.start(), *POSSIBLE.end())
}

fn measured(core: usize) -> Option<Duration> {
    let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).ok()?;
    let (tell, told) = mpsc::channel();
    std::thread::scope(|scope| {
        let bell = &bell;
        scope.spawn(move || {
            // Where it may not run there, it runs elsewhere, which costs about the same.
            if core < CpuSet::MAX_CPU {
                let mut set = CpuSet::new();
                set.set(core);
                let _ = rustix::thread::sched_setaffinity(None, &set);
            }
            for _ in 0..COUNT {
                let patience = Timespec::try_from(PATIENCE).ok();
                let woken = poll(&mut [PollFd::new(bell, PollFlags::IN)], patience.as_ref());
                let now = Instant::now();
                let _ = rustix::io::read(bell, &mut [0; 8]);
                if woken != Ok(1) || tell.send(now).is_err() {
                    return;
                }
            }
        });
        let mut costs = (0..COUNT)
            .map(|_| {
                std::thread::sleep(PAUSE);
                let from = Instant::now();
                rustix::io::write(bell, &1_u64.to_ne_bytes()).ok()?;
                Some(told.recv_timeout(PATIENCE).ok()?.saturating_duration_since(from))
            })
            .collect::<Option<Vec<_>>>()?;
        costs.sort_unstable();
        Some(costs[COUNT / 2])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_measured_and_possible() {
        assert!(measured(0).is_some_and(|cost| cost > Duration::ZERO));
        assert!(POSSIBLE.contains(&wake_up_cost(0)));
        assert!(POSSIBLE.contains(&wake_up_cost(100_000)), "of a core that is not there");
    }
}
