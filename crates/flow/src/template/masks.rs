//! At most K hashed masks, in order of their highest priority; a key stops where nothing later can beat what it has.

use super::probe::{Probe, Scratch};
use super::{Found, Inquiry, Searched};
use crate::limits::LANES;
use crate::store::RecordId;
use wire::Key;

/// Priority of what was found for each key so far.
pub(super) type Best = [Option<u16>; LANES];

/// The masks, highest priority first.
pub(crate) struct Masks {
    probes: Box<[Probe]>,
}

impl Masks {
    /// `probes` must be in order of falling priority.
    pub fn new(probes: Box<[Probe]>) -> Self {
        debug_assert!(probes.is_sorted_by_key(|probe| std::cmp::Reverse(probe.top)));
        Self { probes }
    }

    /// Masks probed at most.
    pub fn len(&self) -> usize {
        self.probes.len()
    }

    /// Whether it is one of the masks.
    pub fn holds(&self, mask: u16) -> bool {
        self.probes.iter().any(|probe| probe.number == mask)
    }

    /// Searches for each key.
    pub fn search(
        &self,
        at: Searched<'_>,
        keys: &[&Key],
        scratch: &mut Scratch,
        found: &mut Found,
    ) -> u32 {
        found[..keys.len()].fill(RecordId::NONE);
        let mut best = [None; LANES];
        self.improve(at, keys, scratch, found, &mut best)
    }

    /// What every packet finds that `of` is about: see [`super::TableView::search_known`].
    pub fn search_known(
        &self,
        at: Searched<'_>,
        of: &mut Inquiry<'_>,
        scratch: &mut Scratch,
    ) -> Option<RecordId> {
        let (mut best, mut found) = (None, RecordId::NONE);
        for probe in &self.probes {
            if best >= Some(probe.top) {
                break;
            }
            let hit = probe.search_known(at, of, scratch)?;
            let priority = hit.is_some().then(|| priority(at, hit));
            if best < priority {
                (best, found) = (priority, hit);
            }
        }
        Some(found)
    }

    /// Replaces what was found where a mask has something of higher priority. `best` is the priority of what was found.
    pub fn improve(
        &self,
        at: Searched<'_>,
        keys: &[&Key],
        scratch: &mut Scratch,
        found: &mut Found,
        best: &mut Best,
    ) -> u32 {
        let mut probes = 0;
        for probe in &self.probes {
            let mut lanes = [0_u8; LANES];
            let mut left = 0;
            for (lane, best) in best.iter().enumerate().take(keys.len()) {
                lanes[left % LANES] = lane as u8;
                left += usize::from(*best < Some(probe.top));
            }
            if left == 0 {
                break;
            }
            let some: [&Key; LANES] = std::array::from_fn(|i| keys[lanes[i] as usize % keys.len()]);
            let mut hits = [RecordId::NONE; LANES];
            probes += probe.search(at, &some[..left], scratch, &mut hits);
            for (&lane, &hit) in lanes[..left].iter().zip(&hits).filter(|(_, hit)| hit.is_some()) {
                let priority = Some(priority(at, hit));
                if best[lane as usize] < priority {
                    (best[lane as usize], found[lane as usize]) = (priority, hit);
                }
            }
        }
        probes
    }
}

fn priority(at: Searched<'_>, hit: RecordId) -> u16 {
    at.arena.line(hit).map_or(0, |line| line.rule().priority)
}
