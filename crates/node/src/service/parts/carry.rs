//! Carrying a plan out: what cannot fail comes last, and what fails takes back what came before it.
//!
//! Order: new switches, new ports, live changes; then what must go before something else can come; then rules, and last the connections. What
//! leaves goes when everything else stands ([`Carrying::leave`]), so that a refusal finds it as it was. What had to go before is made anew
//! when the change is taken back: a TAP with its own MAC address, but without the addresses that somebody gave it.

use super::super::Node;
use super::super::arrival::Arrival;
use super::super::change::PortChange;
use super::super::directory::{Member, MemberPort};
use super::super::owner::Owner;
use super::super::ports::{NewPort, Placing, configs};
use super::super::taken::Taken;
use super::rules::{Mods, Moves};
use crate::config::SwitchConfig;
use crate::journal;
use crate::ports::OnFailure;
use crate::refusal::{Refusal, Why};
use api::{Action, Declared, ObjectChange, PortName, PortSpec, SwitchName, SwitchSpec};
use openflow::PortConfig;
use port::Keep;
use std::collections::HashMap;
use std::sync::Arc;

/// A change under way.
pub struct Carrying<'n> {
    node: &'n Node,
    owner: &'n Owner,
    wish: &'n [SwitchConfig],
    changes: &'n [ObjectChange],
    /// What to do with what cannot be had now.
    on_failure: OnFailure,
    /// What takes back what was done, the latest last.
    undo: Vec<Undo>,
    /// Ports that went already, with their numbers.
    gone: Vec<(SwitchName, PortName, u32)>,
    /// Ports of others on switches that are made anew.
    foreign: Vec<(SwitchName, MemberPort, PortConfig)>,
}

enum Undo {
    DropSwitch(Arc<Member>, Action),
    DropPort(Arc<Member>, PortName),
    PlacePort(SwitchName, MemberPort, PortConfig),
    BringSwitch(Box<Former>),
    ChangePort(Arc<Member>, PortSpec),
    ChangeSwitch(Arc<Member>, Box<SwitchSpec>),
    Rules(Arc<Member>, Mods),
}

/// A switch that went, with all that it takes to bring it back.
struct Former {
    arrival: Arrival,
    rules: Vec<journal::Change>,
}

impl<'n> Carrying<'n> {
    /// A change that nothing is done of yet.
    pub fn new(
        node: &'n Node,
        owner: &'n Owner,
        wish: &'n [SwitchConfig],
        changes: &'n [ObjectChange],
    ) -> Self {
        // What the file declares is wanted also where it cannot be had now.
        let on_failure = if *owner == Owner::File { OnFailure::Keep } else { OnFailure::Forget };
        let undo = Vec::new();
        Self { node, owner, wish, changes, on_failure, undo, gone: Vec::new(), foreign: Vec::new() }
    }

    /// Puts the wish in force, but for what leaves.
    ///
    /// # Errors
    /// Something is refused; then everything is as it was.
    pub async fn put(&mut self) -> Result<(), Refusal> {
        let done = self.try_put().await;
        if done.is_err() {
            self.take_back().await;
        }
        done
    }

    async fn try_put(&mut self) -> Result<(), Refusal> {
        for switch in self.wished(Action::Add) {
            let member = self.node.bring_up(switch.spec.clone(), self.owner.clone());
            self.undo.push(Undo::DropSwitch(member, Action::Add));
        }
        let [now, later] = self.new_ports();
        self.place(now.into_iter().map(|(switch, port)| (switch, port, PortConfig::empty())))
            .await?;
        self.change_live().await?;
        self.swap(later).await?;
        self.put_rules().await?;
        self.connect().await
    }

    fn wished(&self, action: Action) -> impl Iterator<Item = &'n SwitchConfig> + use<'n> {
        let (wish, changes) = (self.wish, self.changes);
        wish.iter().filter(move |switch| {
            changes.iter().any(|change| {
                change.kind == Declared::Switch
                    && change.action == action
                    && change.switch.as_ref() == Some(&switch.spec.name)
            })
        })
    }

