//! How far into a frame a parse goes: no further than anyone will look.

use crate::{Field, Key, WORDS};

/// How much of a frame's key and layers is known. What is not is 0, as if the frame ended there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Depth {
    /// Nothing of the frame: only where it came in, and what switches noted.
    Nothing,
    /// The Ethernet header with its tags: words 0 and 1 of the key, `l3` and `vlans` of the layers.
    Link,
    /// All of both.
    #[default]
    Full,
}

/// What is noted of a frame beside its bytes.
const NOTED: [Field; 6] = [
    Field::InPort,
    Field::InPhyPort,
    Field::Metadata,
    Field::TunnelId,
    Field::TunSrc,
    Field::TunDst,
];

impl Depth {
    /// The bits of a key that are known at this depth.
    pub const fn known(self) -> Key {
        let mut known = Key([0; WORDS]);
        match self {
            Self::Nothing => {}
            Self::Link => (known.0[0], known.0[1]) = (u64::MAX, u64::MAX),
            Self::Full => known.0 = [u64::MAX; WORDS],
        }
        let mut at = 0;
        while at < NOTED.len() {
            known.set(NOTED[at], NOTED[at].full());
            at += 1;
        }
        known
    }

    /// From which depth on every bit of `mask` is known.
    pub fn of(mask: &Key) -> Self {
        let mut deeper = *mask;
        NOTED.iter().for_each(|&field| deeper.set(field, 0));
        if deeper == Key::default() {
            return Self::Nothing;
        }
        (deeper.0[0], deeper.0[1]) = (0, 0);
        if deeper == Key::default() { Self::Link } else { Self::Full }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_at_a_depth_needs_no_other() {
        for depth in [Depth::Nothing, Depth::Link, Depth::Full] {
            assert_eq!(Depth::of(&depth.known()), depth);
        }
    }
}
