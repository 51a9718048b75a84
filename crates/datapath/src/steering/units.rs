//! What workers and the control thread share of one steered switch: where each unit is to go, and what was counted.
//!
//! The *wish* of a unit is one word, the same for all workers. Where its frames really go is each receiving worker's own business: that
//! follows the wish when no order is lost ([`super`]).

use super::choosing::Choosing;
use super::classifier::{ENTRY_FIRST, UnitFacts};
use super::options::SteeringEntry;
use crate::counters::{Count, blocks};
use place::steering::{Target, Urgency};
use place::{CoreId, Facts, Reason, UnitId};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Entries of one switch. Chosen: beside the groups 16 thousand units, which take 0.5 MiB, and 1.2 MiB for each worker.
pub(crate) const ENTRIES_MAX: usize = 16_384;
/// All units.
pub(crate) const UNITS: usize = ENTRY_FIRST as usize + ENTRIES_MAX;

/// A place is a worker's number; this is none.
pub(crate) const NOWHERE: u16 = u16::MAX;

/// Where a unit is to go: place 0..16, reason's code 16..24, [`Urgency::DropToDrain`] 24, how often it was changed 32..64.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Wish(u64);

const HOLD: u64 = 1 << 24;

impl Wish {
    const UNDECIDED: Self = Self(NOWHERE as u64);

    /// The worker; `None` while nothing was decided.
    #[inline]
    pub(crate) fn place(self) -> Option<u16> {
        let place = self.0 as u16;
        (place != NOWHERE).then_some(place)
    }

    /// Whether frames are to wait for the move.
    pub(crate) fn holds(self) -> bool {
        self.0 & HOLD != 0
    }

    fn reason(self) -> Option<Reason> {
        Reason::from_code((self.0 >> 16) as u8)
    }

    fn next(self, place: u16, reason: Option<Reason>, urgency: Urgency) -> Self {
        let reason = u64::from(reason.map_or(0, Reason::code)) << 16;
        let hold = if urgency == Urgency::DropToDrain { HOLD } else { 0 };
        Self(((self.0 >> 32) + 1) << 32 | hold | reason | u64::from(place))
    }
}

/// One unit, for all workers.
#[derive(Debug)]
struct UnitShared {
    wish: AtomicU64,
    decided_at: AtomicU64,
    moves: AtomicU64,
    /// Why it stays where it arrives, while nothing was decided: the reason's code.
    stays: AtomicU8,
}

impl Default for UnitShared {
    fn default() -> Self {
        let wish = AtomicU64::new(Wish::UNDECIDED.0);
        Self {
            wish,
            decided_at: AtomicU64::new(0),
            moves: AtomicU64::new(0),
            stays: AtomicU8::new(0),
        }
    }
}

/// One unit at one receiving worker, which writes it.
#[derive(Default)]
pub(crate) struct UnitBlock {
    pub(crate) frames: Count,
    pub(crate) bytes: Count,
    pub(crate) dropped: Count,
    /// Where its frames go: a place and 1, or 0 before the first one.
    pub(crate) place: Count,
}

/// What a receiving worker gave to one worker (itself, too): written by the receiving one.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct GivenBlock {
    pub(crate) frames: Count,
    /// The ring was full.
    pub(crate) full: Count,
    /// Too many waited for a move.
    pub(crate) held_out: Count,
}

/// What a worker took of another: written by the one that takes.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct TakenBlock {
    pub(crate) frames: Count,
}

/// One receiving worker's part of the counters.
pub(crate) struct WorkerBlocks {
    pub(crate) units: Box<[UnitBlock]>,
    /// By the worker that it gave to.
    pub(crate) given: Box<[GivenBlock]>,
    /// By the worker that it took of.
    pub(crate) taken: Box<[TakenBlock]>,
    /// Frames that belong to no unit.
    pub(crate) unsteered: Count,
}

/// One steered switch.
pub(crate) struct Shared {
    /// By worker.
    pub(crate) cores: Box<[CoreId]>,
    units: Box<[UnitShared]>,
    pub(crate) workers: Box<[WorkerBlocks]>,
    /// Changes with the core table: who found no core may ask again.
    table: AtomicU32,
    choosing: Mutex<Choosing>,
}

impl Shared {
    pub(crate) fn new(cores: Box<[CoreId]>, choosing: Choosing) -> Self {
        let worker = || WorkerBlocks {
            units: blocks(UNITS),
            given: blocks(cores.len()),
            taken: blocks(cores.len()),
            unsteered: Count::default(),
        };
        Self {
            workers: std::iter::repeat_with(worker).take(cores.len()).collect(),
            cores,
            units: blocks(UNITS),
            table: AtomicU32::new(1),
            choosing: Mutex::new(choosing),
        }
    }

    /// The worker on a core.
    pub(crate) fn worker_on(&self, core: CoreId) -> Option<u16> {
        self.cores.iter().position(|&other| other == core).map(|worker| worker as u16)
    }

    #[inline]
    pub(crate) fn wish(&self, unit: UnitId) -> Wish {
        Wish(self.units[unit.0 as usize].wish.load(Relaxed))
    }

    /// Which core table is in force.
    pub(crate) fn table(&self) -> u32 {
        self.table.load(Relaxed)
    }

