//! What programs are told, as [`super::show`] tells people: typed, and the host without asking the kernel, because controllers hear of
//! its changes several times a second.

use super::Agent;
use crate::error::SteerError;
use crate::rule::Rule;
use api::steer::PolicySpec;
use api::steer::VmView;
use place::steering::{CoreTimes, EntryStatus, UnitStatus};
use place::{Core, CoreId, UnitId};
use std::collections::HashMap;

/// The host.
#[derive(Clone, PartialEq, Debug)]
pub struct HostReport {
    /// How cores are chosen.
    pub policy: PolicySpec,
    /// Cores, with loads and roles.
    pub cores: Vec<Core>,
    /// Names of the machines pinned to each of them.
    pub pinned: Vec<Vec<String>>,
    /// Interfaces that are to be steered, and the hook of those that are.
    pub interfaces: Vec<(String, Option<&'static str>)>,
    /// Virtual machines.
    pub vms: Vec<VmView>,
}

/// A core at work.
#[derive(Clone, PartialEq, Debug)]
pub struct CoreReport {
    /// The core, with its load.
    pub core: Core,
    /// What its time went into.
    pub spent: CoreTimes,
    /// Units placed on it.
    pub units: usize,
    /// Frames handed to it.
    pub frames: u64,
}

/// A rule's entries or a flow group on one interface, and where it is.
#[derive(Clone, PartialEq, Debug)]
pub struct PlacementReport {
    /// The interface.
    pub interface: String,
    /// The unit.
    pub unit: UnitStatus,
    /// Its rule; a flow group when absent.
    pub rule: Option<Rule>,
    /// Bytes, which only rules count.
    pub bytes: u64,
    /// How long ago it was decided; `None` while it was not, or when nobody remembers.
    pub age_ns: Option<u64>,
}

impl Agent {
    /// The host, as the agent knows it already.
    pub fn host_report(&self) -> HostReport {
        let machines = super::machines::known(&self.vms, &self.seen);
        let pinned = |core: &Core| {
            let here = machines.iter().filter(|machine| machine.cores.contains(&core.id()));
            here.map(|machine| machine.name.clone()).collect()
        };
        let hook = |interface: &super::Interface| {
            interface.enforcer.as_ref().map(|enforcer| enforcer.hook())
        };
        HostReport {
            policy: self.policy.clone(),
            cores: self.table.cores().to_vec(),
            pinned: self.table.cores().iter().map(pinned).collect(),
            interfaces: self
                .interfaces
                .iter()
                .map(|(name, one)| (name.clone(), hook(one)))
                .collect(),
            vms: self.vm_views(),
        }
    }

    /// What the cores do.
    ///
    /// # Errors
    /// The kernel refuses to say.
    pub fn core_reports(&mut self) -> Result<Vec<CoreReport>, SteerError> {
        let (mut units, mut frames) = (HashMap::new(), HashMap::new());
        for (name, interface) in &mut self.interfaces {
            let Some(enforcer) = &mut interface.enforcer else { continue };
            let failed = |source| SteerError::Enforce { interface: name.clone(), source };
            for core in enforcer.units().map_err(failed)?.iter().filter_map(|unit| unit.core) {
                *units.entry(core).or_insert(0) += 1;
            }
            for (core, count) in enforcer.core_counts().map_err(failed)? {
                *frames.entry(core).or_insert(0) += count;
            }
        }
        let report = |core: &Core| CoreReport {
            core: core.clone(),
            spent: self.meter.spent(core.id()),
            units: count(&units, core.id()),
            frames: count(&frames, core.id()),
        };
        Ok(self.table.cores().iter().map(report).collect())
    }

    /// Every unit that any frame came for, and every rule, on every interface.
    ///
    /// # Errors
    /// The kernel refuses to say.
    pub fn placement_reports(&mut self) -> Result<Vec<PlacementReport>, SteerError> {
        let mut reports = Vec::new();
        for (name, interface) in &mut self.interfaces {
            let Some(enforcer) = &mut interface.enforcer else { continue };
            let failed = |source| SteerError::Enforce { interface: name.clone(), source };
            let mut entries: HashMap<UnitId, Vec<EntryStatus>> = HashMap::new();
            for status in enforcer.entries().map_err(failed)? {
                entries.entry(status.unit).or_default().push(status);
            }
            let mut units = enforcer.units().map_err(failed)?;
            let idle: Vec<UnitId> = entries
                .keys()
                .filter(|id| units.iter().all(|unit| unit.unit != **id))
                .copied()
                .collect();
            units.extend(idle.into_iter().map(undecided));
            for unit in units {
                let own = entries.get(&unit.unit).map_or(&[][..], Vec::as_slice);
                let rule =
                    own.first().and_then(|status| interface.claims.rule_of(&status.entry.key));
                reports.push(PlacementReport {
                    interface: name.clone(),
                    rule: rule.and_then(|id| self.rules.get(id)).cloned(),
                    bytes: own.iter().map(|status| status.bytes).sum(),
                    age_ns: (unit.decided_at_ns != 0)
                        .then(|| self.now_ns.saturating_sub(unit.decided_at_ns)),
                    unit,
                });
            }
        }
        Ok(reports)
    }
}

fn count<T: Copy + Default>(counts: &HashMap<CoreId, T>, core: CoreId) -> T {
    counts.get(&core).copied().unwrap_or_default()
}

/// The unit of a rule that no frame came for.
fn undecided(unit: UnitId) -> UnitStatus {
    UnitStatus {
        unit,
        core: None,
        wanted: None,
        reason: None,
        decided_at_ns: 0,
        frames: 0,
        bytes: 0,
        moves: 0,
        vm: None,
        is_priority: false,
        is_fixed: false,
    }
}
