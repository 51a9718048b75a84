//! Meters: rate limits that flow entries share (OpenFlow 1.3.5 §5.7, §6.8).
//!
//! Each band has a token bucket of its own, kept as a *theoretical arrival time* ([`bucket`]): one atomic word, so
//! workers on any number of cores share one limit without a lock, and exactly. Every packet is put to every band; of
//! the bands whose rate it exceeds, the one with the highest rate decides.
//!
//! Counters and buckets are shared by all copies of the table, so publishing a snapshot changes neither.

mod bucket;
mod change;
#[cfg(test)]
mod tests;
mod word;

pub use change::{
    Band, BandKind, CONTROLLER_METER, MAX_METER, MeterConfig, MeterMod, MeterModError, MeterUnit,
};

use crate::idmap::IdMap;
use crate::tally::{Counted, History, Tally};
use crate::time::Nanos;
use bucket::TokenBucket;
use std::sync::Arc;
pub use word::{BucketShape, RateUnit, Refused, SharedBucket, Taken, UNITS, Word, ahead, units};

/// What a meter table may grow to (`OFPMP_METER_FEATURES`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MeterLimits {
    /// Meters.
    pub meters: u32,
    /// Bands of one meter: what one packet can cost.
    pub bands: u32,
}

impl Default for MeterLimits {
    /// Chosen: one meter a guest port and flow class of a full host; a packet updates at most 8 words.
    fn default() -> Self {
        Self { meters: 65_536, bands: 8 }
    }
}

/// One meter's counters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MeterStats {
    /// Its number.
    pub id: u32,
    /// What came in. The flow entries that use it are for the tables to count.
    pub counted: Counted,
    /// Nanoseconds since it was added.
    pub age_ns: u64,
    /// What each band dropped or remarked.
    pub bands: Vec<Counted>,
}

/// What becomes of a packet at a meter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MeterVerdict {
    /// It passes.
    Pass,
    /// It is dropped.
    Drop,
    /// Its drop precedence is to rise by this much.
    Remark(u8),
}

/// The meters of one switch.
#[derive(Clone, Debug, Default)]
pub struct MeterTable {
    limits: MeterLimits,
    meters: IdMap<Arc<Meter>>,
}

#[derive(Debug)]
struct Meter {
    config: MeterConfig,
    history: History,
    bands: Box<[BandState]>,
}

/// A band at work.
#[derive(Debug)]
struct BandState {
    bucket: TokenBucket,
    tally: Tally,
}

impl MeterTable {
    /// An empty table.
    pub fn new(limits: MeterLimits) -> Self {
        Self { limits, meters: IdMap::default() }
    }

    /// Makes one change. Returns the meters that went, whose flow entries must go with them.
    ///
    /// # Errors
    /// The table is as before.
    pub fn apply(&mut self, change: MeterMod, now: Nanos) -> Result<Vec<u32>, MeterModError> {
        match change {
            MeterMod::Add { id, config } => {
                self.check_addable(id)?;
                self.put(id, config, History::begin(now), now)
            }
            MeterMod::Modify { id, config } => {
                let before = self.meters.get(id).ok_or(MeterModError::Unknown(id))?;
                let history = before.history.clone();
                self.put(id, config, history, now)
            }
            MeterMod::Delete { id } => Ok(self.meters.remove(id).map(|_| id).into_iter().collect()),
            MeterMod::DeleteAll => {
                let gone = self.meters.sorted().into_iter().map(|(id, _)| id).collect();
                *self = Self::new(self.limits);
                Ok(gone)
            }
        }
    }

    /// Whether the meter exists.
    pub fn contains(&self, id: u32) -> bool {
        self.meters.contains(id)
    }

    /// Number of meters.
    pub fn len(&self) -> usize {
        self.meters.len()
    }

    /// Whether there is no meter.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the table may grow to.
    pub fn limits(&self) -> MeterLimits {
        self.limits
    }

    /// Every meter, by number.
    pub fn configs(&self) -> impl Iterator<Item = (u32, &MeterConfig)> {
        self.meters.sorted().into_iter().map(|(id, meter)| (id, &meter.config))
    }

    /// The counters of one meter, or of all of them by number.
    pub fn stats(&self, id: Option<u32>, now: Nanos) -> Vec<MeterStats> {
        // One of very many is no reason to look at all of them.
        match id {
            Some(id) => self.meters.get(id).map(|meter| meter.stats(id, now)).into_iter().collect(),
            None => {
                self.meters.sorted().into_iter().map(|(id, meter)| meter.stats(id, now)).collect()
            }
        }
    }

    /// Puts one packet to a meter; an absent meter lets everything pass.
    pub(crate) fn pass(&self, id: u32, bytes: u32, now: Nanos) -> MeterVerdict {
        self.meters.get(id).map_or(MeterVerdict::Pass, |meter| meter.pass(bytes, now))
    }

    /// What would become of a packet at a meter to which packets of the lengths `before` were put just now. Nothing is taken or counted.
    pub(crate) fn ask(
        &self,
        id: u32,
        before: impl Iterator<Item = u32> + Clone,
        bytes: u32,
        now: Nanos,
    ) -> MeterVerdict {
        let Some(meter) = self.meters.get(id) else { return MeterVerdict::Pass };
        let would_take = |state: &BandState| state.bucket.would_take(before.clone(), bytes, now);
        meter.decides(would_take).map_or(MeterVerdict::Pass, |(_, band)| band.kind.verdict())
    }

