//! The names of the ladder's rungs, and sets of them.

use std::fmt;

/// One way to work off a batch; the earlier, the less is done for each frame.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Rung {
    /// The ingress port decides; no byte of a frame is read.
    Port,
    /// The bytes that tables match are those of an earlier frame.
    Pattern,
    /// Many entries, one program, one output port.
    Uniform,
    /// Decided frame by frame; all leave by one port as they lie.
    Whole,
    /// Every frame on its own.
    Pass,
}

impl Rung {
    /// Every rung, in the order in which they are tried.
    pub const ALL: [Self; 5] = [Self::Port, Self::Pattern, Self::Uniform, Self::Whole, Self::Pass];

    /// Stable name, as the configuration, the API and `suiro top` have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Port => "port",
            Self::Pattern => "pattern",
            Self::Uniform => "uniform",
            Self::Whole => "whole",
            Self::Pass => "pass",
        }
    }

    /// The rung of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rung| rung.name() == name)
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of rungs. [`Rung::Pass`] is always in it: it takes what no other rung takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rungs(u8);

impl Rungs {
    /// Every rung.
    pub const ALL: Self = Self((1 << Rung::ALL.len()) - 1);

    /// The last rung alone: every frame is processed on its own.
    pub const PASS: Self = Self(Rung::Pass.bit());

    /// The rungs that decide about a batch at once.
    pub(crate) const BY_BATCH: Self = Self::ALL.without(Rung::Whole);

    /// The rungs that run the pipeline for every frame.
    pub(crate) const BY_FRAME: Self = Self::PASS.with(Rung::Whole);

    /// Tells if the rung is in the set.
    #[inline]
    pub const fn has(self, rung: Rung) -> bool {
        self.0 & rung.bit() != 0
    }

    /// The set with this rung too.
    pub const fn with(self, rung: Rung) -> Self {
        Self(self.0 | rung.bit())
    }

    /// The set without this rung; [`Rung::Pass`] stays.
    pub const fn without(self, rung: Rung) -> Self {
        Self(self.0 & !rung.bit() | Self::PASS.0)
    }

    /// The rungs that are in both sets.
    #[inline]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Tells if only [`Rung::Pass`] is in the set.
    #[inline]
    pub(crate) const fn is_pass(self) -> bool {
        self.0 == Self::PASS.0
    }

    /// The rungs in the set, in the order in which they are tried.
    pub fn iter(self) -> impl Iterator<Item = Rung> {
        Rung::ALL.into_iter().filter(move |&rung| self.has(rung))
    }

    pub(crate) const fn bits(self) -> u8 {
        self.0
    }

    #[inline]
    pub(crate) const fn from_bits(bits: u8) -> Self {
        Self(bits & Self::ALL.0 | Self::PASS.0)
    }
}

impl Default for Rungs {
    fn default() -> Self {
        Self::ALL
    }
}

impl FromIterator<Rung> for Rungs {
    fn from_iter<I: IntoIterator<Item = Rung>>(rungs: I) -> Self {
        rungs.into_iter().fold(Self::PASS, Self::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_rung_is_in_every_set() {
        let none: Rungs = [].into_iter().collect();
        assert_eq!(none, Rungs::PASS);
        assert!(Rungs::ALL.without(Rung::Pass).has(Rung::Pass));
        assert_eq!(Rungs::ALL.without(Rung::Port).iter().collect::<Vec<_>>(), Rung::ALL[1..]);
    }

    #[test]
    fn every_rung_is_found_by_its_name() {
        for rung in Rung::ALL {
            assert_eq!(Rung::of_name(rung.name()), Some(rung));
            assert_eq!(rung as usize, Rung::ALL.iter().position(|&other| other == rung).unwrap());
        }
        assert_eq!(Rung::of_name("nic"), None);
    }
}
