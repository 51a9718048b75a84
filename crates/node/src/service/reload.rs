//! The configuration file changed: what it declares now replaces what it declared before. What the API and controllers made stays.

use super::Node;
use super::change::PortChange;
use super::directory::{Member, MemberPort};
use super::plan::Origin;
use super::ports::label;
use super::start::declare_rules;
use super::switches::{apply_settings, connects_otherwise};
use crate::config::{Config, NodeConfig, SwitchConfig};
use crate::ports::OnFailure;
use crate::refusal::Refusal;
use api::{PortName, PortNumber, PortSpec};
use openflow::PortConfig;
use port::Keep;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Node {
    /// Makes the switches and ports of the file those of `config`. What contradicts something made through the API is logged and left out.
    ///
    /// Rules that the file declares are added; a rule that it no longer declares stays until somebody deletes it, since a controller may
    /// rely on it by now.
    pub async fn reload(&self, config: &Config) {
        let _change = self.change.lock().await;
        let tls_before = self.tls();
        self.set_tls(config.node.tls.clone());
        self.datapath.set_rungs(config.node.rungs);
        if needs_restart(&self.facts.config, &config.node) {
            tracing::warn!("[node] has changed: restart suiro for that to take effect");
        }
        for member in self.directory.all().iter().filter(|member| member.origin == Origin::File) {
            if !config.switches.iter().any(|switch| is_same_switch(member, switch)) {
                tracing::info!("switch {}: no longer declared as it was", member.name());
                self.take_down(member, Keep::Nothing).await;
            }
        }
        if tls_before != config.node.tls {
            // Switches with certificates of their own are not concerned, the file's come below.
            let concerned = |member: &&Arc<Member>| {
                let state = member.state();
                state.spec.uses_tls() && state.spec.tls.is_none()
            };
            for member in self.directory.all().iter().filter(concerned) {
                // The fault is the switch's state, and tried again with each tick.
                let _ = self.start_agent(member).await;
            }
        }
        for declared in &config.switches {
            if let Err(refusal) = self.reload_switch(declared).await {
                let fault = &refusal.fault;
                tracing::error!(
                    remedy = fault.remedy,
                    "{}: {}: {}",
                    fault.thing,
                    fault.step,
                    fault.cause
                );
            }
        }
        self.rekey().await;
    }

    /// Reads the keys of all tunnels again, also of those that the API made. A file that is wrong changes nothing.
    async fn rekey(&self) {
        for member in self.directory.all() {
            let ports = member.state().ports.clone();
            for port in ports.values().filter(|port| is_encrypted(&port.spec)) {
                if let Err(fault) = self.ports.reload(member.at(port.number)).await {
                    let remedy = &fault.remedy;
                    tracing::error!(remedy, "{}: {}: {}", fault.thing, fault.step, fault.cause);
                }
            }
        }
    }

    async fn reload_switch(&self, declared: &SwitchConfig) -> Result<(), Refusal> {
        let name = &declared.spec.name;
        let member = match self.directory.by_name(name) {
            Some(member) => member,
            None => {
                self.taken().check_switch(&declared.spec)?;
                tracing::info!("switch {name}: newly declared");
                self.bring_up(declared.spec.clone(), Origin::File)
            }
        };
        if member.origin != Origin::File {
            return Err(self
                .taken()
                .check_switch(&declared.spec)
                .err()
                .unwrap_or_else(|| Refusal::no_switch(name)));
        }
        self.reload_ports(&member, declared).await;
        declare_rules(&member, name, (&declared.flows, &declared.groups, &declared.meters)).await;
        member.switch.publish();
        let before = std::mem::replace(&mut member.state().spec, declared.spec.clone());
        apply_settings(&member, &declared.spec);
        self.tell_changed(&before, &declared.spec, member.origin);
        let connected = member.agent.lock().await.is_some();
        if !connected || connects_otherwise(&before, &declared.spec) {
            // The fault is the switch's state, and tried again with each tick.
            let _ = self.start_agent(&member).await;
        }
        member.gate.open();
        Ok(())
    }

    async fn reload_ports(&self, member: &Arc<Member>, declared: &SwitchConfig) {
        let wanted_now: BTreeMap<PortName, &PortSpec> =
            declared.ports.iter().map(|port| (port.value.name.clone(), &port.value)).collect();
        let had: Vec<_> = member
            .state()
            .ports
            .clone()
            .into_iter()
            .filter(|(_, port)| port.origin == Origin::File)
            .collect();
        for (name, port) in &had {
            let declared = wanted_now.get(name);
            let carries_on = match declared {
                Some(spec) => self.carry_on(member, (name, port), spec).await,
                None => false,
            };
            if !carries_on {
                let thing = label(&member.name(), name);
                tracing::info!("{thing}: no longer declared as it was");
                if let Err(fault) = self.ports.remove(member.at(port.number), Keep::Nothing).await {
                    tracing::warn!("{fault}");
                }
                member.state().ports.remove(name);
            }
        }
        for (name, spec) in wanted_now {
            if let Err(refusal) = self.reload_port(member, &name, spec).await {
                let fault = &refusal.fault;
                tracing::error!(
                    remedy = fault.remedy,
                    "{}: {}: {}",
                    fault.thing,
                    fault.step,
                    fault.cause
                );
            }
        }
    }

    /// Whether a port of the file goes on as it is declared now, with what changed in force. One that the host refuses so is made anew.
    async fn carry_on(
        &self,
        member: &Arc<Member>,
        (name, port): (&PortName, &MemberPort),
        declared: &PortSpec,
    ) -> bool {
        // The node decided an ordinary number that the file leaves open.
        let number = declared.number.or(port.spec.number.filter(PortNumber::is_ordinary));
        let to = PortSpec { number, ..declared.clone() };
        if !port.spec.can_become(&to) {
            return false;
        }
        let changes = PortChange::of(&port.spec, to);
        let changed = self.change_port(member, (name, port), &changes).await;
        changed.inspect_err(|refusal| tracing::warn!("{refusal}; made anew")).is_ok()
    }

    async fn reload_port(
        &self,
        member: &Arc<Member>,
        name: &PortName,
        spec: &PortSpec,
    ) -> Result<(), Refusal> {
        let kept = member.state().ports.get(name).map(|port| port.origin);
        if kept == Some(Origin::File) {
            return Ok(());
        }
        let taken = self.taken();
        taken.check_port(&member.name(), name, spec)?;
        let thing = label(&member.name(), name);
        let asked = spec.number.is_some();
        let number = self.number_for(member, &taken, spec, &thing).await?;
        let spec = PortSpec { number: Some(number), ..spec.clone() };
        self.note_number(member, number, asked);
        let number = number.get();
        self.store.put_number(&member.name(), name, number);
        let port = MemberPort { spec: spec.clone(), number, origin: Origin::File };
        member.state().ports.insert(name.clone(), port);
        // The fault is the port's state, and logged by the ports' thread.
        let wanted = self.wanted(member, name, &spec, PortConfig::empty()).await;
        let _ = self.ports.add(wanted, OnFailure::Keep).await;
        Ok(())
    }
}

/// Whether anything of `[node]` has changed that only a restart puts in force.
fn needs_restart(before: &NodeConfig, now: &NodeConfig) -> bool {
    let with = NodeConfig { tls: now.tls.clone(), rungs: now.rungs, ..before.clone() };
    with != *now
}

/// What cannot change on a switch in service: its name, its datapath id, and what its sessions began with.
fn is_same_switch(member: &Member, declared: &SwitchConfig) -> bool {
    let spec = &member.state().spec;
    (&spec.name, &spec.dpid, spec.miss_send_len)
        == (&declared.spec.name, &declared.spec.dpid, declared.spec.miss_send_len)
}

fn is_encrypted(spec: &PortSpec) -> bool {
    spec.tunnel().is_some_and(|tunnel| tunnel.encrypt.is_some())
}
