//! Where a core's time goes.

use super::abi::{SteerCore, TIMES};
use crate::sys::mapped::Mapped;
use place::{Load, Stage, StageLoads};
use rustix::time::{ClockId, clock_gettime};
use std::mem::offset_of;
use std::sync::atomic::Ordering::Acquire;

const IDLE: usize = 0;
const DRIVER: usize = 1;
const PACKET: usize = 2;
const VHOST: usize = 3;
const GUEST: usize = 4;
const OTHER: usize = 5;
/// Readings of one core before a torn one is taken as it is.
const TRIES: usize = 8;

/// One core's time since steering began, in nanoseconds, and how often things happened.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CoreTimes {
    /// When it was read, on the monotonic clock.
    pub at_ns: u64,
    /// By stage.
    ns: [u64; TIMES],
    /// Receive soft interrupts.
    pub softirqs: u64,
    /// Switches of threads.
    pub switches: u64,
}

impl CoreTimes {
    /// What the core holds, with the part of its present stage up to `now`.
    pub(crate) fn read(cores: &Mapped<SteerCore>, cpu: usize, now: u64) -> Self {
        let since = cores.u64_at(cpu, offset_of!(SteerCore, since_ns));
        let mut core = cores.get(cpu);
        for _ in 0..TRIES {
            // The programs write `since_ns` at every change of `ns`.
            if since.load(Acquire) == core.since_ns {
                break;
            }
            core = cores.get(cpu);
        }
        let mut times =
            Self { at_ns: now, ns: core.ns, softirqs: core.softirqs, switches: core.switches };
        if let Some(stage) = times.ns.get_mut(core.stage as usize)
            && core.since_ns > 0
        {
            *stage += now.saturating_sub(core.since_ns);
        }
        times
    }

    /// Nanoseconds of that stage.
    pub fn stage(&self, stage: Stage) -> u64 {
        self.ns[of_stage(stage) as usize]
    }

    /// Nanoseconds in which it had nothing to do.
    pub fn idle(&self) -> u64 {
        self.ns[IDLE]
    }

    /// Nanoseconds of everything that is no stage of packets.
    pub fn other(&self) -> u64 {
        self.ns[OTHER]
    }

    /// The loads between an earlier reading and this one.
    pub fn loads_since(&self, earlier: &Self) -> StageLoads {
        let window = self.at_ns.saturating_sub(earlier.at_ns);
        let load = |at: usize| Load::of(self.ns[at].saturating_sub(earlier.ns[at]), window);
        let mut loads = StageLoads::default();
        loads.other = load(OTHER);
        for stage in Stage::ALL {
            loads[stage] = load(of_stage(stage) as usize);
        }
        loads
    }
}

pub(crate) const fn of_stage(stage: Stage) -> u32 {
    (match stage {
        Stage::Driver => DRIVER,
        Stage::Packet => PACKET,
        Stage::Vhost => VHOST,
        Stage::Guest => GUEST,
    }) as u32
}

/// Nanoseconds on the monotonic clock.
pub(crate) fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
