//! Interfaces: how they come to be steered, and how that ends.

use super::Agent;
use super::claims::{Claims, RuleId};
use super::decisions::Decisions;
use crate::desired::Change;
use crate::error::SteerError;
use api::steer::called;
use api::steer::{FaultView, InterfaceView};
use api::steer::{GROUPS_RANGE, InterfaceSpec, RULES_RANGE};
use place::steering::{EnforceError, Enforcer, EntryKey, Options, PolicyKind, Step, Unmatched};
use std::collections::HashMap;

/// Between two attempts to steer an interface that cannot be steered, and between two looks whether it is still there. As the
/// ports' thread has it.
const RETRY_NS: u64 = 2_000_000_000;

/// An interface that is wanted.
pub struct Interface {
    pub(super) spec: InterfaceSpec,
    pub(super) enforcer: Option<Box<dyn Enforcer>>,
    pub(super) adopted: bool,
    pub(super) fault: Option<FaultView>,
    pub(super) claims: Claims,
    pub(super) decisions: Decisions,
    looked_at_ns: u64,
}

impl Interface {
    /// Wanted, not steered yet.
    pub fn wanted(spec: InterfaceSpec) -> Self {
        Self {
            spec,
            enforcer: None,
            adopted: false,
            fault: None,
            claims: Claims::default(),
            decisions: Decisions::default(),
            looked_at_ns: 0,
        }
    }

    /// Gives the enforcer what it lacks, and takes from it what nobody wants: nothing else is touched, so frames notice nothing.
    fn reconcile(&mut self) -> Result<(), EnforceError> {
        let Some(enforcer) = &mut self.enforcer else { return Ok(()) };
        let there: HashMap<EntryKey, _> = enforcer
            .entries()?
            .into_iter()
            .map(|status| (status.entry.key, status.entry))
            .collect();
        let stale = there.keys().filter(|key| self.claims.entry(key).is_none());
        let lacking = self.claims.in_force().filter(|entry| there.get(&entry.key) != Some(entry));
        let steps: Vec<Step> =
            stale.copied().map(Step::Remove).chain(lacking.copied().map(Step::Put)).collect();
        enforcer.change(&steps)
    }

    /// Carries steps out.
    pub(super) fn carry_out(&mut self, steps: &[Step]) -> Result<(), EnforceError> {
        match &mut self.enforcer {
            Some(enforcer) if !steps.is_empty() => enforcer.change(steps),
            _ => Ok(()),
        }
    }
}

impl Agent {
    /// Steers an interface from now on. One that is steered in the same way already is left as it is.
    ///
    /// # Errors
    /// It cannot be steered; then it is not wanted either.
    pub fn attach(&mut self, name: &str, spec: InterfaceSpec) -> Result<InterfaceView, SteerError> {
        check(name, &spec)?;
        if let Some(there) = self.interfaces.get(name) {
            if there.spec != spec {
                return Err(SteerError::OtherOptions { interface: name.into() });
            }
            if there.enforcer.is_some() {
                return self.interface_view(name);
            }
        }
        self.interfaces.insert(name.into(), Interface::wanted(spec.clone()));
        if let Err(error) = self.open(name) {
            self.interfaces.remove(name);
            return Err(error);
        }
        self.journal.note(Change::Interface(name, Some(&spec)));
        self.interface_view(name)
    }

    /// Steers an interface no more; nothing of suiro is left on it. Also when only an earlier node's pins are there.
    ///
    /// # Errors
    /// It is not steered, or the kernel refuses; it is not wanted any more then.
    pub fn detach(&mut self, name: &str) -> Result<(), SteerError> {
        let wanted = self.interfaces.remove(name);
        if wanted.is_some() {
            self.journal.note(Change::Interface(name, None));
        }
        let known = wanted.is_some();
        let enforcer = match wanted.and_then(|interface| interface.enforcer) {
            Some(enforcer) => Some(enforcer),
            None => self
                .opener
                .adopt(name)
                .map_err(|source| SteerError::Open { interface: name.into(), source })?,
        };
        match enforcer {
            Some(enforcer) => enforcer
                .detach()
                .map_err(|source| SteerError::Enforce { interface: name.into(), source }),
            None if known => Ok(()),
            None => Err(SteerError::NotSteered { interface: name.into() }),
        }
    }

    /// Names of the interfaces that are wanted.
    pub fn interface_names(&self) -> Vec<String> {
        self.interfaces.keys().cloned().collect()
    }

    /// Adopts or attaches a wanted interface, and gives it its entries.
    pub(super) fn open(&mut self, name: &str) -> Result<(), SteerError> {
        let opened = self.open_enforcer(name);
        let done = opened.and_then(|()| self.settle(name));
        let Some(interface) = self.interfaces.get_mut(name) else { return done };
        interface.looked_at_ns = self.now_ns;
        interface.fault = done.as_ref().err().map(|error| FaultView {
            step: error.step().into(),
            cause: error.cause(),
            remedy: error.remedy(),
        });
        if done.is_err() {
            // Half a set of rules would steer some frames and not others.
            if let Some(enforcer) = interface.enforcer.take() {
                let _ = enforcer.detach();
            }
        }
        done
    }

