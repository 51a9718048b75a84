//! One worker's exact-match cache, in front of all switches' tables.
//!
//! It maps the bits of a packet's key that any table of its switch looks at to the packet's finished trace: the entries it
//! hits and how its way ends. A pipeline that looks at addresses of stations only thus shares a line among all their
//! connections.
//!
//! **Validity.** A line holds while the tables that were searched for it find the same for its key ([`validity`]), and while the tables of its
//! switch look at the same bits of keys. What becomes of all packets of a port ([`port_memo`], [`frame_pattern`]) holds while table 0, the ports and the
//! settings are as they were. Counting is not the cache's business: a hit counts on the entries' own records as a
//! search does, so statistics are exact and never late.
//!
//! **Isolation.** The hash is keyed with a secret of the worker. A switch may hold at most its *quota* of lines, an even
//! share of all; at its quota it replaces its own lines or stale ones ([`lines`]). Whether a lookup pays is
//! measured per switch ([`policy`]); while it does not, the cache is passed by.

mod backoff;
mod counts;
mod frame_pattern;
mod lines;
mod policy;
mod port_memo;
mod trace;
mod validity;

pub(crate) use backoff::Backoffs;
pub use counts::CacheCounts;
pub(crate) use frame_pattern::{FramePattern, FramePatterns};
pub(crate) use port_memo::{Place, PortMemo};
pub(crate) use trace::{End, STEPS, Trace, Traces};

use crate::limits::LANES;
use crate::snapshot::Snapshot;
use crate::store::Secret;
use lines::{Found, Lines};
use policy::Policy;
use wire::{Key, WORDS};

/// Finished traces by key, of one worker.
pub(crate) struct Cache {
    rows: Box<[[u64; LANES]; WORDS]>,
    hashes: [u64; LANES],
    secret: Secret,
    lines: Lines,
    policies: Vec<Policy>,
    counts: CacheCounts,
}

/// What the cache knows of a batch.
pub(crate) struct Looked {
    /// Packets whose trace was found, as bits.
    pub hits: u32,
}

impl Cache {
    /// A cache of about `entries` traces, keyed with a random `secret`; none with 0 entries.
    pub fn new(secret: [u64; 2], entries: usize) -> Self {
        Self {
            rows: Box::new([[0; LANES]; WORDS]),
            hashes: [0; LANES],
            secret: Secret::new(secret),
            lines: Lines::new(entries),
            policies: Vec::new(),
            counts: CacheCounts::default(),
        }
    }

    /// Takes the counts since the last call.
    #[inline]
    pub fn take_counts(&mut self) -> CacheCounts {
        std::mem::take(&mut self.counts)
    }

    /// Looks up every packet of a batch and puts what it finds into `traces`. `None` if that does not pay now.
    pub fn look_up(
        &mut self,
        snapshot: &Snapshot,
        keys: &[&Key],
        traces: &mut Traces,
    ) -> Option<Looked> {
        if !snapshot.view.is_worth_caching()
            || !self.lines.exist()
            || !self.policy(snapshot).is_on(keys.len())
        {
            self.counts.passed_by += keys.len() as u64;
            return None;
        }
        let union = &snapshot.view.union;
        union.pack_rows(keys, &mut self.rows);
        self.secret.hash_rows(&self.rows[..union.words()], keys.len(), &mut self.hashes);
        let mut hits = 0_u32;
        for (lane, key) in keys.iter().enumerate() {
            let (owner, packed) = (owner(snapshot), self.packed(union.words(), lane));
            let judge = |trace: &Trace, made| validity::judge(snapshot, key, trace, made);
            let found = self.lines.find(owner, self.hashes[lane], &packed, snapshot.serial, judge);
            let trace = match found {
                Found::Hit(trace) => trace,
                Found::Renewed(trace, compared) => {
                    self.counts.compared += u64::from(compared);
                    trace
                }
                Found::Stale(compared) => {
                    self.counts.compared += u64::from(compared);
                    self.counts.stale += 1;
                    continue;
                }
                Found::Absent => {
                    self.counts.absent += 1;
                    continue;
                }
            };
            traces.set(lane, trace);
            hits |= 1 << lane;
        }
        self.counts.hits += u64::from(hits.count_ones());
        self.policy(snapshot).looked_up(keys.len(), hits.count_ones());
        Some(Looked { hits })
    }

    /// Takes in the traces of the packets that were not found. `probes` is what tracing them cost.
    pub fn insert(
        &mut self,
        snapshot: &Snapshot,
        looked: &Looked,
        (traces, count): (&Traces, usize),
        skip: u32,
        probes: u32,
    ) {
        let words = snapshot.view.union.words();
        let missed = !(looked.hits | skip) & (u64::from(u32::MAX) >> (LANES - count)) as u32;
        self.policy(snapshot).traced(missed.count_ones(), probes);
        for lane in (0..count).filter(|lane| missed & 1 << lane != 0) {
            let trace = traces.of(lane);
            let (owner, packed) = (owner(snapshot), self.packed(words, lane));
            self.lines.insert(owner, self.hashes[lane], &packed, (trace, snapshot.serial));
        }
    }

    fn packed(&self, words: usize, lane: usize) -> lines::Packed {
        let mut packed = [0; WORDS];
        packed.iter_mut().zip(&self.rows[..words]).for_each(|(word, row)| *word = row[lane]);
        packed
    }

    fn policy(&mut self, snapshot: &Snapshot) -> &mut Policy {
        let at = snapshot.switch as usize;
        if self.policies.len() <= at {
            self.policies.resize_with(at + 1, Policy::default);
        }
        &mut self.policies[at]
    }
}

/// Whose lines this snapshot finds. How far a trace goes depends on the settings, too.
fn owner(snapshot: &Snapshot) -> lines::Owner {
    let versions = &snapshot.versions;
    lines::Owner { switch: snapshot.switch, layout: versions.layout.max(versions.settings) }
}
