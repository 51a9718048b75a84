//! Queues and rates of ports, set and read.

use super::Datapath;
use crate::command::Command;
use crate::id::PortAt;
use crate::shape::{PortQueuesShared, QueueCounters, Shaper};
use api::{BadQueues, PortQueues};

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
        entry.queues = (!wanted.is_empty())
            .then(|| PortQueuesShared::new(wanted, now, workers, before.as_deref()));
        let queues = entry.queues.clone();
        // The answers hold the shapers that were: they end on this thread.
        self.ask_all(|worker, reply| {
            let shaper = queues.as_ref().map(|shared| Box::new(Shaper::new(shared, worker)));
            Command::SetQueues { ix, shaper, reply }
        });
        Ok(())
    }

    /// What went through each queue that a port was given, by number; none if the port is not in service.
    pub fn queue_counters(&self, at: PortAt) -> Vec<QueueCounters> {
        let registry = self.registry();
        let queues = registry.ports.get(&at).and_then(|entry| entry.queues.as_ref());
        queues.map(|queues| queues.counters(self.started.now())).unwrap_or_default()
    }
}
