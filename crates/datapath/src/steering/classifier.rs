//! Which unit a frame belongs to: that of the entry of the highest priority that selects it, or that of its flow group.
//!
//! Made by the control thread and never changed. A frame costs one look-up for each mask whose highest priority is above what was found
//! so far, at most [`MASKS`], however many entries there are. Hashes are keyed: nobody outside can aim at a bucket or a group.

use super::options::SteeringEntry;
use place::steering::{Field, FlowKey, MASKS, Target, Unmatched};
use place::{UnitId, VmId};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};
use wire::eth_type;

/// Units 0..GROUPS_MAX are flow groups.
pub(crate) const GROUPS_MAX: u32 = place::steering::GROUPS_MAX;
/// Then one for each value of the flow control field.
pub(crate) const FCF_FIRST: u32 = GROUPS_MAX;
/// Then those of entries.
pub(crate) const ENTRY_FIRST: u32 = FCF_FIRST + 256;
/// Words of a key that tell flows apart: addresses, ports, protocol, tunnel ([`FlowKey::flow`]).
const FLOW_WORDS: usize = 6;

/// What is known of a unit beforehand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct UnitFacts {
    pub(crate) vm: Option<VmId>,
    pub(crate) is_priority: bool,
    pub(crate) wants_own_core: bool,
    /// It is chosen by hash, whatever the policy is.
    pub(crate) is_hashed: bool,
}

/// The entries of one mask.
struct Mask {
    mask: FlowKey,
    highest: u16,
    /// Of entries of the same key, only the one of the highest priority can ever be found.
    entries: HashMap<FlowKey, (u16, UnitId), Keyed>,
}

/// All entries of a switch, and its groups.
pub(crate) struct Classifier {
    /// By falling highest priority.
    masks: Vec<Mask>,
    unmatched: Unmatched,
    is_fcf: bool,
    keyed: Keyed,
    /// By unit, from ENTRY_FIRST on.
    facts: Vec<UnitFacts>,
}

/// The entries have more masks than a frame may cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TooManyMasks;

impl Classifier {
    pub(crate) fn new(
        entries: &[SteeringEntry],
        (unmatched, is_fcf): (Unmatched, bool),
        secret: [u64; 2],
    ) -> Result<Self, TooManyMasks> {
        let keyed = Keyed(secret);
        let mut masks: HashMap<FlowKey, Mask> = HashMap::new();
        let mut facts = Vec::new();
        for entry in entries {
            let made =
                || Mask { mask: entry.mask, highest: 0, entries: HashMap::with_hasher(keyed) };
            let mask = masks.entry(entry.mask).or_insert_with(made);
            mask.highest = mask.highest.max(entry.priority);
            let slot = mask
                .entries
                .entry(entry.key.and(&entry.mask))
                .or_insert((entry.priority, entry.unit));
            if slot.0 < entry.priority {
                *slot = (entry.priority, entry.unit);
            }
            let at = (entry.unit.0 - ENTRY_FIRST) as usize;
            facts.resize(facts.len().max(at + 1), UnitFacts::default());
            facts[at] = UnitFacts {
                vm: entry.vm,
                is_priority: entry.is_priority,
                wants_own_core: entry.wants_own_core,
                is_hashed: entry.target == Target::Hash,
            };
        }
        if masks.len() > MASKS {
            return Err(TooManyMasks);
        }
        let mut masks: Vec<Mask> = masks.into_values().collect();
        masks.sort_by_key(|mask| std::cmp::Reverse(mask.highest));
        Ok(Self { masks, unmatched, is_fcf, keyed, facts })
    }

    /// The unit of a frame of that key, and the hash of its flow. `None`: it stays where it is.
    pub(crate) fn unit(&self, key: &FlowKey) -> Option<(UnitId, u32)> {
        let found = self.entry(key);
        if found.is_none() && self.unmatched == Unmatched::Stay && !self.is_fcf {
            return None;
        }
        let hash = self.hash(key);
        let unit = found.or_else(|| self.missed(key, hash as u32))?;
        Some((unit, (hash >> 32) as u32))
    }

    /// As [`Classifier::unit`] of a frame that no entry selects.
    pub(crate) fn missed_unit(&self, key: &FlowKey) -> Option<UnitId> {
        self.missed(key, self.hash(key) as u32)
    }

    fn hash(&self, key: &FlowKey) -> u64 {
        self.keyed.hash_words(&key.flow().0[..FLOW_WORDS])
    }

    fn entry(&self, key: &FlowKey) -> Option<UnitId> {
        let mut found: Option<(u16, UnitId)> = None;
        for mask in &self.masks {
            if found.is_some_and(|(priority, _)| priority >= mask.highest) {
                break;
            }
            let here = mask.entries.get(&key.and(&mask.mask)).copied();
            found = found
                .into_iter()
                .chain(here)
                .max_by_key(|&(priority, unit)| (priority, std::cmp::Reverse(unit)));
        }
        found.map(|(_, unit)| unit)
    }

    fn missed(&self, key: &FlowKey, hash: u32) -> Option<UnitId> {
        let fcf = key.get(Field::OuterTos) as u32;
        match self.unmatched {
            _ if !has_ip(key) => None, // nothing tells its flows apart
            _ if self.is_fcf && fcf >> 1 != 0 => Some(UnitId(FCF_FIRST + fcf)),
            Unmatched::Groups(groups) => Some(UnitId(hash & (u32::from(groups) - 1))),
            Unmatched::Stay => None,
        }
    }

    /// What is known of a unit.
    pub(crate) fn facts(&self, unit: UnitId) -> UnitFacts {
        let fcf = unit.0.wrapping_sub(FCF_FIRST);
        match unit.0.checked_sub(ENTRY_FIRST) {
            Some(at) => self.facts.get(at as usize).copied().unwrap_or_default(),
            None if unit.0 < FCF_FIRST => UnitFacts::default(),
            None => UnitFacts {
                vm: VmId::new((fcf >> 1) as u16),
                is_priority: fcf & 1 == 1,
                ..UnitFacts::default()
            },
        }
    }
}

fn has_ip(key: &FlowKey) -> bool {
    let (ether_type, tunnel) = (key.get(Field::DlType), key.get(Field::TunId));
    tunnel != 0 || ether_type == eth_type::IPV4.into() || ether_type == eth_type::IPV6.into()
}

/// Multiply and fold, under two secrets.
#[derive(Clone, Copy)]
struct Keyed([u64; 2]);

impl Keyed {
    fn hash_words(self, words: &[u64]) -> u64 {
        let mut state = self.build_hasher();
        words.iter().for_each(|&word| state.write_u64(word));
        state.finish()
    }
}

impl BuildHasher for Keyed {
    type Hasher = Folded;

    fn build_hasher(&self) -> Folded {
        Folded { state: self.0[0], secret: self.0[1] | 1 }
    }
}

struct Folded {
    state: u64,
    secret: u64,
}

fn fold(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    product as u64 ^ (product >> 64) as u64
}

impl Hasher for Folded {
    fn write(&mut self, bytes: &[u8]) {
        for word in bytes.chunks(8) {
            let mut padded = [0; 8];
            padded[..word.len()].copy_from_slice(word);
            self.write_u64(u64::from_ne_bytes(padded));
        }
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        // The rotation keeps a word that folds to 0 from wiping out what came before it.
        self.state = fold(self.state ^ word, self.secret) ^ self.state.rotate_left(23);
    }

    #[inline]
    fn finish(&self) -> u64 {
        fold(self.state, 0x9e37_79b9_7f4a_7c15)
    }
}

#[cfg(test)]
mod tests;
