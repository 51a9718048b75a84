//! Uniform batches: many entries, one program, one exit.
//!
//! A router's batch goes to many destinations by many entries. Most often all of it leaves by one port after the same edits, and so does a bridge's.
//! Where the program replaces addresses, decrements TTLs and sends, nothing is kept of a frame but its key.
//! [`process`](super::process()) would do the same, for more.
//!
//! **Two steps.** [`Snapshot::decide_uniform`] decides. It changes nothing, but that stations' ages are renewed, as they would be again.
//! [`UniformDecision::run`] counts and edits, once the caller knows that the port takes all frames.

use super::Workspace;
use super::direct::Same;
use crate::action::PortNo;
use crate::cache::Backoffs;
use crate::exec::LinearProgram;
use crate::limits::LANES;
use crate::snapshot::Snapshot;
use crate::store::{RecordId, tick};
use crate::template::TableView;
use crate::time::Nanos;
use wire::{BATCH, Depth, Field, Head, Key, Layers};

/// A worker's memory for a uniform batch.
pub(super) struct UniformScratch {
    keys: [Key; BATCH],
    layers: [Layers; BATCH],
    found: [RecordId; BATCH],
    backoffs: Backoffs,
}

impl Default for UniformScratch {
    fn default() -> Self {
        Self {
            keys: [Key::default(); BATCH],
            layers: [Layers::default(); BATCH],
            found: [RecordId::NONE; BATCH],
            backoffs: Backoffs::default(),
        }
    }
}

/// Where a uniform batch goes.
pub struct UniformDecision<'s> {
    snapshot: &'s Snapshot,
    view: &'s TableView,
    linear: &'s LinearProgram,
    in_port: PortNo,
    port: PortNo,
    probes: u32,
}

impl Snapshot {
    /// Returns where a batch goes that came in by `in_port` without a tunnel id, if it is uniform. No frame may be shorter than an Ethernet header.
    /// `None` if it is not uniform, or if others lately were not.
    #[inline]
    pub fn decide_uniform<'h>(
        &self,
        work: &mut Workspace,
        in_port: PortNo,
        heads: impl ExactSizeIterator<Item = &'h Head> + Clone,
        now: Nanos,
    ) -> Option<UniformDecision<'_>> {
        let view = self.view.table(0).filter(|view| view.is_last)?;
        let count = heads.len();
        if !self.admits(in_port) || self.view.is_worth_caching() || !(1..=BATCH).contains(&count) {
            return None;
        }
        let Workspace { uniform, scratch, .. } = work;
        if !uniform.backoffs.at(self.place(in_port)).is_due() {
            return None;
        }
        parse(heads.clone(), (in_port, self.depth()), uniform);
        let mut probes = 0;
        for (keys, ids) in
            uniform.keys[..count].chunks(LANES).zip(uniform.found.chunks_exact_mut(LANES))
        {
            let mut each = [&keys[0]; LANES];
            each.iter_mut().zip(keys).for_each(|(at, key)| *at = key);
            let ids = ids.first_chunk_mut()?;
            probes += view.template.search(self.searched(), &each[..keys.len()], scratch, ids);
        }
        let program = self.one_program(&uniform.found[..count])?;
        let linear = self.programs.get(program).linear.as_ref()?;
        let parsed = uniform.keys[..count].iter().zip(&uniform.layers);
        if !linear.surely_routes(heads.zip(parsed)) {
            return None;
        }
        let port = linear.leaves_by(&self.env(now), in_port, &uniform.keys[..count])?;
        Some(UniformDecision { snapshot: self, view, linear, in_port, port, probes })
    }

    /// The program of these entries, if all have the same.
    #[inline]
    fn one_program(&self, found: &[RecordId]) -> Option<u32> {
        let program = |id: RecordId| self.line(id).rule().program;
        if !found.iter().all(|id| id.is_some()) {
            return None;
        }
        let first = program(*found.first()?);
        let differ = found.iter().fold(0, |differ, &id| differ | (program(id) ^ first));
        (differ == 0).then_some(first)
    }
}

/// Parses frames that came in by a port.
#[inline]
fn parse<'h>(
    heads: impl Iterator<Item = &'h Head>,
    (in_port, depth): (PortNo, Depth),
    uniform: &mut UniformScratch,
) {
    for ((head, key), layers) in heads.zip(&mut uniform.keys).zip(&mut uniform.layers) {
        *key = Key::default();
        key.set(Field::InPort, in_port.into());
        wire::parse_on(head, depth, key, layers);
    }
}

impl UniformDecision<'_> {
    /// The port by which the frames leave.
    pub fn port(&self) -> PortNo {
        self.port
    }

    /// Edits and counts the batch, in its order; each head comes with the bytes of its frame.
    #[inline(never)] // one call a batch: within its caller, its edits would become calls, one a frame
    pub fn run<'h>(
        &self,
        work: &mut Workspace,
        packets: impl Iterator<Item = (&'h mut Head, usize)>,
        now: Nanos,
    ) {
        let Self { snapshot, view, linear, in_port, probes, .. } = *self;
        let Workspace { uniform, worker, .. } = work;
        let UniformScratch { keys, layers, found, backoffs } = &mut **uniform;
        backoffs.at(snapshot.place(in_port)).succeeded();
        let (mut same, mut count) = (Same::default(), 0);
        for ((((head, len), &id), key), layers) in packets.zip(&*found).zip(keys).zip(layers) {
            if id != same.id {
                same.count(snapshot, *worker, tick(now));
                same = Same::of(snapshot, id);
            }
            same.add(len as u64);
            linear.route(head, key, layers);
            count += 1;
        }
        same.count(snapshot, *worker, tick(now));
        view.counters.add(*worker, count, count, u64::from(probes));
    }
}
