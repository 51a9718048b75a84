//! Switches come, change and go.

use super::Node;
use super::directory::Member;
use super::plan::Origin;
use super::plane::{DatapathPlane, Gate};
use super::refusal::{Refusal, Why};
use super::view::SwitchView;
use crate::agent::{Agent, BindError, Endpoints, Timing};
use crate::fault::{Fault, chain};
use crate::spec::{Protocol, SwitchPatch, SwitchSpec};
use crate::switch::{NewSwitch, Switch};
use datapath::PortAt;
use flow::Limits;
use port::Keep;
use std::sync::Arc;

impl Node {
    /// Makes a switch.
    ///
    /// # Errors
    /// It contradicts another one, an address cannot be bound, or it is made but not saved.
    pub async fn add_switch(&self, mut spec: SwitchSpec) -> Result<SwitchView, Refusal> {
        let change = self.change.lock().await;
        spec.dpid.get_or_insert_with(|| self.facts.derived_dpid(&spec.name));
        self.taken().check_switch(&spec)?;
        let member = self.bring_up(spec.clone(), Origin::Api);
        if let Err(fault) = self.start_agent(&member).await {
            self.take_down(&member, Keep::Nothing).await;
            return Err(Refusal::new(Why::Impossible, fault));
        }
        member.gate.open();
        self.store.put_switch(&spec);
        drop(change);
        self.saved(&format!("switch {}", spec.name)).await?;
        Ok(self.view_switch(&member))
    }

    /// Changes a switch.
    ///
    /// # Errors
    /// There is none of that name, it is the file's, an address cannot be bound, or it is changed but not saved.
    pub async fn patch_switch(
        &self,
        name: &str,
        patch: &SwitchPatch,
    ) -> Result<SwitchView, Refusal> {
        let change = self.change.lock().await;
        let member = self.member(name)?;
        let thing = format!("switch {name}");
        if member.origin == Origin::File {
            return Err(Refusal::declared(thing, "change it"));
        }
        let before = member.state().spec.clone();
        let after = patch.applied_to(&before);
        self.check_new_addresses(&before, &after)?;
        member.state().spec = after.clone();
        member.switch.set_versions(Protocol::set(&after.protocols));
        if connections(&before) != connections(&after)
            && let Err(fault) = self.start_agent(&member).await
        {
            member.switch.set_versions(Protocol::set(&before.protocols));
            member.state().spec = before;
            // The old addresses were bound a moment ago; should that fail now, it is tried again with each tick.
            let _ = self.start_agent(&member).await;
            return Err(Refusal::new(Why::Impossible, fault));
        }
        apply_settings(&member, &after);
        self.store.put_switch(&after);
        drop(change);
        self.saved(&thing).await?;
        Ok(self.view_switch(&member))
    }

    fn check_new_addresses(&self, before: &SwitchSpec, after: &SwitchSpec) -> Result<(), Refusal> {
        let mut new = SwitchSpec::named(after.name.clone());
        new.listen =
            after.listen.iter().filter(|listen| !before.listen.contains(listen)).cloned().collect();
        self.taken().check_addresses(&new)
    }

    /// Removes a switch with its ports, rules, groups and meters.
    ///
    /// # Errors
    /// There is none of that name, it is the file's, or it is gone but that is not saved.
    pub async fn remove_switch(&self, name: &str) -> Result<(), Refusal> {
        let change = self.change.lock().await;
        let member = self.member(name)?;
        let thing = format!("switch {name}");
        if member.origin == Origin::File {
            return Err(Refusal::declared(thing, "remove it"));
        }
        self.take_down(&member, Keep::Nothing).await;
        self.store.forget_switch(&member.name());
        drop(change);
        self.saved(&thing).await
    }

    /// All switches, by name.
    pub fn switches(&self) -> Vec<SwitchView> {
        self.directory.all().iter().map(|member| self.view_switch(member)).collect()
    }

