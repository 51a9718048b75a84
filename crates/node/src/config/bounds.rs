//! `bounds = { … }`: bounds where another host or another use needs other ones.

use super::read::Scope;
use crate::bounds::BoundsSpec;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

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
