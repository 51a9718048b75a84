//! The entries that no packet reaches, as another one with the same match has a higher priority (the *head*).
//!
//! **Invariants.** A head is a key here only while it covers some entry. Every operation costs the logarithm of what one
//! head covers; a head that covers nothing costs no memory.

use crate::store::RecordId;
use std::collections::{BTreeMap, HashMap};

/// Of each head the entries that it covers, by priority.
#[derive(Default)]
pub(super) struct Covered(HashMap<RecordId, BTreeMap<u16, RecordId>>);

impl Covered {
    /// What `head` covers, highest priority first.
    pub fn below(&self, head: RecordId) -> impl Iterator<Item = RecordId> + '_ {
        self.0.get(&head).into_iter().flat_map(|below| below.values().rev().copied())
    }

    /// The entry of this priority below `head`.
    pub fn at(&self, head: RecordId, priority: u16) -> Option<RecordId> {
        self.0.get(&head)?.get(&priority).copied()
    }

    /// `id` hangs below `head`, in the place of what hung there with its priority.
    pub fn put(&mut self, head: RecordId, priority: u16, id: RecordId) {
        self.0.entry(head).or_default().insert(priority, id);
    }

    /// Nothing of this priority hangs below `head` any more.
    pub fn remove(&mut self, head: RecordId, priority: u16) {
        if let Some(below) = self.0.get_mut(&head) {
            below.remove(&priority);
            if below.is_empty() {
                self.0.remove(&head);
            }
        }
    }

    /// The highest entry below `head` is no longer covered.
    pub fn uncover(&mut self, head: RecordId) -> Option<RecordId> {
        let (&priority, &id) = self.0.get(&head)?.last_key_value()?;
        self.remove(head, priority);
        Some(id)
    }

    /// What `old` covered is covered by `new`.
    pub fn pass(&mut self, old: RecordId, new: RecordId) {
        if let Some(below) = self.0.remove(&old) {
            self.0.insert(new, below);
        }
    }

    /// Bytes in use, about.
    pub fn bytes(&self) -> usize {
        /// A head's place in the map, and its first node.
        const HEAD: usize = 150;
        /// An entry's part of a node that is two thirds full.
        const ENTRY: usize = 12;
        self.0.values().map(|below| HEAD + below.len() * ENTRY).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Heads 0..3 with what they cover, in order of priority.
    type Model = Vec<Vec<(u16, RecordId)>>;

    fn apply(covered: &mut Covered, model: &mut Model, (what, head, priority): (u8, usize, u16)) {
        let (id, other) = (RecordId(head as u32), (head + 1) % 3);
        let entry = RecordId(100 + u32::from(priority));
        match what {
            0..5 => {
                covered.put(id, priority, entry);
                model[head].retain(|&(at, _)| at != priority);
                model[head].push((priority, entry));
                model[head].sort_unstable();
            }
            5 => {
                covered.remove(id, priority);
                model[head].retain(|&(at, _)| at != priority);
            }
            6 => assert_eq!(covered.uncover(id), model[head].pop().map(|(_, entry)| entry)),
            _ if model[other].is_empty() => {
                covered.pass(id, RecordId(other as u32));
                model.swap(head, other);
            }
            _ => {}
        }
    }

    proptest! {
        #[test]
        fn what_a_head_covers_is_a_list_by_priority(
            steps in vec((0_u8..8, 0_usize..3, 0_u16..12), 0..200),
        ) {
            let (mut covered, mut model) = (Covered::default(), vec![Vec::new(); 3]);
            for step in steps {
                apply(&mut covered, &mut model, step);
                for (head, below) in model.iter().enumerate() {
                    let id = RecordId(head as u32);
                    prop_assert!(covered.below(id).eq(below.iter().rev().map(|&(_, id)| id)));
                    for priority in 0..12 {
                        let at = below.iter().find(|&&(at, _)| at == priority);
                        prop_assert_eq!(covered.at(id, priority), at.map(|&(_, id)| id));
                    }
                }
                prop_assert_eq!(covered.0.len(), model.iter().filter(|below| !below.is_empty()).count());
            }
        }
    }
}
