//! How the bits of a key that one mask looks at are packed into few words.
//!
//! A 5-tuple with its Ethernet type occupies four words of a [`Key`] but only 120 bits: two words when packed. Fewer
//! words make smaller entries and cheaper hashes. Packing moves whole masked words: each is rotated into the first
//! packed word where its bits find room, so it can be undone.

use wire::{Key, WORDS};

/// One move: `packed[to] |= (key[from] & mask) <<< turn`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Move {
    mask: u64,
    from: u8,
    to: u8,
    turn: u8,
}

/// The packing of one mask.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Plan {
    mask: Key,
    /// By target word.
    moves: Box<[Move]>,
    words: u8,
}

impl Plan {
    /// Packs first-fit, words with most bits first.
    pub fn new(mask: &Key) -> Self {
        let mut order: Vec<usize> = (0..WORDS).filter(|&word| mask.0[word] != 0).collect();
        order.sort_by_key(|&word| std::cmp::Reverse(mask.0[word].count_ones()));
        let mut taken: Vec<u64> = Vec::new();
        let mut moves: Vec<Move> =
            order.into_iter().map(|from| place(mask.0[from], from, &mut taken)).collect();
        moves.sort_by_key(|step| step.to);
        Self { mask: *mask, moves: moves.into(), words: taken.len() as u8 }
    }

    /// The mask.
    pub fn mask(&self) -> &Key {
        &self.mask
    }

    /// Words of a packed key; 0 for the empty mask.
    pub fn words(&self) -> usize {
        self.words as usize
    }

    /// Packs one key.
    pub fn pack(&self, key: &Key) -> [u64; WORDS] {
        let mut packed = [0; WORDS];
        for step in &self.moves {
            packed[step.to as usize % WORDS] |=
                (key.0[step.from as usize % WORDS] & step.mask).rotate_left(step.turn.into());
        }
        packed
    }

    /// Packs keys, word by word: `rows[word][key]`. Rows from [`Plan::words`] on are left as they are.
    pub fn pack_rows<const N: usize>(&self, keys: &[&Key], rows: &mut [[u64; N]; WORDS]) {
        let mut filled = 0;
        for step in &self.moves {
            let (from, turn) = (usize::from(step.from) % WORDS, u32::from(step.turn));
            let row = rows[usize::from(step.to) % WORDS].iter_mut().zip(keys);
            let moved = |key: &Key| (key.0[from] & step.mask).rotate_left(turn);
            if usize::from(step.to) == filled {
                filled += 1;
                row.for_each(|(packed, key)| *packed = moved(key));
            } else {
                row.for_each(|(packed, key)| *packed |= moved(key));
            }
        }
    }

    /// The masked key whose packing this is.
    pub fn unpack(&self, packed: &[u64]) -> Key {
        let mut key = Key::default();
        for step in &self.moves {
            key.0[step.from as usize] =
                packed[step.to as usize].rotate_right(step.turn.into()) & step.mask;
        }
        key
    }
}

/// Finds room for `mask` in `taken`, opening a new word when there is none.
fn place(mask: u64, from: usize, taken: &mut Vec<u64>) -> Move {
    for (to, bits) in taken.iter_mut().enumerate() {
        if let Some(turn) = (0..64).find(|&turn| mask.rotate_left(turn) & *bits == 0) {
            *bits |= mask.rotate_left(turn);
            return Move { mask, from: from as u8, to: to as u8, turn: turn as u8 };
        }
    }
    taken.push(mask);
    Move { mask, from: from as u8, to: taken.len() as u8 - 1, turn: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Field;

    fn mask_of(fields: &[Field]) -> Key {
        let mut mask = Key::default();
        for &field in fields {
            mask.set(field, field.full());
        }
        mask
    }

    #[test]
    fn a_five_tuple_packs_into_two_words_and_back() {
        use Field::{EthType, IpProto, Ipv4Dst, Ipv4Src, TpDst, TpSrc};
        let mask = mask_of(&[EthType, IpProto, Ipv4Src, Ipv4Dst, TpSrc, TpDst]);
        let plan = Plan::new(&mask);
        assert_eq!(plan.words(), 2);
        let key = Key(std::array::from_fn(|i| 0x0123_4567_89ab_cdef_u64.rotate_left(i as u32 * 5)));
        assert_eq!(plan.unpack(&plan.pack(&key)), key.masked(&mask));
    }

    #[test]
    fn rows_pack_like_single_keys() {
        let mask = mask_of(&[Field::InPort, Field::EthDst, Field::EthSrc, Field::VlanVid]);
        let plan = Plan::new(&mask);
        let keys: [Key; 4] = std::array::from_fn(|k| {
            Key(std::array::from_fn(|i| ((k * 31 + i) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
        });
        let mut rows = [[7; 4]; WORDS];
        plan.pack_rows(&keys.each_ref(), &mut rows);
        for (k, key) in keys.iter().enumerate() {
            let packed = plan.pack(key);
            assert!((0..plan.words()).all(|word| rows[word][k] == packed[word]));
            assert_eq!(plan.unpack(&packed), key.masked(&mask));
        }
    }

    #[test]
    fn the_full_mask_needs_all_words_and_the_empty_none() {
        assert_eq!(Plan::new(&Key([u64::MAX; WORDS])).words(), WORDS);
        assert_eq!(Plan::new(&Key::default()).words(), 0);
    }
}
