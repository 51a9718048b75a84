//! The keyed hash of packed keys.
//!
//! Two words per 64×64→128-bit multiplication, halves folded (as in wyhash). It is not a cryptographic hash: whoever
//! does not know the secret cannot choose colliding keys, whoever can time single lookups might learn some. So
//! every structure on it also bounds how far a collision can push an entry.

/// The key of the hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Secret([u64; 2]);

/// Multiplies to 128 bits and folds the halves.
const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    (product >> 64) as u64 ^ product as u64
}

impl Secret {
    /// Makes the words odd and apart, so that an all-zero secret is still a hash.
    pub const fn new(words: [u64; 2]) -> Self {
        Self([words[0] ^ 0x9e37_79b9_7f4a_7c15, words[1] ^ 0xd1b5_4a32_d192_ed03])
    }

    /// Hash of `words`.
    pub fn hash(&self, words: &[u64]) -> u64 {
        let mut pairs = words.chunks(2).map(|pair| (pair[0], pair.get(1).copied().unwrap_or(0)));
        let first = pairs.next().unwrap_or((0, 0));
        pairs.fold(self.step(self.0[0], first.0, first.1), |state, (a, b)| self.step(state, a, b))
    }

    /// Hashes of keys `0..count`, stored word by word: `rows[word][key]`.
    pub fn hash_rows<const N: usize>(
        &self,
        rows: &[[u64; N]],
        count: usize,
        hashes: &mut [u64; N],
    ) {
        let hashes = &mut hashes[..count.min(N)];
        let Some((first, rest)) = rows.split_first_chunk::<2>() else {
            let row = rows.first().unwrap_or(&[0; N]);
            hashes.iter_mut().zip(row).for_each(|(hash, &a)| *hash = self.step(self.0[0], a, 0));
            return;
        };
        for (hash, (&a, &b)) in hashes.iter_mut().zip(first[0].iter().zip(&first[1])) {
            *hash = self.step(self.0[0], a, b);
        }
        for pair in rest.chunks(2) {
            let second = pair.get(1).unwrap_or(&[0; N]);
            for (hash, (&a, &b)) in hashes.iter_mut().zip(pair[0].iter().zip(second)) {
                *hash = self.step(*hash, a, b);
            }
        }
    }

    const fn step(&self, state: u64, a: u64, b: u64) -> u64 {
        fold(state ^ a, self.0[1] ^ b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_hash_like_single_keys() {
        let secret = Secret::new([3, 4]);
        let rows: [[u64; 2]; 5] = [[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]];
        for len in 0..=5 {
            let mut hashes = [0; 2];
            secret.hash_rows(&rows[..len], 2, &mut hashes);
            for key in 0..2 {
                let words: Vec<u64> = rows[..len].iter().map(|row| row[key]).collect();
                assert_eq!(hashes[key], secret.hash(&words), "{len} words");
            }
        }
    }

    #[test]
    fn low_and_high_bits_spread_over_counting_keys() {
        let secret = Secret::new([1, 2]);
        let mut low = vec![0u32; 256];
        let mut high = vec![0u32; 256];
        for key in 0..65_536u64 {
            let hash = secret.hash(&[key << 16, 0x800]);
            low[(hash & 255) as usize] += 1;
            high[(hash >> 56) as usize] += 1;
        }
        let even = |counts: &[u32]| counts.iter().all(|&n| (150..=370).contains(&n));
        assert!(even(&low) && even(&high), "{low:?} {high:?}");
    }
}
