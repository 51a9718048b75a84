//! Meters (OpenFlow 1.3.5 §5.7, §7.3.4.4, §7.3.5.11 to §7.3.5.13).

use crate::group::Counter;
use crate::ids::MeterId;
use crate::wire_enum::wire_enum;

wire_enum! {
    /// What a meter-mod does.
    MeterModCommand: u16 {
        /// Add a new meter.
        Add = 0,
        /// Replace a meter.
        Modify = 1,
        /// Delete a meter and the flow entries that use it.
        Delete = 2,
    }
}

bitflags::bitflags! {
    /// `OFPMF_*`.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct MeterFlags: u16 {
        /// Rates are in kilobits per second.
        const KBPS = 1;
        /// Rates are in packets per second.
        const PKTPS = 2;
        /// Burst sizes count.
        const BURST = 4;
        /// Collect statistics.
        const STATS = 8;
    }
}

/// What happens to packets above a rate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BandKind {
    /// Drop them.
    Drop,
    /// Raise their DSCP drop precedence.
    DscpRemark {
        /// By how much.
        prec_level: u8,
    },
    /// An experimenter's band.
    Experimenter {
        /// Who defined it.
        experimenter: u32,
    },
}

/// One band of a meter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MeterBand {
    /// What it does.
    pub kind: BandKind,
    /// Rate above which it acts, in the meter's unit.
    pub rate: u32,
    /// Burst allowed, in kilobits or packets.
    pub burst_size: u32,
}

/// A change of a meter.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MeterMod {
    /// What to do.
    pub command: MeterModCommand,
    /// Unit and options.
    pub flags: MeterFlags,
    /// The meter; [`MeterId::ALL`] only in deletions.
    pub id: MeterId,
    /// Its bands.
    pub bands: Vec<MeterBand>,
}

/// A meter as the switch describes it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MeterConfig {
    /// Unit and options.
    pub flags: MeterFlags,
    /// The meter.
    pub id: MeterId,
    /// Its bands.
    pub bands: Vec<MeterBand>,
}

/// A meter's counters.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MeterStats {
    /// The meter.
    pub id: MeterId,
    /// Flow entries that use it.
    pub flow_count: u32,
    /// Packets and bytes that entered it.
    pub input: Counter,
    /// Its age: whole seconds.
    pub duration_s: u32,
    /// Its age: nanoseconds beyond.
    pub duration_ns: u32,
    /// Per band: what it acted on.
    pub bands: Vec<Counter>,
}

/// What the switch's meters can do.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct MeterFeatures {
    /// Most meters.
    pub max_meter: u32,
    /// Bit per supported band type (1 = drop, 2 = DSCP remark).
    pub band_types: u32,
    /// Supported flags.
    pub capabilities: MeterFlags,
    /// Most bands per meter.
    pub max_bands: u8,
    /// Most DSCP remark levels.
    pub max_color: u8,
}
