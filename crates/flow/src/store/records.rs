//! The storage all tables of a pipeline share, and the waiting room of what snapshots may still see.
//!
//! **Generations.** `next` is the generation of the snapshot to come. A record is born into `next` and dies at `next`, so
//! what happens between two snapshots is seen by neither or by the later one. A record that some snapshot sees is
//! *retired*: it waits until the oldest snapshot in use is younger than its death.

use super::{Arena, RecordId, Secret};
use crate::program::Interner;
use std::collections::VecDeque;

/// What is to be done once nobody sees a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Afterwards {
    /// Take it out of its mask's index; the record itself stays, a later version counts on it.
    Unindex,
    /// … and free it.
    Free,
    /// Free it; it is not in an index.
    FreeHome,
}

/// A record nobody will see any more, some day.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retired {
    pub generation: u32,
    pub id: RecordId,
    pub afterwards: Afterwards,
}

/// Records, programs, generations.
pub(crate) struct Store {
    pub arena: Arena,
    pub programs: Interner,
    pub secret: Secret,
    /// Generation of the next snapshot.
    pub next: u32,
    retired: VecDeque<Retired>,
    /// New records of entries that went on under them: their timeouts must be put on the calendar.
    pub renewed: Vec<RecordId>,
}

impl Store {
    pub fn new(secret: [u64; 2]) -> Self {
        Self {
            arena: Arena::default(),
            programs: Interner::default(),
            secret: Secret::new(secret),
            next: 1,
            retired: VecDeque::new(),
            renewed: Vec::new(),
        }
    }

    /// Puts a record that died now into the waiting room.
    pub fn retire(&mut self, id: RecordId, afterwards: Afterwards) {
        self.retired.push_back(Retired { generation: self.next, id, afterwards });
    }

    /// The next record whose last viewer is gone, `oldest` being the oldest generation in use.
    pub fn pop_unseen(&mut self, oldest: u32) -> Option<Retired> {
        let first = self.retired.front()?;
        let seen = (oldest.wrapping_sub(first.generation) as i32) < 0;
        if seen { None } else { self.retired.pop_front() }
    }

    /// Records in the waiting room.
    pub fn waiting(&self) -> usize {
        self.retired.len()
    }
}
