//! Token buckets in the kernel's memory: what workers and rungs take from.
//!
//! A place holds one band of one meter. It is held by whoever has its [`Limit`], and outlives flows that pass it. After a restart those
//! that a dead node's flows pass are kept until it is clear who takes them up.

use super::abi::{LIMITS, OffloadFlow, OffloadLimit};
use super::flows::Flows;
use flow::{BucketShape, Counted, RateUnit, SharedBucket};
use offload::LimitId;
use std::collections::BTreeSet;
use std::fmt;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, MutexGuard, PoisonError};

/// Which places are not free.
#[derive(Default)]
pub(super) struct Places {
    held: BTreeSet<u32>,
    /// By flows of a dead node.
    left: BTreeSet<u32>,
}

impl Places {
    /// Those that these flows pass.
    pub(super) fn left_by(flows: impl Iterator<Item = OffloadFlow>) -> Self {
        let left = flows.flat_map(|flow| {
            let both = places(&flow.limits).chain(places(&flow.shapes));
            both.map(|limit| limit.0).collect::<Vec<_>>()
        });
        Self { held: BTreeSet::new(), left: left.collect() }
    }

    fn take_free(&mut self) -> Option<u32> {
        let is_free = |place: &u32| !self.held.contains(place) && !self.left.contains(place);
        let free = (0..LIMITS).find(is_free)?;
        self.held.insert(free);
        Some(free)
    }
}

/// The limits of a flow, or its greatest rates.
pub(super) fn places(of_flow: &[u32]) -> impl Iterator<Item = LimitId> {
    of_flow.iter().map_while(|place| place.checked_sub(1)).map(LimitId)
}

/// A place, held.
pub struct Limit {
    flows: Arc<Flows>,
    place: u32,
    is_live: bool,
}

impl Flows {
    /// A place for a bucket: `before`, if a dead node left that bucket there, which goes on then; else a free one. `None`: there is none.
    pub fn limit(self: &Arc<Self>, shape: &BucketShape, before: Option<LimitId>) -> Option<Limit> {
        let mut places = self.places();
        let lives = |at: &LimitId| places.left.contains(&at.0) && self.shape(at.0) == *shape;
        if let Some(LimitId(place)) = before.filter(lives) {
            places.left.remove(&place);
            places.held.insert(place);
            return Some(Limit { flows: self.clone(), place, is_live: true });
        }
        let place = places.take_free()?;
        let BucketShape { burst, rate, unit } = *shape;
        let value = OffloadLimit {
            full_at: 0,
            burst,
            rate,
            unit: number(unit),
            idle: 0,
            given_up: 0,
            refused: 0,
            refused_bytes: 0,
        };
        self.limits.set(place as usize, &value);
        Some(Limit { flows: self.clone(), place, is_live: false })
    }

    /// What a dead node left and nobody took up is free.
    pub fn forget_limits(&self) {
        self.places().left.clear();
    }

    fn shape(&self, place: u32) -> BucketShape {
        let OffloadLimit { burst, rate, unit, .. } = self.limits.get(place as usize);
        let all = [RateUnit::Kilobits, RateUnit::Frames];
        let found = all.into_iter().find(|&of| number(of) == unit);
        BucketShape { burst, rate, unit: found.unwrap_or(RateUnit::Bits) }
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn number(unit: RateUnit) -> u64 {
    match unit {
        RateUnit::Kilobits => super::abi::KILOBITS,
        RateUnit::Frames => super::abi::FRAMES,
        RateUnit::Bits => super::abi::BITS,
    }
}

impl Limit {
    fn word(&self, offset: usize) -> &AtomicU64 {
        self.flows.limits.u64_at(self.place as usize, offset)
    }
}

impl SharedBucket for Limit {
    fn place(&self) -> u32 {
        self.place
    }

    fn is_live(&self) -> bool {
        self.is_live
    }

    fn full_at(&self) -> &AtomicU64 {
        self.word(offset_of!(OffloadLimit, full_at))
    }

    fn idle(&self) -> &AtomicU64 {
        self.word(offset_of!(OffloadLimit, idle))
    }

    fn refused(&self) -> Counted {
        let read = |offset| self.word(offset).load(Relaxed);
        let packets = read(offset_of!(OffloadLimit, refused));
        Counted { packets, bytes: read(offset_of!(OffloadLimit, refused_bytes)) }
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        self.flows.places().held.remove(&self.place);
    }
}

impl fmt::Debug for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Limit").field(&self.place).finish()
    }
}
