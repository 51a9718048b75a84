//! One decision for a whole batch: by its port, or by a pattern of bytes that its frames share.
//!
//! Where table 0 says of a port that all it receives leaves by another, no frame needs to be read. Where frames agree in all that any table
//! looks at, one search decides for all. Either way [`process`](super::process()) would do the same, for more.

use super::Workspace;
use crate::action::PortNo;
use crate::cache::{FramePattern, Place};
use crate::limits::LANES;
use crate::resolve::Plain;
use crate::snapshot::Snapshot;
use crate::store::{RecordId, tick};
use crate::template::TableView;
use crate::time::Nanos;
use wire::{Depth, Field, Head, Key, Pattern};

/// Where a batch goes: out of one port, unchanged, by one entry of table 0.
#[derive(Clone, Copy)]
pub struct PortDecision<'s> {
    snapshot: &'s Snapshot,
    view: &'s TableView,
    entry: RecordId,
    port: PortNo,
}

/// All frames here came in by `in_port`, without a tunnel id.
impl Snapshot {
    /// Returns the output port of all frames that come in by a port. `None` if it depends on the frame, or if a frame needs more.
    #[inline]
    pub fn decide_port(&self, work: &mut Workspace, in_port: PortNo) -> Option<PortDecision<'_>> {
        self.decision(self.plain_of_port(work, in_port)?)
    }

    /// The answer for all frames of a port, as remembered.
    #[inline]
    fn plain_of_port(&self, work: &mut Workspace, in_port: PortNo) -> Option<Plain> {
        let Workspace { port_memo, scratch, .. } = work;
        port_memo.of(self.place(in_port), self.versions.front, || {
            let mut key = Key::default();
            key.set(Field::InPort, in_port.into());
            self.resolve_plain(in_port, (&key, &Depth::Nothing.known()), scratch)
        })
    }

    /// Returns the output port of a whole batch, if one lookup decides it. `None` if a frame needs an edit, differs in a matched field, or
    /// has several outputs.
    #[inline]
    pub fn decide_batch<'h>(
        &self,
        work: &mut Workspace,
        in_port: PortNo,
        heads: impl Iterator<Item = &'h Head> + Clone,
    ) -> Option<PortDecision<'_>> {
        // What the port's frames all find leads elsewhere.
        if let Some(Plain { port: None, .. }) = self.plain_of_port(work, in_port) {
            return None;
        }
        let first = heads.clone().next()?;
        if !self.view.likeness.as_ref()?.holds(heads) {
            return None;
        }
        self.decision(self.entry_of_frame(work, in_port, first)?)
    }

    /// The entry that a frame finds, if all it does is to send. Each batch asks, so it asks less than [`Snapshot::resolve_plain`].
    fn entry_of_frame(&self, work: &mut Workspace, in_port: PortNo, head: &Head) -> Option<Plain> {
        let (key, _) = wire::parse(head, in_port);
        let mut found = [RecordId::NONE; LANES];
        let view = self.view.table(0)?;
        view.template.search(self.searched(), &[&key], &mut work.scratch, &mut found);
        let entry = Some(found[0]).filter(|entry| entry.is_some())?;
        let port = self.programs.get(self.line(entry).rule().program).forwards_to?;
        let leaves = self.ports.surely_forwards(in_port, port);
        (self.admits(in_port) && leaves).then_some(Plain { entry, port: Some(port) })
    }

    /// The answer for all frames that agree with this one in all that tables look at.
    #[inline(never)]
    fn plain_of_frame(&self, work: &mut Workspace, in_port: PortNo, head: &Head) -> Option<Plain> {
        let (key, _) = wire::parse(head, in_port);
        let known = self.view.union.mask().union(&Depth::Nothing.known());
        self.resolve_plain(in_port, (&key, &known), &mut work.scratch)
    }

    /// Whether to compare the next batch with the port's pattern. That counts as in vain until [`Snapshot::pattern_matched`].
    #[inline]
    pub fn tries_pattern(&self, work: &mut Workspace, in_port: PortNo) -> bool {
        self.view.likeness.is_some() && work.pattern_backoffs.at(self.place(in_port)).is_due()
    }

    /// Notes that a frame had the port's pattern.
    #[inline]
    pub fn pattern_matched(&self, work: &mut Workspace, in_port: PortNo) {
        work.pattern_backoffs.at(self.place(in_port)).succeeded();
    }

    /// The port's pattern, [learned](Snapshot::learn_pattern) last, and where frames go that have it.
    #[inline]
    pub fn decide_pattern<'c>(
        &self,
        work: &'c Workspace,
        in_port: PortNo,
    ) -> Option<(PortDecision<'_>, &'c Pattern)> {
        let FramePattern { pattern, entry, port } =
            work.patterns.get(self.place(in_port), self.pattern_version())?;
        Some((self.decision(Plain { entry: *entry, port: Some(*port) })?, pattern))
    }

    /// Makes a frame's pattern the port's. `None` if it has none, or if frames that have it need more than to leave by one port.
    #[inline(never)]
    pub fn learn_pattern(&self, work: &mut Workspace, in_port: PortNo, head: &Head) -> Option<()> {
        let pattern = self.view.likeness.as_ref()?.pattern(head)?;
        let Plain { entry, port } = self.plain_of_frame(work, in_port, head)?;
        let pattern = FramePattern { pattern, entry, port: port? };
        work.patterns.set(self.place(in_port), self.pattern_version(), pattern);
        Some(())
    }

    /// The name of a port of this switch.
    #[inline]
    pub(super) fn place(&self, in_port: PortNo) -> Place {
        Place { switch: self.switch, in_port }
    }

    /// The version of where frames go, and of the bits by which they are compared.
    #[inline]
    fn pattern_version(&self) -> u64 {
        self.versions.front.max(self.versions.layout)
    }

    #[inline]
    fn decision(&self, Plain { entry, port }: Plain) -> Option<PortDecision<'_>> {
        Some(PortDecision { snapshot: self, view: self.view.table(0)?, entry, port: port? })
    }
}

impl PortDecision<'_> {
    /// The port by which the frames leave.
    pub fn port(&self) -> PortNo {
        self.port
    }

    /// Counts frames that go this way.
    pub fn count(&self, work: &Workspace, packets: u64, bytes: u64, now: Nanos) {
        self.view.counters.add(work.worker, packets, packets, 1);
        let line = self.snapshot.line(self.entry);
        self.snapshot.arena.count(self.entry, line, work.worker, packets, bytes, tick(now));
    }
}
