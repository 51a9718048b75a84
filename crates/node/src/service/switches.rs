//! Switches come, change and go.

use super::Node;
use super::directory::Member;
use super::owner::Owner;
use super::plane::{DatapathPlane, Gate};
use crate::agent::steering::Permit;
use crate::agent::{Agent, BindError, Endpoints, Sockets, Timing};
use crate::ports::{OnFailure, UnderWay};
use crate::refusal::{Refusal, Why};
use crate::switch::{FailPolicy, NewSwitch, Switch};
use crate::tls::{Credentials, Tls, TlsFault};
use api::{
    AUXILIARY_MAX, ECHO_INTERVAL_MAX_S, FAIL_AFTER_MAX_S, Fault, Happening, Netns, News, Protocol,
    SteeringAccess, SwitchPatch, SwitchSpec, SwitchView, chain,
};
use datapath::PortAt;
use flow::Limits;
use port::{Keep, NetnsRef};
use std::sync::Arc;
use std::time::Duration;

/// Under whose name switches are made: together they have one place among those that wait.
const NEW: &str = "";

impl Node {
    /// Makes a switch.
    ///
    /// # Errors
    /// It contradicts another one, an address cannot be bound, or it is made but not saved.
    pub async fn add_switch(&self, spec: SwitchSpec) -> Result<SwitchView, Refusal> {
        let change = self.change.of(NEW).await;
        let member = self.make_switch(spec).await?;
        drop(change);
        self.saved(&format!("switch {}", member.name())).await?;
        Ok(self.view_switch(&member))
    }

    /// Makes a switch that contradicts no other.
    pub(super) async fn make_switch(&self, mut spec: SwitchSpec) -> Result<Arc<Member>, Refusal> {
        spec.dpid.get_or_insert_with(|| self.facts.derived_dpid(&spec.name));
        self.taken().check_switch(&spec, None)?;
        self.check_connections(&spec)?;
        let member = self.bring_up(spec.clone(), Owner::Api);
        if let Err(fault) = self.join(&member).await {
            self.take_down(&member, Keep::Nothing).await;
            self.ports_gone().await;
            return Err(Refusal::new(Why::Impossible, fault));
        }
        self.store.put_switch(&spec);
        Ok(member)
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
        let change = self.change.of(name).await;
        let member = self.member(name)?;
        let thing = format!("switch {name}");
        member.owner().must_be_api(&thing, "change it")?;
        let before = member.state().spec.clone();
        let after = patch.applied_to(&before);
        self.check_new_addresses(&before, &after)?;
        self.check_connections(&after)?;
        self.change_switch(&member, &after, OnFailure::Forget).await?;
        drop(change);
        self.saved(&thing).await?;
        Ok(self.view_switch(&member))
    }

    /// Brings a switch in service to what a specification says, which keeps its name, its datapath id and its `miss_send_len`.
    ///
    /// # Errors
    /// An address cannot be bound, and the switch is not to wait for it; then it is as it was.
    pub(super) async fn change_switch(
        &self,
        member: &Member,
        after: &SwitchSpec,
        on_failure: OnFailure,
    ) -> Result<(), Refusal> {
        let before = member.state().spec.clone();
        if before == *after {
            return Ok(());
        }
        member.state().spec = after.clone();
        member.switch.set_versions(Protocol::set(&after.protocols));
        if connects_otherwise(&before, after)
            && let Err(fault) = self.start_agent(member).await
            && on_failure == OnFailure::Forget
        {
            member.switch.set_versions(Protocol::set(&before.protocols));
            member.state().spec = before;
            // The old addresses were bound a moment ago; should that fail now, it is tried again with each tick.
            let _ = self.start_agent(member).await;
            return Err(Refusal::new(Why::Impossible, fault));
        }
        apply_settings(member, after);
        if before.offload_policy != after.offload_policy {
            self.renew_policies();
        }
        self.tell_changed(&before, after, &member.owner());
        if member.owner() == Owner::Api {
            self.store.put_switch(after);
        }
        Ok(())
    }

    /// Ranges, certificates where there is TLS, and policies.
    pub(super) fn check_connections(&self, spec: &SwitchSpec) -> Result<(), Refusal> {
        self.check_policies(spec)?;
        let refuse = |cause: String, remedy: String| {
            let thing = format!("switch {}", spec.name);
            Refusal::new(Why::Invalid, Fault::new(thing, "read its connections", cause, remedy))
        };
        let ranges = [
            ("fail_after_s", u64::from(spec.fail_after_s), 0, u64::from(FAIL_AFTER_MAX_S)),
            ("echo_interval_s", spec.echo_interval_s.into(), 1, ECHO_INTERVAL_MAX_S.into()),
            ("aux", spec.aux.into(), 0, AUXILIARY_MAX.into()),
        ];
        for (key, given, low, high) in ranges {
            if !(low..=high).contains(&given) {
                let cause = format!("{key}: {given} is outside {low} to {high}");
                return Err(refuse(cause, format!("choose a number from {low} to {high}")));
            }
        }
        let tls = spec.tls.clone().or_else(|| self.tls());
        if tls.is_none() && spec.uses_tls() {
            let fault = TlsFault::NotConfigured;
            return Err(refuse(fault.to_string(), fault.remedy()));
        }
        let fault = tls.and_then(|tls| Credentials::faults(&tls).into_iter().next());
        match fault.filter(|_| spec.uses_tls() || spec.tls.is_some()) {
            Some(fault) => Err(refuse(chain(&fault), fault.remedy())),
            None => Ok(()),
        }
    }

