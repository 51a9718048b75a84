//! # Captures: frames from the workers to whoever looks
//!
//! **Question answered**: how do the records of all workers become one file, and what does a slow reader cost?
//!
//! [`Captures::begin`] makes a capture and a thread that drains it: records in the order of time, as blocks of a pcapng file, into a channel of a few
//! chunks, which is the body of an HTTP answer. The thread is none of the workers'; it looks every [`PAUSE`].
//!
//! ## Invariants
//!
//! * A reader that is slow or stopped holds [`AHEAD`] chunks. Then the rings fill, and records are lost, counted by point. Traffic is not held up.
//! * A capture ends with its connection, with the node, or when it is asked to; asked to, it shows everything until then and what was counted.
//! * Records are held back for [`WINDOW`], within which every worker has shown what it has: they leave sorted by time.

mod aside;
mod asker;
mod ears;
mod file;
mod lookouts;

use crate::feed::Feed;
use api::CaptureSpec;
use axum::body::Bytes;
use datapath::{Capture, CaptureId, Captured, Clock, Datapath, MonotonicClock};
use file::File;
use flow::Nanos;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;

pub use aside::{Aside, Note};
pub use asker::Asker;
pub use ears::{Ear, Ears, Listening, Spoken, Wire};
pub use file::{Names, PointName};
pub use lookouts::{Lookouts, Watcher, Watching};

/// Between two looks into rings that are nearly empty.
const PAUSE: Duration = Duration::from_millis(2);
/// Chosen: a round takes less than a millisecond, unless the worker's core is taken away for longer.
const WINDOW: Duration = Duration::from_millis(20);
/// Chunks that may wait for a slow reader.
const AHEAD: usize = 4;
/// Bytes of a chunk, about.
const CHUNK: usize = 256 << 10;
/// Records between two looks at how long the chunk has become.
const PORTION: usize = 64;

/// What every capture knows of itself.
pub struct Shown {
    /// Its points, in order.
    pub points: Vec<PointName>,
    /// What it was asked for.
    pub spec: CaptureSpec,
    /// Most bytes of a frame in the file.
    pub snap: u32,
    /// What ids are made with.
    pub key: [u64; 2],
    /// How ports are called.
    pub names: Names,
    /// Core of each worker.
    pub cores: Vec<usize>,
    /// What happens on the node, if that is to be in the file.
    pub events: Option<Feed>,
    /// What comes first.
    pub past: Vec<Past>,
    /// What is seen elsewhere than at workers, at the points behind theirs.
    pub aside: Arc<Aside>,
    /// Those who see it, until they are dropped.
    pub sources: Vec<Source>,
    /// Who wants it.
    pub who: Asker,
}

/// Somebody who puts what he sees into an [`Aside`].
pub type Source = Box<dyn Look + Send>;

/// What a capture's thread does for one of its [`Source`]s.
pub trait Look {
    /// Fetches what was seen until now; not needed where it comes by itself.
    fn look(&mut self) {}
}

/// A loss, or a frame that passed, of before.
pub struct Past {
    /// What is known of it, but for its bytes.
    seen: Captured<'static>,
    bytes: Vec<u8>,
}

impl Past {
    /// Keeps it.
    pub fn of(seen: &Captured<'_>) -> Self {
        Self { bytes: seen.bytes.to_vec(), seen: Captured { bytes: &[], inside: &[], ..*seen } }
    }

    /// What is known of it.
    pub fn seen(&self) -> Captured<'_> {
        Captured { bytes: &self.bytes, ..self.seen }
    }
}

/// A capture under way, for those who do not read it.
pub struct Running {
    /// What it was asked for.
    pub spec: CaptureSpec,
    /// What its points are called.
    pub points: Vec<String>,
    /// Who wants it.
    pub who: Asker,
    /// Matched and lost, by point, as the thread saw it last.
    counted: Mutex<Vec<datapath::Counted>>,
    stop: AtomicBool,
}

impl Running {
    /// What was counted at each point.
    pub fn counted(&self) -> Vec<datapath::Counted> {
        lock(&self.counted).clone()
    }
}

/// All captures under way, by number.
#[derive(Clone, Default)]
pub struct Captures(Arc<Mutex<BTreeMap<u32, Arc<Running>>>>);

impl Captures {
    /// The one of this number.
    pub fn get(&self, id: u32) -> Option<Arc<Running>> {
        lock(&self.0).get(&id).cloned()
    }

    /// All of them.
    pub fn all(&self) -> Vec<(u32, Arc<Running>)> {
        lock(&self.0).iter().map(|(&id, running)| (id, running.clone())).collect()
    }

    /// Has one end in order; false if there is none.
    pub fn stop(&self, id: u32) -> bool {
        self.get(id).map(|running| running.stop.store(true, Relaxed)).is_some()
    }

