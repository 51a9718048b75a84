//! Which frames an entry selects: bits of their flow key.

use super::{Field, FlowKey};

/// Frames whose key agrees with `key` in the bits of `mask`; no bit of `key` is outside it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Selector {
    /// What.
    pub key: FlowKey,
    /// Where.
    pub mask: FlowKey,
}

impl Selector {
    /// Selects by these fields, each with a value and a mask.
    pub fn fields(fields: impl IntoIterator<Item = (Field, u128, u128)>) -> Self {
        let mut selector = Self::default();
        fields.into_iter().for_each(|(field, value, mask)| selector.set(field, value, mask));
        selector
    }

    /// Whether it selects frames of that key.
    pub fn selects(&self, key: &FlowKey) -> bool {
        key.and(&self.mask) == self.key
    }

    /// Matches a field by that value and mask, and no longer by what it was matched by.
    pub fn set(&mut self, field: Field, value: u128, mask: u128) {
        self.key.set(field, value & mask);
        self.mask.set(field, mask);
    }

    /// Matches more bits of a field.
    pub fn add(&mut self, field: Field, value: u128, mask: u128) {
        self.set(field, self.key.get(field) | value, self.mask.get(field) | mask);
    }

    /// Whether the field can have that value.
    pub fn allows(&self, field: Field, value: u128) -> bool {
        (self.key.get(field) ^ value) & self.mask.get(field) == 0
    }
}