    /// Changes the core table, or who chooses; for the control thread.
    pub(crate) fn choosing(&self) -> MutexGuard<'_, Choosing> {
        self.choosing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// After such a change: undecided units are asked about again.
    pub(crate) fn ask_again(&self) {
        self.table.fetch_add(1, Relaxed);
    }

    /// Has a unit go elsewhere. No such unit: nothing happens.
    pub(crate) fn want(&self, unit: UnitId, place: u16, reason: Reason, urgency: Urgency) {
        self.change(unit, |wish| Some(wish.next(place, Some(reason), urgency)));
    }

    /// Has a unit placed anew with its next frame.
    pub(crate) fn undecide(&self, unit: UnitId) {
        self.change(unit, |wish| Some(wish.next(NOWHERE, None, Urgency::WhenDrained)));
    }

    fn change(&self, unit: UnitId, change: impl Fn(Wish) -> Option<Wish>) -> bool {
        let Some(unit) = self.units.get(unit.0 as usize) else { return false };
        let change = |wish| change(Wish(wish)).map(|wish| wish.0);
        unit.wish.fetch_update(Relaxed, Relaxed, change).is_ok()
    }

    /// Places an undecided unit, for the worker that received its frame; `None`: it stays there for now. Never waits: while another
    /// worker chooses, a frame stays.
    pub(crate) fn decide(
        &self,
        unit: UnitId,
        is_hashed: bool,
        facts: &Facts,
        now: u64,
    ) -> Option<u16> {
        let mut choosing = match self.choosing.try_lock() {
            Ok(choosing) => choosing,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        if let Some(place) = self.wish(unit).place() {
            return Some(place); // by another worker, meanwhile
        }
        let decision = choosing.choose(is_hashed, facts);
        let place = self.worker_on(decision.core)?;
        let known = &self.units[unit.0 as usize];
        let stays = if decision.reason.is_settled() { 0 } else { decision.reason.code() };
        // That it goes on staying for the same reason is no news.
        if known.stays.swap(stays, Relaxed) != stays || stays == 0 {
            known.decided_at.store(now, Relaxed);
            choosing.remember(unit, decision, facts, now);
        }
        if stays != 0 {
            return None;
        }
        let decided = |wish: Wish| {
            let is_open = wish.place().is_none();
            is_open.then(|| wish.next(place, Some(decision.reason), Urgency::WhenDrained))
        };
        self.change(unit, decided).then_some(place).or(self.wish(unit).place())
    }

    /// A unit went to another worker.
    pub(crate) fn moved(&self, unit: UnitId, now: u64) {
        let unit = &self.units[unit.0 as usize];
        unit.moves.fetch_add(1, Relaxed);
        unit.decided_at.store(now, Relaxed);
    }

    /// Puts the units of entries that are new where their entries say.
    pub(crate) fn set_target(&self, entry: &SteeringEntry) {
        match entry.target {
            Target::Auto | Target::Hash => self.undecide(entry.unit),
            Target::Core(core) => match self.worker_on(core) {
                Some(worker) => self.want(entry.unit, worker, Reason::Fixed, Urgency::DropToDrain),
                // No worker runs there: where they arrive is as good as anywhere.
                None => self.undecide(entry.unit),
            },
        }
    }

    /// A unit as it is now.
    pub(crate) fn status(&self, id: UnitId, facts: UnitFacts) -> SteeredUnit {
        let (unit, wish) = (&self.units[id.0 as usize], self.wish(id));
        let blocks = || self.workers.iter().map(|worker| &worker.units[id.0 as usize]);
        let sum = |of: fn(&UnitBlock) -> &Count| blocks().map(|block| of(block).get()).sum();
        let core = |place: u16| self.cores.get(usize::from(place)).copied();
        let places = || {
            blocks().filter_map(|block| block.place.get().checked_sub(1)).map(|place| place as u16)
        };
        // One that has not followed yet tells where the unit is.
        let behind = places().find(|&place| wish.place().is_some_and(|wanted| wanted != place));
        let now = behind.or_else(|| places().next());
        SteeredUnit {
            unit: id,
            core: now.and_then(core),
            wanted: behind.and(wish.place()).and_then(core),
            reason: wish.reason().or_else(|| Reason::from_code(unit.stays.load(Relaxed))),
            decided_at_ns: unit.decided_at.load(Relaxed),
            frames: sum(|block| &block.frames),
            bytes: sum(|block| &block.bytes),
            dropped: sum(|block| &block.dropped),
            moves: unit.moves.load(Relaxed),
            vm: facts.vm,
            is_priority: facts.is_priority,
        }
    }
}

/// A unit as it is now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SteeredUnit {
    /// Which.
    pub unit: UnitId,
    /// Where its frames go; `None` before the first one.
    pub core: Option<CoreId>,
    /// Where they will go when no order is lost.
    pub wanted: Option<CoreId>,
    /// Why.
    pub reason: Option<Reason>,
    /// When it was decided, or moved: nanoseconds of the datapath's clock.
    pub decided_at_ns: u64,
    /// Frames given to a worker.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Frames lost: a full ring, or too many that waited for a move.
    pub dropped: u64,
    /// Times that it went to another worker.
    pub moves: u64,
    /// The guest that its frames are for.
    pub vm: Option<place::VmId>,
    /// It has priority.
    pub is_priority: bool,
}
