//! The entries of an interface.
//!
//! A change of entries gives flows other units, and so perhaps other cores. It therefore has two steps: the new entries are *coming* and
//! the old ones *going*, and the program lets each flow change over when its old unit has nothing under way; the change is *settled* when
//! that is true of every unit. One change at a time.

use super::abi::{
    BY_HASH, COMING, ENTRY_FIRST, FLOW_WORDS, GOING, IPV4_WORDS, IS_PRIORITY, MASKS, REASON_SHIFT,
    SHAPE_ALL, SHAPE_FLOW, SHAPE_IPV4, SteerConfig, SteerEntry, SteerMask, SteerMasks, SteerUnit,
    UNDECIDED, WANTS_OWN, WORDS,
};
use super::attached::{Attached, blank_unit};
use super::error::{ChangeError, SteerError};
use super::hash::{self, SALT_EXACT, Secrets};
use super::index::{Index, Name};
use super::maps::{Maps, access};
use super::matching::Match;
use crate::sys::mapped::Mapped;
use aya::maps::{Array, MapData};
use place::steering::{FlowKey, Target};
use place::{CoreId, Reason, UnitId, VmId};
use std::collections::BTreeMap;
use std::mem::offset_of;
use std::sync::atomic::Ordering::{Acquire, Release};

/// `steer_entry.mask` of exact entries.
const NO_MASK: u32 = u32::MAX;

/// Which frames go where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The frames.
    pub matching: Match,
    /// Their core.
    pub target: Target,
    /// They are a priority flow.
    pub is_priority: bool,
    /// They want their guest's own core.
    pub wants_own_core: bool,
    /// Their guest.
    pub vm: Option<VmId>,
}

/// An entry in the program's tables.
#[derive(Clone, Copy, Debug)]
struct Record {
    entry: Entry,
    hash: u64,
    mask: u32,
    change: u32,
}

/// A mask in use.
#[derive(Clone, Copy, Debug)]
struct MaskUse {
    mask: FlowKey,
    entries: u32,
}

/// The tables, and what we know to be in them.
pub(crate) struct Entries {
    index: Index,
    masks: Array<MapData, SteerMasks>,
    secrets: Secrets,
    /// By unit.
    records: BTreeMap<u32, Record>,
    uses: [Option<MaskUse>; MASKS],
    /// Units that entries had before; some may still have frames under way.
    freed: Vec<u32>,
    next: u32,
    is_changing: bool,
}

impl Entries {
    /// What the maps hold.
    pub(crate) fn read(maps: &Maps, config: &SteerConfig) -> Result<Self, SteerError> {
        let units: Mapped<SteerUnit> = maps.mapped("units")?;
        let mut entries = Self {
            index: Index::open(maps)?,
            masks: maps.array("masks")?,
            secrets: config.secrets,
            records: BTreeMap::new(),
            uses: [None; MASKS],
            freed: Vec::new(),
            next: ENTRY_FIRST,
            is_changing: false,
        };
        let list = entries.masks.get(&(config.masks & 1), 0).map_err(access("masks"))?;
        let known = &list.masks[..(list.len as usize).min(MASKS)];
        for mask in known.iter().filter(|mask| (mask.id as usize) < MASKS) {
            entries.uses[mask.id as usize] =
                Some(MaskUse { mask: FlowKey(mask.words), entries: 0 });
        }
        let found: Vec<_> = entries.index.all().collect();
        for value in found {
            if (ENTRY_FIRST as usize..units.len()).contains(&(value.unit as usize)) {
                entries.adopt(&value, &units.get(value.unit as usize));
            }
        }
        entries.freed = (ENTRY_FIRST..entries.next)
            .filter(|unit| !entries.records.contains_key(unit))
            .collect();
        Ok(entries)
    }

    fn adopt(&mut self, value: &SteerEntry, unit: &SteerUnit) {
        let key = FlowKey(value.words);
        let matching = match self.uses.get_mut(value.mask as usize) {
            Some(Some(used)) => {
                used.entries += 1;
                Match::Wild { key, mask: used.mask, priority: value.priority }
            }
            _ => Match::Flow(key),
        };
        let fixed = unit.wanted & UNDECIDED != UNDECIDED
            && (unit.wanted >> REASON_SHIFT) as u8 == Reason::Fixed.code();
        let target = match () {
            () if fixed => Target::Core(CoreId((unit.wanted & UNDECIDED) as u16)),
            () if unit.flags & BY_HASH != 0 => Target::Hash,
            () => Target::Auto,
        };
        let entry = Entry {
            matching,
            target,
            is_priority: unit.flags & IS_PRIORITY != 0,
            wants_own_core: unit.flags & WANTS_OWN != 0,
            vm: VmId::new(unit.vm),
        };
        self.is_changing |= value.change != 0;
        self.next = self.next.max(value.unit + 1);
        let Name { hash, mask, .. } = self.name(&matching, value.mask);
        let record = Record { entry, hash, mask, change: value.change };
        self.records.insert(value.unit, record);
    }

