//! Sealing as a stage of its own: a thread, on the core that it is given, seals and sends what the workers gathered.
//!
//! ```text
//!   worker ─┐                                    ┌──────────────────────┐
//!   worker ─┼─ put: copied behind the rest ─▶ front │ ⇄ │ back ─▶ seal ─▶ socket
//!   worker ─┘  (a short lock; full: dropped)      └── thread, own core ──┘
//! ```
//!
//! **Order**: there is one queue for all workers of a port. What a worker puts in is in it when its pass is over, and a flow moves to another
//! worker after that (decision 14), which puts its frames in behind. While the stage ends, workers wait for the last of it, milliseconds;
//! only then do they seal by themselves.
//!
//! **Bounds**: [`ROOM`] bytes wait, as many again are being sealed. No worker waits for the thread: what does not fit is dropped by the
//! worker who brings it (`seal_full`), and no other port notices.

use super::tx::Sealer;
use crate::chosen::SealOn;
use crate::detail::Sealing;
use crate::drops::{Drops, Lost};
use crate::sys::datagram::Address;
use crate::unprivileged::drop_privileges;
use crate::vxlan::outgoing::Outgoing;
use crate::vxlan::path::Path;
use crate::vxlan::seen::Seen;
use crate::vxlan::senders::Senders;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use wire::DropReason;
use wire::tunnel::Vxlan;

/// Bytes that wait at most. Chosen: all that a worker's round can bring, 64 segments of 64 KiB.
const ROOM: usize = 4 << 20;
/// Runs that wait at most: small frames that have nothing in common. Chosen: 64 rounds of a worker.
const RUNS: usize = 4096;

/// A port's stage, as its workers and its thread share it.
pub(super) struct Stage {
    queue: Mutex<Queue>,
    /// Rung when something waits and the thread is asleep.
    filled: Condvar,
    counts: Arc<Counts>,
    path: Arc<Path>,
}

/// What a port's stages did.
#[derive(Default)]
pub(super) struct Counts {
    /// Packets sealed and sent.
    packets: AtomicU64,
    /// Packets that were taken and could not be sent.
    lost: Mutex<Drops>,
    /// Whether the kernel refused the core.
    strays: AtomicBool,
}

struct Queue {
    front: Filled,
    /// The core that the thread shall be on, until it has heard of it.
    core: Option<usize>,
    is_asleep: bool,
    /// It shall end when nothing waits any more.
    is_ending: bool,
    has_ended: bool,
}

/// Runs of VXLAN packets, one behind the other.
struct Filled {
    bytes: Outgoing,
    runs: Vec<Run>,
}

/// What a run's packets have in common.
pub(super) struct Run {
    /// Of each packet but the last, which may be shorter.
    pub(super) segment: usize,
    /// Which socket sends it, where to, and under which DS field.
    pub(super) flow: usize,
    pub(super) to: Address,
    pub(super) ds: u8,
    /// Of all.
    pub(super) len: usize,
    /// Who sees them sealed.
    pub(super) seen: Option<Seen>,
}

impl Stage {
    fn new(core: usize, counts: Arc<Counts>, path: Arc<Path>) -> Self {
        let (front, core) = (Filled::new(), Some(core));
        let queue = Queue { front, core, is_asleep: false, is_ending: false, has_ended: false };
        Self { queue: Mutex::new(queue), filled: Condvar::new(), counts, path }
    }

    /// Hands a run over. `None`: there is no thread any more, and all that it was given has left.
    pub(super) fn put(&self, run: Run, bytes: &[u8]) -> Option<Result<(), DropReason>> {
        // The kernel refuses it later, when nobody tells the frame's sender any more.
        if run.segment > Vxlan::LEN + self.path.carries() {
            return Some(Err(DropReason::TooBig));
        }
        let mut queue = lock(&self.queue);
        if queue.has_ended {
            return None;
        }
        let front = &mut queue.front;
        if front.runs.len() == RUNS || front.bytes.len() + run.len > ROOM {
            return Some(Err(DropReason::SealFull));
        }
        front.bytes.append(run.len).copy_from_slice(bytes);
        front.runs.push(run);
        let is_asleep = queue.is_asleep;
        drop(queue);
        if is_asleep {
            self.filled.notify_one();
        }
        Some(Ok(()))
    }

    /// The thread's work.
    fn serve(&self, mut sealer: Sealer, senders: &Senders) {
        let _ended = Ended(self);
        drop_privileges();
        let mut back = Filled::new();
        loop {
            let mut queue = self.wait();
            if let Some(core) = queue.core.take() {
                self.counts.strays.store(pin(core).is_err(), Relaxed);
            }
            std::mem::swap(&mut queue.front, &mut back);
            // Of a stage that ends, workers wait for the last of it: what they seal then is behind.
            let last = if queue.is_ending {
                Some(queue)
            } else {
                drop(queue);
                None
            };
            self.seal(&mut back, &mut sealer, senders);
            if let Some(mut queue) = last {
                queue.has_ended = true;
                return;
            }
        }
    }

