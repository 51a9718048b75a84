//! The core table: what the host has, what the operator allows, what is pinned, what is measured.

use super::machines::Machine;
use super::meter::Meter;
use crate::error::SteerError;
use api::steer::PolicySpec;
use place::{Arrivals, CORES_MAX, Core, CoreId, CoreTable, Load, Pinned, Role};

/// The table of these cores, as many as a table holds.
pub fn of(cores: &[Core]) -> CoreTable {
    if cores.len() > CORES_MAX {
        tracing::warn!("{} cores: only the first {CORES_MAX} are steered to", cores.len());
    }
    let first = cores.iter().take(CORES_MAX).cloned().collect();
    CoreTable::new(first).unwrap_or_else(|error| {
        tracing::error!("the host's cores make no table: {error}");
        CoreTable::new(Vec::new()).expect("no cores are in order")
    })
}

/// Cores came or went (CPU hotplug): their table is made anew, loads follow with the next measurement.
pub fn refresh_cores(table: &mut CoreTable, cores: &[Core]) {
    let ids = |cores: &[Core]| cores.iter().take(CORES_MAX).map(Core::id).collect::<Vec<_>>();
    if ids(table.cores()) != ids(cores) {
        *table = of(cores);
    }
}

/// Gives each core its role and the machines pinned to it, and the table its thresholds.
pub fn set_roles(table: &mut CoreTable, policy: &PolicySpec, machines: &[Machine]) {
    let ids: Vec<CoreId> = table.cores().iter().map(Core::id).collect();
    for id in ids {
        let Some(core) = table.core_mut(id) else { continue };
        let allowed = policy.cores.as_ref().is_none_or(|cores| cores.contains(&id.0));
        core.role = match (allowed, policy.reserved.contains(&id.0)) {
            (_, true) => Role::Reserved,
            (true, false) => Role::Allowed,
            (false, false) => Role::Excluded,
        };
        let here = machines.iter().filter(|machine| machine.cores.contains(&id));
        core.pinned = here.map(|machine| machine.id).collect::<Pinned>();
    }
    table.threshold = Load::percent(policy.threshold_percent.into());
    table.priority_threshold = Load::percent(policy.priority_threshold_percent.into());
}

/// Gives each core its load, and what was placed on it too lately to show in that.
pub fn set_loads(table: &mut CoreTable, meter: &Meter, arrivals: &Arrivals) {
    let ids: Vec<CoreId> = table.cores().iter().map(Core::id).collect();
    for id in ids {
        let Some(core) = table.core_mut(id) else { continue };
        core.load = meter.load(id);
        core.placed = arrivals.unmeasured(id);
    }
}

/// The same, with the loads that units are moved by.
pub fn strained(table: &CoreTable, meter: &Meter) -> CoreTable {
    let mut strained = table.clone();
    for id in table.cores().iter().map(Core::id) {
        if let Some(core) = strained.core_mut(id) {
            core.load = meter.strain(id);
        }
    }
    strained
}

/// The same, as an enforcer sees it that can steer to these cores only.
pub fn limited(table: &CoreTable, cores: &[CoreId]) -> CoreTable {
    let mut limited = table.clone();
    for id in table.cores().iter().map(Core::id).filter(|id| !cores.contains(id)) {
        if let Some(core) = limited.core_mut(id) {
            core.role = Role::Excluded;
        }
    }
    limited
}

/// Whether a policy can be, on these cores.
pub fn check(policy: &PolicySpec, table: &CoreTable) -> Result<(), SteerError> {
    let bad = |cause: String, remedy: &str| {
        Err(SteerError::Setting { thing: "policy".into(), cause, remedy: remedy.into() })
    };
    let named = policy.cores.iter().flatten().chain(&policy.reserved);
    if let Some(missing) = named.copied().find(|&core| table.core(CoreId(core)).is_none()) {
        return bad(format!("this host has no core {missing}"), "see `suiro steer cores`");
    }
    for percent in [policy.threshold_percent, policy.priority_threshold_percent] {
        if !(1..=100).contains(&percent) {
            return bad(format!("a threshold of {percent} %"), "give 1 to 100");
        }
    }
    Ok(())
}
