//! What becomes of a frame of which some bits are known.
//!
//! [`Snapshot::resolve`] is the one answer to this question, for whoever asks: a worker for a whole batch, a person, or an offload. It goes
//! the way that [`process()`](crate::process()) goes, on what is known of the frame instead of on the frame; it counts, learns, charges
//! and changes nothing.
//!
//! **Promise.** The answer is that of every frame that has the bits of `key` in [`Resolved::looked_at`], which lies in
//! `known`, as long as [`Snapshot::holds`] says so of [`Resolved::stamp`]; except for what a key cannot tell:
//!
//! * its headers are whole as far as its key names them, behind an Ethernet II header;
//! * pushed headers find room;
//! * meters ([`Resolved::limits`]) let it pass;
//! * no TTL runs out that edits did not set ([`Resolved::decrements`]).
//!
//! A frame that is there whole ([`Asked`]) is followed without these exceptions ([`Snapshot::follow`]), for the moment.
//!
//! [`To::Depends`] names a field that the way asks for and of which a bit is not known: not given, or revealed by an
//! edit. A table asks for the bits of the masks that it searches, so perhaps for more than tell its entries apart.

mod answer;
mod asked;
mod course;
mod memory;
mod sketch;
mod stamp;
#[cfg(test)]
mod tests;
mod visit;
mod walk;

pub use answer::{Leaving, Metered, Resolved, To};
pub use asked::Asked;
pub use memory::Memory;
pub(crate) use sketch::is_named;
pub use stamp::Stamp;
pub use visit::{Exit, Stop, Visitor};

use crate::action::{Action, PortNo};
use crate::snapshot::Snapshot;
use crate::store::RecordId;
use crate::template::Scratch;
use crate::time::Nanos;
use answer::Answer;
use sketch::Sketch;
use walk::Walk;
use wire::{DropReason, Key};

/// An entry that a frame finds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hit {
    /// Its table.
    pub table: u8,
    pub(crate) id: RecordId,
    /// The snapshot that sees it.
    pub(crate) generation: u32,
}

impl Hit {
    fn new(snapshot: &Snapshot, table: u8, id: RecordId) -> Self {
        Self { table, id, generation: snapshot.generation() }
    }
}

impl Snapshot {
    /// What becomes of a frame whose bits in `known` are those of `key`. See the module for what is promised.
    pub fn resolve(&self, key: &Key, known: &Key, now: Nanos) -> Resolved {
        let (mut answer, mut scratch) = (Answer::default(), Box::default());
        let mut walk = Walk::new(self, now, &mut scratch, &mut answer);
        let end = walk.run(Sketch::new(key, known));
        let Walk { looked_at, lost, uses, memory, .. } = walk;
        let learned = memory.learned.into_iter().map(|(vlan, mac, _)| (vlan, mac)).collect();
        answer.resolved(end, lost, learned, (looked_at, Stamp::new(self, uses)))
    }

    /// The cookie of an entry that an answer of this snapshot names.
    pub fn cookie(&self, hit: &Hit) -> u64 {
        self.arena.record(hit.id).cookie()
    }

    /// Tells `visitor` each step of such a frame's way, to its end or to where `visitor` knows enough.
    ///
    /// # Errors
    /// Why the end was not reached; never [`Stop::Cut`].
    pub fn trace_frame(
        &self,
        (key, known): (&Key, &Key),
        now: Nanos,
        visitor: &mut impl Visitor,
    ) -> Result<(), Stop> {
        let mut scratch = Box::default();
        Walk::new(self, now, &mut scratch, visitor).run(Sketch::new(key, known)).map(drop)
    }

    /// Tells `visitor` each step of a frame's way, as a worker would take it now: meters let it pass or not, and TTLs run out. `memory` is
    /// what such frames would have changed before, and then what this one would have. Why it or a copy is lost, if so.
    ///
    /// # Errors
    /// As [`Snapshot::trace_frame`].
    pub fn follow(
        &self,
        frame: &Asked,
        memory: &mut Memory,
        now: Nanos,
        visitor: &mut impl Visitor,
    ) -> Result<Option<DropReason>, Stop> {
        let mut scratch = Box::default();
        let mut walk = Walk::new(self, now, &mut scratch, visitor);
        walk.memory = std::mem::take(memory);
        let ended = walk.run(Sketch::of(frame));
        *memory = walk.memory;
        ended.map(|nowhere| nowhere.or(walk.lost))
    }

    /// The entry of table 0 that all frames find which came in by `in_port` with the bits of `key` in `known`, and where they go if nothing
    /// else becomes of them. Tells nothing of frames that a bridge forwards. Allocates nothing.
    pub(crate) fn resolve_plain(
        &self,
        in_port: PortNo,
        (key, known): (&Key, &Key),
        scratch: &mut Scratch,
    ) -> Option<Plain> {
        let mut only = OnlyPort::default();
        // Time matters to bridges only.
        let mut walk = Walk::new(self, Nanos::default(), scratch, &mut only);
        let is_all = walk.run(Sketch::new(key, known)).is_ok() && walk.lost.is_none();
        let port = only.port.filter(|&port| is_all && port != in_port);
        Some(Plain { entry: only.entry?, port })
    }
}

/// What becomes of frames that find one entry and are not changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Plain {
    /// The entry of table 0.
    pub entry: RecordId,
    /// The only port by which they leave, as they are, and all that becomes of them; `None` if anything else does.
    pub port: Option<PortNo>,
}

/// Wants to hear of one entry and one port, and of nothing else.
#[derive(Default)]
struct OnlyPort {
    entry: Option<RecordId>,
    port: Option<PortNo>,
}

impl Visitor for OnlyPort {
    fn hit(&mut self, hit: Hit) -> Result<(), Stop> {
        match self.entry {
            Some(_) => Err(Stop::Enough),
            None => {
                self.entry = Some(hit.id);
                Ok(())
            }
        }
    }

    fn miss(&mut self, _table: u8) -> Result<(), Stop> {
        Err(Stop::Enough)
    }

    fn limit(&mut self, _meter: u32, _remarks: bool) -> Result<(), Stop> {
        Err(Stop::Enough)
    }

    fn bucket(&mut self, _group: u32, _bucket: usize) -> Result<(), Stop> {
        Err(Stop::Enough)
    }

    fn bridge(&mut self) -> Result<(), Stop> {
        Err(Stop::Enough)
    }

    fn edit(&mut self, _action: &Action) -> Result<(), Stop> {
        Err(Stop::Enough)
    }

    fn exit(&mut self, _edits: &[Action], queue: u32, exit: Exit<'_>) -> Result<(), Stop> {
        match exit {
            Exit::Ports(&[port]) if queue == 0 && self.port.is_none() => {
                self.port = Some(port);
                Ok(())
            }
            _ => Err(Stop::Enough),
        }
    }
}
