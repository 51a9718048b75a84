//! Tunnel ids: which are free, and which nobody may have yet because a node might still send on them.
//!
//! An id is in one of three states: free, used by one circuit, quarantined. It is freed when every node that had it has confirmed a part
//! without it, and a time more. A node that cannot be asked keeps its ids out of use until it is back or forgotten.

use crate::words::Name;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The first id that is given out. Chosen: ids below stay for what the operator makes by hand.
pub const FIRST: u32 = 0x100;
/// The last: VNIs have 24 bits (RFC 7348), and the odd one above it is its probes'.
pub const LAST: u32 = 0xff_fffe;
/// Seconds that an id stays out of use after the last node has confirmed. Chosen: frames in queues and delay lines are long gone.
pub const QUARANTINE_S: u64 = 120;

/// Ids that are out of use.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Quarantine {
    ids: BTreeMap<u32, Held>,
}

/// Why an id is out of use.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Held {
    /// Nodes that have not confirmed yet.
    waits_for: BTreeSet<Name>,
    /// When the last one has: seconds of the caller's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since: Option<u64>,
}

impl Quarantine {
    /// Takes an id out of use that these nodes had rules of.
    pub fn hold(&mut self, id: u32, nodes: impl IntoIterator<Item = Name>, now_s: u64) {
        let waits_for: BTreeSet<_> = nodes.into_iter().collect();
        let since = waits_for.is_empty().then_some(now_s);
        self.ids.insert(id, Held { waits_for, since });
    }

    /// A node has confirmed that it has no rule of that id any more.
    pub fn confirm(&mut self, id: u32, node: &Name, now_s: u64) {
        if let Some(held) = self.ids.get_mut(&id) {
            held.waits_for.remove(node);
            if held.waits_for.is_empty() {
                held.since.get_or_insert(now_s);
            }
        }
    }

    /// A node has been switched off for good: nothing waits for it any more.
    pub fn forget(&mut self, node: &Name, now_s: u64) {
        let ids: Vec<u32> = self.ids.keys().copied().collect();
        ids.into_iter().for_each(|id| self.confirm(id, node, now_s));
    }

    /// Ids whose time is over; they are free from now on.
    pub fn release(&mut self, now_s: u64) -> Vec<u32> {
        let over = |held: &Held| held.since.is_some_and(|since| now_s >= since + QUARANTINE_S);
        let free: Vec<u32> =
            self.ids.iter().filter(|(_, held)| over(held)).map(|(id, _)| *id).collect();
        free.iter().for_each(|id| drop(self.ids.remove(id)));
        free
    }

    /// Whether an id is out of use.
    pub fn holds(&self, id: u32) -> bool {
        self.ids.contains_key(&id)
    }

    /// Ids that wait for a node, for whoever asks why they are not free.
    pub fn waits_for<'a>(&'a self, node: &'a Name) -> impl Iterator<Item = u32> + 'a {
        let of = move |held: &Held| held.waits_for.contains(node);
        self.ids.iter().filter(move |(_, held)| of(held)).map(|(id, _)| *id)
    }
}

/// Finds free even ids, cyclically behind the last one that was given out: an id comes back as late as it can.
pub fn free(after: u32, taken: impl Fn(u32) -> bool) -> impl Iterator<Item = u32> {
    let count = (LAST - FIRST) / 2 + 1;
    let first = if (FIRST..LAST).contains(&after) { (after - FIRST) / 2 + 1 } else { 0 };
    (0..count).map(move |n| FIRST + (first + n) % count * 2).filter(move |id| !taken(*id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    #[test]
    fn ids_are_even_come_in_turn_and_begin_again_at_the_end() {
        let taken = [FIRST + 2];
        let ids: Vec<u32> = free(FIRST, |id| taken.contains(&id)).take(2).collect();
        assert_eq!(ids, [FIRST + 4, FIRST + 6]);
        assert_eq!(free(LAST, |_| false).next(), Some(FIRST));
        assert_eq!(free(LAST - 2, |_| false).next(), Some(LAST));
        assert_eq!(free(0, |_| false).next(), Some(FIRST));
        assert!(free(7000, |_| true).next().is_none());
        assert!(free(0, |_| false).all(|id| id % 2 == 0 && id <= LAST));
    }

    #[test]
    fn an_id_is_free_when_each_node_has_confirmed_and_the_time_is_over() {
        let mut held = Quarantine::default();
        held.hold(256, [name("t1"), name("o1")], 10);
        held.confirm(256, &name("t1"), 11);
        assert!(held.release(100_000).is_empty(), "o1 might still send");
        assert_eq!(held.waits_for(&name("o1")).collect::<Vec<_>>(), [256]);
        held.confirm(256, &name("o1"), 100_000);
        held.confirm(256, &name("o1"), 100_050);
        assert!(held.release(100_000 + QUARANTINE_S - 1).is_empty());
        assert_eq!(held.release(100_000 + QUARANTINE_S), [256]);
        assert!(!held.holds(256));
    }

    #[test]
    fn a_node_that_is_forgotten_holds_nothing_back() {
        let mut held = Quarantine::default();
        held.hold(256, [name("t1")], 0);
        held.forget(&name("t1"), 5);
        assert_eq!(held.release(5 + QUARANTINE_S), [256]);
    }
}
