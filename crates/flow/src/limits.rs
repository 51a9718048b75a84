//! Numbers that several modules share.

/// Packets looked up together: one bit of a `u32` each, and half a batch.
pub(crate) const LANES: usize = 32;
const _: () = assert!(2 * LANES == wire::BATCH);

/// How deep groups may nest. Chosen; the group table refuses deeper chains.
pub(crate) const MAX_CHAIN: u8 = 8;

/// Most actions of one list. Chosen: a packet's copies are bounded apart from this.
pub(crate) const MAX_ACTIONS: usize = 512;

/// So many actions take as much memory as a plain entry: in the tables, in the state file, and on the way there. Chosen: 128 bytes each.
const ACTIONS_OF_A_UNIT: u64 = 8;

/// What actions take, in units of a plain entry.
pub(crate) fn units(actions: u64) -> u64 {
    actions / ACTIONS_OF_A_UNIT
}

/// Highest group number (`OFPG_MAX`).
pub const MAX_GROUP: u32 = 0xffff_ff00;

/// Highest number of a port that is no reserved one (`OFPP_MAX`).
pub const MAX_PORT: u32 = 0xffff_ff00;
