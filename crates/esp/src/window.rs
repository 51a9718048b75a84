//! Which sequence numbers were there before (RFC 4303 §3.4.3 and appendix A2).

use crate::refusal::Refusal;

/// Sequence numbers to the left of the highest one, itself included, of which is known whether they were there.
pub const WINDOW: u64 = 4096;
/// Words of the ring of bits: twice the window, so that a word is cleared long before its bits mean something again (RFC 6479).
const WORDS: usize = 128;

/// The window of one SA: a ring of bits and the highest number accepted.
pub struct Window {
    top: u64,
    seen: [u64; WORDS],
}

impl Window {
    /// Nothing above `top` was there, and all else was: 0 at the beginning (no packet has number 0), or what was noted before a restart.
    pub fn new(top: u64) -> Self {
        Self { top, seen: [u64::MAX; WORDS] }
    }

    /// The highest number accepted.
    pub fn top(&self) -> u64 {
        self.top
    }

    /// The whole number of which `low` is the low half: the one that is nearest right of the window's left edge (RFC 4303 appendix A2.2).
    ///
    /// # Errors
    /// It would be below 0 or beyond 64 bits.
    pub fn extend(&self, low: u32) -> Result<u64, Refusal> {
        let left = self.top.wrapping_sub(WINDOW - 1);
        let number = left.wrapping_add(low.wrapping_sub(left as u32).into());
        let is_below_zero = self.top < WINDOW - 1 && number >= left;
        let is_beyond = self.top >= WINDOW - 1 && number < left;
        if is_below_zero || is_beyond { Err(Refusal::TooOld) } else { Ok(number) }
    }

    /// Whether a packet of this number may be accepted.
    ///
    /// # Errors
    /// It was there, or it is too old.
    pub fn check(&self, number: u64) -> Result<(), Refusal> {
        if number > self.top {
            return Ok(());
        }
        if self.top - number >= WINDOW {
            return Err(Refusal::TooOld);
        }
        let (word, bit) = place(number);
        if self.seen[word] & bit == 0 { Ok(()) } else { Err(Refusal::Replayed) }
    }

    /// Accepts a number, of an authentic packet: from now on it was there.
    ///
    /// # Errors
    /// As [`Window::check`]: it may have come twice at a time.
    pub fn accept(&mut self, number: u64) -> Result<(), Refusal> {
        self.check(number)?;
        if number > self.top {
            let steps = (number / 64 - self.top / 64).min(WORDS as u64);
            // Behind `top` in its own word all bits are of numbers that have not been.
            let (word, bit) = place(self.top);
            self.seen[word] &= bit | (bit - 1);
            (1..=steps).for_each(|step| self.seen[place(self.top + 64 * step).0] = 0);
            self.top = number;
        }
        let (word, bit) = place(number);
        self.seen[word] |= bit;
        Ok(())
    }
}

fn place(number: u64) -> (usize, u64) {
    ((number / 64) as usize % WORDS, 1 << (number % 64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// The obvious form: all numbers that were accepted.
    struct Oracle {
        top: u64,
        begin: u64,
        seen: BTreeSet<u64>,
    }

    impl Oracle {
        fn accept(&mut self, number: u64) -> Result<(), Refusal> {
            if u128::from(number) + u128::from(WINDOW) <= u128::from(self.top) {
                return Err(Refusal::TooOld);
            }
            if number <= self.begin || !self.seen.insert(number) {
                return Err(Refusal::Replayed);
            }
            self.top = self.top.max(number);
            Ok(())
        }

        /// RFC 4303, appendix A2.2, as it is written there.
        fn extend(&self, low: u32) -> Option<u64> {
            let (high, top_low) = (self.top >> 32, self.top & 0xffff_ffff);
            let low = u64::from(low);
            let high = if top_low >= WINDOW - 1 {
                if low >= top_low - (WINDOW - 1) { Some(high) } else { high.checked_add(1) }
            } else if low >= (1 << 32) + top_low - (WINDOW - 1) {
                high.checked_sub(1)
            } else {
                Some(high)
            };
            high.filter(|high| *high < 1 << 32).map(|high| high << 32 | low)
        }
    }

    /// Beginnings near to what may go wrong, and steps from the highest number so far.
    fn walks() -> impl Strategy<Value = (u64, Vec<i64>)> {
        let begin = prop_oneof![
            Just(0),
            0..10_000u64,
            (0..9000u64).prop_map(|before| (1 << 32) - before),
            (0..9000u64).prop_map(|before| (7 << 32) + 4500 - before),
            (0..9000u64).prop_map(|before| u64::MAX - before),
        ];
        let step =
            prop_oneof![-4200..200i64, -70..70i64, 1..20_000i64, Just(1), Just((1 << 32) - 5000)];
        (begin, prop::collection::vec(step, 1..300))
    }

    proptest! {
        #[test]
        fn the_window_agrees_with_a_set_of_all_numbers((begin, steps) in walks()) {
            let mut window = Window::new(begin);
            let mut oracle = Oracle { top: begin, begin, seen: BTreeSet::new() };
            for step in steps {
                let Some(number) = oracle.top.checked_add_signed(step) else { continue };
                prop_assert_eq!(window.extend(number as u32).ok(), oracle.extend(number as u32));
                let expected = oracle.accept(number);
                prop_assert_eq!(window.check(number), expected, "{} at {}", number, window.top());
                prop_assert_eq!(window.accept(number), expected);
                prop_assert_eq!(window.top(), oracle.top);
            }
        }

        #[test]
        fn a_number_less_than_2_to_the_32_ahead_of_the_left_edge_is_found_again(top: u64, ahead in 0..1u64 << 32) {
            let number = top.saturating_sub(WINDOW - 1).checked_add(ahead);
            prop_assume!(number.is_some_and(|number| number < (1 << 32) || top >= WINDOW - 1));
            prop_assert_eq!(Window::new(top).extend(number.unwrap() as u32).ok(), number);
        }
    }

    #[test]
    fn the_number_0_is_no_packets() {
        assert_eq!(Window::new(0).check(0), Err(Refusal::Replayed));
        assert_eq!(Window::new(0).extend(0), Ok(0));
        assert_eq!(Window::new(u64::from(u32::MAX)).extend(0), Ok(1 << 32));
    }
}
