//! Packets of which nothing needs to be looked at.
//!
//! A table may say of all that comes in by one port, whatever it is, that it leaves as it is by one other. Then a batch is one packet: one
//! search, one addition to each counter, and no key, no parse, no verdict for each. It is what [`super::process`] would do, in less.

use crate::action::PortNo;
use crate::cache::Cache;
use crate::config::FragMode;
use crate::snapshot::Snapshot;
use crate::store::{RecordId, tick};
use crate::template::TableView;
use crate::time::Nanos;
use wire::{Field, Key};

/// Where all packets of one port go.
#[derive(Clone, Copy)]
pub struct Through<'s> {
    snapshot: &'s Snapshot,
    view: &'s TableView,
    entry: RecordId,
    port: PortNo,
}

impl Snapshot {
    /// Where every packet goes that comes in by `in_port` without a tunnel id; `None` if that depends on the packet, or if anything else
    /// becomes of it than to leave by one port as it is.
    #[inline]
    pub fn through(&self, cache: &mut Cache, in_port: PortNo) -> Option<Through<'_>> {
        let view = self.view.table(0)?;
        let mut key = Key::default();
        key.set(Field::InPort, in_port.into());
        let entry = view.template.search_blind(self.searched(), &key, &mut cache.scratch)?;
        let port = self.programs.get(self.line(entry).rule().program).forwards_to?;
        let admits =
            self.config.fragments == FragMode::Normal && self.ports.ingress(in_port).is_ok();
        let leaves = port != in_port && self.ports.surely_sends(port);
        (admits && leaves).then_some(Through { snapshot: self, view, entry, port })
    }
}

impl Through<'_> {
    /// The port by which they leave.
    pub fn port(&self) -> PortNo {
        self.port
    }

    /// Counts packets that go this way.
    pub fn count(&self, cache: &Cache, packets: u64, bytes: u64, now: Nanos) {
        self.view.counters.add(packets, packets, 1);
        let line = self.snapshot.line(self.entry);
        self.snapshot.arena.count(self.entry, line, cache.worker, packets, bytes, tick(now));
    }
}
