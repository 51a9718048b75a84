//! All entries of one table that share a mask: their packing, their index, their priorities.

use crate::store::{Full, Index, Plan, RecordId, Store};
use std::collections::BTreeMap;
use std::sync::Arc;
use wire::Key;

/// One mask's entries.
pub(crate) struct Tuple {
    pub plan: Arc<Plan>,
    pub index: Index,
    /// Entries per priority.
    priorities: BTreeMap<u16, u32>,
    /// Entries, those under a higher one with the same match included.
    pub rules: u32,
    /// Key of its first entry, and bits in which any later one differed.
    first: Key,
    varying: Key,
}

impl Tuple {
    pub fn new(mask: &Key) -> Self {
        Self {
            plan: Arc::new(Plan::new(mask)),
            index: Index::default(),
            priorities: BTreeMap::new(),
            rules: 0,
            first: Key::default(),
            varying: Key::default(),
        }
    }

    /// Highest and lowest priority of its entries.
    pub fn priorities(&self) -> (u16, u16) {
        let end = |entry: Option<(&u16, &u32)>| entry.map_or(0, |(&priority, _)| priority);
        (end(self.priorities.last_key_value()), end(self.priorities.first_key_value()))
    }

    /// The first entry's key, bits in which entries differ left out.
    pub fn common(&self) -> Key {
        Key(std::array::from_fn(|i: usize| {
            self.first.0[i % wire::WORDS] & !self.varying.0[i % wire::WORDS]
        }))
    }

    /// Bits in which entries differ, or did once.
    pub fn varying(&self) -> &Key {
        &self.varying
    }

    /// One entry more. Returns whether the highest or lowest priority, or the bits in common, changed.
    pub fn joins(&mut self, priority: u16, key: &Key) -> bool {
        let key = key.masked(self.plan.mask());
        if self.rules == 0 {
            (self.first, self.varying) = (key, Key::default());
        }
        let varying = self.varying;
        (0..wire::WORDS).for_each(|i| self.varying.0[i] |= key.0[i] ^ self.first.0[i]);
        let before = (self.rules > 0).then(|| self.priorities());
        self.rules += 1;
        *self.priorities.entry(priority).or_default() += 1;
        before != Some(self.priorities()) || varying != self.varying
    }

    /// One entry less. Returns whether the highest or lowest priority changed.
    pub fn leaves(&mut self, priority: u16) -> bool {
        let before = self.priorities();
        self.rules -= 1;
        if let Some(count) = self.priorities.get_mut(&priority) {
            *count -= 1;
            if *count == 0 {
                self.priorities.remove(&priority);
            }
        }
        before != self.priorities()
    }

    /// The entry for `packed` that the next snapshot will see.
    pub fn find(&self, store: &Store, packed: &[u64], hash: u64) -> Option<RecordId> {
        self.index.view().candidates(hash).find(|&id| {
            store
                .arena
                .view()
                .get(id)
                .is_some_and(|record| record.is_visible(store.next) && record.has_key(packed))
        })
    }

    /// Packs `key` and hashes that.
    pub fn pack(&self, store: &Store, key: &Key) -> ([u64; wire::WORDS], u64) {
        let packed = self.plan.pack(key);
        (packed, store.secret.hash(&packed[..self.plan.words()]))
    }

    /// The packed key of a record of this mask, and its hash.
    pub fn key_of(&self, store: &Store, id: RecordId) -> ([u64; wire::WORDS], u64) {
        packed_key(store, self.plan.words(), id)
    }

    /// Makes a record findable. Returns whether views of the index are outdated.
    ///
    /// # Errors
    /// [`Full`]: too many hash collisions.
    pub fn insert(&mut self, store: &Store, hash: u64, id: RecordId) -> Result<bool, Full> {
        let words = self.plan.words();
        self.index.insert(hash, id, |other| {
            let lives = store.arena.record(other).is_visible(store.next);
            lives.then(|| packed_key(store, words, other).1)
        })
    }

    /// The entries that the next snapshot will see.
    pub fn visible(&self, store: &Store) -> impl Iterator<Item = RecordId> {
        self.index.view().elements().filter(|&id| store.arena.record(id).is_visible(store.next))
    }
}

/// The whole key of a record.
pub(crate) fn key_of(store: &Store, tuple: &Tuple, id: RecordId) -> Key {
    tuple.plan.unpack(&tuple.key_of(store, id).0)
}

fn packed_key(store: &Store, words: usize, id: RecordId) -> ([u64; wire::WORDS], u64) {
    let record = store.arena.record(id);
    let packed = std::array::from_fn(|i| if i < words { record.key_word(i) } else { 0 });
    (packed, store.secret.hash(&packed[..words]))
}
