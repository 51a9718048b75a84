//! Queues and rates of ports, set and read.

use super::Datapath;
use crate::command::Command;
use crate::id::PortAt;
use crate::shape::{PortQueuesShared, QueueCounters, Shaper};
use api::{BadQueues, PortQueues};
use flow::{BucketShape, SharedBucket};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Why a port did not get its queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum QueuesError {
    /// It is not in service.
    #[error("{0} is not in service")]
    NoPort(PortAt),
    /// A vlink carries frames within one pass: there is nowhere to wait.
    #[error("{0} is a vlink, which has no queues")]
    Vlink(PortAt),
    /// They contradict themselves.
    #[error("{at}: {source}")]
    Bad {
        /// The port.
        at: PortAt,
        /// What is wrong.
        source: BadQueues,
    },
}

/// Why only workers can keep a queue's rates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnlyHere {
    /// One is a guarantee.
    Guarantee,
    /// Rungs have no place for one.
    NoPlace,
}

impl Datapath {
    /// Gives a port these queues in place of those that it has. Counters and age of a queue that stays go on, and frames that wait go on
    /// waiting, in queue 0 if theirs is gone.
    ///
    /// # Errors
    /// [`QueuesError`]: nothing changes then.
    pub fn set_queues(&self, at: PortAt, wanted: &PortQueues) -> Result<(), QueuesError> {
        wanted.check().map_err(|source| QueuesError::Bad { at, source })?;
        let now = self.started.now();
        let mut registry = self.registry();
        let entry = registry.ports.get_mut(&at).ok_or(QueuesError::NoPort(at))?;
        if entry.peer.is_some() {
            return Err(QueuesError::Vlink(at));
        }
        let (ix, before) = (entry.ix, entry.queues.take());
        let workers = self.workers.len();
        entry.queues = (!wanted.is_empty()).then(|| {
            let held = &entry.shared.held;
            PortQueuesShared::new(wanted, now, workers, (before.as_deref(), held))
        });
        let queues = entry.queues.clone();
        // The answers hold the shapers that were: they end on this thread.
        self.ask_all(|worker, reply| {
            let shaper = queues.as_ref().map(|shared| Box::new(Shaper::new(shared, worker)));
            Command::SetQueues { ix, shaper, reply }
        });
        Ok(())
    }

    /// Frames that wait in a port's queues, while it is in service.
    pub fn held(&self, at: PortAt) -> Option<Arc<AtomicU64>> {
        self.registry().ports.get(&at).map(|entry| entry.shared.held.clone())
    }

    /// Where rungs past the worker take from the rates that frames of a queue keep, all of them greatest ones; none where the port has no
    /// queues. `find` finds a place for one that has none.
    ///
    /// # Errors
    /// Only workers can keep one of them.
    pub fn greatest_rates(
        &self,
        (at, queue): (PortAt, u32),
        find: &mut dyn FnMut(&BucketShape) -> Option<Arc<dyn SharedBucket>>,
    ) -> Result<Vec<u32>, OnlyHere> {
        let registry = self.registry();
        let Some(queues) = registry.ports.get(&at).and_then(|entry| entry.queues.as_ref()) else {
            return Ok(Vec::new());
        };
        let rates = queues.greatest(queue).ok_or(OnlyHere::Guarantee)?;
        rates.map(|(rate, line)| line.shared(rate, find).ok_or(OnlyHere::NoPlace)).collect()
    }

    /// From here on workers take from those rates where rungs do.
    pub fn share_rates(&self, (at, queue): (PortAt, u32)) {
        let registry = self.registry();
        let queues = registry.ports.get(&at).and_then(|entry| entry.queues.as_ref());
        let rates = queues.and_then(|queues| queues.greatest(queue));
        rates.into_iter().flatten().for_each(|(_, line)| line.share());
    }

    /// What went through each queue that a port was given, by number; none if the port is not in service.
    pub fn queue_counters(&self, at: PortAt) -> Vec<QueueCounters> {
        let registry = self.registry();
        let queues = registry.ports.get(&at).and_then(|entry| entry.queues.as_ref());
        queues.map(|queues| queues.counters(self.started.now())).unwrap_or_default()
    }
}
