//! What waits to be written: the latest state of each thing that changed since the last commit.
//!
//! Keyed by thing, so a rule that changes a thousand times between two commits is written once, and what waits is bounded by what
//! exists rather than by how often it changed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Kinds of records; each is a table of the store, by [`Kind::table`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// A switch that the API made: JSON of a `SwitchSpec`.
    Switch,
    /// A port that the API made: JSON of a `PortSpec`; id = its name.
    Port,
    /// The number of a port, whoever made it; id = its name.
    Number,
    /// `OFPPC_*` bits of a port; id = its number.
    PortConfig,
    /// A group's text; id = its number.
    Group,
    /// A meter's text; id = its number.
    Meter,
    /// A rule (see `encode`).
    Flow,
    /// The tables of a pipeline that has not all of them, or has named them (see `tables`); without id.
    Tables,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 8] = [
        Kind::Switch,
        Kind::Port,
        Kind::Number,
        Kind::PortConfig,
        Kind::Group,
        Kind::Meter,
        Kind::Flow,
        Kind::Tables,
    ];

    /// The table's name in the file.
    pub const fn table(self) -> &'static str {
        match self {
            Kind::Switch => "switches",
            Kind::Port => "ports",
            Kind::Number => "port_numbers",
            Kind::PortConfig => "port_configs",
            Kind::Group => "groups",
            Kind::Meter => "meters",
            Kind::Flow => "flows",
            Kind::Tables => "tables",
        }
    }
}

/// One thing that can be stored.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Slot {
    /// Its kind.
    pub kind: Kind,
    /// Its switch.
    pub switch: Arc<str>,
    /// Which one of that kind.
    pub id: Box<[u8]>,
}

/// A record, or `None` where there must be none.
pub type Record = Option<Box<[u8]>>;

/// Changes not yet on disk.
#[derive(Default, Debug)]
pub struct Pending {
    /// Switches whose every record goes, before `slots` are written.
    forget: HashSet<Arc<str>>,
    slots: HashMap<Slot, Record>,
    waiting: HashMap<Arc<str>, usize>,
}

impl Pending {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.forget.is_empty() && self.slots.is_empty()
    }

    /// Things of this switch that wait.
    pub fn waiting(&self, switch: &str) -> usize {
        self.waiting.get(switch).copied().unwrap_or(0)
    }

    /// Notes the latest state of a thing.
    pub fn put(&mut self, slot: Slot, record: Record) {
        let switch = slot.switch.clone();
        if self.slots.insert(slot, record).is_none() {
            *self.waiting.entry(switch).or_default() += 1;
        }
    }

    /// Notes that a switch is gone with all it had.
    pub fn forget(&mut self, switch: Arc<str>) {
        self.slots.retain(|slot, _| slot.switch != switch);
        self.waiting.remove(&switch);
        self.forget.insert(switch);
    }

    /// Takes back what could not be written; what came since is newer and stays.
    pub fn restore(&mut self, older: Pending) {
        for (slot, record) in older.slots {
            if !self.forget.contains(&slot.switch) && !self.slots.contains_key(&slot) {
                self.put(slot, record);
            }
        }
        self.forget.extend(older.forget);
    }

    /// Switches to forget first, then records in the order of their keys, as a B-tree likes them.
    pub fn in_order(&self) -> (impl Iterator<Item = &str>, Vec<(&Slot, &Record)>) {
        let mut slots: Vec<_> = self.slots.iter().collect();
        slots.sort_unstable_by_key(|(slot, _)| *slot);
        (self.forget.iter().map(|switch| &**switch), slots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(switch: &str, id: u8) -> Slot {
        Slot { kind: Kind::Flow, switch: switch.into(), id: Box::new([id]) }
    }

    fn record(byte: u8) -> Record {
        Some(Box::new([byte]))
    }

    fn contents(pending: &Pending) -> Vec<(u8, Option<u8>)> {
        pending
            .in_order()
            .1
            .into_iter()
            .map(|(slot, record)| (slot.id[0], record.as_ref().map(|r| r[0])))
            .collect()
    }

    #[test]
    fn the_latest_change_of_a_thing_is_the_one_written() {
        let mut pending = Pending::default();
        pending.put(slot("a", 2), record(1));
        pending.put(slot("a", 1), record(1));
        pending.put(slot("a", 2), None);
        assert_eq!(contents(&pending), [(1, Some(1)), (2, None)]);
        assert_eq!((pending.waiting("a"), pending.waiting("b")), (2, 0));
    }

    #[test]
    fn a_forgotten_switch_keeps_only_what_came_after() {
        let mut pending = Pending::default();
        pending.put(slot("a", 1), record(1));
        pending.put(slot("b", 7), record(1));
        pending.forget("a".into());
        pending.put(slot("a", 2), record(2));
        assert_eq!(contents(&pending), [(2, Some(2)), (7, Some(1))]);
        assert_eq!(pending.waiting("a"), 1);
    }

    #[test]
    fn what_came_since_wins_over_what_could_not_be_written() {
        let mut older = Pending::default();
        older.put(slot("a", 1), record(1));
        older.put(slot("a", 2), record(1));
        older.put(slot("gone", 3), record(1));
        let mut newer = Pending::default();
        newer.put(slot("a", 2), record(2));
        newer.forget("gone".into());
        newer.restore(older);
        assert_eq!(contents(&newer), [(1, Some(1)), (2, Some(2))]);
        assert_eq!(newer.waiting("a"), 2);
    }
}
