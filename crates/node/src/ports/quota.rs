//! How much one port may say in the log: a guest can make its port come and go as fast as it likes, and a journal is everybody's.

use std::time::{Duration, Instant};

/// Lines of a port in a period. Chosen: every step of a guest that starts, restarts or fails in earnest is seen, and a thousand ports that do
/// nothing else write no more than some hundred lines a second.
const LINES: u32 = 20;
const PERIOD: Duration = Duration::from_secs(60);

/// What one port has said lately.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct LogQuota {
    /// When the period began, with the first line in it.
    since: Option<Instant>,
    said: u32,
    /// Lines that were left out and not told of yet.
    left_out: u64,
}

impl LogQuota {
    /// Whether a line may be written `now`; if so, how many were left out before it.
    pub(super) fn admit(&mut self, now: Instant) -> Option<u64> {
        let is_over = |since| now.saturating_duration_since(since) >= PERIOD;
        if self.since.is_none_or(is_over) {
            (self.since, self.said) = (Some(now), 0);
        }
        if self.said == LINES {
            self.left_out += 1;
            return None;
        }
        self.said += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_changes_all_the_time_writes_some_lines_a_minute() {
        let (start, mut quota, mut said) = (Instant::now(), LogQuota::default(), Vec::new());
        // A change each millisecond for two minutes and a half.
        for ms in 0..150_000 {
            said.extend(quota.admit(start + Duration::from_millis(ms)));
        }
        let silent = 60_000 - u64::from(LINES);
        let mut expected = vec![0; 3 * LINES as usize];
        (expected[LINES as usize], expected[2 * LINES as usize]) = (silent, silent);
        assert_eq!(said, expected);
    }

    #[test]
    fn a_port_that_changes_now_and_then_says_everything() {
        let (start, mut quota) = (Instant::now(), LogQuota::default());
        for minute in 0..1000 {
            assert_eq!(quota.admit(start + minute * PERIOD / 10), Some(0));
        }
    }
}
