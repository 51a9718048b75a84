//! What waits to be written: the latest state of each thing that changed since the last commit.
//!
//! Keyed by thing, so a rule that changes a thousand times between two commits is written once, and what waits is bounded by what
//! exists rather than by how often it changed.

use hashbrown::{HashMap, HashSet};
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
    /// A group (see `described`); id = its number.
    Group,
    /// A meter (see `described`); id = its number.
    Meter,
    /// A rule (see `encode`).
    Flow,
    /// For how long rules have gone unused (see `uses`); id = the class of their idle timeouts.
    Used,
    /// What rules and ports had counted at the end (see `counts`); id = of which.
    Counts,
    /// The tables of a pipeline that has not all of them, or has named them (see `tables`); without id.
    Tables,
    /// What steering was asked for (see `crate::steer::kept`); of no switch, which is written as the empty name.
    Steer,
    /// What the node notes of itself, by name; of no switch.
    Node,
    /// What offload was asked for (see `crate::offload::kept`); of no switch, likewise.
    Offload,
    /// A part, by name: JSON of its record; of no switch.
    Part,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 14] = [
        Kind::Switch,
        Kind::Port,
        Kind::Number,
        Kind::PortConfig,
        Kind::Group,
        Kind::Meter,
        Kind::Flow,
        Kind::Used,
        Kind::Counts,
        Kind::Tables,
        Kind::Steer,
        Kind::Node,
        Kind::Offload,
        Kind::Part,
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
            Kind::Used => "uses",
            Kind::Counts => "counts",
            Kind::Tables => "tables",
            Kind::Steer => "steer",
            Kind::Node => "node",
            Kind::Offload => "offload",
            Kind::Part => "parts",
        }
    }
}

/// One thing that can be stored, among those of its switch.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Thing {
    /// Its kind.
    pub kind: Kind,
    /// Which one of that kind.
    pub id: Box<[u8]>,
}

/// A record, or `None` where there must be none.
pub type Record = Option<Box<[u8]>>;

/// Changes not yet on disk.
#[derive(Default, Debug)]
pub struct Pending {
    /// Switches whose every record goes, before the others are written.
    forget: HashSet<Arc<str>>,
    /// By switch; none is empty.
    changed: HashMap<Arc<str>, HashMap<Thing, Record>>,
}

impl Pending {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.forget.is_empty() && self.changed.is_empty()
    }

    /// Things of this switch that wait.
    pub fn waiting(&self, switch: &str) -> usize {
        self.changed.get(switch).map_or(0, HashMap::len)
    }

    /// Notes the latest state of a thing.
    pub fn put(&mut self, switch: &Arc<str>, thing: Thing, record: Record) {
        match self.changed.get_mut(switch) {
            Some(changed) => changed.insert(thing, record),
            None => self.changed.entry(switch.clone()).or_default().insert(thing, record),
        };
    }

    /// Notes that a switch is gone with all it had.
    pub fn forget(&mut self, switch: Arc<str>) {
        self.changed.remove(&switch);
        self.forget.insert(switch);
    }

    /// Takes back what could not be written; what came since is newer and stays.
    pub fn restore(&mut self, older: Pending) {
        for (switch, things) in older.changed {
            if self.forget.contains(&switch) {
                continue;
            }
            let changed = self.changed.entry(switch).or_default();
            for (thing, record) in things {
                changed.entry(thing).or_insert(record);
            }
        }
        self.forget.extend(older.forget);
    }

    /// Switches to forget first, then records in the order of their keys, as a B-tree likes them.
    pub fn in_order(&self) -> (impl Iterator<Item = &str>, Vec<(&str, &Thing, &Record)>) {
        let mut things: Vec<_> = self
            .changed
            .iter()
            .flat_map(|(switch, things)| {
                things.iter().map(move |(thing, record)| (&**switch, thing, record))
            })
            .collect();
        things.sort_unstable_by_key(|&(switch, thing, _)| (thing.kind, switch, &thing.id));
        (self.forget.iter().map(|switch| &**switch), things)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(pending: &mut Pending, switch: &str, id: u8, record: Record) {
        pending.put(&switch.into(), Thing { kind: Kind::Flow, id: Box::new([id]) }, record);
    }

    fn record(byte: u8) -> Record {
        Some(Box::new([byte]))
    }

    fn contents(pending: &Pending) -> Vec<(u8, Option<u8>)> {
        pending
            .in_order()
            .1
            .into_iter()
            .map(|(_, thing, record)| (thing.id[0], record.as_ref().map(|r| r[0])))
            .collect()
    }

    #[test]
    fn the_latest_change_of_a_thing_is_the_one_written() {
        let mut pending = Pending::default();
        put(&mut pending, "a", 2, record(1));
        put(&mut pending, "a", 1, record(1));
        put(&mut pending, "a", 2, None);
        assert_eq!(contents(&pending), [(1, Some(1)), (2, None)]);
        assert_eq!((pending.waiting("a"), pending.waiting("b")), (2, 0));
    }

    #[test]
    fn a_forgotten_switch_keeps_only_what_came_after() {
        let mut pending = Pending::default();
        put(&mut pending, "a", 1, record(1));
        put(&mut pending, "b", 7, record(1));
        pending.forget("a".into());
        put(&mut pending, "a", 2, record(2));
        assert_eq!(contents(&pending), [(2, Some(2)), (7, Some(1))]);
        assert_eq!(pending.waiting("a"), 1);
    }

    #[test]
    fn what_came_since_wins_over_what_could_not_be_written() {
        let mut older = Pending::default();
        put(&mut older, "a", 1, record(1));
        put(&mut older, "a", 2, record(1));
        put(&mut older, "gone", 3, record(1));
        let mut newer = Pending::default();
        put(&mut newer, "a", 2, record(2));
        newer.forget("gone".into());
        newer.restore(older);
        assert_eq!(contents(&newer), [(1, Some(1)), (2, Some(2))]);
        assert_eq!(newer.waiting("a"), 2);
    }
}
