//! Meters: rate limits that flow entries share (OpenFlow 1.3.5 §5.7, §6.8).
//!
//! Each band has a token bucket of its own, kept as a *theoretical arrival time* ([`bucket`]): one atomic word, so
//! workers on any number of cores share one limit without a lock, and exactly. Every packet is put to every band; of
//! the bands whose rate it exceeds, the one with the highest rate decides.
//!
//! Counters and buckets are shared by all copies of the table, so publishing a snapshot changes neither.

mod bucket;
#[cfg(test)]
mod tests;

use crate::idmap::IdMap;
use crate::tally::{Counted, Tally};
use crate::time::Nanos;
use bucket::TokenBucket;
use std::sync::Arc;

/// Highest meter number of flow entries (`OFPM_MAX`).
pub const MAX_METER: u32 = 0xffff_0000;

/// The meter that packet-ins of the switch pass, if it is configured (`OFPM_CONTROLLER`).
pub const CONTROLLER_METER: u32 = 0xffff_fffe;

/// What a meter's rates and bursts count (`OFPMF_KBPS`, `OFPMF_PKTPS`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MeterUnit {
    /// Rates in 1000 bits per second and bursts in 1000 bits, of whole frames without FCS.
    Kbps,
    /// Rates in packets per second and bursts in packets. A frame to be segmented later is one packet.
    Pktps,
}

/// What happens to packets that exceed a band's rate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BandKind {
    /// They are dropped.
    Drop,
    /// Their drop precedence rises by this much ([`remarked`]).
    DscpRemark {
        /// Steps, at least 1.
        level: u8,
    },
}

/// One band of a meter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Band {
    /// Its rate, at least 1.
    pub rate: u32,
    /// Its burst size; without [`MeterConfig::burst`], or 0, it is what the rate gives in 100 ms.
    pub burst: u32,
    /// What it does.
    pub kind: BandKind,
}

/// What a meter limits.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MeterConfig {
    /// What it counts.
    pub unit: MeterUnit,
    /// The bands' burst sizes count (`OFPMF_BURST`).
    pub burst: bool,
    /// The controller wants statistics (`OFPMF_STATS`); they are kept in any case.
    pub stats: bool,
    /// Its bands.
    pub bands: Vec<Band>,
}

/// One change of the meter table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MeterMod {
    /// A new meter.
    Add {
        /// Its number.
        id: u32,
        /// What it limits.
        config: MeterConfig,
    },
    /// Other limits for a meter. Its own counters and age go on; those of its bands start afresh.
    Modify {
        /// Its number.
        id: u32,
        /// What it limits.
        config: MeterConfig,
    },
    /// One meter goes; an absent one is no error.
    Delete {
        /// Its number.
        id: u32,
    },
    /// All meters go (`OFPM_ALL`).
    DeleteAll,
}

/// Why a [`MeterMod`] was refused. Each maps to one OpenFlow error; nothing changed then.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MeterModError {
    /// `OFPMMFC_METER_EXISTS`.
    #[error("meter {0} exists already")]
    Exists(u32),
    /// `OFPMMFC_INVALID_METER`: a reserved number.
    #[error("no meter can have the number {0:#x}")]
    Invalid(u32),
    /// `OFPMMFC_UNKNOWN_METER`.
    #[error("meter {0} does not exist")]
    Unknown(u32),
    /// `OFPMMFC_BAD_RATE`: a rate of 0.
    #[error("band {0} has no rate")]
    BadRate(usize),
    /// `OFPMMFC_BAD_BAND_VALUE`: a remark by 0 steps.
    #[error("band {0} does not change the drop precedence")]
    BadBandValue(usize),
    /// `OFPMMFC_OUT_OF_METERS`.
    #[error("the meter table is full at {0} meters")]
    OutOfMeters(u32),
    /// `OFPMMFC_OUT_OF_BANDS`.
    #[error("a meter can have at most {0} bands")]
    OutOfBands(u32),
}

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
pub(crate) enum MeterVerdict {
    Pass,
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
    tally: Arc<Tally>,
    created: Nanos,
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
                self.put(id, config, Arc::default(), now, now)
            }
            MeterMod::Modify { id, config } => {
                let before = self.meters.get(id).ok_or(MeterModError::Unknown(id))?;
                let (tally, created) = (before.tally.clone(), before.created);
                self.put(id, config, tally, created, now)
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
        let all = self.meters.sorted().into_iter();
        all.filter(|&(at, _)| id.is_none_or(|id| id == at))
            .map(|(id, meter)| meter.stats(id, now))
            .collect()
    }

    /// Puts one packet to a meter; an absent meter lets everything pass.
    pub(crate) fn pass(&self, id: u32, bytes: u32, now: Nanos) -> MeterVerdict {
        self.meters.get(id).map_or(MeterVerdict::Pass, |meter| meter.pass(bytes, now))
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
        tally: Arc<Tally>,
        created: Nanos,
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
        self.meters.insert(id, Arc::new(Meter { config, tally, created, bands }));
        Ok(Vec::new())
    }
}

impl Meter {
    fn pass(&self, bytes: u32, now: Nanos) -> MeterVerdict {
        self.tally.count(bytes);
        // Every bucket is charged, also when another band decides: each measures the rate for itself.
        let exceeded = self
            .bands
            .iter()
            .zip(&self.config.bands)
            .filter(|(state, _)| !state.bucket.take(bytes, now));
        let Some((state, band)) = exceeded.max_by_key(|(_, band)| band.rate) else {
            return MeterVerdict::Pass;
        };
        state.tally.count(bytes);
        match band.kind {
            BandKind::Drop => MeterVerdict::Drop,
            BandKind::DscpRemark { level } => MeterVerdict::Remark(level),
        }
    }

    fn stats(&self, id: u32, now: Nanos) -> MeterStats {
        MeterStats {
            id,
            counted: self.tally.read(),
            age_ns: now.since(self.created),
            bands: self.bands.iter().map(|band| band.tally.read()).collect(),
        }
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
