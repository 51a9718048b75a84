//! Which frames a capture wants: those whose key has these bits, as a rule's match says it.

use crate::id::PortAt;
use wire::{Field, Key, WORDS};

/// Bits of a key, and their values. The default takes every frame and looks at none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    key: Key,
    mask: Key,
}

impl Filter {
    /// Frames that have the bits of `key` which `mask` names. Of what is not in a frame, `in_port` alone is known: the port that sees it.
    pub fn of(key: &Key, mask: &Key) -> Self {
        Self { key: *key, mask: *mask }
    }

    /// Whether it wants a frame that begins so.
    pub(super) fn takes(&self, at: PortAt, head: &[u8]) -> bool {
        if self.mask == Key::default() {
            return true;
        }
        let mut key = wire::parse_bytes(head).0;
        key.set(Field::InPort, u128::from(at.port));
        (0..WORDS).all(|word| (key.0[word] ^ self.key.0[word]) & self.mask.0[word] == 0)
    }
}
