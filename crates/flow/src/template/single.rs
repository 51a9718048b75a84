//! One entry, compared directly.

use super::Found;
use crate::pipeline::Store;
use crate::store::RecordId;
use crate::table::{Tuple, key_of};
use wire::{Key, WORDS};

/// One entry's mask and key, word by word, where the mask has bits.
pub(crate) struct Single {
    words: Box<[(u8, u64, u64)]>,
    record: RecordId,
}

impl Single {
    /// The only entry of `tuple` that packets can reach; `None` if there are more.
    pub fn only(store: &Store, tuple: &Tuple) -> Option<Self> {
        let mut visible = tuple.visible(store);
        let record = visible.next()?;
        if visible.next().is_some() {
            return None;
        }
        let (mask, key) = (tuple.plan.mask(), key_of(store, tuple, record));
        let words = (0..WORDS).filter(|&i| mask.0[i] != 0).map(|i| (i as u8, mask.0[i], key.0[i])).collect();
        Some(Self { words, record })
    }

    fn matches(&self, key: &Key) -> bool {
        self.words.iter().fold(0, |differ, &(i, mask, value)| differ | key.0[i as usize % WORDS] & mask ^ value) == 0
    }

    /// Searches for each key.
    pub fn search(&self, keys: &[&Key], found: &mut Found) -> u32 {
        for (slot, key) in found.iter_mut().zip(keys) {
            *slot = if self.matches(key) { self.record } else { RecordId::NONE };
        }
        keys.len() as u32
    }

    /// Searches for each key for which nothing was found.
    pub fn search_missing(&self, keys: &[&Key], found: &mut Found) -> u32 {
        let mut probes = 0;
        for (slot, key) in found.iter_mut().zip(keys).filter(|(slot, _)| !slot.is_some()) {
            probes += 1;
            if self.matches(key) {
                *slot = self.record;
            }
        }
        probes
    }
}
