//! What was made by commands and is declared just so: it becomes the declarer's, and no frame notices.
//!
//! Whoever tries things by hand first and declares them then would otherwise have to remove what works. What differs is a conflict, as ever.

use super::Node;
use super::steps::owned;
use crate::config::SwitchConfig;
use crate::service::directory::Member;
use crate::service::owner::Owner;
use crate::service::plan::{Forgettable, is_declared_so, is_switch_declared_so};
use api::{ObjectChange, PortName, SwitchName};
use std::collections::BTreeSet;

/// Switches and ports that an owner takes over.
#[derive(Default)]
pub struct TakenOver {
    switches: BTreeSet<SwitchName>,
    ports: BTreeSet<(SwitchName, PortName)>,
}

impl TakenOver {
    /// Whether this switch is.
    pub fn has(&self, switch: &SwitchName) -> bool {
        self.switches.contains(switch)
    }

    /// Whether this port is.
    pub fn has_port(&self, switch: &SwitchName, port: &PortName) -> bool {
        self.ports.contains(&(switch.clone(), port.clone()))
    }

    /// What is told of it.
    pub fn told(&self, owner: &Owner) -> Vec<ObjectChange> {
        let switches = self.switches.iter().map(|switch| owned(owner, switch, None));
        let ports = self.ports.iter().map(|(switch, port)| owned(owner, switch, Some(port)));
        switches.chain(ports).collect()
    }
}

impl Node {
    /// What of a wish commands have made just so.
    pub(super) fn made_just_so(&self, wish: &[SwitchConfig]) -> TakenOver {
        let mut found = TakenOver::default();
        for switch in wish.iter().filter(|switch| switch.declared_by.is_none()) {
            if let Some(member) = self.directory.by_name(&switch.spec.name) {
                note(&member, switch, &mut found);
            }
        }
        found
    }

    /// It is its new owner's, as it is; its rules and numbers stay.
    pub(super) fn take_over(&self, taken: &TakenOver, owner: &Owner) {
        for name in &taken.switches {
            self.directory.by_name(name).iter().for_each(|member| member.set_owner(owner));
            self.forget(&Forgettable::Switch(name.clone()));
        }
        for (switch, port) in &taken.ports {
            let Some(member) = self.directory.by_name(switch) else { continue };
            if let Some(port) = member.state().ports.get_mut(port) {
                port.owner = owner.clone();
            }
            self.forget(&Forgettable::Port(switch.clone(), port.clone()));
        }
    }
}

fn note(member: &Member, wish: &SwitchConfig, found: &mut TakenOver) {
    let (state, name) = (member.state(), &wish.spec.name);
    if member.owner() == Owner::Api && is_switch_declared_so(&wish.spec, &state.spec) {
        found.switches.insert(name.clone());
    }
    for wished in &wish.ports {
        let there = state.ports.get(&wished.value.name);
        let there = there.filter(|there| there.owner == Owner::Api);
        if there.is_some_and(|there| is_declared_so(&wished.value, &there.spec)) {
            found.ports.insert((name.clone(), wished.value.name.clone()));
        }
    }
}