    pub(crate) fn units(&self) -> impl Iterator<Item = UnitId> + '_ {
        self.records.keys().copied().map(UnitId)
    }

    /// The number of a match's mask: its own, or the one that it would get.
    fn mask_of(&self, matching: &Match) -> Result<u32, ChangeError> {
        let Match::Wild { mask, .. } = *matching else { return Ok(NO_MASK) };
        let same = |used: &Option<MaskUse>| used.is_some_and(|used| used.mask == mask);
        let id = self.uses.iter().position(same);
        let id = id.or_else(|| self.uses.iter().position(Option::is_none));
        Ok(id.ok_or(ChangeError::Masks)? as u32)
    }

    fn name(&self, matching: &Match, mask: u32) -> Name {
        let (words, shape, salt) = match *matching {
            Match::Flow(key) => (key.flow().0, SHAPE_FLOW, SALT_EXACT),
            Match::Wild { key, mask: ones, .. } => (key.and(&ones).0, shape(&ones), mask.into()),
        };
        let hash = match shape {
            SHAPE_IPV4 => hash::of(&IPV4_WORDS.map(|word| words[word]), &self.secrets, salt),
            SHAPE_FLOW => hash::of(&words[..FLOW_WORDS], &self.secrets, salt),
            _ => hash::of(&words, &self.secrets, salt),
        };
        Name { words, mask, hash }
    }

    /// The masks by falling priority, into the list that the program does not read, which it does from then on.
    fn publish(&mut self, config: &Mapped<SteerConfig>) -> Result<(), ChangeError> {
        let mut priorities = [None; MASKS];
        let mut exact = 0;
        for record in self.records.values() {
            match record.entry.matching {
                Match::Flow(_) => exact += 1,
                Match::Wild { priority, .. } => {
                    let highest: &mut Option<u32> = &mut priorities[record.mask as usize];
                    *highest = (*highest).max(Some(priority));
                }
            }
        }
        let empty = SteerMask { words: [0; WORDS], id: 0, priority: 0, shape: 0, reserved: 0 };
        let mut list = SteerMasks { len: 0, reserved: 0, masks: [empty; MASKS] };
        for (id, (used, priority)) in self.uses.iter().zip(priorities).enumerate() {
            if let (Some(used), Some(priority)) = (used, priority) {
                let (words, id, shape) = (used.mask.0, id as u32, shape(&used.mask));
                list.masks[list.len as usize] =
                    SteerMask { words, id, priority, shape, reserved: 0 };
                list.len += 1;
            }
        }
        list.masks[..list.len as usize].sort_by_key(|mask| std::cmp::Reverse(mask.priority));
        let active = config.u32_at(0, offset_of!(SteerConfig, masks));
        let unread = 1 - (active.load(Acquire) & 1);
        self.masks.set(unread, list, 0).map_err(access("masks"))?;
        active.store(unread, Release);
        config.u32_at(0, offset_of!(SteerConfig, exact)).store(exact, Release);
        Ok(())
    }
}

/// Which words of a key are looked at, and hashed, for a mask.
fn shape(mask: &FlowKey) -> u32 {
    let is_free = |word: usize| mask.0[word] == 0;
    match () {
        () if !(FLOW_WORDS..WORDS).all(is_free) => SHAPE_ALL,
        () if [0, 2].into_iter().all(is_free) => SHAPE_IPV4,
        () => SHAPE_FLOW,
    }
}

impl Attached {
    /// Adds entries, all or none; their units, in the same order. Costs one walk over all entries: add many at once.
    ///
    /// # Errors
    /// The last change is not settled; no room; too many masks; one has a match that is there already.
    pub fn insert(&mut self, entries: &[Entry]) -> Result<Vec<UnitId>, ChangeError> {
        self.begin()?;
        let before = (self.entries.uses, self.entries.next, self.entries.freed.clone());
        let mut added = Vec::with_capacity(entries.len());
        for entry in entries {
            match self.add(entry) {
                Ok(unit) => added.push(unit),
                Err(error) => {
                    // Frames have seen them at most by masks that were published before: the change stays open until none of these is under way.
                    added.iter().for_each(|&UnitId(unit)| self.erase(unit));
                    (self.entries.uses, self.entries.next, self.entries.freed) = before;
                    return Err(error);
                }
            }
        }
        self.entries.publish(&self.config)?;
        Ok(added)
    }

    /// Removes entries, all or none. Their flows go to other entries' units, or to those of their groups, as soon as no order is lost.
    ///
    /// # Errors
    /// The last change is not settled, or there is no such entry.
    pub fn remove(&mut self, units: &[UnitId]) -> Result<(), ChangeError> {
        self.begin()?;
        let missing = units.iter().find(|unit| !self.entries.records.contains_key(&unit.0));
        if let Some(&unit) = missing {
            return Err(ChangeError::Missing { unit });
        }
        for unit in units {
            let mut record = self.entries.records[&unit.0];
            record.change = GOING;
            self.entries.index.set_change(unit.0, GOING);
            self.entries.records.insert(unit.0, record);
            self.entries.is_changing = true;
        }
        Ok(())
    }

