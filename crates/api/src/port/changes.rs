//! What differs between a port and the one it shall become.

use super::{PortKind, PortSpec};
use crate::key::{Change, Form, Key};

impl PortSpec {
    /// Keys in which `to` differs, in the order of their tables.
    pub fn changes(&self, to: &Self) -> Vec<&'static Key> {
        let (kind, before, after) = (self.kind.kind(), self.keys(), to.keys());
        let differs = |key: &&Key| before.get(key.name) != after.get(key.name);
        super::COMMON.iter().chain(kind.keys()).filter(differs).collect()
    }

    /// Whether the port can become `to` and carry on.
    pub fn can_become(&self, to: &Self) -> bool {
        self.changes(to).iter().all(|key| key.change == Change::Live)
    }
}

/// Keys that a patch may name: those of any kind that change while a port carries on, each once. Queues have a door of their own.
pub fn live_keys() -> Vec<&'static Key> {
    let mut keys: Vec<&'static Key> = Vec::new();
    let all = PortKind::ALL.into_iter().flat_map(PortKind::keys);
    let is_live = |key: &&Key| key.change == Change::Live && !matches!(key.form, Form::Tables);
    for key in super::COMMON.iter().chain(all).filter(is_live) {
        if keys.iter().all(|known| known.name != key.name) {
            keys.push(key);
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn port(keys: serde_json::Value) -> PortSpec {
        serde_json::from_value(keys).unwrap()
    }

    #[test]
    fn a_port_carries_on_when_only_live_keys_change() {
        let before = port(json!({"name": "g1", "type": "tap"}));
        let live = port(json!({"name": "g1", "type": "tap", "mtu": 9000, "rate": "1G"}));
        let names = |to| before.changes(to).iter().map(|key| key.name).collect::<Vec<_>>();
        assert_eq!(names(&live), ["mtu", "rate"]);
        assert!(before.can_become(&live) && live.can_become(&before));
        let other = port(json!({"name": "g1", "type": "tap", "netns": "guest1"}));
        assert!(!before.can_become(&other));
        let kind = port(json!({"name": "g1", "type": "af_packet"}));
        assert_eq!(names(&kind), ["type"]);
        assert!(before.changes(&before).is_empty());
    }
}