    fn is_remade(&self, switch: &SwitchName) -> bool {
        self.wished(Action::Remake).any(|wished| wished.spec.name == *switch)
    }

    /// Ports of one fate, as they are wished.
    fn ports(&self, action: Action) -> Vec<(&'n SwitchName, &'n PortSpec)> {
        let ports = self.wish.iter().flat_map(|switch| {
            switch.ports.iter().map(move |port| (&switch.spec.name, &port.value))
        });
        let has = |switch: &SwitchName, port: &PortSpec| {
            self.changes.iter().any(|change| {
                change.kind == Declared::Port
                    && (change.action, change.switch.as_ref()) == (action, Some(switch))
                    && change.name.as_deref() == Some(&*port.name)
            })
        };
        ports.filter(|(switch, port)| has(switch, port)).collect()
    }

    /// New ports that may come at once, and those that must wait until something goes.
    fn new_ports(&self) -> [Vec<(&'n SwitchName, &'n PortSpec)>; 2] {
        let mut own = Taken::default();
        for member in self.node.directory.all() {
            let state = member.state();
            for (name, port) in state.ports.iter().filter(|(_, port)| port.owner == *self.owner) {
                own.add_port(&state.spec.name, name, &port.spec, "");
            }
        }
        let added = self.ports(Action::Add).into_iter();
        let added = added.filter(|(switch, _)| !self.is_remade(switch));
        let (now, later): (Vec<_>, Vec<_>) =
            added.partition(|(switch, port)| own.check_port(switch, &port.name, port).is_ok());
        // Who asks for a number has it before others take the next.
        let asked_first = |mut ports: Vec<(&'n SwitchName, &'n PortSpec)>| {
            ports.sort_by_key(|(_, port)| port.number.is_none());
            ports
        };
        match later.is_empty() {
            true => [asked_first(now), later],
            false => [Vec::new(), asked_first([now, later].concat())],
        }
    }

    /// Places ports, whose interfaces open together. All that begin are waited for, also when one is refused.
    async fn place(
        &mut self,
        ports: impl Iterator<Item = (&SwitchName, &PortSpec, PortConfig)>,
    ) -> Result<(), Refusal> {
        let (mut placing, mut refused) = (Vec::new(), None);
        for (switch, port, config) in ports {
            match self.begin_to_place(switch, port, config).await {
                Ok(port) => placing.push(port),
                Err(refusal) => {
                    refused = Some(refusal);
                    break;
                }
            }
        }
        for port in placing {
            let (member, name) = port.of();
            match self.node.placed(port).await {
                Ok(()) => self.undo.push(Undo::DropPort(member, name)),
                Err(refusal) => refused = refused.or(Some(refusal)),
            }
        }
        refused.map_or(Ok(()), Err)
    }

    async fn begin_to_place(
        &self,
        switch: &SwitchName,
        port: &PortSpec,
        config: PortConfig,
    ) -> Result<Placing, Refusal> {
        let member = self.node.member(switch)?;
        let new = NewPort { spec: port.clone(), config, on_failure: self.on_failure };
        self.node.begin_to_place(&member, new, self.owner).await
    }

    async fn change_live(&mut self) -> Result<(), Refusal> {
        for (switch, port) in self.ports(Action::Change) {
            let member = self.node.member(switch)?;
            let Some((name, before)) = member.port(&port.name) else { continue };
            let change = PortChange::of(&before.spec, port.clone());
            self.node.change_port(&member, (&name, &before), &change).await?;
            self.undo.push(Undo::ChangePort(member, before.spec));
        }
        for switch in self.wished(Action::Change) {
            let member = self.node.member(&switch.spec.name)?;
            let before = member.state().spec.clone();
            self.node.change_switch(&member, &switch.spec, self.on_failure).await?;
            self.undo.push(Undo::ChangeSwitch(member, before.into()));
        }
        Ok(())
    }

