//! `bounds = { … }`: bounds on what callers and guests may take, where another host or another use needs other ones.
//!
//! What files and memory leave for each stays the least: a bound that is larger than that has no effect.

use super::read::Scope;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

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
            unread: MIB as usize,
            name_lookups: 32,
            api_connections: 256,
            api_body: 64 * MIB as usize,
            rule_lists: 16,
            guest_memory: 1024 * GIB,
        }
    }
}

/// Reads it, if it is there.
pub(super) fn read(node: &Scope<'_>) -> Option<BoundsSpec> {
    let scope = node.table("bounds", "node.bounds")?;
    let defaults = BoundsSpec::default();
    let size = |key, range, default: usize| {
        scope.number(key, range).and_then(|number| usize::try_from(number).ok()).unwrap_or(default)
    };
    let spec = BoundsSpec {
        connections: size("connections", 8..=65_536, defaults.connections),
        unread: size("unread", 64 * KIB..=GIB, defaults.unread),
        name_lookups: size("name_lookups", 2..=256, defaults.name_lookups),
        api_connections: size("api_connections", 16..=65_536, defaults.api_connections),
        api_body: size("api_body", 256 * KIB..=96 * MIB, defaults.api_body),
        rule_lists: size("rule_lists", 1..=1024, defaults.rule_lists),
        guest_memory: scope
            .number("guest_memory", MIB..=64 * 1024 * GIB)
            .unwrap_or(defaults.guest_memory),
    };
    scope.close();
    Some(spec)
}
