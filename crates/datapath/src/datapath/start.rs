//! Starting the workers.

use super::{Datapath, Handle, Registry};
use crate::clock::{Clock, MonotonicClock};
use crate::config::{Config, StartError};
use crate::event::{EventRing, Events};
use crate::mailbox::Mailbox;
use crate::samples::{Sampler, Samples};
use crate::worker::Worker;
use flow::Nanos;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

/// Both clocks at the start, to tell how fast the cycle counter runs.
pub(super) struct Started {
    clock: Arc<dyn Clock>,
    now: Nanos,
    cycles: u64,
}

impl Started {
    fn new(clock: Arc<dyn Clock>) -> Self {
        Self { now: clock.now(), cycles: clock.cycles(), clock }
    }

    /// The workers' time.
    pub(super) fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// Nanoseconds since the start.
    pub(super) fn age(&self) -> u64 {
        self.clock.now().since(self.now)
    }

    /// Cycles per second since the start; 0 when no time has passed.
    pub(super) fn cycles_per_s(&self) -> u64 {
        let elapsed = u128::from(self.clock.now().since(self.now));
        let cycles = u128::from(self.clock.cycles().saturating_sub(self.cycles));
        (cycles * 1_000_000_000).checked_div(elapsed).unwrap_or(0) as u64
    }
}

impl Datapath {
    /// Starts one worker on each core of the configuration, with the machine's clocks.
    ///
    /// # Errors
    /// [`StartError`]: nothing runs then.
    pub fn start(config: Config) -> Result<(Self, Events), StartError> {
        Self::start_with(config, MonotonicClock)
    }

    /// Likewise, with a clock of the caller's.
    ///
    /// # Errors
    /// [`StartError`]: nothing runs then.
    pub fn start_with(config: Config, clock: impl Clock) -> Result<(Self, Events), StartError> {
        check(&config.cores)?;
        let clock = Arc::new(clock);
        let refused = |core, step| move |source| StartError::Worker { core, step, source };
        let events =
            EventRing::new(config.packet_in_ring).map_err(refused(config.cores[0], "eventfd"))?;
        let mut datapath = Self {
            workers: Vec::new(),
            registry: Mutex::new(Registry::new(config.cores.len())),
            events: Arc::clone(&events),
            samples: Samples::new(),
            started: Started::new(Arc::clone(&clock) as Arc<dyn Clock>),
            config,
        };
        let secret = [random(), random()];
        for (number, core) in datapath.config.cores.clone().into_iter().enumerate() {
            let mailbox = Mailbox::new(datapath.config.rungs).map_err(refused(core, "eventfd"))?;
            let identity = (number, secret);
            let (clock, events) = (Arc::clone(&clock), Arc::clone(&events));
            let sampler = Sampler::new(Arc::clone(&datapath.samples));
            let worker = Worker::new(
                identity,
                &datapath.config,
                clock,
                Arc::clone(&mailbox),
                (events, sampler),
            )
            .map_err(refused(core, "epoll"))?;
            let begin = datapath.config.confine;
            datapath.workers.push(spawn((core, begin), mailbox, worker)?);
        }
        Ok((datapath, Events::new(events)))
    }
}

/// Most workers: the flow cache numbers them in a byte.
const WORKERS: usize = 253;

fn check(cores: &[usize]) -> Result<(), StartError> {
    if cores.is_empty() {
        return Err(StartError::NoCores);
    }
    if cores.len() > WORKERS {
        return Err(StartError::TooMany { cores: cores.len(), most: WORKERS });
    }
    let twice = cores.iter().enumerate().find(|&(at, core)| cores[..at].contains(core));
    twice.map_or(Ok(()), |(_, &core)| Err(StartError::SameCore(core)))
}

/// Starts the thread and returns when it is pinned and confined.
fn spawn<C: Clock>(
    (core, confine): (usize, fn()),
    mailbox: Arc<Mailbox>,
    worker: Worker<C>,
) -> Result<Handle, StartError> {
    let refused = |step| move |source| StartError::Worker { core, step, source };
    let (pinned, outcome) = channel();
    let run = move || {
        let result = pin(core);
        confine();
        let failed = result.is_err();
        let _ = pinned.send(result);
        if failed { worker.into_remains() } else { worker.serve() }
    };
    let name = format!("suiro-worker-{core}");
    let thread = std::thread::Builder::new()
        .name(name)
        .spawn(run)
        .map_err(refused("starting its thread"))?;
    let gone = |_| Err(io::Error::other("the thread ended"));
    outcome.recv().unwrap_or_else(gone).map_err(refused("pinning it to the core"))?;
    Ok(Handle { core, mailbox, thread: Some(thread) })
}

fn pin(core: usize) -> io::Result<()> {
    if core >= CpuSet::MAX_CPU {
        return Err(io::Error::from_raw_os_error(rustix::io::Errno::INVAL.raw_os_error()));
    }
    let mut cores = CpuSet::new();
    cores.set(core);
    Ok(sched_setaffinity(None, &cores)?)
}

/// Unpredictable bits: the standard library draws the keys of its hash maps from the operating system.
pub(super) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
