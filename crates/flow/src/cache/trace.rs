//! A packet's way through the tables, as far as its key decides it.

use crate::action::PortNo;
use crate::limits::LANES;
use crate::store::RecordId;

/// Entries one trace holds; longer ways are looked up while they are walked. Chosen: pipelines of real controllers have
/// up to about this many tables that a packet visits.
pub(crate) const STEPS: usize = 8;

/// How a trace ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum End {
    /// With the program of its last entry.
    #[default]
    Done,
    /// At a table without an entry for the packet.
    Miss(u8),
    /// Before a table that must be searched when the programs so far have been run.
    Resume(u8),
}

/// The entries a packet hits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trace {
    hits: [RecordId; STEPS],
    /// Tables of the hits.
    tables: [u8; STEPS],
    len: u8,
    pub end: End,
    /// All the trace does is to send the packet by this port.
    pub forwards_to: Option<PortNo>,
}

impl Default for Trace {
    fn default() -> Self {
        Self {
            hits: [RecordId::NONE; STEPS],
            tables: [0; STEPS],
            len: 0,
            end: End::Done,
            forwards_to: None,
        }
    }
}

impl Trace {
    /// The entries, in order.
    pub fn hits(&self) -> &[RecordId] {
        &self.hits[..usize::from(self.len)]
    }

    /// Whether it is the only entry's.
    pub fn is_single(&self) -> bool {
        self.len == 1
    }

    /// Whether no entry more has room.
    pub fn is_full(&self) -> bool {
        usize::from(self.len) == STEPS
    }

    /// The tables searched, and whether an entry was found there.
    pub fn searched(&self) -> impl Iterator<Item = (u8, bool)> {
        let missed = if let End::Miss(table) = self.end { Some((table, false)) } else { None };
        self.tables[..usize::from(self.len)].iter().map(|&table| (table, true)).chain(missed)
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        (self.len, self.end, self.forwards_to) = (0, End::Done, None);
    }

    /// Adds the entry that a table has.
    pub fn push(&mut self, id: RecordId, table: u8) {
        self.hits[usize::from(self.len) % STEPS] = id;
        self.tables[usize::from(self.len) % STEPS] = table;
        self.len += 1;
    }
}

/// The traces of a batch.
#[derive(Default)]
pub(crate) struct Traces([Trace; LANES]);

impl Traces {
    /// The trace of packet `index`.
    pub fn of(&self, index: usize) -> &Trace {
        &self.0[index]
    }

    /// The trace of packet `index`, to be changed.
    pub fn at(&mut self, index: usize) -> &mut Trace {
        &mut self.0[index % LANES]
    }

    /// Replaces the trace of packet `index`.
    pub fn set(&mut self, index: usize, trace: &Trace) {
        self.0[index] = *trace;
    }
}