    /// What goes before something else comes: what is made anew, and where new ports want what leaving ones have, those too.
    async fn swap(&mut self, later: Vec<(&'n SwitchName, &'n PortSpec)>) -> Result<(), Refusal> {
        let mut configs = HashMap::new();
        for change in self.changes {
            let goes = match change.action {
                Action::Remake => true,
                Action::Remove => !later.is_empty(),
                Action::Add | Action::Change => false,
            };
            if goes {
                self.take_off(change, &mut configs).await;
            }
        }
        self.node.ports_gone().await;
        for switch in self.wished(Action::Remake) {
            let member = self.node.bring_up(switch.spec.clone(), self.owner.clone());
            self.undo.push(Undo::DropSwitch(member, Action::Remake));
        }
        let mut coming = self.ports(Action::Remake);
        let added = self.ports(Action::Add).into_iter();
        coming.extend(added.filter(|(switch, _)| self.is_remade(switch)));
        let coming = coming.into_iter().chain(later).map(|(switch, port)| {
            let config = configs.get(&(switch.clone(), port.name.to_string()));
            (switch, port, config.copied().unwrap_or_default())
        });
        self.place(coming).await?;
        for (switch, port, config) in std::mem::take(&mut self.foreign) {
            let member = self.node.member(&switch)?;
            let new = NewPort { spec: port.spec, config, on_failure: OnFailure::Keep };
            self.node.place_port(&member, new, &port.owner).await?;
        }
        Ok(())
    }

    /// Takes something off that comes back if the change is refused. `before` gets what was configured of a port.
    async fn take_off(
        &mut self,
        change: &ObjectChange,
        before: &mut HashMap<(SwitchName, String), PortConfig>,
    ) {
        let Some(switch) = &change.switch else { return };
        // Gone with its switch already.
        let Ok(member) = self.node.member(switch) else { return };
        let configs = configs(&member);
        let of = |port: &MemberPort| configs.get(&port.number).copied().unwrap_or_default();
        if change.kind == Declared::Switch {
            let former = Former::of(&member, of);
            for (port, config) in &former.arrival.ports {
                let switch = switch.clone();
                if change.action == Action::Remake && port.owner != *self.owner {
                    self.foreign.push((switch, port.clone(), *config));
                    continue;
                }
                before.insert((switch, port.spec.name.to_string()), *config);
                self.note_gone(&member.name(), port);
            }
            self.node.take_down(&member, Keep::Nothing).await;
            self.undo.push(Undo::BringSwitch(former.into()));
            return;
        }
        let Some((name, port)) = change.name.as_deref().and_then(|name| member.port(name)) else {
            return;
        };
        let config = of(&port);
        before.insert((switch.clone(), name.to_string()), config);
        self.note_gone(switch, &port);
        self.node.take_off_port(&member, &name).await;
        self.undo.push(Undo::PlacePort(switch.clone(), port, config));
    }

    fn note_gone(&mut self, switch: &SwitchName, port: &MemberPort) {
        self.gone.push((switch.clone(), port.spec.name.clone(), port.number));
    }

    async fn put_rules(&mut self) -> Result<(), Refusal> {
        for switch in self.wish {
            let member = self.node.member(&switch.spec.name)?;
            let Moves { put, back, .. } = self.node.moves(Some(&member), switch, None)?;
            self.undo.push(Undo::Rules(member.clone(), back));
            put.apply(&member).await?;
        }
        Ok(())
    }

    async fn connect(&mut self) -> Result<(), Refusal> {
        let new = self.wished(Action::Add).map(|switch| (switch, Action::Add));
        let remade = self.wished(Action::Remake).map(|switch| (switch, Action::Remake));
        for (switch, action) in new.chain(remade) {
            let member = self.node.member(&switch.spec.name)?;
            let started = match action {
                // Until the change stands the store has what the switch was.
                Action::Remake => self.node.start_agent(&member).await,
                _ => self.node.join(&member).await,
            };
            if self.on_failure == OnFailure::Forget {
                started.map_err(|fault| Refusal::new(Why::Impossible, fault))?;
            }
        }
        Ok(())
    }

