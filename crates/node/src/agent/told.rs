//! How often does the log tell that callers of one address fail?
//!
//! **Invariants**: each cause has a line when it first comes, and at most one a minute from then on, with the count of those that had none. An address
//! remembers [`CAUSES`] causes. What is beyond is one more, whatever it says: it is others who choose the words.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::num::NonZeroU64;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Causes told apart. Chosen: more than ways to fail, far less than callers can make up.
const CAUSES: usize = 16;

/// From one line to the next of the same cause.
const REST: Duration = Duration::from_secs(60);

/// Failures of a cause that had no line, if any.
pub type Untold = Option<NonZeroU64>;

/// What one address has told.
#[derive(Default)]
pub struct Told(Mutex<HashMap<String, Last>>);

struct Last {
    at: Instant,
    untold: u64,
}

impl Told {
    /// Notes one more of a cause. If it is to be told now: with how many that were not, since the last one that was.
    pub fn note(&self, cause: &str) -> Option<Untold> {
        let now = Instant::now();
        let mut causes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = causes.contains_key(cause) || causes.len() < CAUSES;
        let last = causes.entry(if is_known { cause.into() } else { String::new() });
        let last = match last {
            Entry::Vacant(place) => {
                place.insert(Last { at: now, untold: 0 });
                return Some(None);
            }
            Entry::Occupied(last) => last.into_mut(),
        };
        if now.duration_since(last.at) < REST {
            last.untold += 1;
            return None;
        }
        last.at = now;
        Some(NonZeroU64::new(std::mem::take(&mut last.untold)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_cause_is_told_at_once_and_then_once_a_minute_with_the_count_between() {
        let told = Told::default();
        assert_eq!(told.note("full"), Some(None));
        for _ in 0..5000 {
            assert_eq!(told.note("full"), None);
        }
        assert_eq!(told.note("garbage"), Some(None));
        tokio::time::advance(REST).await;
        assert_eq!(told.note("full"), Some(NonZeroU64::new(5000)));
        assert_eq!(told.note("full"), None);
        assert_eq!(told.note("garbage"), Some(None));
    }

    #[tokio::test(start_paused = true)]
    async fn words_that_callers_make_up_fill_neither_log_nor_memory() {
        let told = Told::default();
        let lines = (0..5000).filter_map(|n| told.note(&format!("type {n}"))).count();
        assert_eq!(lines, CAUSES + 1);
        assert_eq!(told.0.lock().unwrap().len(), CAUSES + 1);
        tokio::time::advance(REST).await;
        assert_eq!(told.note("type 5000"), Some(NonZeroU64::new(5000 - CAUSES as u64 - 1)));
    }
}
