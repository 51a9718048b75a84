//! Frames on their way over vlinks within a pass.
//!
//! A stack of levels: the frames that one call of the pipeline sent over vlinks form a level, which is worked off, with all that
//! follows from it, before the level below goes on. So at most 16 levels exist, and frames of one flow stay in order.

use crate::heads::spare_index;
use crate::id::{PortIx, SwitchIx};
use crate::onward::Past;
use crate::pending::HeadRef;
use flow::PortNo;
use wire::BATCH;

/// Vlinks that a frame may cross in one pass; after that it goes on in a later one ([`crate::onward`]).
pub(crate) const HOPS: u32 = 16;

/// Most vlink hops caused by one received frame. Chosen: a switch with 500 vlinks can flood.
/// Frames beyond it are dropped (`too_many_copies`), so a loop of flooding switches costs its owner no more.
pub(crate) const DELIVERIES: u16 = 512;

/// Most copies of one received frame that all switches behind vlinks send: what one of them makes and the deliveries do not multiply. Chosen: a
/// flood over 500 vlinks, each to a switch of eight ports.
pub(crate) const COPIES_BEHIND: u16 = 4096;

/// One frame that enters a switch by a vlink.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Crossing {
    /// The switch it enters.
    pub(crate) switch: SwitchIx,
    /// By this port.
    pub(crate) into: PortIx,
    /// Of this number.
    pub(crate) in_port: PortNo,
    /// Its head.
    pub(crate) head: HeadRef,
}

/// All of them, and how many each frame of the batch has caused.
pub(crate) struct Crossings {
    stack: Vec<Crossing>,
    caused: [u16; BATCH],
    /// Copies of each frame of the batch that switches behind vlinks have sent.
    copied: [u16; BATCH],
    /// Frames of the batch of which more copies were wanted than may be: what still is to cross of them goes no further.
    cut: [bool; BATCH],
    /// What was before this pass.
    past: [Past; BATCH],
}

impl Default for Crossings {
    fn default() -> Self {
        let stack = Vec::with_capacity(BATCH * usize::from(DELIVERIES));
        Self {
            stack,
            caused: [0; BATCH],
            copied: [0; BATCH],
            cut: [false; BATCH],
            past: [Past::default(); BATCH],
        }
    }
}

impl Crossings {
    /// The frames of the next batch have this past.
    pub(crate) fn set_past(&mut self, past: impl Iterator<Item = Past>) {
        self.past.iter_mut().zip(past).for_each(|(to, past)| *to = past);
    }

    /// What was before this pass of the batch's frame `origin`.
    pub(crate) fn past(&self, origin: u8) -> Past {
        self.past[usize::from(origin)]
    }

    /// A new batch begins, each of whose frames has crossed `hops` vlinks.
    pub(crate) fn restart(&mut self, hops: u32) {
        self.stack.clear();
        (self.caused, self.copied) = ([hops as u16; BATCH], [0; BATCH]);
        self.cut = [false; BATCH];
    }

    /// Takes up to `copies` of the batch's frame `origin` out of what all switches behind vlinks may send of it; how many that are.
    pub(crate) fn pay(&mut self, origin: u8, copies: usize) -> usize {
        let copied = &mut self.copied[usize::from(origin)];
        let paid = copies.min(usize::from(COPIES_BEHIND - *copied));
        *copied += paid as u16;
        paid
    }

    /// No more copies of the batch's frame `origin`, not even those that are on their way: else each of them would be taken through its switch in vain.
    pub(crate) fn cut(&mut self, origin: u8) {
        self.cut[usize::from(origin)] = true;
    }

    /// Whether there are to be no more copies of it.
    pub(crate) fn is_cut(&self, origin: u8) -> bool {
        self.cut[usize::from(origin)]
    }

