//! One entry, compared directly.

use super::{Found, Inquiry};
use super::{Tuple, key_of};
use crate::store::RecordId;
use crate::store::Store;
use wire::{Key, WORDS};

/// A mask and a key, word by word, where the mask has bits.
pub(crate) struct Words(Box<[(u8, u64, u64)]>);

impl Words {
    /// `key` must be masked.
    pub fn new(mask: &Key, key: &Key) -> Self {
        Self(
            (0..WORDS)
                .filter(|&i| mask.0[i] != 0)
                .map(|i| (i as u8, mask.0[i], key.0[i]))
                .collect(),
        )
    }

    /// Whether `key` agrees on every bit of the mask.
    pub fn matches(&self, key: &Key) -> bool {
        self.0
            .iter()
            .fold(0, |differ, &(i, mask, value)| differ | key.0[i as usize % WORDS] & mask ^ value)
            == 0
    }
}

/// One entry.
pub(crate) struct Single {
    words: Words,
    record: RecordId,
    key: Key,
    mask: Key,
}

impl Single {
    /// The only entry of `tuple` that packets can reach; `None` if there are more.
    pub fn only(store: &Store, tuple: &Tuple) -> Option<Self> {
        let mut visible = tuple.visible(store);
        let record = visible.next()?;
        if visible.next().is_some() {
            return None;
        }
        let (key, mask) = (key_of(store, tuple, record), *tuple.plan.mask());
        Some(Self { words: Words::new(&mask, &key), record, key, mask })
    }

    /// Searches for each key.
    pub fn search(&self, keys: &[&Key], found: &mut Found) -> u32 {
        for (slot, key) in found.iter_mut().zip(keys) {
            *slot = if self.words.matches(key) { self.record } else { RecordId::NONE };
        }
        keys.len() as u32
    }

    /// What every packet finds that `of` is about: see [`super::TableView::search_known`].
    pub fn search_known(&self, of: &mut Inquiry<'_>) -> Option<RecordId> {
        let is_known = of.ask(&self.mask);
        // One bit that differs is enough.
        if of.differs(&self.key, &self.mask) {
            return Some(RecordId::NONE);
        }
        is_known.map(|()| self.record)
    }

    /// Searches for each key for which nothing was found.
    pub fn search_missing(&self, keys: &[&Key], found: &mut Found) -> u32 {
        let mut probes = 0;
        for (slot, key) in found.iter_mut().zip(keys).filter(|(slot, _)| !slot.is_some()) {
            probes += 1;
            if self.words.matches(key) {
                *slot = self.record;
            }
        }
        probes
    }
}
