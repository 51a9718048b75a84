//! 512 bits on one cache line: one bit for each of as many entries.

/// Words of 64 bits in a strip.
pub(super) const STRIP: usize = 8;

/// Bits of a strip.
pub(super) const BITS: u32 = STRIP as u32 * 64;

/// One bit per entry, the best entry first.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Strip(pub [u64; STRIP]);

impl Strip {
    /// A strip of these words, lowest first.
    pub fn of(words: [u64; STRIP]) -> Self {
        Self(words)
    }

    /// Every bit set.
    #[inline]
    pub fn ones() -> Self {
        Self([u64::MAX; STRIP])
    }

    /// Keeps the bits that are set in `other` too.
    #[inline]
    pub fn and(&mut self, other: &Self) {
        (0..STRIP).for_each(|i| self.0[i] &= other.0[i]);
    }

    /// The first bit set; at least [`BITS`] if there is none. Without branches: where it is, and whether there is one, is
    /// anyone's guess, and one wrong guess costs as much as half a strip.
    #[inline]
    pub fn first(self) -> u32 {
        let nowhere = (STRIP, 1);
        let (word, bits) = (0..STRIP)
            .rev()
            .fold(nowhere, |later, i| if self.0[i] != 0 { (i, self.0[i]) } else { later });
        (word * 64) as u32 + bits.trailing_zeros()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bit_of_both_is_found_wherever_it_is() {
        for bit in 0..BITS as usize {
            let mut words = [u64::MAX; STRIP];
            words[bit / 64] = u64::MAX << (bit % 64);
            words[..bit / 64].fill(0);
            let mut both = Strip::ones();
            both.and(&Strip::of(words));
            assert_eq!((both.first() as usize, both.0), (bit, words));
        }
        assert!(Strip::of([0; STRIP]).first() >= BITS);
    }
}
