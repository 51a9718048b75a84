//! Whether a unit has nothing under way: `bpf/order.h` for user space.

use super::abi::{CPUS, LOCAL, SENT_BITS, SteerClock, SteerCore, SteerReceived};
use super::attached::Attached;
use super::maps::Maps;
use crate::sys::mapped::Mapped;
use std::mem::offset_of;
use std::sync::atomic::Ordering::Acquire;

/// Epochs after which a queue's thread has handed over what it took out before (`EPOCHS_NEEDED`).
const EPOCHS_NEEDED: u64 = 2;
const SENT_MASK: u64 = (1 << SENT_BITS) - 1;

/// What is known of the cores, of all interfaces.
pub(crate) struct Clocks {
    pub(crate) cores: Mapped<SteerCore>,
    pub(crate) clocks: Mapped<SteerClock>,
}

impl Clocks {
    pub(crate) fn open(host: &Maps) -> Result<Self, super::SteerError> {
        Ok(Self { cores: host.mapped("cores")?, clocks: host.mapped("clocks")? })
    }

    fn quiet(&self, core: usize) -> u64 {
        self.cores.u64_at(core, offset_of!(SteerCore, quiet)).load(Acquire)
    }
}

impl Attached {
    /// Every frame that the unit counts has left its core's stack.
    pub(crate) fn is_through(&self, unit: usize) -> bool {
        let done = self.done.get(unit);
        let state = self.units.get(unit).state;
        if state & SENT_MASK != done.frames {
            return false;
        }
        let core = ((state >> SENT_BITS) as u32 & !LOCAL) as usize;
        if done.frames == 0 || core >= self.clocks.cores.len() {
            return true;
        }
        if done.is_local != 0 {
            return self.clocks.quiet(core) > done.mark;
        }
        let key = (self.config.get(0).slot * CPUS) as usize + core;
        let epoch = self.clocks.clocks.u64_at(key, offset_of!(SteerClock, epoch)).load(Acquire);
        let quiet = self.clocks.clocks.u64_at(key, offset_of!(SteerClock, quiet)).load(Acquire);
        epoch >= done.mark + EPOCHS_NEEDED && self.clocks.quiet(core) >= quiet
    }

    /// Every flow that the change of entries gives another unit may go there: its old unit said so, or is idle.
    pub(crate) fn has_left_old_units(&self) -> bool {
        let change = self.config.get(0).change;
        let units = (0..self.units.len())
            .all(|unit| self.units.get(unit).latch == change || self.is_through(unit));
        units && self.has_left_missed(change)
    }

    /// Likewise the frames that no entry matched, core by core.
    fn has_left_missed(&self, change: u32) -> bool {
        let Ok(received) = self.maps.per_cpu::<SteerReceived>("received") else { return false };
        let Ok(cores) = received.get(&0, 0) else { return false };
        let left = |(core, seen): (usize, &SteerReceived)| {
            seen.latch == change || seen.frames == 0 || self.clocks.quiet(core) > seen.mark
        };
        cores.iter().enumerate().all(left)
    }
}
