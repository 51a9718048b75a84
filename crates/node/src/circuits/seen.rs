//! Which of the last numbered probes came.

use std::collections::VecDeque;

/// Probes of one length that are judged. Chosen: of 200 short and 200 long ones, 5 % of loss leaves at most two missing once in two million times.
pub const WINDOW: u32 = 200;

/// Which of the last [`WINDOW`] numbers came.
#[derive(Default)]
pub struct Seen {
    newest: u32,
    came: VecDeque<bool>,
}

impl Seen {
    /// This number came.
    pub fn note(&mut self, sequence: u32) {
        let ahead = sequence.wrapping_sub(self.newest);
        // Far behind or far ahead: the other end began anew.
        if self.came.is_empty() || ahead > WINDOW && ahead.wrapping_neg() > WINDOW {
            (self.newest, self.came) = (sequence, [true].into());
            return;
        }
        if ahead as i32 > 0 {
            self.came.extend((1..ahead).map(|_| false));
            self.came.push_back(true);
            self.newest = sequence;
        } else if let Some(at) = self.came.len().checked_sub(1 + ahead.wrapping_neg() as usize) {
            self.came[at] = true; // overtaken on the way
        }
        let excess = self.came.len().saturating_sub(WINDOW as usize);
        self.came.drain(..excess);
    }

    /// How many numbers are known of.
    pub fn of(&self) -> u32 {
        self.came.len() as u32
    }

    /// How many of them did not come.
    pub fn missing(&self) -> u32 {
        self.came.iter().filter(|came| !**came).count() as u32
    }

    /// By how many numbers the other is behind; 0 if either has none.
    pub fn ahead_of(&self, other: &Self) -> i32 {
        if self.of().min(other.of()) == 0 {
            return 0;
        }
        self.newest.wrapping_sub(other.newest) as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_window_counts_what_is_missing_whatever_the_order(
            first: u32, lost in prop::collection::btree_set(0..300u32, 0..20), swaps in prop::collection::vec(0..298usize, 0..30),
        ) {
            let mut order: Vec<u32> = (0..300).filter(|sequence| !lost.contains(sequence)).collect();
            for at in swaps.into_iter().filter(|at| at + 1 < 280) {
                order.swap(at, at + 1);
            }
            let mut seen = Seen::default();
            order.iter().for_each(|&sequence| seen.note(first.wrapping_add(sequence)));
            let newest = *order.iter().max().unwrap();
            let oldest = (newest + 1) - seen.of();
            let missing = (oldest..=newest).filter(|sequence| lost.contains(sequence)).count();
            prop_assert_eq!(seen.missing() as usize, missing);
            prop_assert_eq!(seen.of(), WINDOW);
        }
    }

    #[test]
    fn numbers_that_begin_anew_are_no_loss() {
        let mut seen = Seen::default();
        (5000..5300).for_each(|sequence| seen.note(sequence));
        (0..20).for_each(|sequence| seen.note(sequence));
        assert_eq!((seen.of(), seen.missing()), (20, 0));
    }
}