    /// One switch.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn switch(&self, name: &str) -> Result<SwitchView, Refusal> {
        Ok(self.view_switch(&*self.member(name)?))
    }

    /// Puts a switch into service: no ports, no connections, and a journal that is shut.
    pub(super) fn bring_up(&self, spec: SwitchSpec, origin: Origin) -> Arc<Member> {
        let id = self.directory.free_id();
        let gate = Gate::shut(self.store.journal(&spec.name));
        let limits = Limits {
            switch: id.0,
            secret: self.secret,
            entries_per_table: self.facts.config.flows_per_table,
            ..Limits::default()
        };
        let made_from = NewSwitch {
            name: spec.name.to_string(),
            datapath_id: spec.dpid.as_ref().map_or(0, crate::spec::Dpid::get),
            fail_mode: spec.fail_mode,
            miss_send_len: spec.miss_send_len,
            limits,
        };
        let versions = Protocol::set(&spec.protocols);
        let mut publisher = None;
        let switch = Switch::new(made_from, gate.clone(), |tables| {
            let made = self.datapath.add_switch(id, tables);
            publisher = Some(made.clone());
            let (datapath, ports) = (self.datapath.clone(), self.ports.clone());
            Arc::new(DatapathPlane { id, datapath, publisher: made, ports })
        });
        switch.set_versions(versions);
        let publisher = publisher.expect("a switch asks for its plane while it is made");
        let name = spec.name.clone();
        let member = Member::new(id, (spec, origin), switch, publisher, gate);
        apply_settings(&member, &member.state().spec.clone());
        self.directory.insert(name, member.clone());
        member
    }

    /// Takes a switch out of service with everything it has.
    pub(super) async fn take_down(&self, member: &Member, keep: Keep) {
        self.directory.remove(&member.name());
        member.stop_agent().await;
        let ports: Vec<PortAt> =
            member.state().ports.values().map(|port| member.at(port.number)).collect();
        for at in ports {
            if let Err(fault) = self.ports.remove(at, keep).await {
                tracing::warn!("{fault}");
            }
        }
        self.datapath.remove_switch(member.id);
    }

    /// Binds and calls what the switch's specification names, in place of what was bound and called before.
    pub(super) async fn start_agent(&self, member: &Member) -> Result<(), Fault> {
        let (name, endpoints) = {
            let state = member.state();
            (state.spec.name.clone(), self.endpoints(&state.spec))
        };
        // The old sockets go first: the new ones may have the same addresses.
        member.stop_agent().await;
        let mut agent = member.agent.lock().await;
        member.switch.set_calls_controllers(!endpoints.controllers.is_empty());
        let started = Agent::start(member.switch.clone(), &endpoints, Timing::default());
        let fault = started.as_ref().err().map(|error| bind_fault(&name, error));
        member.state().fault.clone_from(&fault);
        *agent = started.ok();
        fault.map_or(Ok(()), Err)
    }

    /// Tries again what could not be bound.
    pub(super) async fn retry_agent(&self, member: &Member) {
        let _change = self.change.lock().await;
        if self.start_agent(member).await.is_ok() {
            tracing::info!("switch {}: listening now", member.name());
        }
    }

    fn endpoints(&self, spec: &SwitchSpec) -> Endpoints {
        Endpoints {
            controllers: spec.controllers.iter().map(crate::spec::Controller::address).collect(),
            listen: spec.listen.iter().map(crate::spec::Listen::address).collect(),
            management: Some(self.run_dir.management_socket(&spec.name)),
        }
    }
}

/// What a switch's connections depend on: when it changes they begin anew.
fn connections(spec: &SwitchSpec) -> impl PartialEq + '_ {
    (&spec.controllers, &spec.listen, &spec.protocols)
}

pub(super) fn apply_settings(member: &Member, spec: &SwitchSpec) {
    if member.switch.fail_mode() != spec.fail_mode {
        member.switch.set_fail_mode(spec.fail_mode);
        member.switch.publish();
    }
    // A burst of a tenth of a second: what a controller sees as one event.
    member
        .publisher
        .set_packet_in_rate(spec.max_packet_in_per_s, (spec.max_packet_in_per_s / 10).max(1));
}

fn bind_fault(switch: &str, error: &BindError) -> Fault {
    let remedy = "stop the program that has the address, or give the switch another one";
    Fault::new(format!("switch {switch}"), "listen for OpenFlow", chain(error), remedy)
}
