//! What is true now, for whoever asks.

use super::Agent;
use super::interfaces::Interface;
use crate::error::SteerError;
use api::steer::{CoreView, InterfaceView, SteerView, UnitView};
use place::steering::{CoreTimes, EnforceError, UnitStatus};
use place::{Core, CoreId, Load, Role, Stage};
use std::collections::{BTreeMap, HashMap};

impl Agent {
    /// Everything.
    ///
    /// # Errors
    /// The kernel refuses to say.
    pub fn view(&mut self) -> Result<SteerView, SteerError> {
        let names = self.interface_names();
        let interfaces =
            names.iter().map(|name| self.interface_view(name)).collect::<Result<Vec<_>, _>>()?;
        Ok(SteerView {
            at_ns: self.now_ns,
            policy: self.policy.clone(),
            cores: self.core_views(&interfaces)?,
            interfaces,
            vms: self.vm_views(),
            rules: self.rules.len(),
        })
    }

    /// One interface.
    pub(super) fn interface_view(&mut self, name: &str) -> Result<InterfaceView, SteerError> {
        let Some(interface) = self.interfaces.get_mut(name) else {
            return Err(SteerError::NotSteered { interface: name.into() });
        };
        let failed = |source| SteerError::Enforce { interface: name.into(), source };
        interface_view(name, interface).map_err(failed)
    }

    /// Units of every interface that any frame came for, the busiest first.
    ///
    /// # Errors
    /// The kernel refuses to say.
    pub fn unit_views(&mut self) -> Result<Vec<UnitView>, SteerError> {
        let mut views = Vec::new();
        for (name, interface) in &mut self.interfaces {
            let Some(enforcer) = &mut interface.enforcer else { continue };
            let failed = |source| SteerError::Enforce { interface: name.clone(), source };
            let rules: HashMap<_, _> = enforcer
                .entries()
                .map_err(failed)?
                .into_iter()
                .filter_map(|status| {
                    Some((status.unit, interface.claims.rule_of(&status.entry.key)?))
                })
                .collect();
            for unit in enforcer.units().map_err(failed)? {
                let rule = rules.get(&unit.unit).and_then(|id| self.rules.get(*id));
                views.push(unit_view(name, &unit, rule.map(ToString::to_string)));
            }
        }
        views.sort_by_key(|view| std::cmp::Reverse(view.frames));
        Ok(views)
    }

    fn core_views(&mut self, interfaces: &[InterfaceView]) -> Result<Vec<CoreView>, SteerError> {
        let mut units: HashMap<CoreId, usize> = HashMap::new();
        for (name, interface) in &mut self.interfaces {
            let Some(enforcer) = &mut interface.enforcer else { continue };
            let failed = |source| SteerError::Enforce { interface: name.clone(), source };
            for unit in enforcer.units().map_err(failed)? {
                if let Some(core) = unit.core {
                    *units.entry(core).or_default() += 1;
                }
            }
        }
        let machines = super::machines::known(&self.vms, &self.seen);
        let view = |core: &Core| {
            let id = core.id();
            let frames = interfaces.iter().filter_map(|view| view.frames_by_core.get(&id.0));
            let pinned = machines.iter().filter(|machine| machine.cores.contains(&id));
            CoreView {
                core: id.0,
                numa: core.numa.0,
                sibling: core.sibling.map(|sibling| sibling.0),
                role: role(core.role).into(),
                pinned: pinned.map(|machine| machine.name.clone()).collect(),
                load_percent: load_percent(core),
                spent_ns: spent_ns(&self.meter.spent(id)),
                units: units.get(&id).copied().unwrap_or(0),
                frames: frames.sum(),
            }
        };
        Ok(self.table.cores().iter().map(view).collect())
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Allowed => "allowed",
        Role::Reserved => "reserved",
        Role::Excluded => "excluded",
    }
}

fn load_percent(core: &Core) -> BTreeMap<String, f64> {
    let percent = |load: Load| f64::from(load.as_per_mille()) / 10.0;
    let stages = Stage::ALL.into_iter().map(|stage| (stage.name(), core.load[stage]));
    let rest = [("other", core.load.other), ("total", core.load.total())];
    stages.chain(rest).map(|(name, load)| (name.to_owned(), percent(load))).collect()
}

fn spent_ns(times: &CoreTimes) -> BTreeMap<String, u64> {
    let stages = Stage::ALL.into_iter().map(Stage::name).zip(times.stages);
    let rest = [("other", times.other), ("idle", times.idle)];
    stages.chain(rest).map(|(name, ns)| (name.to_owned(), ns)).collect()
}

fn interface_view(name: &str, interface: &mut Interface) -> Result<InterfaceView, EnforceError> {
    let mut view = InterfaceView {
        name: name.into(),
        spec: interface.spec.clone(),
        hook: None,
        note: None,
        adopted: interface.adopted,
        fault: interface.fault.clone(),
        frames: BTreeMap::new(),
        frames_by_core: BTreeMap::new(),
        entries: interface.claims.len(),
        placed: 0,
        moves: 0,
    };
    let Some(enforcer) = &mut interface.enforcer else { return Ok(view) };
    (view.hook, view.note) = (Some(enforcer.hook().into()), enforcer.note());
    view.frames = enforcer.counts()?.into_iter().map(|(word, n)| (word.to_owned(), n)).collect();
    view.frames_by_core =
        enforcer.core_counts()?.into_iter().map(|(core, n)| (core.0, n)).collect();
    let units = enforcer.units()?;
    view.placed = units.iter().filter(|unit| unit.core.is_some()).count();
    view.moves = units.iter().map(|unit| unit.moves).sum();
    Ok(view)
}

fn unit_view(on: &str, unit: &UnitStatus, rule: Option<String>) -> UnitView {
    UnitView {
        on: on.into(),
        unit: unit.unit.0,
        rule,
        core: unit.core.map(|core| core.0),
        wanted: unit.wanted.map(|core| core.0),
        reason: unit.reason.map(|reason| reason.to_string()),
        frames: unit.frames,
        moves: unit.moves,
        vm: unit.vm.map(|vm| vm.get()),
        priority: unit.is_priority,
    }
}