    /// Counts what another rung put to a meter and let pass.
    pub(crate) fn credit(&self, id: u32, frames: Counted) {
        if let Some(meter) = self.meters.get(id) {
            meter.history.tally.add(frames);
        }
    }

    /// Where rungs take from the buckets of a meter's bands: those of higher rates first, as the first that refuses decides. `find` finds
    /// places for those that have none; `None` if it does not.
    pub(crate) fn shared(
        &self,
        id: u32,
        find: &mut dyn FnMut(&BucketShape) -> Option<Arc<dyn SharedBucket>>,
    ) -> Option<Vec<u32>> {
        let Some(meter) = self.meters.get(id) else { return Some(Vec::new()) };
        let mut bands: Vec<_> = meter.bands.iter().zip(&meter.config.bands).rev().collect();
        bands.sort_by_key(|(_, band)| std::cmp::Reverse(band.rate));
        let mut place =
            |state: &BandState| state.bucket.shared(&mut *find).map(SharedBucket::place);
        bands.into_iter().map(|(state, _)| place(state)).collect()
    }

    /// From here on workers take from the buckets of a meter where rungs do.
    pub(crate) fn share(&self, id: u32) {
        self.meters
            .get(id)
            .into_iter()
            .flat_map(|meter| &meter.bands)
            .for_each(|band| band.bucket.share());
    }

    /// Whether the meter may change a packet's DSCP.
    pub(crate) fn remarks(&self, id: u32) -> bool {
        let remarks = |band: &Band| matches!(band.kind, BandKind::DscpRemark { .. });
        self.meters.get(id).is_some_and(|meter| meter.config.bands.iter().any(remarks))
    }

    fn check_addable(&self, id: u32) -> Result<(), MeterModError> {
        match () {
            () if !is_number(id) => Err(MeterModError::Invalid(id)),
            () if self.contains(id) => Err(MeterModError::Exists(id)),
            () if self.len() as u32 >= self.limits.meters => {
                Err(MeterModError::OutOfMeters(self.limits.meters))
            }
            () => Ok(()),
        }
    }

    fn put(
        &mut self,
        id: u32,
        config: MeterConfig,
        history: History,
        now: Nanos,
    ) -> Result<Vec<u32>, MeterModError> {
        if config.bands.len() > self.limits.bands as usize {
            return Err(MeterModError::OutOfBands(self.limits.bands));
        }
        config.bands.iter().enumerate().try_for_each(|(at, band)| check_band(at, band))?;
        let state = |band| BandState {
            bucket: TokenBucket::new(&config, band, now),
            tally: Tally::default(),
        };
        let bands = config.bands.iter().map(state).collect();
        self.meters.insert(id, Arc::new(Meter { config, history, bands }));
        Ok(Vec::new())
    }
}

impl Meter {
    fn pass(&self, bytes: u32, now: Nanos) -> MeterVerdict {
        self.history.tally.count(bytes);
        // Every bucket is charged, also when another band decides: each measures the rate for itself.
        let Some((state, band)) = self.decides(|state| state.bucket.take(bytes, now)) else {
            return MeterVerdict::Pass;
        };
        state.tally.count(bytes);
        band.kind.verdict()
    }

    /// Of the bands that do not conform, all of which are asked, the one that decides.
    fn decides(&self, conforms: impl Fn(&BandState) -> bool) -> Option<(&BandState, &Band)> {
        let bands = self.bands.iter().zip(&self.config.bands);
        bands.filter(|(state, _)| !conforms(state)).max_by_key(|(_, band)| band.rate)
    }

    fn stats(&self, id: u32, now: Nanos) -> MeterStats {
        MeterStats {
            id,
            counted: self.history.tally.read(),
            age_ns: now.since(self.history.created),
            bands: self.bands.iter().map(BandState::read).collect(),
        }
    }
}

impl BandKind {
    fn verdict(self) -> MeterVerdict {
        match self {
            Self::Drop => MeterVerdict::Drop,
            Self::DscpRemark { level } => MeterVerdict::Remark(level),
        }
    }
}

impl BandState {
    fn read(&self) -> Counted {
        let (worker, rungs) = (self.tally.read(), self.bucket.refused());
        Counted { packets: worker.packets + rungs.packets, bytes: worker.bytes + rungs.bytes }
    }
}

/// A DSCP with its drop precedence raised by `level`, as far as it goes.
///
/// Only the assured-forwarding classes have one: `AFxy` is `8x + 2y` with class x in 1..=4 and precedence y in 1..=3
/// (RFC 2597 §6). Any other DSCP stays what it is.
pub(crate) fn remarked(dscp: u8, level: u8) -> u8 {
    let (class, precedence) = (dscp >> 3, dscp >> 1 & 3);
    match (class, precedence, dscp & 1) {
        (1..=4, 1..=3, 0) => class << 3 | precedence.saturating_add(level).min(3) << 1,
        _ => dscp,
    }
}

fn is_number(id: u32) -> bool {
    (1..=MAX_METER).contains(&id) || id == CONTROLLER_METER
}

fn check_band(at: usize, band: &Band) -> Result<(), MeterModError> {
    match band.kind {
        _ if band.rate == 0 => Err(MeterModError::BadRate(at)),
        BandKind::DscpRemark { level: 0 } => Err(MeterModError::BadBandValue(at)),
        _ => Ok(()),
    }
}
