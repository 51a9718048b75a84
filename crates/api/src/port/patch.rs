//! Changes to a port that carries on.

use super::PortSpec;
use super::changes::live_keys;
use crate::key::{Form, Key, KeyFault, KeyFaults, Keys};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Changes to a port; what is left out stays.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "Keys", into = "Keys")]
pub struct PortPatch {
    /// Administrative state: `false` is `OFPPC_PORT_DOWN`.
    pub up: Option<bool>,
    /// Whether the file of a tunnel's keys is read again. SAs that it still has go on.
    pub rekey: bool,
    /// Keys that get other values; `none` takes a key back.
    pub keys: Keys,
}

/// The value of a key that is taken back.
pub const NONE: &str = "none";

const UP: Key = Key::new("up", Form::Flag, "", "Set the port up or down");
const REKEY: Key = Key::new("rekey", Form::Flag, "", "Read the file of a tunnel's keys again");

impl TryFrom<Keys> for PortPatch {
    type Error = KeyFaults;

    fn try_from(mut keys: Keys) -> Result<Self, KeyFaults> {
        keys.retain(|_, value| !value.is_null());
        let mut faults = Vec::new();
        let mut flag = |key: &Key, value: Option<Value>| {
            let checked = value.map(|value| key.check(&value)).transpose();
            let value = checked.unwrap_or_else(|fault| {
                faults.push(fault);
                None
            });
            value.and_then(|value| value.as_bool())
        };
        let (up, rekey) = (flag(&UP, keys.remove("up")), flag(&REKEY, keys.remove("rekey")));
        let live = live_keys();
        let fixed = keys.keys().filter(|name| live.iter().all(|key| key.name != **name));
        faults.extend(fixed.map(|name| {
            let cause = format!("`{name}` does not change on a port in service");
            KeyFault::new(name, cause, "remove the port and add it anew")
        }));
        if faults.is_empty() {
            Ok(Self { up, rekey: rekey.unwrap_or(false), keys })
        } else {
            Err(KeyFaults(faults))
        }
    }
}

impl From<PortPatch> for Keys {
    fn from(PortPatch { up, rekey, mut keys }: PortPatch) -> Self {
        keys.extend(up.map(|up| ("up".into(), up.into())));
        keys.extend(rekey.then(|| ("rekey".into(), true.into())));
        keys
    }
}

impl PortPatch {
    /// The port after the changes.
    ///
    /// # Errors
    /// Everything wrong with it.
    pub fn applied_to(&self, spec: &PortSpec) -> Result<PortSpec, KeyFaults> {
        let mut keys = spec.keys();
        for (name, value) in &self.keys {
            if value == NONE {
                keys.remove(name);
            } else {
                keys.insert(name.clone(), value.clone());
            }
        }
        PortSpec::read(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn patch(keys: Value) -> Result<PortPatch, String> {
        serde_json::from_value(keys).map_err(|error| error.to_string())
    }

    #[test]
    fn a_patch_changes_what_it_names_and_takes_back_what_is_none() {
        let spec = json!({"name": "g1", "type": "tap", "mtu": 1500, "rate": "1G"});
        let spec: PortSpec = serde_json::from_value(spec).unwrap();
        let changes = patch(json!({"rate": "none", "mtu": 9000, "up": true, "seal_core": null}));
        let changed = changes.unwrap().applied_to(&spec).unwrap();
        assert_eq!((changed.rate, changed.mtu), (None, Some(9000)));
        let back: PortPatch = patch(json!({"up": false, "rekey": true, "mtu": 68})).unwrap();
        assert_eq!(patch(json!(back)), Ok(back));
    }

    #[test]
    fn what_cannot_change_or_is_no_key_of_the_port_is_refused() {
        let fixed = patch(json!({"netns": "a", "up": 1})).unwrap_err();
        assert!(fixed.contains("`netns` does not change") && fixed.contains("up is a number"));
        let spec: PortSpec = serde_json::from_value(json!({"name": "p", "type": "tap"})).unwrap();
        let sealed = patch(json!({"mtu": 1300, "seal_core": 0})).unwrap();
        let faults = sealed.applied_to(&spec).unwrap_err();
        assert_eq!(faults.0[0].key, "seal_core");
    }
}
