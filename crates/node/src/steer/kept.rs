//! What steering was asked for, as the store keeps it.
//!
//! ```text
//! id                          record
//! policy                      JSON of a `PolicySpec`
//! interface/NAME              JSON of an `InterfaceSpec`
//! vm/NAME                     JSON of a `VmSpec`
//! rule/INTERFACE/KEY          the rule's text; INTERFACE is empty for all of them, KEY is priority and match
//! ```

use crate::store::{Kept, SteerRecords, StoreError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use steer::{Change, Desired};

const POLICY: &str = "policy";

/// Notes changes in the store.
pub struct Journal(pub SteerRecords);

impl steer::Journal for Journal {
    fn note(&mut self, change: Change<'_>) {
        let (id, record) = encoded(change);
        self.0.put(&id, record);
    }
}

fn encoded(change: Change<'_>) -> (String, Option<Vec<u8>>) {
    match change {
        Change::Policy(policy) => (POLICY.into(), Some(json(policy))),
        Change::Interface(name, spec) => (format!("interface/{name}"), spec.map(json)),
        Change::Vm(name, spec) => (format!("vm/{name}"), spec.map(json)),
        Change::Rule { on, rule, wanted } => {
            let id = format!("rule/{}/{}", on.unwrap_or_default(), rule.key());
            (id, wanted.then(|| rule.to_string().into_bytes()))
        }
    }
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("specs are plain data with text keys")
}

/// What an earlier node was asked for. A record that cannot be read is left out, and logged.
///
/// # Errors
/// The file is damaged.
pub fn restore(kept: &Kept) -> Result<Desired, StoreError> {
    let mut desired = Desired::default();
    kept.steer(|id, record| {
        if read(&mut desired, id, record).is_none() {
            tracing::warn!("steering: the record {id:?} is unreadable: left out");
        }
    })?;
    Ok(desired)
}

fn read(desired: &mut Desired, id: &str, record: &[u8]) -> Option<()> {
    if id == POLICY {
        desired.policy = parsed(record)?;
        return Some(());
    }
    let (kind, name) = id.split_once('/')?;
    match kind {
        "interface" => drop(desired.interfaces.insert(name.into(), parsed(record)?)),
        "vm" => drop(desired.vms.insert(name.into(), parsed(record)?)),
        "rule" => {
            let (on, _) = name.split_once('/')?;
            let rule = steer::parse_rule(std::str::from_utf8(record).ok()?).ok()?;
            desired.rules.push(((!on.is_empty()).then(|| on.into()), rule));
        }
        _ => return None,
    }
    Some(())
}

fn parsed<T: DeserializeOwned>(record: &[u8]) -> Option<T> {
    serde_json::from_slice(record).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::steer::{InterfaceSpec, PolicySpec, VmSpec};
    use steer::parse_rule;

    #[test]
    fn what_was_kept_is_what_is_restored() {
        let policy =
            PolicySpec { threshold_percent: 40, cores: Some(vec![2]), ..PolicySpec::default() };
        let vm = VmSpec { id: 3, addresses: vec!["fd00::1".parse().unwrap()], ..VmSpec::default() };
        let rule = parse_rule("priority=3,ip,vm_id=3,actions=place(core=auto)").unwrap();
        let interface = InterfaceSpec::default();
        let changes = [
            Change::Policy(&policy),
            Change::Interface("eth0", Some(&interface)),
            Change::Vm("a/b", Some(&vm)),
            Change::Rule { on: None, rule: &rule, wanted: true },
            Change::Rule { on: Some("eth0"), rule: &rule, wanted: true },
        ];
        let mut desired = Desired::default();
        for change in changes {
            let (id, record) = encoded(change);
            read(&mut desired, &id, &record.unwrap()).unwrap();
        }
        assert_eq!(desired.policy, policy);
        assert_eq!(
            desired.interfaces.into_iter().collect::<Vec<_>>(),
            [("eth0".into(), interface)]
        );
        assert_eq!(desired.vms.into_iter().collect::<Vec<_>>(), [("a/b".into(), vm)]);
        assert_eq!(desired.rules, [(None, rule.clone()), (Some("eth0".into()), rule)]);
    }

    #[test]
    fn a_record_of_another_kind_is_left_out() {
        let mut desired = Desired::default();
        for (id, record) in
            [("rule/eth0", "ip"), ("rule//x", "ip,actions=drop"), ("colour", "red"), ("vm/a", "{")]
        {
            assert_eq!(read(&mut desired, id, record.as_bytes()), None, "{id}");
        }
    }
}
