//! Limits and settings of one switch's pipeline.

/// What a pipeline may grow to; fixed when it is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Tables, numbered from 0; at most 254 (`OFPTT_MAX`).
    pub tables: u8,
    /// Entries one table may hold.
    pub entries_per_table: u32,
    /// K: hashed masks one table may probe (design.md §4).
    pub masks: u8,
    /// Key of the tables' hashes, so that a tenant cannot choose rules that collide: random per boot.
    pub secret: [u64; 2],
    /// Tells switches apart that share a worker's cache: distinct per node, small (workers index by it).
    pub switch: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            tables: 254,
            entries_per_table: 2_000_000,
            masks: 32,
            secret: [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344],
            switch: 0,
        }
    }
}

/// What happens to a packet that no entry matches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Miss {
    /// It is dropped: fail-secure, and what OpenFlow 1.3 says.
    #[default]
    Drop,
    /// It is forwarded as by a learning switch: standalone without a controller.
    Normal,
    /// So is a packet that a table-miss entry would send to the controller, which is gone: standalone again until it is back
    /// (OpenFlow 1.3.5 §6.3.2). Without this the entry would be a hole.
    Orphaned,
    /// It goes to the controller, as what OpenFlow 1.0 §3.4 says, for 1.0 has no table-miss entries.
    Controller,
}

/// `OFPC_FRAG_*`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FragMode {
    /// Fragments are matched like any packet; later ones have no transport ports.
    #[default]
    Normal,
    /// Fragments are dropped.
    Drop,
}

/// Settings that may change while the switch runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SwitchConfig {
    /// Without a match.
    pub miss: Miss,
    /// Fragments.
    pub fragments: FragMode,
    /// A packet whose TTL runs out goes to the controller (`OFPC_INVALID_TTL_TO_CONTROLLER` of OpenFlow 1.2).
    pub invalid_ttl_to_controller: bool,
    /// Copies a second that floods of one port may cause where the switch is a bridge, each kind apart (`storm.rs`); none: no bound.
    pub flood_copies_per_s: Option<u32>,
    /// Copies a second beyond those that each frame may make; none: what is so by default.
    pub copies_per_s: Option<u32>,
}