    /// Every entry with its unit.
    pub fn entries(&self) -> Vec<(UnitId, Entry)> {
        let staying = self.entries.records.iter().filter(|(_, record)| record.change != GOING);
        staying.map(|(&unit, record)| (UnitId(unit), record.entry)).collect()
    }

    /// Ends the last change if every flow can follow it without losing order; whether there is none under way now.
    ///
    /// # Errors
    /// A map cannot be written.
    pub fn settle(&mut self) -> Result<bool, ChangeError> {
        if self.entries.is_changing && self.has_left_old_units() {
            self.finish()?;
        }
        Ok(!self.entries.is_changing)
    }

    /// Ends the last change now: flows whose old units have frames under way may be reordered, this once.
    ///
    /// # Errors
    /// A map cannot be written.
    pub fn settle_now(&mut self) -> Result<(), ChangeError> {
        self.finish()
    }

    fn begin(&mut self) -> Result<(), ChangeError> {
        if !self.settle()? {
            return Err(ChangeError::Unsettled);
        }
        // First of all: what units let go of was an earlier change's.
        let change = self.config.u32_at(0, offset_of!(SteerConfig, change));
        change.store(change.load(Acquire).wrapping_add(1).max(1), Release);
        Ok(())
    }

    fn add(&mut self, entry: &Entry) -> Result<UnitId, ChangeError> {
        let mask = self.entries.mask_of(&entry.matching)?;
        let name = self.entries.name(&entry.matching, mask);
        if let Some(taken) = self.entries.index.find(&name) {
            return Err(ChangeError::Taken { unit: UnitId(taken) });
        }
        let unit = self.free_unit().ok_or(ChangeError::Full)?;
        let record = Record { entry: *entry, hash: name.hash, mask, change: COMING };
        self.units.set(unit as usize, &raw_unit(entry));
        let priority = if let Match::Wild { priority, .. } = entry.matching { priority } else { 0 };
        if !self.entries.index.insert(&name, unit, priority, COMING) {
            self.entries.freed.push(unit);
            return Err(ChangeError::Full);
        }
        if let Match::Wild { mask: words, .. } = entry.matching {
            let used =
                self.entries.uses[mask as usize].get_or_insert(MaskUse { mask: words, entries: 0 });
            used.entries += 1;
        }
        self.entries.records.insert(unit, record);
        self.entries.is_changing = true;
        Ok(UnitId(unit))
    }

    /// One that no entry had, else one whose frames have all arrived.
    fn free_unit(&mut self) -> Option<u32> {
        if (self.entries.next as usize) < self.units.len() {
            self.entries.next += 1;
            return Some(self.entries.next - 1);
        }
        let at = self.entries.freed.iter().position(|&unit| self.is_through(unit as usize))?;
        let unit = self.entries.freed.swap_remove(at);
        let done = self.done.get(unit as usize);
        self.done.set(
            unit as usize,
            &super::abi::SteerDone { frames: 0, bytes: 0, mark: 0, is_local: 0, ..done },
        );
        Some(unit)
    }

    fn erase(&mut self, unit: u32) {
        let Some(record) = self.entries.records.remove(&unit) else { return };
        self.entries.index.remove(record.hash, unit);
        if let Some(slot) = self.entries.uses.get_mut(record.mask as usize)
            && let Some(used) = slot
        {
            used.entries -= 1;
            if used.entries == 0 {
                *slot = None;
            }
        }
        self.entries.freed.push(unit);
    }

    fn finish(&mut self) -> Result<(), ChangeError> {
        let changed = |wanted: u32| {
            let of = self.entries.records.iter().filter(move |(_, record)| record.change == wanted);
            of.map(|(&unit, &record)| (unit, record)).collect::<Vec<_>>()
        };
        let (coming, going) = (changed(COMING), changed(GOING));
        for (unit, mut record) in coming {
            record.change = 0;
            self.entries.index.set_change(unit, 0);
            self.entries.records.insert(unit, record);
        }
        for (unit, _) in &going {
            self.erase(*unit);
        }
        self.entries.is_changing = false;
        if !going.is_empty() {
            self.entries.publish(&self.config)?;
        }
        Ok(())
    }
}

fn raw_unit(entry: &Entry) -> SteerUnit {
    let flag = |is: bool, bit: u32| if is { bit } else { 0 };
    let wanted = match entry.target {
        Target::Core(core) => u32::from(Reason::Fixed.code()) << REASON_SHIFT | u32::from(core.0),
        Target::Auto | Target::Hash => UNDECIDED,
    };
    let reason = if matches!(entry.target, Target::Core(_)) { Reason::Fixed.code() } else { 0 };
    SteerUnit {
        wanted,
        reason,
        flags: flag(entry.is_priority, IS_PRIORITY)
            | flag(entry.wants_own_core, WANTS_OWN)
            | flag(entry.target == Target::Hash, BY_HASH),
        vm: entry.vm.map_or(0, VmId::get),
        ..blank_unit()
    }
}