    pub(super) fn check_new_addresses(
        &self,
        before: &SwitchSpec,
        after: &SwitchSpec,
    ) -> Result<(), Refusal> {
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
        let mut change = self.change.of(name).await;
        let member = self.member(name)?;
        let thing = format!("switch {name}");
        member.owner().must_be_api(&thing, "remove it")?;
        let ports = member.state().ports.clone();
        let claims =
            ports.iter().map(|(port, of)| self.claims.claim(&member.name(), port, &of.spec));
        let claims: Vec<_> = claims.collect();
        let going = self.detach(&member, Keep::Nothing).await;
        change.let_others();
        for gone in going {
            gone.done().await.unwrap_or_else(|fault| tracing::warn!("{fault}"));
        }
        // Killed before this, the switch comes back with its interfaces, and none of them is nobody's.
        self.store.forget_switch(&member.name());
        drop((change, claims));
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

    /// Whether a slice has declared a switch; nothing if it is not there.
    pub fn is_a_slices(&self, name: &str) -> Option<bool> {
        let owner = self.directory.by_name(name)?.owner();
        Some(matches!(owner, Owner::Part(part) if part.is_a_slices()))
    }

    /// Puts a switch into service: no ports, no connections, and a journal that is shut.
    pub(super) fn bring_up(&self, spec: SwitchSpec, owner: Owner) -> Arc<Member> {
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
            datapath_id: spec.dpid.as_ref().map_or(0, api::Dpid::get),
            fail_mode: spec.fail_mode,
            miss_send_len: spec.miss_send_len,
            limits,
            serials: self.serials.clone(),
            ends: self.ports.ends().clone(),
            budget: self.entries.clone(),
            room: self.room.clone(),
            feed: self.feed.clone(),
            hits: self.hits.clone(),
        };
        let versions = Protocol::set(&spec.protocols);
        let mut publisher = None;
        let switch = Switch::new(made_from, gate.clone(), |tables| {
            let made = self.datapath.add_switch(id, tables);
            publisher = Some(made.clone());
            self.offload.switch_came(id, made.clone());
            let (datapath, ports) = (self.datapath.clone(), self.ports.clone());
            let offload = self.offload.clone();
            Arc::new(DatapathPlane { id, datapath, publisher: made, ports, offload })
        });
        switch.set_versions(versions);
        let publisher = publisher.expect("a switch asks for its plane while it is made");
        let name = spec.name.clone();
        let member = Member::new(id, (spec, owner.clone()), switch, publisher, gate);
        apply_settings(&member, &member.state().spec.clone());
        self.directory.insert(name.clone(), member.clone());
        if !member.state().spec.offload_policy.is_empty() {
            self.renew_policies();
        }
        let text = format!("datapath id {}", api::Dpid::new(member.switch.datapath_id()));
        let news = News::of_switch(&name, Happening::Added, text);
        self.feed.tell(news.by(owner));
        member
    }

    /// Takes a switch out of service with everything it has; its ports' interfaces go meanwhile.
    pub(super) async fn take_down(&self, member: &Member, keep: Keep) {
        let going = self.detach(member, keep).await;
        going.into_iter().for_each(|going| self.ports.goes(going));
    }

    /// The same; returns its ports' interfaces, which go meanwhile.
    async fn detach(&self, member: &Member, keep: Keep) -> Vec<UnderWay> {
        self.directory.remove(&member.name());
        self.hits.forget(&member.name());
        member.stop_agent().await;
        let ports: Vec<PortAt> =
            member.state().ports.values().map(|port| member.at(port.number)).collect();
        let mut going = Vec::new();
        for at in ports {
            going.push(self.ports.remove(at, keep).await);
        }
        if !member.state().spec.offload_policy.is_empty() {
            self.renew_policies();
        }
        self.offload.switch_goes(member.id);
        self.datapath.remove_switch(member.id);
        let news = News::of_switch(&member.name(), Happening::Removed, "");
        self.feed.tell(news.by(member.owner()));
        going
    }

