//! Packets that differ, and leave together.
//!
//! A router's batch goes to many destinations by many entries, and yet most often by one port, after the same edits: a bridge's likewise. Where each packet of a batch
//! finds an entry of one program, and that is to replace addresses, to decrement TTLs and to send, nothing has to be kept of each but its key: no verdict, no list of who waits for
//! what. It is what [`super::process`] would do, in less; of whatever is not so plain nothing has been done, and it is processed as ever.
//!
//! **Two steps.** [`Snapshot::together`] finds out and changes nothing, but that stations' ages are renewed, as they would be again. [`Together::run`] counts and edits, once the
//! caller knows that the port takes them all.

use super::Workspace;
use super::direct::Same;
use crate::action::{Output, PortNo};
use crate::cache::Attempts;
use crate::exec::Straight;
use crate::limits::LANES;
use crate::snapshot::Snapshot;
use crate::store::{RecordId, tick};
use crate::template::TableView;
use crate::time::Nanos;
use wire::{Depth, Field, Head, Key, Layers};

/// Most packets of a batch.
const MOST: usize = 2 * LANES;

/// A worker's memory for it.
pub(crate) struct Aside {
    keys: [Key; MOST],
    layers: [Layers; MOST],
    found: [RecordId; MOST],
    /// Whether it is worth trying at a port: a guess, which ports may share.
    attempts: [Attempts; 16],
}

impl Default for Aside {
    fn default() -> Self {
        Self {
            keys: [Key::default(); MOST],
            layers: [Layers::default(); MOST],
            found: [RecordId::NONE; MOST],
            attempts: Default::default(),
        }
    }
}

/// Where a batch goes.
pub struct Together<'s> {
    snapshot: &'s Snapshot,
    view: &'s TableView,
    straight: &'s Straight,
    in_port: PortNo,
    port: PortNo,
    probes: u32,
}

impl Snapshot {
    /// Where these packets go, which came in by `in_port` without a tunnel id, if all of them leave by one port after the same edits; none is shorter than an Ethernet header.
    /// `None` if that is not so, or was not lately.
    #[inline]
    pub fn together<'h>(
        &self,
        work: &mut Workspace,
        in_port: PortNo,
        heads: impl ExactSizeIterator<Item = &'h Head> + Clone,
        now: Nanos,
    ) -> Option<Together<'_>> {
        let view = self.view.table(0).filter(|view| view.is_last)?;
        let count = heads.len();
        if !self.admits(in_port) || self.view.is_worth_caching() || !(1..=MOST).contains(&count) {
            return None;
        }
        let Workspace { aside, scratch, .. } = work;
        let attempts = &mut aside.attempts[in_port as usize % 16];
        if !attempts.are_due() {
            return None;
        }
        parse(heads.clone(), (in_port, self.depth()), aside);
        let mut probes = 0;
        for (keys, ids) in
            aside.keys[..count].chunks(LANES).zip(aside.found.chunks_exact_mut(LANES))
        {
            let mut each = [&keys[0]; LANES];
            each.iter_mut().zip(keys).for_each(|(at, key)| *at = key);
            let ids = ids.first_chunk_mut()?;
            probes += view.template.search(self.searched(), &each[..keys.len()], scratch, ids);
        }
        let program = self.one_program(&aside.found[..count])?;
        let straight = self.programs.get(program).straight.as_ref()?;
        let parsed = aside.keys[..count].iter().zip(&aside.layers);
        if !straight.surely_routes(heads.zip(parsed)) {
            return None;
        }
        let port = self.one_exit(straight, in_port, &aside.keys[..count], now)?;
        Some(Together { snapshot: self, view, straight, in_port, port, probes })
    }

    /// The program of all these entries, if they have one.
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

    /// The port by which packets of these keys leave, if it is one.
    #[inline]
    fn one_exit(
        &self,
        straight: &Straight,
        in_port: PortNo,
        keys: &[Key],
        now: Nanos,
    ) -> Option<PortNo> {
        let env = self.env(now);
        match straight.to() {
            Output::Port(port) => {
                (port != in_port && self.ports.surely_sends(port)).then_some(port)
            }
            Output::Normal if !straight.edits() => env.bridged_to(keys, in_port),
            _ => None,
        }
    }
}

/// Parses packets that came in by a port.
#[inline]
fn parse<'h>(
    heads: impl Iterator<Item = &'h Head>,
    (in_port, depth): (PortNo, Depth),
    aside: &mut Aside,
) {
    for ((head, key), layers) in heads.zip(&mut aside.keys).zip(&mut aside.layers) {
        *key = Key::default();
        key.set(Field::InPort, in_port.into());
        wire::parse_on(head, depth, key, layers);
    }
}

impl Together<'_> {
    /// The port by which they leave.
    pub fn port(&self) -> PortNo {
        self.port
    }

    /// Edits and counts them: the same, in the same order, each with the bytes of its frame.
    #[inline]
    pub fn run<'h>(
        &self,
        work: &mut Workspace,
        packets: impl Iterator<Item = (&'h mut Head, usize)>,
        now: Nanos,
    ) {
        let Self { snapshot, view, straight, in_port, probes, .. } = *self;
        let Workspace { aside, worker, .. } = work;
        let Aside { keys, layers, found, attempts } = &mut **aside;
        attempts[in_port as usize % 16].succeeded();
        let (mut same, mut count) = (Same::default(), 0);
        for ((((head, len), &id), key), layers) in packets.zip(&*found).zip(keys).zip(layers) {
            if id != same.id {
                same.count(snapshot, *worker, tick(now));
                same = Same::of(snapshot, id);
            }
            same.add(len as u64);
            straight.route(head, key, layers);
            count += 1;
        }
        same.count(snapshot, *worker, tick(now));
        view.counters.add(*worker, count, count, u64::from(probes));
    }
}