    /// Lets what leaves go: the wish stands. `rules` are those that leave switches that stay.
    pub async fn leave(mut self, rules: Vec<(Arc<Member>, Mods)>) {
        for (member, mods) in rules {
            if let Err(refusal) = mods.apply(&member).await {
                tracing::warn!("{refusal}");
            }
        }
        for change in self.changes.iter().filter(|change| change.action == Action::Remove) {
            self.take_off(change, &mut HashMap::new()).await;
        }
        self.node.ports_gone().await;
        // What the file declares again has its numbers and rules again.
        let is_kept = *self.owner == Owner::File;
        for change in self.changes.iter().filter(|change| change.kind == Declared::Switch) {
            match (change.action, &change.switch) {
                (Action::Remove, Some(switch)) if !is_kept => self.node.store.forget_switch(switch),
                (Action::Remake, Some(switch)) => self.remember_ports(switch),
                _ => {}
            }
        }
        for (switch, name, number) in &self.gone {
            let is_there = |member: Arc<Member>| member.state().ports.contains_key(name);
            if !is_kept && !self.node.member(switch).is_ok_and(is_there) {
                self.node.store.forget_port(switch, name, *number);
            }
        }
    }

    /// Of a switch that was made anew, what it has now is kept: nothing of what it was.
    fn remember_ports(&self, switch: &SwitchName) {
        self.node.store.forget_switch(switch);
        let Ok(member) = self.node.member(switch) else { return };
        let state = member.state();
        for (name, port) in &state.ports {
            self.node.store.put_number(switch, name, port.number);
            if port.owner == Owner::Api {
                self.node.store.put_port(switch, name, &port.spec);
            }
        }
        self.node.store.put_numbers(switch, &state.numbers.to_bytes());
        drop(state);
        // Controllers may have spoken already.
        member.gate.open();
        member.switch.journal_all();
    }

    async fn take_back(&mut self) {
        while let Some(undo) = self.undo.pop() {
            if let Err(refusal) = self.take_one_back(undo).await {
                tracing::error!("a refused change could not be taken back whole: {refusal}");
            }
        }
    }

    async fn take_one_back(&self, undo: Undo) -> Result<(), Refusal> {
        match undo {
            Undo::DropSwitch(member, action) => {
                self.node.take_down(&member, Keep::Nothing).await;
                self.node.ports_gone().await;
                if action == Action::Add && self.on_failure == OnFailure::Forget {
                    self.node.store.forget_switch(&member.name());
                }
                Ok(())
            }
            Undo::DropPort(member, name) => self.node.drop_port(&member, &name).await,
            Undo::PlacePort(switch, port, config) => {
                let member = self.node.member(&switch)?;
                let new = NewPort { spec: port.spec, config, on_failure: OnFailure::Keep };
                self.node.place_port(&member, new, &port.owner).await
            }
            Undo::BringSwitch(former) => {
                self.bring_back(*former).await;
                Ok(())
            }
            Undo::ChangePort(member, before) => {
                let Some((name, port)) = member.port(&before.name) else { return Ok(()) };
                let change = PortChange::of(&port.spec, before);
                self.node.change_port(&member, (&name, &port), &change).await
            }
            Undo::ChangeSwitch(member, before) => {
                self.node.change_switch(&member, &before, OnFailure::Keep).await
            }
            Undo::Rules(member, back) => back.apply(&member).await,
        }
    }

    async fn bring_back(&self, former: Former) {
        let member = self.node.arrive(&former.arrival);
        for refused in member.switch.restore(former.rules) {
            tracing::error!("switch {}: not brought back: {}", member.name(), refused.fault);
        }
        self.node.open_for_service(&member, &former.arrival).await;
    }
}

impl Former {
    fn of(member: &Arc<Member>, config: impl Fn(&MemberPort) -> PortConfig) -> Self {
        let state = member.state().clone();
        let ports = state.ports.into_values().map(|port| {
            let config = config(&port);
            (port, config)
        });
        let ports = ports.collect();
        let (owner, numbers) = (member.owner(), state.numbers);
        let arrival = Arrival { spec: state.spec, owner, numbers, ports };
        Self { arrival, rules: member.switch.kept() }
    }
}
