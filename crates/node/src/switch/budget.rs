//! What rules take of the node, all switches together: those of one tenant must not cost the others their node.
//!
//! It is counted in entries ([`flow::Pipeline::weight`]): a group, a bucket and a meter are as much as one, and some actions one more. An entry's actions
//! count though others have the same: in the state file, and when it is read, each has its own.
//!
//! A switch may hold as many as are free for all (dynamic threshold, Choudhury and Hahne 1998, α = 1): one alone gets half of them, and there is
//! always room for who comes later. Entries that were kept over a restart come back as long as anything is free.
//!
//! Room is taken a portion at a time, so that an addition costs a subtraction; how much a switch really holds is counted when a portion is used up.

use super::Control;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Entries taken at a time. Chosen: small beside any limit.
const PORTION: u64 = 256;

/// The node's.
#[derive(Debug)]
pub struct EntryBudget {
    limit: u64,
    used: AtomicU64,
}

impl Default for EntryBudget {
    /// Without a limit.
    fn default() -> Self {
        Self::new(u64::MAX)
    }
}

impl EntryBudget {
    /// Of so many entries.
    pub fn new(limit: u64) -> Self {
        Self { limit, used: AtomicU64::new(0) }
    }

    fn free(&self) -> u64 {
        self.limit.saturating_sub(self.used.load(Ordering::Relaxed))
    }
}

/// Who takes room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Claim {
    /// A new entry.
    New,
    /// One that was there before a restart.
    Kept,
}

/// What one switch has of the budget; gives it back when it is dropped.
#[derive(Debug)]
pub(crate) struct Account {
    budget: Arc<EntryBudget>,
    /// Taken of the budget, `left` included.
    held: u64,
    /// Taken and not used yet.
    left: u64,
}

impl Account {
    /// An empty one.
    pub(crate) fn new(budget: Arc<EntryBudget>) -> Self {
        Self { budget, held: 0, left: 0 }
    }

    /// Takes room for so much more; `weight` says what is there.
    pub(crate) fn take(&mut self, claim: Claim, more: u64, weight: impl FnOnce() -> u64) -> bool {
        if self.left < more {
            self.settle(weight());
            let free = self.budget.free();
            let room = match claim {
                Claim::New => free.saturating_sub(self.held).div_ceil(2),
                Claim::Kept => free,
            };
            self.left = room.min(PORTION.max(more));
            self.held += self.left;
            self.budget.used.fetch_add(self.left, Ordering::Relaxed);
        }
        let is_there = self.left >= more;
        if is_there {
            self.left -= more;
        }
        is_there
    }

    /// Gives back what the switch does not hold.
    pub(crate) fn settle(&mut self, entries: u64) {
        self.budget.used.fetch_add(entries, Ordering::Relaxed);
        self.budget.used.fetch_sub(self.held, Ordering::Relaxed);
        (self.held, self.left) = (entries, 0);
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.held, Ordering::Relaxed);
    }
}

impl Control {
    /// Takes room for so much more than the switch holds; whether there is any.
    pub(crate) fn takes(&mut self, more: u64) -> bool {
        let claim = if self.silent { Claim::Kept } else { Claim::New };
        self.account.take(claim, more, || self.pipeline.weight())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A switch that adds until it is refused.
    fn fill(account: &mut Account, entries: &mut u64) -> u64 {
        let begin = *entries;
        while account.take(Claim::New, 1, || *entries) {
            *entries += 1;
        }
        *entries - begin
    }

    #[test]
    fn a_switch_gets_half_of_what_is_free_and_there_is_room_for_the_next() {
        let budget = Arc::new(EntryBudget::new(10_000));
        let [mut greedy, mut next, mut last] = [(); 3].map(|()| Account::new(budget.clone()));
        let [mut a, mut b, mut c] = [0; 3];
        assert_eq!(fill(&mut greedy, &mut a), 5000);
        assert_eq!(fill(&mut next, &mut b), 2500);
        assert_eq!(fill(&mut last, &mut c), 1250);
        assert_eq!(fill(&mut greedy, &mut a), 0);
        drop(last);
        next.settle(0);
        assert_eq!(budget.free(), 5000);
        b = 0;
        assert_eq!(fill(&mut next, &mut b), 2500, "what is deleted is free for all");
    }

    #[test]
    fn what_was_kept_comes_back_in_any_order() {
        let budget = Arc::new(EntryBudget::new(1000));
        let [mut small, mut large] = [(); 2].map(|()| Account::new(budget.clone()));
        let restore = |account: &mut Account, count: u64| {
            (0..count).filter(|&there| account.take(Claim::Kept, 1, || there)).count() as u64
        };
        assert_eq!((restore(&mut small, 250), restore(&mut large, 600)), (250, 600));
    }

    #[test]
    fn what_takes_more_finds_less_and_leaves_the_rest_to_what_takes_little() {
        let mut account = Account::new(Arc::new(EntryBudget::new(2000)));
        let mut weight = 0;
        while account.take(Claim::New, 300, || weight) {
            weight += 300;
        }
        assert_eq!(weight, 900, "of the half");
        assert!(!account.take(Claim::New, 300, || weight));
        assert_eq!(fill(&mut account, &mut weight), 100);
    }

    #[test]
    fn without_a_limit_nothing_is_refused() {
        let mut account = Account::new(Arc::default());
        assert!((0..100_000).all(|there| account.take(Claim::New, 1, || there)));
    }
}
