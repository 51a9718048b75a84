//! Which part of a core's time is used, and by what.

use std::fmt;
use std::ops::{Index, IndexMut};

/// A part of one core's time: 0 to [`Load::FULL`].
///
/// Kept in parts per million, because one of a thousand flow groups on an almost idle core uses a few dozen of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Load(u32);

impl Load {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// The whole core.
    pub const FULL: Self = Self(1_000_000);

    /// `parts` of a million; more than all of it is [`Load::FULL`].
    pub const fn ppm(parts: u32) -> Self {
        Self(if parts < Self::FULL.0 { parts } else { Self::FULL.0 })
    }

    /// `parts` of a thousand; more than all of it is [`Load::FULL`].
    pub const fn per_mille(parts: u32) -> Self {
        Self::ppm(parts.saturating_mul(1000))
    }

    /// `parts` of a hundred; more than all of it is [`Load::FULL`].
    pub const fn percent(parts: u32) -> Self {
        Self::ppm(parts.saturating_mul(10_000))
    }

    /// `busy` of `window`, both in one unit (nanoseconds, cycles); of an empty window, nothing.
    pub fn of(busy: u64, window: u64) -> Self {
        let parts = u128::from(busy) * u128::from(Self::FULL.0) / u128::from(window.max(1));
        Self::ppm(u32::try_from(parts).unwrap_or(u32::MAX))
    }

    /// In parts of a million.
    pub const fn as_ppm(self) -> u32 {
        self.0
    }

    /// In parts of a thousand, rounded to the nearest.
    pub const fn as_per_mille(self) -> u32 {
        (self.0 + 500) / 1000
    }

    /// Both, at most [`Load::FULL`].
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self::ppm(self.0 + other.0)
    }

    /// What is left of this after `other`, at least nothing.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

/// As a percentage with one digit: `12.5%`.
impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per_mille = self.as_per_mille();
        f.pad(&format!("{}.{}%", per_mille / 10, per_mille % 10))
    }
}

/// A step of the way of a received packet to its guest (the stages of the models A to D).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// The driver's poll and the XDP program: the core that the NIC interrupts.
    Driver,
    /// Protocols, tunnel and switch: what the paper calls the soft-IRQ.
    Packet,
    /// The copy into the guest's ring.
    Vhost,
    /// The guest's own processor.
    Guest,
}

impl Stage {
    /// In the order a packet meets them.
    pub const ALL: [Self; 4] = [Self::Driver, Self::Packet, Self::Vhost, Self::Guest];

    /// One word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Driver => "driver",
            Self::Packet => "packet",
            Self::Vhost => "vhost",
            Self::Guest => "guest",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A core's load, each stage apart, and what belongs to none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageLoads {
    stages: [Load; 4],
    /// Everything that is no stage of packets: other programs, other interrupts.
    pub other: Load,
}

impl StageLoads {
    /// All together, at most [`Load::FULL`].
    pub fn total(&self) -> Load {
        self.stages.iter().fold(self.other, |sum, &load| sum.plus(load))
    }
}

impl Index<Stage> for StageLoads {
    type Output = Load;

    fn index(&self, stage: Stage) -> &Load {
        &self.stages[stage as usize]
    }
}

impl IndexMut<Stage> for StageLoads {
    fn index_mut(&mut self, stage: Stage) -> &mut Load {
        &mut self.stages[stage as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_never_more_than_the_whole_core() {
        assert_eq!(Load::percent(101), Load::FULL);
        assert_eq!(Load::per_mille(u32::MAX), Load::FULL);
        assert_eq!(Load::percent(60).plus(Load::percent(60)), Load::FULL);
        assert_eq!(Load::percent(20).minus(Load::percent(60)), Load::ZERO);
    }

    #[test]
    fn a_load_of_a_window_is_the_busy_part_of_it() {
        assert_eq!(Load::of(500_000, 2_000_000), Load::percent(25));
        assert_eq!(Load::of(3, 2), Load::FULL);
        assert_eq!(Load::of(u64::MAX, u64::MAX), Load::FULL);
        assert_eq!(Load::of(0, 0), Load::ZERO);
    }

    #[test]
    fn what_is_no_stage_counts_in_the_total_too() {
        let mut loads = StageLoads { other: Load::percent(5), ..StageLoads::default() };
        loads[Stage::Guest] = Load::percent(30);
        loads[Stage::Driver] = Load::per_mille(125);
        assert_eq!(loads.total().to_string(), "47.5%");
        loads[Stage::Packet] = Load::percent(90);
        assert_eq!(loads.total(), Load::FULL);
    }
}
