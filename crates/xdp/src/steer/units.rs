//! The units of an interface: where they are, how they got there, what they carried; and wishes that they move.

use super::abi::{
    ENTRY_FIRST, FCF_FIRST, IS_PRIORITY, LOCAL, REASON_SHIFT, ROUTE_NONE, SENT_BITS, SteerUnit,
    UNDECIDED, URGENT, WANTS_OWN,
};
use super::attached::Attached;
use place::steering::Urgency;
use place::{CoreId, Reason, UnitId, VmId};
use std::mem::offset_of;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::Duration;

/// What a unit is made of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum UnitKind {
    /// The flow group of that number.
    Group(u32),
    /// Frames with that flow control field.
    Fcf {
        /// The guest.
        vm: VmId,
        /// The priority bit.
        is_priority: bool,
    },
    /// The flows of an entry.
    Entry,
}

/// A unit as it is now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unit {
    /// Its number.
    pub id: UnitId,
    /// What it is made of.
    pub kind: UnitKind,
    /// Where its frames go; `None` before the first one.
    pub core: Option<CoreId>,
    /// They came in on that core, and stay.
    pub is_local: bool,
    /// Where they are to go: differs from `core` until nothing is under way there any more. `None`: not decided.
    pub wanted: Option<CoreId>,
    /// Why it is where it is.
    pub reason: Option<Reason>,
    /// The hash that it was placed by.
    pub hash: u32,
    /// Its guest.
    pub vm: Option<VmId>,
    /// Whether its entry, or the flow control field, says so.
    pub is_priority: bool,
    /// Whether its entry wants the guest's own core.
    pub wants_own_core: bool,
    /// Frames that its core got.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Frames that are on their way to it.
    pub in_flight: u64,
    /// Frames lost: no room in its core's queue, or an urgent move.
    pub dropped: u64,
    /// How often it moved.
    pub moves: u32,
    /// When it moved last, on the monotonic clock.
    pub moved_at: Duration,
}

impl Attached {
    /// Every unit that an entry has, or that carried a frame.
    pub fn units(&self) -> Vec<Unit> {
        let groups = self.config.get(0).groups;
        let defaults = (0..groups).chain(FCF_FIRST..ENTRY_FIRST).map(UnitId);
        let used = defaults.filter_map(|id| self.unit(id)).filter(|unit| unit.core.is_some());
        used.chain(self.entries.units().filter_map(|id| self.unit(id))).collect()
    }

    /// One unit; `None` if there is no such number.
    pub fn unit(&self, id: UnitId) -> Option<Unit> {
        let index = id.0 as usize;
        if index >= self.units.len() {
            return None;
        }
        // The frames first: what is under way is never less than nothing then.
        let done = self.done.get(index);
        let unit = self.units.get(index);
        let (route, wanted) = ((unit.state >> SENT_BITS) as u32, unit.wanted & UNDECIDED);
        let core = |core: u32| CoreId(core as u16);
        Some(Unit {
            id,
            kind: kind(id),
            core: (route != ROUTE_NONE).then(|| core(route & !LOCAL)),
            is_local: route != ROUTE_NONE && route & LOCAL != 0,
            wanted: (wanted != UNDECIDED).then(|| core(wanted)),
            reason: Reason::from_code(unit.reason),
            hash: unit.hash,
            vm: VmId::new(unit.vm),
            is_priority: unit.flags & IS_PRIORITY != 0,
            wants_own_core: unit.flags & WANTS_OWN != 0,
            frames: done.frames,
            bytes: done.bytes,
            in_flight: (unit.state & ((1 << SENT_BITS) - 1)).saturating_sub(done.frames),
            dropped: unit.dropped,
            moves: unit.moves,
            moved_at: Duration::from_nanos(unit.moved_ns),
        })
    }

    /// Asks for a move: from the first frame on that cannot overtake another of its flow, the unit goes to `core`. A later wish replaces an
    /// earlier one. No such unit: nothing happens.
    pub fn want(&self, id: UnitId, core: CoreId, reason: Reason, urgency: Urgency) {
        let index = id.0 as usize;
        if index >= self.units.len() {
            return;
        }
        let urgent = if urgency == Urgency::DropToDrain { URGENT } else { 0 };
        let wanted = urgent | u32::from(reason.code()) << REASON_SHIFT | u32::from(core.0);
        self.units
            .u64_at(index, offset_of!(SteerUnit, wanted_ns))
            .store(super::times::now(), Relaxed);
        self.units.u32_at(index, offset_of!(SteerUnit, wanted)).store(wanted, Release);
    }

    /// Has the program choose a core for the unit anew, by the core table of the next frame's time.
    pub fn undecide(&self, id: UnitId) {
        let index = id.0 as usize;
        if index < self.units.len() {
            self.units.u32_at(index, offset_of!(SteerUnit, wanted)).store(UNDECIDED, Release);
        }
    }
}

/// What a unit of that number is made of.
pub(crate) fn kind(id: UnitId) -> UnitKind {
    let fcf = id.0.wrapping_sub(FCF_FIRST);
    match VmId::new((fcf >> 1) as u16) {
        _ if id.0 < FCF_FIRST => UnitKind::Group(id.0),
        Some(vm) if id.0 < ENTRY_FIRST => UnitKind::Fcf { vm, is_priority: fcf & 1 == 1 },
        _ => UnitKind::Entry,
    }
}
