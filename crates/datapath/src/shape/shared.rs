//! What the workers share of a port's queues, and the control thread reads.

use super::QueueCounters;
use super::bucket::Timeline;
use crate::counters::{self, Count, Histogram, Traffic, blocks};
use api::{BitRate, PortQueues, QueueRates};
use flow::Nanos;
use port::Sent;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// A queue at one worker, counted. 128: see [`crate::counters::PortBlock`].
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct QueueBlock {
    pub(crate) tx: Traffic,
    pub(crate) errors: Count,
    /// Frames in the worker's ring now.
    pub(crate) waiting: Count,
    /// How long those waited that had to and have left.
    pub(crate) waits: Histogram,
}

/// One queue.
pub(crate) struct QueueShared {
    pub(crate) id: u32,
    pub(crate) rates: QueueRates,
    pub(crate) max: Timeline,
    pub(crate) min: Timeline,
    /// By worker, and a last one for frames that no worker saw.
    pub(crate) counters: Arc<[QueueBlock]>,
    since: Nanos,
}

impl QueueShared {
    /// `before` is the queue of that number until now: its counters and its age go on.
    fn new(rates: QueueRates, now: Nanos, workers: usize, before: Option<&Self>) -> Arc<Self> {
        let counters =
            before.map_or_else(|| blocks(workers + 1).into(), |queue| Arc::clone(&queue.counters));
        let since = before.map_or(now, |queue| queue.since);
        let (max, min) = (Timeline::default(), Timeline::default());
        Arc::new(Self { id: rates.id, rates, max, min, counters, since })
    }
}

/// The queues of one port.
pub(crate) struct PortQueuesShared {
    pub(crate) rate: Option<BitRate>,
    /// Frames that wait in the port's queues, at all workers.
    pub(crate) held: Arc<AtomicU64>,
    pub(crate) timeline: Timeline,
    /// By number; the first is queue 0, configured or not.
    pub(crate) queues: Vec<Arc<QueueShared>>,
    /// Whether queue 0 was asked for.
    has_zero: bool,
}

impl PortQueuesShared {
    pub(crate) fn new(
        wanted: &PortQueues,
        now: Nanos,
        workers: usize,
        (before, held): (Option<&Self>, &Arc<AtomicU64>),
    ) -> Arc<Self> {
        let mut rates = wanted.queues.clone();
        let has_zero = rates.iter().any(|queue| queue.id == 0);
        if !has_zero {
            rates.push(QueueRates { id: 0, min: None, max: None });
        }
        rates.sort_by_key(|queue| queue.id);
        let kept =
            |id: u32| before.and_then(|before| before.configured().find(|queue| queue.id == id));
        let queues = rates
            .into_iter()
            .map(|rates| {
                QueueShared::new(rates, now, workers, kept(rates.id).map(|queue| &**queue))
            })
            .collect();
        let (rate, timeline, held) = (wanted.rate, Timeline::default(), held.clone());
        Arc::new(Self { rate, held, timeline, queues, has_zero })
    }

    /// The queue of that number; queue 0 if there is none.
    pub(crate) fn queue(&self, id: u32) -> &QueueShared {
        let found = self.queues.binary_search_by_key(&id, |queue| queue.id);
        &self.queues[found.unwrap_or(0)]
    }

    /// The rates that frames of a queue keep, if each is a greatest one.
    pub(crate) fn greatest(&self, id: u32) -> Option<impl Iterator<Item = (BitRate, &Timeline)>> {
        let queue = self.queue(id);
        let own = queue.rates.max.map(|rate| (rate, &queue.max));
        let port = self.rate.map(|rate| (rate, &self.timeline));
        queue.rates.min.is_none().then(|| own.into_iter().chain(port))
    }

    /// Those that were asked for, by number.
    fn configured(&self) -> impl Iterator<Item = &Arc<QueueShared>> {
        self.queues.iter().skip(usize::from(!self.has_zero))
    }

    pub(crate) fn counters(&self, now: Nanos) -> Vec<QueueCounters> {
        let read = |queue: &Arc<QueueShared>| {
            let sum = |of: fn(&QueueBlock) -> u64| queue.counters.iter().map(of).sum();
            QueueCounters {
                id: queue.id,
                tx_frames: sum(|block| block.tx.get().frames),
                tx_bytes: sum(|block| block.tx.get().bytes),
                tx_errors: sum(|block| block.errors.get()),
                waiting: sum(|block| block.waiting.get()),
                wait: counters::sum(queue.counters.iter().map(|block| &block.waits)),
                age_ns: now.since(queue.since),
            }
        };
        self.configured().map(read).collect()
    }
}

impl QueueBlock {
    /// Of `offered` frames these were sent.
    pub(crate) fn count(&self, offered: u64, sent: Sent) {
        self.tx.add(sent);
        self.errors.add(offered.saturating_sub(sent.frames));
    }
}
