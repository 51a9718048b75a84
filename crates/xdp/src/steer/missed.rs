//! The unit of frames that no entry matches: `default_unit` of `bpf/classify.h` for user space.

use super::abi::{FCF_FIRST, FLOW_WORDS};
use super::attached::Attached;
use super::hash;
use place::UnitId;
use place::steering::{Field, FlowKey};

/// `SALT_GROUP`.
const SALT_GROUP: u64 = 0x101;

impl Attached {
    /// The unit that a frame of that key is in when no entry matches it; `None` when such frames stay where they are.
    pub fn missed_unit(&self, key: &FlowKey) -> Option<UnitId> {
        let config = self.config.get(0);
        let fcf = key.get(Field::OuterTos) as u32;
        if config.is_fcf == 1 && fcf >> 1 != 0 {
            return Some(UnitId(FCF_FIRST + fcf));
        }
        let group = config.groups.checked_sub(1)?;
        let flow = key.flow();
        let hash = hash::of(&flow.0[..FLOW_WORDS], &config.secrets, SALT_GROUP);
        Some(UnitId(hash as u32 & group))
    }
}