    /// Counts a delivery to the batch's frame `origin`; false when it has caused enough.
    pub(crate) fn allow(&mut self, origin: u8) -> bool {
        let caused = &mut self.caused[usize::from(origin)];
        let allowed = *caused < DELIVERIES;
        *caused += u16::from(allowed);
        allowed
    }

    /// Adds one to the topmost level.
    pub(crate) fn push(&mut self, crossing: Crossing) {
        self.stack.push(crossing);
    }

    /// Height of the stack: where the next level begins.
    pub(crate) fn height(&self) -> usize {
        self.stack.len()
    }

    /// The one at this place.
    pub(crate) fn at(&self, place: usize) -> &Crossing {
        &self.stack[place]
    }

    /// Those in this range of places.
    pub(crate) fn run_at(&self, places: std::ops::Range<usize>) -> &[Crossing] {
        &self.stack[places]
    }

    /// Names another head for the one at this place.
    pub(crate) fn set_head(&mut self, place: usize, head: HeadRef) {
        self.stack[place].head = head;
    }

    /// Brings together what enters the same switch in the level from `from` on; frames of one vlink keep their order, since
    /// their heads were taken in that order.
    pub(crate) fn group(&mut self, from: usize) {
        let level = &mut self.stack[from..];
        if level.windows(2).any(|pair| pair[0].switch != pair[1].switch) {
            level.sort_unstable();
        }
    }

    /// End of the run from `from` on, within `to`, that enters one switch, `limit` at most.
    pub(crate) fn run(&self, from: usize, to: usize, limit: usize) -> usize {
        let switch = self.stack[from].switch;
        let same = self.stack[from..to]
            .iter()
            .take(limit)
            .take_while(|crossing| crossing.switch == switch)
            .count();
        from + same
    }

    /// The level from `from` on is done.
    pub(crate) fn truncate(&mut self, from: usize) {
        self.stack.truncate(from);
    }

    /// The highest spare head that is still to cross.
    pub(crate) fn highest_spare(&self) -> Option<usize> {
        self.stack.iter().filter_map(|crossing| spare_index(crossing.head)).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crossing(switch: u32, head: u16) -> Crossing {
        let (into, in_port) = (PortIx(switch), 1);
        Crossing { switch: SwitchIx(switch), into, in_port, head: HeadRef(head) }
    }

    #[test]
    fn a_level_is_grouped_by_switch_and_cut_into_runs() {
        let mut crossings = Crossings::default();
        crossings.push(crossing(9, 0)); // of a level below
        for head in 0..6 {
            crossings.push(crossing(u32::from(head) % 2, head));
        }
        crossings.group(1);
        let heads: Vec<u16> =
            crossings.run_at(1..7).iter().map(|crossing| crossing.head.0).collect();
        assert_eq!(heads, [0, 2, 4, 1, 3, 5]);
        assert_eq!(
            (crossings.run(1, 7, 32), crossings.run(1, 7, 2), crossings.run(4, 7, 32)),
            (4, 3, 7)
        );
        crossings.truncate(1);
        assert_eq!((crossings.height(), *crossings.at(0)), (1, crossing(9, 0)));
    }

    #[test]
    fn what_all_switches_behind_vlinks_send_of_a_frame_has_one_bound() {
        let mut crossings = Crossings::default();
        let sent: usize = (0..512).map(|_| crossings.pay(3, 512)).sum();
        assert_eq!(sent, usize::from(COPIES_BEHIND));
        assert_eq!(crossings.pay(4, 7), 7, "another frame's");
        crossings.restart(0);
        assert_eq!(crossings.pay(3, 1), 1);
    }

    #[test]
    fn a_frame_causes_so_many_deliveries_whatever_its_neighbours_do() {
        let mut crossings = Crossings::default();
        let allowed = (0..1000).filter(|_| crossings.allow(3)).count();
        assert_eq!(allowed, usize::from(DELIVERIES));
        assert!(crossings.allow(4));
        crossings.restart(0);
        assert!(crossings.allow(3));
    }
}
