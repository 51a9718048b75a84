//! Looking at entries on behalf of a packet that is asked about.

use crate::switch::Switch;
use crate::switch::dump::{PORTION, names};
use flow::{FlowFilter, Hit, Near, NearMiss, open_field};
use wire::{Field, Key};

/// How long to look for likeness in one table. Chosen: nobody waits longer gladly, and it is time for a million entries.
const PATIENCE_NS: u64 = 200_000_000;

impl Switch {
    /// The entry that a packet finds; `None` if it has gone since.
    pub fn found(&self, hit: &Hit) -> Option<flow::FlowStats> {
        self.control().pipeline.found(hit, self.now())
    }

    /// The entries of a table, above a priority, that a packet of this key nearly finds, as far as it is known; and how many were looked at.
    pub fn near(
        &self,
        table: u8,
        of: (Key, Key),
        above: Option<u16>,
        most: usize,
    ) -> (Vec<NearMiss>, u64) {
        let (begin, mut near) = (self.now(), Near::new(of, above, most));
        for portion in self.portions(table) {
            portion.into_iter().for_each(|entry| near.look(entry));
            if self.now().since(begin) > PATIENCE_NS {
                break;
            }
        }
        near.found()
    }

    /// The field on which it depends what a packet of this key finds in a table, as far as it is known.
    pub fn open_field(&self, table: u8, of: (&Key, &Key), found: Option<&Hit>) -> Option<Field> {
        let found = found.and_then(|hit| self.found(hit));
        let of_portion = |portion: Vec<_>| open_field(of, found.as_ref(), portion.into_iter());
        let rivals = self.portions(table).filter_map(of_portion).collect::<Vec<_>>();
        let own = open_field(of, found.as_ref(), std::iter::empty());
        rivals.into_iter().chain(own).max_by_key(|&(priority, _)| priority).map(|(_, field)| field)
    }

    /// The entries of a table, a portion at a time under the switch's lock.
    fn portions(&self, table: u8) -> impl Iterator<Item = Vec<flow::FlowStats>> {
        let filter = FlowFilter { table: Some(table), ..FlowFilter::default() };
        let mut names = names(self, &filter).into_iter();
        std::iter::from_fn(move || {
            let portion: Vec<_> = names.by_ref().take(PORTION).collect();
            let (now, control) = (self.now(), self.control());
            let entry = |&name: &_| control.pipeline.entry(name, now);
            (!portion.is_empty()).then(|| portion.iter().filter_map(entry).collect())
        })
    }
}
