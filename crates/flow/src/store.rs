//! Where entries live: packed keys, records shared by all snapshots, and the hash index that finds them.

mod arena;
mod hash;
mod index;
mod plan;
mod record;
mod records;

pub(crate) use arena::{Arena, ArenaView, Cold};
pub(crate) use hash::Secret;
pub(crate) use index::{Bucket, Full, Index, IndexView};
pub(crate) use plan::Plan;
pub(crate) use record::{FIRST_WORDS, Line, RecordId, Rule, tick};
pub(crate) use records::{Afterwards, Store};
