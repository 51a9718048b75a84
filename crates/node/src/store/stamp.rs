//! When something was added, in words that outlive the process and the machine's boot.
//!
//! ```text
//! stamp = boot:4 monotonic:8 wall:8      a tag of the boot; nanoseconds of its CLOCK_MONOTONIC; milliseconds since 1970
//! ```
//!
//! Within one boot the monotonic clock decides, which no jump of the wall clock moves. After another boot only the wall clock
//! is left; if it says that something was added in the future, that thing was added just now.

use flow::Nanos;
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes of a stamp.
pub const LEN: usize = 20;

const NANOS_PER_MS: u64 = 1_000_000;

/// The machine's clocks at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment {
    /// Tells the boots of a machine apart.
    pub boot: u32,
    /// The monotonic clock of that boot.
    pub monotonic: Nanos,
    /// Milliseconds since 1970.
    pub wall_ms: u64,
}

/// Where the store gets its time from.
pub type Clock = dyn Fn() -> Moment + Send + Sync;

/// Reads this machine's clocks, the monotonic one as the workers do.
pub fn machine_clock() -> Box<Clock> {
    let boot = boot_tag(&std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default());
    Box::new(move || Moment {
        boot,
        monotonic: datapath::Clock::now(&datapath::MonotonicClock),
        wall_ms: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_millis() as u64),
    })
}

fn boot_tag(id: &[u8]) -> u32 {
    crc32fast::hash(id)
}

/// Returns the stamp of something that was added `age_ns` before `now`.
pub fn bytes(age_ns: u64, now: Moment) -> [u8; LEN] {
    let added = (now.monotonic.0 as i64).saturating_sub_unsigned(age_ns);
    let wall_ms = now.wall_ms.saturating_sub(age_ns / NANOS_PER_MS);
    let mut stamp = [0; LEN];
    stamp[..4].copy_from_slice(&now.boot.to_be_bytes());
    stamp[4..12].copy_from_slice(&added.to_be_bytes());
    stamp[12..].copy_from_slice(&wall_ms.to_be_bytes());
    stamp
}

/// Returns how many nanoseconds before `now` a thing of this stamp was added.
pub fn age(stamp: &[u8; LEN], now: Moment) -> u64 {
    let number = |bytes: &[u8]| bytes.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
    let (boot, added, wall_ms) =
        (number(&stamp[..4]), number(&stamp[4..12]) as i64, number(&stamp[12..]));
    if boot == u64::from(now.boot) {
        return (now.monotonic.0 as i64).saturating_sub(added).max(0) as u64;
    }
    now.wall_ms.saturating_sub(wall_ms).saturating_mul(NANOS_PER_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn moment(boot: u32, monotonic_s: u64, wall_s: u64) -> Moment {
        Moment { boot, monotonic: Nanos(monotonic_s * SECOND), wall_ms: wall_s * 1000 }
    }

    #[test]
    fn in_one_boot_no_jump_of_the_wall_clock_changes_an_age() {
        for age in [10, 100] {
            let stamp = bytes(age * SECOND, moment(1, 60, 1000));
            for wall_s in [0, 1010, 999_999] {
                assert_eq!(super::age(&stamp, moment(1, 70, wall_s)), (age + 10) * SECOND);
            }
        }
    }

    #[test]
    fn after_another_boot_the_wall_clock_tells_the_age() {
        let stamp = bytes(10 * SECOND, moment(1, 60, 1000));
        assert_eq!(age(&stamp, moment(2, 5, 1100)), 110 * SECOND);
        assert_eq!(age(&stamp, moment(2, 5, 900)), 0, "a clock that went back");
    }
}
