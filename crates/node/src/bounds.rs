//! Bounds on what callers and guests may take, each with a key of `bounds = { … }` in `[node]`.
//!
//! What files and memory leave for each stays the least: a bound that is larger than that has no effect.

/// What one address, peer, request or guest may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BoundsSpec {
    /// OpenFlow connections of one address, or of a management socket.
    pub connections: usize,
    /// Bytes of packet-ins that a peer need not read; half of that of replies, twice that of all.
    pub unread: usize,
    /// Look-ups of names of all switches at a time.
    pub name_lookups: usize,
    /// Connections of one socket of the API.
    pub api_connections: usize,
    /// Bytes of a request with rules or a part.
    pub api_body: usize,
    /// Lists of rules under way.
    pub rule_lists: usize,
    /// Bytes that a guest may share.
    pub guest_memory: u64,
}

impl Default for BoundsSpec {
    /// Connections: far more than tools and controllers of one switch, far fewer than files. Look-ups: sixteen switches whose name servers hang, and the
    /// runtime's 512 threads stay free. Bodies: half a million rules. Guests: above any machine's memory, and a hundredth of a process's addresses.
    fn default() -> Self {
        Self {
            connections: 256,
            unread: 1 << 20,
            name_lookups: 32,
            api_connections: 256,
            api_body: 64 << 20,
            rule_lists: 16,
            guest_memory: 1 << 40,
        }
    }
}
