//! How many copies of the frames that come in at it a switch may have made, on average: what a loop of flooding switches, or a rule with a thousand
//! outputs, costs everybody else. A switch has two of these.
//!
//! **Over its vlinks.** A received frame earns [`EACH`], a second [`A_SECOND`], or what the switch says. A copy over or behind a vlink beyond the frame itself
//! is paid from that. So a path costs nothing, however long it is, and one flood over hundreds of switches is paid from what was saved. Without one left a
//! frame is not multiplied: all copies of it that a switch would send are dropped (`too_many_copies`).
//!
//! **At its own ports.** Each frame makes 64 freely, and what a flood or a group of all ports takes (crate `flow`). Those beyond are paid from what time
//! earns. Without any left the frame's way ends there.

use flow::Nanos;
use std::cell::Cell;

/// Copies that a frame earns.
const EACH: u64 = 64;
/// Copies that a second earns. Chosen: 1 % of a core for rings, some 15 % for TAPs.
const A_SECOND: u32 = 50_000;
/// Most that are saved: no more than a second earns. Chosen: eighteen floods over 300 switches, each of three ports; some 50 ms of a core for TAPs.
const SAVED: u64 = 16_384;
/// That many are saved however little a second earns: all that one frame may make.
const SAVED_LEAST: u64 = 1024;
const SECOND: u64 = 1_000_000_000;

/// What one switch has left at one worker.
pub(crate) struct Allowance {
    left: Cell<u64>,
    /// Until when time has been counted.
    at: Cell<Nanos>,
}

impl Default for Allowance {
    fn default() -> Self {
        Self { left: Cell::new(SAVED), at: Cell::default() }
    }
}

impl Allowance {
    /// Frames were received.
    #[inline]
    pub(crate) fn earn(&self, frames: u64) {
        self.left.set((self.left.get() + EACH * frames).min(SAVED));
    }

    /// Takes so many copies, if there are as many. `per_s`: what a second earns, if the switch says it.
    pub(crate) fn take(&self, copies: u64, per_s: Option<u32>, now: Nanos) -> bool {
        let per_s = u64::from(per_s.unwrap_or(A_SECOND));
        let most = per_s.clamp(SAVED_LEAST, SAVED);
        // In longer times more is earned than is saved.
        let earning = now.since(self.at.get()).min(2 * SECOND) * per_s;
        if earning >= SECOND {
            self.left.set(self.left.get().saturating_add(earning / SECOND));
            self.at.set(Nanos(now.0 - earning % SECOND / per_s));
        }
        self.left.set(self.left.get().min(most));
        let left = self.left.get().checked_sub(copies);
        left.into_iter().for_each(|left| self.left.set(left));
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many floods of five copies pass.
    fn floods(allowance: &Allowance, at: u64) -> u64 {
        (0..100_000).take_while(|_| allowance.take(5, None, Nanos(at))).count() as u64
    }

    #[test]
    fn a_burst_passes_and_then_what_frames_and_time_earn() {
        let allowance = Allowance::default();
        assert_eq!(floods(&allowance, SECOND), SAVED / 5);
        allowance.earn(10);
        assert_eq!(floods(&allowance, SECOND), (SAVED % 5 + 10 * EACH) / 5);
        assert_eq!(floods(&allowance, SECOND + SECOND / 10), u64::from(A_SECOND) / 10 / 5);
        assert_eq!(floods(&allowance, 9 * SECOND), SAVED / 5, "no more is saved");
    }

    #[test]
    fn a_path_costs_nothing_and_short_times_add_up() {
        let allowance = Allowance::default();
        floods(&allowance, SECOND);
        let left = allowance.left.get();
        assert!((0..1_000_000).all(|_| allowance.take(0, None, Nanos(SECOND))));
        for step in 1..=1000 {
            allowance.take(0, None, Nanos(SECOND + step * 3000));
        }
        // 3 ms, less what is not a whole copy yet.
        assert!((149..=150).contains(&(allowance.left.get() - left)));
    }
    #[test]
    fn a_second_earns_what_the_switch_says_and_no_more_than_that_is_saved() {
        let allowance = Allowance::default();
        let mut at = SECOND;
        let mut taken = |per_s| {
            at += 3 * SECOND;
            (0..100_000).take_while(|_| allowance.take(1, Some(per_s), Nanos(at))).count() as u64
        };
        assert_eq!(taken(1000), SAVED_LEAST);
        assert_eq!((taken(2000), taken(1_000_000)), (2000, SAVED));
        assert_eq!((taken(0), taken(0), taken(7)), (0, 0, 14), "what little comes in two seconds");
        assert!(allowance.take(0, Some(u32::MAX), Nanos(u64::MAX)));
    }
}
