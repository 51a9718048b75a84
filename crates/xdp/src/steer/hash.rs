//! The hash of a key, as `bpf/hash.h` has it: two NH sums over secrets.

use super::abi::WORDS;

/// Drawn anew for every attached interface.
pub(crate) type Secrets = [u64; WORDS + 1];

/// Keys of map `exact`; wildcard entries' salt is the id of their mask.
pub(crate) const SALT_EXACT: u64 = 0x100;

/// Of `words`, at most [`WORDS`]; `salt` tells tables apart.
pub(crate) fn of(words: &[u64], secrets: &Secrets, salt: u64) -> u64 {
    let sum = |from: usize| {
        let terms = words.iter().zip(&secrets[from..]);
        terms.fold(0_u64, |sum, (word, secret)| {
            let low = (*word as u32).wrapping_add(*secret as u32);
            let high = ((word >> 32) as u32).wrapping_add((secret >> 32) as u32);
            sum.wrapping_add(u64::from(low) * u64::from(high))
        })
    };
    let salted = salt.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = sum(0) ^ sum(1).rotate_left(32).wrapping_add(salted);
    let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed ^ mixed >> 32
}
