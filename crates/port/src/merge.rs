//! Segments that came one by one are put together again, before a switch passes each: those of senders that had no door for the whole, as suiro's
//! own at the other end of a cable behind MPLS or PBB, and a guest's kernel with GRE before a TAP.

use crate::batch::{BodyAt, Slot};
use wire::Gso;
use wire::merge::{self, Train};

/// Puts frames together; what it works in.
#[derive(Default)]
pub(crate) struct Merger {
    first: Vec<u8>,
    next: Vec<u8>,
}

impl Merger {
    /// Puts frames that follow each other into the first of them; returns how many slots have frames now, which are the first ones.
    pub(crate) fn merge(&mut self, slots: &mut [Slot]) -> usize {
        let (mut kept, mut at) = (0, 0);
        while at < slots.len() {
            let count = self.begin(&mut slots[at..]);
            slots.swap(kept, at);
            kept += 1;
            at += count;
        }
        kept
    }

    /// How many of these frames are in the first one now.
    fn begin(&mut self, slots: &mut [Slot]) -> usize {
        let Some((first, rest)) = slots.split_first_mut() else { return 0 };
        let has_next = rest.first().is_some_and(|next| look_alike(first, next));
        if !has_next || !merge::may_begin(first.head.bytes()) {
            return 1;
        }
        copy(first, &mut self.first);
        let Some(mut train) = Train::begin(&self.first) else { return 1 };
        let mut count = 1;
        for next in rest {
            if !look_alike(first, next) {
                break;
            }
            copy(next, &mut self.next);
            if !train.precedes(&self.first, &self.next) {
                break;
            }
            let at = train.len() - first.head.bytes().len();
            let payload = &self.next[train.add(&self.next)..];
            first.buffer[at..at + payload.len()].copy_from_slice(payload);
            count += 1;
        }
        if count > 1 {
            first.offload = train.finish(first.head.bytes_mut());
            first.body = BodyAt::Slot((train.len() - first.head.bytes().len()) as u32);
        }
        count
    }
}

/// A look at what costs nothing to look at.
fn look_alike(first: &Slot, next: &Slot) -> bool {
    const ETHERNET: usize = 14;
    let is_whole = |slot: &Slot| slot.offload.gso == Gso::None && !slot.body.is_empty();
    is_whole(first)
        && is_whole(next)
        && first.head.bytes()[..ETHERNET] == next.head.bytes()[..ETHERNET]
}

fn copy(slot: &Slot, into: &mut Vec<u8>) {
    into.clear();
    into.extend_from_slice(slot.head.bytes());
    into.extend_from_slice(&slot.buffer[..slot.body.len()]);
}