    /// Sleeps until there is something to do.
    fn wait(&self) -> MutexGuard<'_, Queue> {
        let mut queue = lock(&self.queue);
        while queue.front.runs.is_empty() && queue.core.is_none() && !queue.is_ending {
            queue.is_asleep = true;
            queue = self.filled.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.is_asleep = false;
        }
        queue
    }

    fn seal(&self, filled: &mut Filled, sealer: &mut Sealer, senders: &Senders) {
        let mut at = 0;
        for run in filled.runs.drain(..) {
            let bytes = &filled.bytes.bytes()[at..at + run.len];
            at += run.len;
            let packets = run.packets();
            let Run { segment, flow, to, ds, seen, .. } = run;
            match sealer.seal((bytes, segment), (senders, &to), flow, (ds, seen)) {
                Ok(()) => drop(self.counts.packets.fetch_add(packets, Relaxed)),
                Err(reason) => self.lose(reason, packets),
            }
        }
        filled.bytes.clear();
    }

    fn lose(&self, reason: DropReason, packets: u64) {
        if reason == DropReason::TooBig {
            // The next one is refused where its sender is told.
            let _ = self.path.mtu();
        }
        lock(&self.counts.lost).lose(reason, Lost::Elsewhere(packets));
    }
}

impl Counts {
    /// For users.
    pub(super) fn read(&self, mut on: SealOn) -> Sealing {
        if on.core.is_some() && self.strays.load(Relaxed) {
            on.why += ", but the kernel does not let it be there";
        }
        Sealing { on, packets: self.packets.load(Relaxed), lost: lock(&self.lost).clone() }
    }
}

impl Filled {
    fn new() -> Self {
        Self { bytes: Outgoing::of(ROOM), runs: Vec::with_capacity(RUNS) }
    }
}

impl Run {
    fn packets(&self) -> u64 {
        self.len.div_ceil(self.segment.max(1)) as u64
    }
}

/// Whatever ends the thread: workers do not count on it any more. What waits then, after a panic, is lost.
struct Ended<'a>(&'a Stage);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        let mut queue = lock(&self.0.queue);
        queue.has_ended = true;
        let left = queue.front.runs.drain(..).map(|run| run.packets()).sum();
        lock(&self.0.counts.lost).lose(DropReason::WorkerFault, Lost::Elsewhere(left));
    }
}

/// The thread of a stage. It ends with this, after what waits.
pub(super) struct Running {
    pub(super) stage: Arc<Stage>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Begins, on this core.
    pub(super) fn start(
        core: usize,
        (counts, path): (Arc<Counts>, Arc<Path>),
        sealer: Sealer,
        senders: Arc<Senders>,
    ) -> io::Result<Self> {
        let stage = Arc::new(Stage::new(core, counts, path));
        let shared = stage.clone();
        let work = move || shared.serve(sealer, &senders);
        let thread = std::thread::Builder::new().name("suiro-seal".into()).spawn(work)?;
        Ok(Self { stage, thread: Some(thread) })
    }

    /// Goes on, on this core.
    pub(super) fn go_to(&self, core: usize) {
        lock(&self.stage.queue).core = Some(core);
        self.stage.filled.notify_one();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        lock(&self.stage.queue).is_ending = true;
        self.stage.filled.notify_one();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Keeps the calling thread on a core.
fn pin(core: usize) -> io::Result<()> {
    let mut cores = CpuSet::new();
    if core >= CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    cores.set(core);
    Ok(sched_setaffinity(None, &cores)?)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vxlan::tunnel::Tunnel;
    use std::net::{Ipv4Addr, SocketAddr};

    fn stage() -> Stage {
        let path = Path::new(&Tunnel::new(Ipv4Addr::LOCALHOST.into(), 7), Arc::default())
            .expect("a socket");
        Stage::new(0, Arc::default(), Arc::new(path))
    }

    fn run(segment: usize, len: usize) -> Run {
        let to = Address::new(SocketAddr::from(([192, 0, 2, 2], 4500)));
        Run { segment, flow: 0, to, ds: 0, len, seen: None }
    }

    /// How many such runs find room.
    fn room(segment: usize, len: usize) -> usize {
        let stage = stage();
        let is_put = || stage.put(run(segment, len), &vec![0; len]) == Some(Ok(()));
        let count = (0..).take_while(|_| is_put()).count();
        assert_eq!(stage.put(run(segment, len), &vec![0; len]), Some(Err(DropReason::SealFull)));
        count
    }

    #[test]
    fn what_waits_is_bounded_in_bytes_and_in_runs() {
        assert_eq!(room(1000, 60_000), ROOM / 60_000);
        assert_eq!(room(64, 64), RUNS);
    }

    #[test]
    fn a_core_that_no_machine_has_is_refused() {
        assert!(pin(CpuSet::MAX_CPU).is_err() && pin(CpuSet::MAX_CPU - 1).is_err());
    }

    #[test]
    fn without_its_thread_it_takes_nothing_and_tells_what_was_left() {
        let stage = stage();
        assert_eq!(stage.put(run(100, 250), &[0; 250]), Some(Ok(())));
        drop(Ended(&stage));
        assert_eq!(stage.put(run(100, 100), &[0; 100]), None);
        let lost: Vec<_> = stage.counts.read(SealOn::default()).lost.iter().collect();
        assert_eq!(lost, [(DropReason::WorkerFault, 3)]);
    }
}
