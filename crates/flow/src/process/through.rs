//! Packets of which nothing needs to be looked at, or the same of all.
//!
//! A table may say of all that comes in by one port, whatever it is, that it leaves as it is by one other; or of one packet, and others
//! are like it in all that any table looks at. Then a batch is one packet: one search, one addition to each counter, and no key, no parse,
//! no verdict for each. It is what [`super::process`] would do, in less.

use super::Workspace;
use crate::action::PortNo;
use crate::cache::{Known, Model, Place};
use crate::resolve::Plain;
use crate::snapshot::Snapshot;
use crate::store::{RecordId, tick};
use crate::template::{Scratch, TableView};
use crate::time::Nanos;
use wire::{Depth, Field, Head, Key, Pattern};

/// Where all packets of one port go.
#[derive(Clone, Copy)]
pub struct Through<'s> {
    snapshot: &'s Snapshot,
    view: &'s TableView,
    entry: RecordId,
    port: PortNo,
}

impl Snapshot {
    /// Where these packets go, which came in by `in_port` without a tunnel id, if they all go one way and are alike in all that tables look at, or tables look at nothing; `None` if
    /// anything else becomes of them than to leave by one port as they are, or if it cannot be told.
    #[inline]
    pub fn through_batch<'h>(
        &self,
        work: &mut Workspace,
        in_port: PortNo,
        heads: impl Iterator<Item = &'h Head> + Clone,
    ) -> Option<Through<'_>> {
        match self.blind(work, in_port) {
            Some(plain) => self.way(plain.entry, plain.port?),
            None => self.through_alike(work, in_port, heads),
        }
    }

    /// Where every packet goes that comes in by `in_port` without a tunnel id; `None` if that depends on the packet, or if anything else
    /// becomes of it than to leave by one port as it is.
    #[inline]
    pub fn through(&self, work: &mut Workspace, in_port: PortNo) -> Option<Through<'_>> {
        let plain = self.blind(work, in_port)?;
        self.way(plain.entry, plain.port?)
    }

    /// What is known of every packet that comes in by `in_port`.
    #[inline]
    fn blind(&self, work: &mut Workspace, in_port: PortNo) -> Known {
        let Workspace { ways, scratch, .. } = work;
        ways.of(self.place(in_port), self.versions.front, || self.search_blind(scratch, in_port))
    }

    /// The same, found out.
    #[inline(never)]
    fn search_blind(&self, scratch: &mut Scratch, in_port: PortNo) -> Known {
        let mut key = Key::default();
        key.set(Field::InPort, in_port.into());
        self.resolve_plain(in_port, (&key, &Depth::Nothing.known()), scratch)
    }

    /// Where these packets go, which came in by `in_port` without a tunnel id, if they all go where the first one does: they are alike in
    /// all that tables look at. `None` if that is not so or cannot be told, or as above.
    #[inline]
    pub fn through_alike<'h>(
        &self,
        work: &mut Workspace,
        in_port: PortNo,
        heads: impl Iterator<Item = &'h Head> + Clone,
    ) -> Option<Through<'_>> {
        if let Some(Plain { port: None, .. }) = self.blind(work, in_port) {
            return None;
        }
        let first = heads.clone().next()?;
        if !self.view.likeness.as_ref()?.holds(heads) {
            return None;
        }
        let (entry, port) = self.search_one(work, in_port, first)?;
        self.way(entry, port)
    }

    /// The entry that this packet finds, which came in by `in_port` without a tunnel id, and where it leads.
    fn search_one(
        &self,
        work: &mut Workspace,
        in_port: PortNo,
        head: &Head,
    ) -> Option<(RecordId, PortNo)> {
        let (key, _) = wire::parse(head, in_port);
        let known = self.view.union.mask().union(&Depth::Nothing.known());
        let plain = self.resolve_plain(in_port, (&key, &known), &mut work.scratch)?;
        Some((plain.entry, plain.port?))
    }

    /// Whether to look for packets of the next batch from `in_port` that are like others ([`Snapshot::through_like`]). It is taken to be in vain until
    /// [`Snapshot::found_like`] is called.
    #[inline]
    pub fn looks_for_like(&self, work: &mut Workspace, in_port: PortNo) -> bool {
        self.view.likeness.is_some() && work.models.attempts(self.place(in_port)).are_due()
    }

    /// It was not in vain.
    #[inline]
    pub fn found_like(&self, work: &mut Workspace, in_port: PortNo) {
        work.models.attempts(self.place(in_port)).succeeded();
    }

    /// The way of packets that are like the one [learned](Snapshot::learn_like) last of those that came in by `in_port`, and what those are.
    #[inline]
    pub fn through_like<'c>(
        &self,
        work: &'c Workspace,
        in_port: PortNo,
    ) -> Option<(Through<'_>, &'c Pattern)> {
        let Model { pattern, entry, port } =
            work.models.get(self.place(in_port), self.likeness_version())?;
        Some((self.way(*entry, *port)?, pattern))
    }

    /// Finds out which way packets like this one go, which came in by `in_port` without a tunnel id. `None` if anything else becomes of them than to leave by one port as they are, or if it cannot be told.
    #[inline(never)]
    pub fn learn_like(&self, work: &mut Workspace, in_port: PortNo, head: &Head) -> Option<()> {
        let pattern = self.view.likeness.as_ref()?.pattern(head)?;
        let (entry, port) = self.search_one(work, in_port, head)?;
        work.models.set(
            self.place(in_port),
            self.likeness_version(),
            Model { pattern, entry, port },
        );
        Some(())
    }

    /// The name of a port of this switch.
    #[inline]
    fn place(&self, in_port: PortNo) -> Place {
        Place { switch: self.switch, in_port }
    }

    /// The version of where packets go and of the bits by which they are known.
    #[inline]
    fn likeness_version(&self) -> u64 {
        self.versions.front.max(self.versions.layout)
    }

    #[inline]
    fn way(&self, entry: RecordId, port: PortNo) -> Option<Through<'_>> {
        Some(Through { snapshot: self, view: self.view.table(0)?, entry, port })
    }
}

impl Through<'_> {
    /// The port by which they leave.
    pub fn port(&self) -> PortNo {
        self.port
    }

    /// Counts packets that go this way.
    pub fn count(&self, work: &Workspace, packets: u64, bytes: u64, now: Nanos) {
        self.view.counters.add(work.worker, packets, packets, 1);
        let line = self.snapshot.line(self.entry);
        self.snapshot.arena.count(self.entry, line, work.worker, packets, bytes, tick(now));
    }
}
