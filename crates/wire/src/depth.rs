//! How far into a frame a parse goes: no further than anyone will look.

use crate::{Field, Key};

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

impl Depth {
    /// From which depth on every bit of `mask` is known.
    pub fn of(mask: &Key) -> Self {
        let mut deeper = *mask;
        for field in [
            Field::InPort,
            Field::InPhyPort,
            Field::Metadata,
            Field::TunnelId,
            Field::TunSrc,
            Field::TunDst,
        ] {
            deeper.set(field, 0);
        }
        if deeper == Key::default() {
            return Self::Nothing;
        }
        (deeper.0[0], deeper.0[1]) = (0, 0);
        if deeper == Key::default() { Self::Link } else { Self::Full }
    }
}
