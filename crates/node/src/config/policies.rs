//! `[[node.offload_policy]]` and `[[switch.offload_policy]]`: which flows shall leave the workers.

use super::read::Scope;
use crate::offload;
use api::OffloadPolicy;
use port::Ends;

/// Policies of a table; `path` is where they are written.
pub fn read(of: &Scope<'_>, path: &str) -> Vec<OffloadPolicy> {
    let mut policies: Vec<OffloadPolicy> = Vec::new();
    for scope in of.tables("offload_policy", path) {
        let (line, notes) = (scope.line, scope.notes());
        let Some(policy) = read_one(scope, &of.thing) else { continue };
        let thing = format!("{} offload policy {}", of.thing, policy.name);
        if policies.iter().any(|other| other.name == policy.name) {
            let cause = "another policy above has that name";
            notes.add(line, &thing, cause, "give each policy its own name");
        } else if let Err(fault) = offload::check(&policy, &Ends::default()) {
            notes.add(
                line,
                &thing,
                format!("cannot {}: {}", fault.step, fault.cause),
                fault.remedy,
            );
        }
        policies.push(policy);
    }
    policies
}

fn read_one(mut scope: Scope<'_>, of: &str) -> Option<OffloadPolicy> {
    let string = |scope: &Scope<'_>, key| scope.string(key).map(|found| found.value);
    let name = string(&scope, "name");
    let shown = name.clone().unwrap_or_else(|| scope.thing.replace("offload_policy ", ""));
    scope.thing = format!("{of} offload policy {shown}");
    scope.missing("name", "the policy has no name", "add name = \"...\"");
    let is_named = name.is_some();
    let policy = OffloadPolicy {
        name: name.unwrap_or_default(),
        priority: scope
            .number("priority", 0..=u64::from(u16::MAX))
            .map_or(OffloadPolicy::PRIORITY, |priority| priority as u16),
        matching: string(&scope, "match").unwrap_or_default(),
        when: string(&scope, "when"),
        until: string(&scope, "until"),
        residence_ms: scope.number("residence_ms", 0..=u64::from(u32::MAX)),
        never: scope.flag("never").unwrap_or_default(),
        rungs: scope.strings("rungs").into_iter().map(|found| found.value).collect(),
    };
    scope.close();
    is_named.then_some(policy)
}