    fn open_enforcer(&mut self, name: &str) -> Result<(), SteerError> {
        let failed = |source| SteerError::Open { interface: name.to_owned(), source };
        let Some(interface) = self.interfaces.get_mut(name) else { return Ok(()) };
        let adopted = self.opener.adopt(name).unwrap_or_else(|error| {
            tracing::warn!(
                "interface {name}: what an earlier node left cannot be taken up: {error}"
            );
            None
        });
        interface.adopted = adopted.is_some();
        interface.enforcer = Some(match adopted {
            Some(enforcer) => enforcer,
            None => {
                self.opener.attach(name, &options(&interface.spec), &self.table).map_err(failed)?
            }
        });
        Ok(())
    }

    /// A new enforcer gets the core table, the guests' threads and its entries, in this order: an entry must find cores to choose from.
    fn settle(&mut self, name: &str) -> Result<(), SteerError> {
        let failed = |source| SteerError::Enforce { interface: name.to_owned(), source };
        let ids: Vec<RuleId> = self.rules.keys().cloned().collect();
        for id in ids.iter().filter(|id| id.on.as_deref().is_none_or(|on| on == name)) {
            let entries = self.entries_of(&self.rules[id]).unwrap_or_else(|error| {
                tracing::warn!(remedy = error.remedy(), "{}: {}", error.thing(), error.cause());
                Vec::new()
            });
            let Some(interface) = self.interfaces.get_mut(name) else { return Ok(()) };
            interface.claims.claim(id, &entries);
        }
        let Some(interface) = self.interfaces.get_mut(name) else { return Ok(()) };
        let Some(enforcer) = &mut interface.enforcer else { return Ok(()) };
        enforcer.set_core_table(&self.table, kind(self.policy.policy)).map_err(failed)?;
        let threads: Vec<_> = self.seen.iter().flat_map(|vm| vm.threads.iter().copied()).collect();
        enforcer.set_threads(&threads).map_err(failed)?;
        let how = if interface.adopted { "taken up again" } else { "steered" };
        tracing::info!("{}: {how}, {}", called(name), enforcer.hook());
        interface.reconcile().map_err(failed)
    }

    /// Interfaces that vanished are let go; those that are not steered are tried again.
    pub(super) fn look_after_interfaces(&mut self) {
        let due =
            |interface: &Interface| self.now_ns.saturating_sub(interface.looked_at_ns) >= RETRY_NS;
        let names: Vec<String> = self
            .interfaces
            .iter()
            .filter(|(_, interface)| due(interface))
            .map(|(name, _)| name.clone())
            .collect();
        for name in names {
            let Some(interface) = self.interfaces.get_mut(&name) else { continue };
            interface.looked_at_ns = self.now_ns;
            if let Some(enforcer) = &mut interface.enforcer {
                if enforcer.is_alive() {
                    enforcer.look_after();
                    continue;
                }
                tracing::warn!("{}: it is gone", called(&name));
                // Its program went with it; what is left are maps and pins.
                if let Some(enforcer) = interface.enforcer.take() {
                    let _ = enforcer.detach();
                }
            }
            let known = interface.fault.clone();
            let tried = self.open(&name);
            if let Err(error) = tried
                && self.interfaces.get(&name).is_some_and(|interface| interface.fault != known)
            {
                tracing::warn!(
                    remedy = error.remedy(),
                    "{}: {}: {}",
                    error.thing(),
                    error.step(),
                    error.cause()
                );
            }
        }
    }
}

/// What the API asks for, in the words of enforcers.
fn options(spec: &InterfaceSpec) -> Options {
    let unmatched = match spec.unmatched {
        api::steer::Unmatched::Place => Unmatched::Groups(spec.groups),
        api::steer::Unmatched::Stay => Unmatched::Stay,
    };
    Options { unmatched, is_fcf: spec.fcf, entries: spec.rules_max }
}

/// Likewise who chooses cores.
pub(super) fn kind(policy: api::steer::PolicyKind) -> PolicyKind {
    match policy {
        api::steer::PolicyKind::Vse => PolicyKind::Vse,
        api::steer::PolicyKind::Hash => PolicyKind::Hash,
    }
}

fn check(name: &str, spec: &InterfaceSpec) -> Result<(), SteerError> {
    let wrong = |cause, remedy: &str| {
        let thing = format!("interface {name}");
        Err(SteerError::Setting { thing, cause, remedy: remedy.into() })
    };
    if !spec.groups.is_power_of_two() || !GROUPS_RANGE.contains(&spec.groups) {
        return wrong(format!("{} flow groups", spec.groups), "give 256, 512 or 1024");
    }
    if !RULES_RANGE.contains(&spec.rules_max) {
        return wrong(format!("room for {} rules", spec.rules_max), "give 64 to 131072");
    }
    Ok(())
}