    /// Binds and calls what the switch's specification names, in place of what was bound and called before.
    pub(super) async fn start_agent(&self, member: &Member) -> Result<(), Fault> {
        let (name, endpoints, timing) = {
            let state = member.state();
            let interval = Duration::from_secs(state.spec.echo_interval_s.into());
            (state.spec.name.clone(), self.endpoints(&state.spec), Timing::probing_after(interval))
        };
        // The old sockets go first: the new ones may have the same addresses.
        member.stop_agent().await;
        let mut agent = member.agent.lock().await;
        let (calls, listens) = (!endpoints.controllers.is_empty(), !endpoints.listen.is_empty());
        member.switch.expect_controllers(calls, listens);
        let started = Agent::start(member.switch.clone(), &endpoints, timing).await;
        let fault = started.as_ref().err().map(|error| bind_fault(&name, error));
        let before = std::mem::replace(&mut member.state().fault, fault.clone());
        self.tell_listening(&name, before.as_ref(), fault.as_ref());
        member.set_links(started.as_ref().map_or(&[], Agent::links));
        *agent = started.ok();
        fault.map_or(Ok(()), Err)
    }

    /// Tells what is wanted of a switch now.
    pub(super) fn tell_changed(&self, before: &SwitchSpec, after: &SwitchSpec, by: &Owner) {
        let changes = after.changes_from(before);
        if !changes.is_empty() {
            let news = News::of_switch(&after.name, Happening::Changed, api::in_words(&changes));
            self.feed.tell(news.by(by));
        }
    }

    /// Tells when a switch begins or ceases to listen as it shall.
    fn tell_listening(&self, name: &str, before: Option<&Fault>, now: Option<&Fault>) {
        let news = match (before, now) {
            (before, Some(fault)) if before != now => {
                let text = format!("{}: {}; {}", fault.step, fault.cause, fault.remedy);
                News::of_switch(name, Happening::Fault, text)
            }
            (Some(_), None) => News::of_switch(name, Happening::State, "listens now"),
            _ => return,
        };
        self.feed.tell(news);
    }

    /// Tries again what could not be bound.
    pub(super) async fn retry_agent(&self, member: &Member) {
        // Time goes on for others' rules meanwhile.
        let Some(_change) = self.change.if_free() else { return };
        if self.start_agent(member).await.is_ok() {
            tracing::info!("switch {}: listening now", member.name());
        }
    }

    fn endpoints(&self, spec: &SwitchSpec) -> Endpoints {
        Endpoints {
            controllers: spec.controllers.clone(),
            listen: spec.listen.clone(),
            management: Some(self.run_dir.management_socket(&spec.name)),
            tls: spec.tls.clone().or_else(|| self.tls()).map(Tls::new),
            auxiliaries: spec.aux,
            steering: (spec.steering != SteeringAccess::Off).then(|| Permit {
                desk: self.desk.clone(),
                may_program: spec.steering == SteeringAccess::Program,
            }),
            sockets: spec.session_netns.as_ref().map(|netns| self.sockets(netns)),
            lot: self.lot.clone(),
            names: self.names.of_another(),
        }
    }
}

impl Node {
    /// Who makes sockets in a namespace.
    fn sockets(&self, netns: &Netns) -> Sockets {
        let (ports, netns) = (self.ports.clone(), NetnsRef::from(netns));
        Arc::new(move |is_v6| {
            let (ports, netns) = (ports.clone(), netns.clone());
            Box::pin(async move { ports.socket(netns, is_v6).await })
        })
    }
}

/// Whether connections must be made anew.
pub(super) fn connects_otherwise(before: &SwitchSpec, after: &SwitchSpec) -> bool {
    let of = |spec: &SwitchSpec| {
        let (called, listen) = (spec.controllers.clone(), spec.listen.clone());
        let protocols = spec.protocols.clone();
        let where_from = (spec.tls.clone(), spec.session_netns.clone());
        let rest = (spec.echo_interval_s, spec.aux, spec.steering, where_from);
        (called, listen, protocols, rest)
    };
    of(before) != of(after)
}

pub(super) fn apply_settings(member: &Member, spec: &SwitchSpec) {
    let policy = FailPolicy {
        mode: spec.fail_mode,
        after: Duration::from_secs(spec.fail_after_s.into()),
        on_reconnect: spec.on_reconnect,
        on_standalone: spec.on_standalone,
        flood_copies_per_s: spec.flood_copies_per_s(),
        copies_per_s: Some(spec.max_copies_per_s),
    };
    if member.switch.fail_policy() != policy {
        member.switch.set_fail_policy(policy);
        member.switch.publish();
    }
    // A burst of a tenth of a second: what a controller sees as one event.
    member
        .publisher
        .set_packet_in_rate(spec.max_packet_in_per_s, (spec.max_packet_in_per_s / 10).max(1));
}

fn bind_fault(switch: &str, error: &BindError) -> Fault {
    Fault::new(format!("switch {switch}"), "listen for OpenFlow", chain(error), error.remedy())
}
