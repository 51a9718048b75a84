//! What a controller asks of the meter table, and how it may be refused.

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
    /// Their drop precedence rises by this much (RFC 2597).
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
