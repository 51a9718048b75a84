//! Until when an answer holds.

use crate::action::PortNo;
use crate::snapshot::Snapshot;
use crate::table_set::TableSet;
use crate::time::Nanos;

/// What an answer rests on, and since when. See [`Snapshot::holds`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stamp {
    /// The switch's first snapshot: no other switch has it.
    born: u64,
    /// The snapshot that was asked.
    made: u64,
    uses: Uses,
}

/// What an answer rests on beside ports and settings.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Uses {
    /// Tables that were searched.
    pub tables: TableSet,
    pub groups: bool,
    pub meters: bool,
    /// What a bridge knew of destinations.
    pub stations: Vec<Station>,
}

/// A station, and the port behind which it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Station {
    pub vlan: u16,
    pub mac: u64,
    pub port: Option<PortNo>,
}

impl Stamp {
    pub(super) fn new(snapshot: &Snapshot, uses: Uses) -> Self {
        Self { born: snapshot.versions.born, made: snapshot.serial, uses }
    }
}

impl Snapshot {
    /// Whether an answer of this or another snapshot is this one's, too. False may be said of an answer that has not changed.
    ///
    /// Compared are the switch, its settings, its ports, the tables that were searched, groups and meters if any was met, and where
    /// stations are that a bridge was asked for.
    pub fn holds(&self, stamp: &Stamp, now: Nanos) -> bool {
        let (versions, uses) = (&self.versions, &stamp.uses);
        let is_old = |since: u64| since <= stamp.made;
        let at_home =
            |station: &Station| self.macs.lookup(station.vlan, station.mac, now) == station.port;
        stamp.born == versions.born
            && stamp.made <= self.serial
            && is_old(versions.ports)
            && is_old(versions.settings)
            && uses.tables.iter().all(|table| is_old(versions.table(table)))
            && (!uses.groups || is_old(versions.groups))
            && (!uses.meters || is_old(versions.meters))
            && uses.stations.iter().all(at_home)
    }

    /// Its number: a later snapshot of any switch has a greater one.
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// Whether an answer of this snapshot was that of the one with this number, too. Never said where a bridge was asked: what it knew then is not known.
    pub fn answered_before(&self, stamp: &Stamp, serial: u64) -> bool {
        stamp.uses.stations.is_empty()
            && self.holds(&Stamp { made: serial, ..stamp.clone() }, Nanos(0))
    }
}