    /// Has all end in order.
    pub fn stop_all(&self) {
        lock(&self.0).values().for_each(|running| running.stop.store(true, Relaxed));
    }

    /// Begins to drain a capture. `ended` hears, on the thread, what was counted at each point when it is over.
    ///
    /// # Errors
    /// The system refuses a thread; the capture is ended then.
    pub fn begin(
        &self,
        (datapath, capture): (Arc<Datapath>, Capture),
        shown: Shown,
        ended: impl FnOnce(Vec<datapath::Counted>) + Send + 'static,
    ) -> io::Result<mpsc::Receiver<Bytes>> {
        let (sender, receiver) = mpsc::channel(AHEAD);
        let CaptureId(id) = capture.id();
        let running = Arc::new(Running {
            spec: shown.spec.clone(),
            points: shown.points.iter().map(|point| point.name.clone()).collect(),
            who: shown.who,
            counted: Mutex::default(),
            stop: AtomicBool::new(false),
        });
        lock(&self.0).insert(id, running.clone());
        let all = self.clone();
        let mut shown = shown;
        let past = std::mem::take(&mut shown.past);
        let sources = std::mem::take(&mut shown.sources);
        let aside = shown.aside.clone();
        let file = File::new(shown);
        let mut drain = Drain { datapath, capture, running, sender, file, past, aside, sources };
        let thread = std::thread::Builder::new().name(format!("suiro-capture-{id}"));
        let run = move || {
            drain.run();
            lock(&all.0).remove(&id);
            ended(drain.counted());
        };
        thread.spawn(run).inspect_err(|_| drop(lock(&self.0).remove(&id)))?;
        Ok(receiver)
    }
}

/// The thread's own.
struct Drain {
    datapath: Arc<Datapath>,
    capture: Capture,
    running: Arc<Running>,
    sender: mpsc::Sender<Bytes>,
    file: File,
    /// What comes first.
    past: Vec<Past>,
    aside: Arc<Aside>,
    sources: Vec<Source>,
}

/// However it ends, also where it never began: no worker sees frames for nobody. Ended before, it is so once more, which changes nothing.
impl Drop for Drain {
    fn drop(&mut self) {
        self.datapath.end_capture(&self.capture);
    }
}

impl Drain {
    /// Carries records until somebody ends it.
    fn run(&mut self) {
        let began = self.file.begin(real_time());
        if !self.send(began) {
            return;
        }
        if !self.send_past() {
            return;
        }
        while !self.running.stop.load(Relaxed) && !self.sender.is_closed() {
            let until = MonotonicClock.now().0.saturating_sub(WINDOW.as_nanos() as u64);
            self.look();
            let more = self.carry(Nanos(until));
            *lock(&self.running.counted) = self.counted();
            match more {
                None => break,
                Some(0) => std::thread::sleep(PAUSE),
                Some(_) => {}
            }
        }
        self.datapath.end_capture(&self.capture);
        self.look();
        self.sources.clear();
        while self.carry(Nanos(u64::MAX)).is_some_and(|taken| taken > 0) {}
        let counted = self.counted();
        let end = self.file.end(real_time(), &counted);
        self.send(end);
    }

    fn look(&mut self) {
        self.sources.iter_mut().for_each(|source| source.look());
    }

    /// Sends what was before; false when the reader has gone.
    fn send_past(&mut self) -> bool {
        self.file.look(real_time(), MonotonicClock.now(), Nanos(0));
        let mut chunk = Vec::new();
        for past in &self.past {
            self.file.put(&mut chunk, &past.seen());
        }
        chunk.is_empty() || self.send(chunk)
    }

    /// Sends a chunk of what was seen before `until`; how many records it has, or `None` when there is no reader.
    fn carry(&mut self, until: Nanos) -> Option<usize> {
        let Self { capture, file, .. } = self;
        let (real_ns, now) = (real_time(), MonotonicClock.now());
        file.look(real_ns, now, until);
        let (mut chunk, mut taken) = (Vec::new(), 0);
        while chunk.len() < CHUNK {
            let more = capture.take(until, PORTION, |seen| file.put(&mut chunk, &seen));
            taken += more;
            if more < PORTION {
                break;
            }
        }
        let is_all = taken == 0 || chunk.len() < CHUNK;
        if is_all {
            file.tell_until(&mut chunk, until);
        }
        (chunk.is_empty() || self.send(chunk)).then_some(taken)
    }

    /// False when the reader has gone.
    fn send(&self, chunk: Vec<u8>) -> bool {
        self.sender.blocking_send(chunk.into()).is_ok()
    }

    fn counted(&self) -> Vec<datapath::Counted> {
        let mut counted: Vec<_> =
            (0..self.capture.points().len()).map(|point| self.capture.counted(point)).collect();
        self.past.iter().for_each(|past| counted[past.seen.point].matched += 1);
        counted.extend(self.aside.counted());
        counted
    }
}

/// Nanoseconds since 1970.
pub fn real_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
