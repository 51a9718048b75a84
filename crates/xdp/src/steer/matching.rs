//! Which frames an entry of the program is for.

use place::steering::{Field, FlowKey};

/// Which frames an entry is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Match {
    /// Those whose key is `key` where `mask` has ones. Of several entries, that of the highest priority.
    Wild {
        /// What they have; zero where the mask is.
        key: FlowKey,
        /// What is looked at.
        mask: FlowKey,
        /// Larger is stronger.
        priority: u32,
    },
    /// One flow ([`FlowKey::flow`]); stronger than every wildcard entry.
    Flow(FlowKey),
}

impl Match {
    /// A wildcard match of those fields, each with a value and a mask.
    pub fn fields(priority: u32, fields: impl IntoIterator<Item = (Field, u128, u128)>) -> Self {
        let (mut key, mut mask) = (FlowKey::default(), FlowKey::default());
        for (field, value, ones) in fields {
            key.set(field, value & ones);
            mask.set(field, ones);
        }
        Self::Wild { key, mask, priority }
    }
}
