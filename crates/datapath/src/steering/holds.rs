//! Frames that wait for their unit's move, in rings that a worker has to itself.

use super::record::Label;
use super::record::Writer;
use super::units::NOWHERE;
use super::{GIVE_UP_NS, Handover, Inlet, NO_HOLD};
use crate::id::SwitchIx;
use crate::sys::ring::ring;
use flow::Nanos;
use place::UnitId;

/// A ring of its own, lent to one unit at a time.
pub(crate) struct Hold {
    pub(super) writer: Writer,
    pub(crate) inlet: Inlet,
    unit: Option<(SwitchIx, UnitId)>,
    since: Nanos,
}

impl Hold {
    pub(super) fn new(bytes: usize) -> Self {
        let (writer, reader) = ring(bytes);
        Self { writer, inlet: Inlet { reader, round: None }, unit: None, since: Nanos::default() }
    }

    pub(super) fn is_taken(&self) -> bool {
        self.unit.is_some()
    }

    pub(super) fn is_of(&self, ix: SwitchIx) -> bool {
        self.unit.is_some_and(|(of, _)| of == ix)
    }

    pub(super) fn take(&mut self, ix: SwitchIx, unit: UnitId, now: Nanos) {
        (self.unit, self.since) = (Some((ix, unit)), now);
    }
}

/// What to do with a hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Release {
    /// Nothing, yet or any more.
    Nothing,
    /// Its frames are this worker's: pass them, and come again.
    Pass,
}

impl Handover {
    /// The place of a hold that no unit has.
    pub(super) fn free_hold(&self) -> Option<usize> {
        self.holds.iter().position(|hold| !hold.is_taken())
    }

    /// Moves the hold's unit if it may go now, and gives its frames to its place.
    pub(crate) fn release(&mut self, hold: usize, now: Nanos) -> Release {
        let Some((ix, id)) = self.holds[hold].unit else { return Release::Nothing };
        let at = ix.0 as usize;
        let Some(mut switch) = self.switches.get_mut(at).and_then(Option::take) else {
            self.holds[hold].unit = None;
            return Release::Nothing;
        };
        let unit = switch.units[id.0 as usize];
        let wish = switch.shared.wish(id);
        let wanted = wish.place().filter(|_| unit.given_up != Some(wish)).unwrap_or(unit.place);
        let mut release = Release::Nothing;
        if wanted != unit.place && self.is_through(unit.place, unit.last) {
            self.settle_at(&mut switch, id, wanted, now);
        } else if wanted != unit.place && now.since(self.holds[hold].since) > GIVE_UP_NS {
            switch.units[id.0 as usize].given_up = Some(wish);
        }
        let unit = &mut switch.units[id.0 as usize];
        let may_go = wanted == unit.place || unit.given_up == Some(wish);
        if may_go {
            self.holds[hold].writer.publish();
            let is_left = self.holds[hold].inlet.reader.look();
            match usize::from(unit.place) {
                _ if !is_left => {
                    unit.hold = NO_HOLD;
                    self.holds[hold].unit = None;
                }
                _ if unit.place == self.me => {
                    (unit.last, switch.last[usize::from(self.me)]) =
                        (self.passes + 1, self.passes + 1);
                    release = Release::Pass;
                }
                to => {
                    let given = self.give(hold, to);
                    if let Some(writer) = self.out[to].as_ref().filter(|_| given > 0) {
                        (unit.last, switch.last[to]) = (writer.position(), writer.position());
                    }
                    let counters = &switch.shared.workers[usize::from(self.me)];
                    counters.given[to].frames.add(given);
                    counters.units[id.0 as usize].frames.add(given);
                    self.tell(1 << (to % 64));
                }
            }
        }
        debug_assert!(
            switch.units[id.0 as usize].place != NOWHERE,
            "a unit without a place is never held"
        );
        self.switches[at] = Some(switch);
        release
    }

    /// Copies what fits from a hold to a ring; how many frames did.
    fn give(&mut self, hold: usize, to: usize) -> u64 {
        let Some(writer) = &mut self.out[to] else { return 0 };
        let reader = &mut self.holds[hold].inlet.reader;
        let mut records = reader.records();
        let (mut end, mut given) = (records.position(), 0);
        while let Some((words, bytes)) = records.next() {
            let Some(room) = writer.reserve(words, bytes.len()) else { break };
            room.copy_from_slice(bytes);
            writer.commit();
            end = records.position();
            given += 1;
        }
        reader.release(end);
        given
    }

    /// Frames of a hold that this worker passed count as given to itself.
    pub(crate) fn count_passed(&self, label: &Label, frames: u64, bytes: u64) {
        let Some(Some(switch)) = self.switches.get(label.ix.0 as usize) else { return };
        let counters = &switch.shared.workers[usize::from(self.me)];
        counters.given[usize::from(self.me)].frames.add(frames);
        let unit = &counters.units[label.unit.0 as usize];
        unit.frames.add(frames);
        unit.bytes.add(bytes);
    }

    /// Frames of another worker that this one took.
    pub(crate) fn count_taken(&self, from: usize, label: &Label, frames: u64) {
        let Some(Some(switch)) = self.switches.get(label.ix.0 as usize) else { return };
        switch.shared.workers[usize::from(self.me)].taken[from].frames.add(frames);
    }
}
