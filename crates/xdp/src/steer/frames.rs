//! Frames as steering's programs see them: as they come, as they go on, as they are dropped.

use super::SteerError;
use super::abi::{
    AFTER, BEFORE, DROPPED, IS_PRIORITY, NO_UNIT, SHOWN_MAX, SIDES, SteerLook, SteerShown,
    SteerShownCount, UNDECIDED, WANTS_OWN,
};
use super::attached::{FRAMES, LOOK, SHOWN};
use super::counts::Steered;
use super::maps::Maps;
use super::units::{UnitKind, kind};
use crate::sys::mapped::Mapped;
use crate::sys::steer::Record;
use aya::maps::{MapData, RingBuf};
use place::{CoreId, Reason, UnitId};
use std::mem::offset_of;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

/// Where a frame is seen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Side {
    /// As it came.
    Before,
    /// Handed to the stack, or to the port, on the core where that is.
    After,
    /// Dropped.
    Dropped,
}

impl Side {
    /// All, in the order of a frame's way.
    pub const ALL: [Self; SIDES] = [Self::Before, Self::After, Self::Dropped];

    /// One word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
            Self::Dropped => "dropped",
        }
    }

    fn of(raw: u8) -> Option<Self> {
        match raw {
            BEFORE => Some(Self::Before),
            AFTER => Some(Self::After),
            DROPPED => Some(Self::Dropped),
            _ => None,
        }
    }
}

/// A frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shown<'r> {
    /// Where.
    pub side: Side,
    /// When, in nanoseconds of the monotonic clock.
    pub at_ns: u64,
    /// The core.
    pub core: CoreId,
    /// The interface's receive queue, before only.
    pub queue: Option<u32>,
    /// What became of it; none before.
    pub verdict: Option<Steered>,
    /// Its unit.
    pub unit: Option<ShownUnit>,
    /// How long it is.
    pub len: u32,
    /// Its first bytes.
    pub bytes: &'r [u8],
}

/// What is known of a frame's unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShownUnit {
    /// Its number.
    pub id: UnitId,
    /// What it is made of.
    pub kind: UnitKind,
    /// Whether it goes before others.
    pub is_priority: bool,
    /// Whether it wants its guest's own core.
    pub wants_own_core: bool,
    /// Where it is to be.
    pub core: Option<CoreId>,
    /// Why.
    pub reason: Option<Reason>,
}

/// What the programs counted while somebody looked, at one side.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ShownCount {
    /// Frames for which there was no room.
    pub lost: u64,
    /// Time that all cores spent on it, in nanoseconds.
    pub spent_ns: u64,
}

/// The frames of one interface, to be read by one owner. Once it is open, none of this asks the kernel.
pub struct Frames {
    ring: RingBuf<MapData>,
    look: Mapped<SteerLook>,
    shown: Mapped<SteerShownCount>,
}

impl Frames {
    /// Of the interface that is pinned under this name below `root`. What was shown to others before is gone.
    ///
    /// # Errors
    /// It is not steered, or by a version that shows no frames.
    pub fn open(root: &Path, name: &str) -> Result<Self, SteerError> {
        let maps = Maps(super::pins::Pins::below(root).interface(name));
        let ring = RingBuf::try_from(maps.map(FRAMES)?).map_err(|_| maps.other_version(FRAMES))?;
        let mut frames = Self { ring, look: maps.mapped(LOOK)?, shown: maps.mapped(SHOWN)? };
        while frames.ring.next().is_some() {}
        Ok(frames)
    }

    /// Has the programs show so many bytes of each frame, 1984 at most, from now on; 0 for nothing at all.
    pub fn look(&self, bytes: u32) {
        let at = offset_of!(SteerLook, bytes);
        self.look.u32_at(0, at).store(bytes.min(SHOWN_MAX), Relaxed);
    }

    /// Whether the interface is steered no more, or by other programs.
    pub fn is_gone(&self) -> bool {
        self.look.get(0).is_gone != 0
    }

    /// Takes the next frame that is there; does not wait.
    pub fn take<T>(&mut self, seen: impl FnOnce(Shown<'_>) -> T) -> Option<T> {
        loop {
            let item = self.ring.next()?;
            if let Some(shown) = shown(&item) {
                return Some(seen(shown));
            }
        }
    }

    /// What was counted so far, by side.
    pub fn counted(&self) -> [ShownCount; SIDES] {
        let mut counted = [ShownCount::default(); SIDES];
        for index in 0..self.shown.len() {
            let SteerShownCount { lost, ns, .. } = self.shown.get(index);
            counted[index % SIDES].lost += lost;
            counted[index % SIDES].spent_ns += ns;
        }
        counted
    }
}

fn shown(item: &[u8]) -> Option<Shown<'_>> {
    let raw = SteerShown::read(item)?;
    let side = Side::of(raw.side)?;
    let unit = (raw.unit != NO_UNIT).then(|| ShownUnit {
        id: UnitId(raw.unit),
        kind: kind(UnitId(raw.unit)),
        is_priority: u32::from(raw.flags) & IS_PRIORITY != 0,
        wants_own_core: u32::from(raw.flags) & WANTS_OWN != 0,
        core: (u32::from(raw.to) != UNDECIDED).then_some(CoreId(raw.to)),
        reason: Reason::from_code(raw.reason),
    });
    Some(Shown {
        side,
        at_ns: raw.at_ns,
        core: CoreId(raw.cpu),
        queue: (side == Side::Before).then_some(raw.queue),
        verdict: Steered::ALL
            .get(usize::from(raw.verdict))
            .copied()
            .filter(|_| side != Side::Before),
        unit,
        len: raw.len,
        bytes: item.get(size_of::<SteerShown>()..)?.get(..raw.kept as usize)?,
    })
}
