//! Changes of entries in portions, so that nobody waits for a change of very many.
//!
//! A modify or delete of 300,000 entries takes a second. A lock that is held as long stops every thread of control that comes by, and with it
//! whoever needs that thread: other tenants. So the lock is held for [`PORTION`] entries, and after each portion others get the thread.
//!
//! * One batch of changes at a time: what a later one changes is changed last, as if each had been made at once.
//! * While a change is half made, the switch publishes nothing of its own accord, so workers see all of it or nothing. Whoever was promised that
//!   workers see what it did itself (by a barrier, by an answer of the API) makes what is there seen; OpenFlow 1.3.5 promises no packet more.
//! * A session that ends in the middle of its change leaves it half made. Its controller got no answer to a barrier.

use crate::switch::buffers::Kept;
use crate::switch::{Control, Switch, translate};
use flow::{Chosen, FlowCommand, Nanos};
use openflow::{ErrorCode, Fault, FlowMod};
use std::sync::atomic::Ordering;

/// Entries looked at under one lock. Chosen: half a millisecond, journal included.
pub(super) const PORTION: usize = 256;
/// Entries in a portion of a change to long lists of actions, for each of which room is taken first.
const HEAVY: usize = 16;

/// Changes still to be made, and what became of the others.
struct Work<I> {
    changes: I,
    /// Which change is under way, and the frame that follows it.
    under_way: Option<(usize, Change, Option<Kept>)>,
    released: Vec<Kept>,
    refused: Vec<(usize, Fault)>,
}

/// A modify or delete that is under way.
pub(super) struct Change {
    wanted: flow::FlowMod,
    chosen: Chosen,
}

/// While it is there, the switch publishes nothing of its own accord.
struct Unpublished<'s>(&'s Switch);

impl<'s> Unpublished<'s> {
    fn begin(switch: &'s Switch) -> Self {
        switch.half_made.fetch_add(1, Ordering::Relaxed);
        Self(switch)
    }
}

impl Drop for Unpublished<'_> {
    fn drop(&mut self) {
        self.0.half_made.fetch_sub(1, Ordering::Relaxed);
        self.0.unpublished.notify_one();
    }
}

impl<'c, I: Iterator<Item = (usize, &'c FlowMod)>> Work<I> {
    fn of(changes: I) -> Self {
        Self { changes, under_way: None, released: Vec::new(), refused: Vec::new() }
    }
}

impl Switch {
    /// Applies one flow-mod.
    ///
    /// # Errors
    /// The OpenFlow error to answer with; the tables are as before then.
    pub fn flow_mod(&self, change: &FlowMod) -> Result<(), Fault> {
        let mut work = Work::of(std::iter::once(change).enumerate());
        self.portion(&mut work, usize::MAX, &mut None);
        self.note_refusals(work.refused.iter().map(|(_, fault)| fault));
        work.refused.pop().map_or(Ok(()), |(_, fault)| Err(fault))
    }

    /// Applies flow-mods in order; returns which ones failed and why, the others count.
    pub async fn flow_mods<'a>(
        &self,
        changes: impl Iterator<Item = &'a FlowMod> + Send,
    ) -> Vec<(usize, Fault)> {
        let _turn = self.turn.lock().await;
        let (mut work, mut unpublished) = (Work::of(changes.enumerate()), None);
        while self.portion(&mut work, PORTION, &mut unpublished) {
            tokio::task::yield_now().await;
            self.journal.room().await;
        }
        self.note_refusals(work.refused.iter().map(|(_, fault)| fault));
        work.refused
    }

    /// Changes at most so many entries under one lock; whether there is more to do.
    fn portion<'s, 'c>(
        &'s self,
        work: &mut Work<impl Iterator<Item = (usize, &'c FlowMod)>>,
        most: usize,
        unpublished: &mut Option<Unpublished<'s>>,
    ) -> bool {
        let now = self.now();
        let mut control = self.control();
        let mut room = most;
        while room > 0 {
            let (index, done) = match work.under_way.take() {
                Some((index, mut change, kept)) => {
                    let went = self.go_on(&mut control, &mut change, &mut room, now);
                    if went.is_ok() && !change.chosen.is_done() {
                        work.under_way = Some((index, change, kept));
                        continue;
                    }
                    (index, went.map(|()| kept))
                }
                None => {
                    let Some((index, change)) = work.changes.next() else {
                        self.release(&mut control, std::mem::take(&mut work.released));
                        return false;
                    };
                    room -= 1;
                    match self.begin_message(&mut control, change, now) {
                        Ok((None, kept)) => (index, Ok(kept)),
                        Ok((Some(change), kept)) => {
                            work.under_way = Some((index, change, kept));
                            continue;
                        }
                        Err(fault) => (index, Err(fault)),
                    }
                }
            };
            match done {
                Ok(kept) => work.released.extend(kept),
                Err(fault) => work.refused.push((index, fault)),
            }
        }
        if work.under_way.is_some() {
            unpublished.get_or_insert_with(|| Unpublished::begin(self));
        }
        true
    }

    /// Applies a change as a whole.
    pub(crate) fn apply(
        &self,
        control: &mut Control,
        wanted: flow::FlowMod,
        now: Nanos,
    ) -> Result<(), Fault> {
        let Some(mut change) = self.begin(control, wanted, now)? else { return Ok(()) };
        while !change.chosen.is_done() {
            self.go_on(control, &mut change, &mut usize::MAX.clone(), now)?;
        }
        Ok(())
    }

    /// Makes an addition, or begins what may be about many entries.
    pub(super) fn begin(
        &self,
        control: &mut Control,
        wanted: flow::FlowMod,
        now: Nanos,
    ) -> Result<Option<Change>, Fault> {
        if wanted.command == FlowCommand::Add {
            self.add(control, wanted, now)?;
            return Ok(None);
        }
        let chosen = control.pipeline.choose(&wanted).map_err(translate::flow_mod_fault)?;
        Ok(Some(Change { wanted, chosen }))
    }

    fn go_on(
        &self,
        control: &mut Control,
        change: &mut Change,
        room: &mut usize,
        now: Nanos,
    ) -> Result<(), Fault> {
        let Change { wanted, chosen } = change;
        let mut most = *room;
        let weight = wanted.instructions.weight();
        if weight > 0 && matches!(wanted.command, FlowCommand::Modify | FlowCommand::ModifyStrict) {
            most = most.min(HEAVY);
            if !control.takes(weight * most as u64) {
                let what = "the node's memory has no room for so many actions of this switch";
                return Err(Fault::new(ErrorCode::FlowModFailedTableFull, what));
            }
        }
        let portion = control.pipeline.go_on(wanted, chosen, most, now);
        *room -= portion.looked_at.min(*room);
        self.touch(control);
        self.record_modified(control, &portion.modified, now);
        self.after_removal(control, &portion.removed);
        portion.failed.map_or(Ok(()), |error| Err(translate::flow_mod_fault(error)))
    }
}
