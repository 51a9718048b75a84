//! Offload, as the API asks for it.

use super::Node;
use super::directory::Member;
use super::rules::resolver;
use super::{moves, owner::Owner};
use crate::offload::{self, Journal};
use crate::refusal::{Refusal, Why};
use crate::store::{Kept, StoreError};
use api::{
    Fault, OffloadPolicy, OffloadPolicyView, OffloadRung, OffloadView, OffloadWhy, OffloadedFlow,
    SwitchName, SwitchSpec,
};
use datapath::{Clock, MonotonicClock, PortAt};
use std::collections::HashMap;
use wire::Key;

const THING: &str = "offload";

/// Policies for the flows of all switches; those of one switch are its own.
#[derive(Clone, Default)]
pub(super) struct Policies {
    /// Made through the API, in the order in which they were added.
    api: Vec<OffloadPolicy>,
    /// The configuration file's.
    file: Vec<OffloadPolicy>,
}

impl Node {
    /// Makes offload ready before ports are opened, if an earlier node was asked for it; else takes away what it left.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(super) async fn prepare_offload(&self, kept: &Kept) -> Result<(), StoreError> {
        let desired = offload::restore(kept)?;
        let log = |fault: Fault| {
            tracing::error!(
                remedy = fault.remedy,
                "{}: {}: {}",
                fault.thing,
                fault.step,
                fault.cause
            )
        };
        let file = self.facts.config.offload_policy.clone();
        *self.policies() = Policies { api: desired.policies, file };
        self.renew_policies();
        let (tell, moved) = tokio::sync::mpsc::unbounded_channel();
        // Who reads it ends with the node.
        self.offload.tell_moves(move |move_of| _ = tell.send(move_of));
        tokio::spawn(moves::tell(
            moved,
            (self.directory.clone(), self.ports.clone(), self.feed.clone()),
        ));
        let on = self.facts.config.offload.unwrap_or(desired.on);
        let done = if on { self.enable().await } else { self.offload.purge().await };
        done.unwrap_or_else(log);
        Ok(())
    }

    async fn enable(&self) -> Result<(), Fault> {
        let flows = self.offload.prepare().await?;
        self.ports.set_flows(Some(flows)).await;
        self.offload.set_on(true).await
    }

    /// Switches offload on or off. Ports whose flows can leave are opened anew.
    ///
    /// # Errors
    /// The kernel does not let it, or it is in force but not saved.
    pub async fn set_offload(&self, on: bool) -> Result<OffloadView, Refusal> {
        let change = self.change.of_all().await;
        let is_on = self.offload.look().await.map_err(impossible)?.is_on;
        match on {
            _ if on == is_on => {}
            true => self.enable().await.map_err(impossible)?,
            false => {
                self.offload.set_on(false).await.map_err(impossible)?;
                self.ports.set_flows(None).await;
            }
        }
        Journal(self.store.offload_records()).put_on(on);
        drop(change);
        self.saved(THING).await?;
        self.offload_view().await
    }

    /// Offload as it is now.
    ///
    /// # Errors
    /// Its thread has ended.
    pub async fn offload_view(&self) -> Result<OffloadView, Refusal> {
        let look = self.offload.look().await.map_err(impossible)?;
        let rung = |line: &::offload::RungLine| OffloadRung {
            name: line.name.to_string(),
            flows: line.flows as u64,
            moving: line.moving as u64,
            slots: line.slots,
            taken: line.taken,
            frames: line.counts.frames,
            bytes: line.counts.bytes,
            limited: line.counts.limited,
        };
        Ok(OffloadView {
            on: look.is_on,
            rungs: look.rungs.iter().map(rung).collect(),
            moves: look.moves,
            flaps: look.flaps,
            worker_ns_per_frame: look.worker.frame_ns,
            worker_ns_per_byte: look.worker.byte_ns,
            policies: self.policies_in_force().into_iter().map(|(view, _)| view).collect(),
        })
    }

    /// Adds a policy, in place of the one of its name if there is one.
    ///
    /// # Errors
    /// It says nothing that can be, the configuration file has one of that name, or it is in force but not saved.
    pub async fn put_offload_policy(
        &self,
        policy: OffloadPolicy,
    ) -> Result<OffloadPolicy, Refusal> {
        let change = self.change.of_all().await;
        let thing = format!("offload policy {}", policy.name);
        if self.policies().file.iter().any(|other| other.name == policy.name) {
            Owner::File.must_be_api(&thing, "change it")?;
        }
        offload::check(&policy, self.ports.ends())
            .map_err(|fault| Refusal::new(Why::Invalid, fault))?;
        {
            let api = &mut self.policies().api;
            match api.iter_mut().find(|other| other.name == policy.name) {
                Some(other) => *other = policy.clone(),
                None => api.push(policy.clone()),
            }
        }
        self.renew_policies();
        Journal(self.store.offload_records()).put_policy(&policy.name, Some(&policy));
        drop(change);
        self.saved(THING).await?;
        Ok(policy)
    }

    /// Removes a policy.
    ///
    /// # Errors
    /// There is none of that name, the file or a part has it, or it is gone but that is not saved.
    pub async fn remove_offload_policy(&self, name: &str) -> Result<(), Refusal> {
        let change = self.change.of_all().await;
        let thing = format!("offload policy {name}");
        let before = self.policies().api.len();
        self.policies().api.retain(|policy| policy.name != name);
        if self.policies().api.len() == before {
            for (view, owner) in self.policies_in_force() {
                if view.policy.name == name {
                    owner.must_be_api(&thing, "remove it")?;
                }
            }
            let remedy = "list the policies with: suiro offload policy list";
            let cause = "there is no policy of that name";
            return Err(Refusal::new(Why::NotFound, Fault::new(thing, "find it", cause, remedy)));
        }
        self.renew_policies();
        Journal(self.store.offload_records()).put_policy(name, None);
        drop(change);
        self.saved(THING).await
    }

    /// Takes over what the configuration file says of all switches.
    pub(super) fn set_file_policies(&self, policies: Vec<OffloadPolicy>) {
        self.policies().file = policies;
        self.renew_policies();
    }

    /// All policies with their owners, in the order in which they are asked.
    fn policies_in_force(&self) -> Vec<(OffloadPolicyView, Owner)> {
        let view = |policy: &OffloadPolicy, switch: Option<SwitchName>, owner: &Owner| {
            let view =
                OffloadPolicyView { policy: policy.clone(), switch, owner: owner.to_string() };
            (view, owner.clone())
        };
        let Policies { api, file } = self.policies().clone();
        let mut found: Vec<_> = api.iter().map(|policy| view(policy, None, &Owner::Api)).collect();
        found.extend(file.iter().map(|policy| view(policy, None, &Owner::File)));
        for member in self.directory.all() {
            let spec = member.state().spec.clone();
            let own = spec.offload_policy.iter();
            found.extend(own.map(|policy| view(policy, Some(spec.name.clone()), &member.owner())));
        }
        found.sort_by_key(|(view, _)| std::cmp::Reverse(view.policy.priority));
        found
    }

    /// Puts in force what owners say now. Each was read when it was said.
    pub(super) fn renew_policies(&self) {
        let mut policies = Vec::new();
        for (OffloadPolicyView { policy, switch, .. }, _) in self.policies_in_force() {
            let member = switch.map(|name| self.directory.by_name(&name).map(|member| member.id));
            let switch = match member {
                Some(None) => continue,
                Some(id) => id,
                None => None,
            };
            match offload::policy(&policy, switch, self.ports.ends()) {
                Ok(policy) => policies.push(policy),
                Err(fault) => tracing::error!(remedy = fault.remedy, "{fault}: not in force"),
            }
        }
        self.offload.set_policies(policies);
    }

    /// Whether policies of a switch say what can be.
    ///
    /// # Errors
    /// The first that does not.
    pub(super) fn check_policies(&self, spec: &SwitchSpec) -> Result<(), Refusal> {
        let check = |policy| offload::check(policy, self.ports.ends());
        let checked = spec.offload_policy.iter().try_for_each(check);
        checked.map_err(|fault| Refusal::new(Why::Invalid, fault))
    }

    fn policies(&self) -> std::sync::MutexGuard<'_, Policies> {
        self.policies.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The flows of a switch, wherever they are processed: those on rungs first, then by rate.
    ///
    /// # Errors
    /// There is no such switch, or the filter says nothing.
    pub async fn offload_flows(
        &self,
        switch: &str,
        filter: &str,
    ) -> Result<Vec<OffloadedFlow>, Refusal> {
        let member = self.member(switch)?;
        let asked = self.matched(&member, switch, filter)?;
        let lines = self.offload.flows(Some(member.id), asked).await.map_err(impossible)?;
        let names: HashMap<u32, String> = member
            .state()
            .ports
            .iter()
            .map(|(name, port)| (port.number, name.to_string()))
            .collect();
        let (now, ends) = (MonotonicClock.now(), self.ports.ends());
        let name = |at: PortAt| names.get(&at.port).cloned();
        Ok(lines.iter().map(|line| offload::shown(line, now, (switch, ends), name)).collect())
    }

    /// Why a flow of a switch is processed where it is.
    ///
    /// # Errors
    /// There is no such switch, the text names no flow, or no frame of such a flow has been seen.
    pub async fn offload_why(&self, switch: &str, flow: &str) -> Result<OffloadWhy, Refusal> {
        let member = self.member(switch)?;
        let asked = self.matched(&member, switch, flow)?;
        let lines = self.offload.flows(Some(member.id), asked).await.map_err(impossible)?;
        let unseen = || {
            let cause = "none of its frames has been seen lately";
            let remedy = "is offload on, and does it send? workers show one frame in 64: see suiro flow list SWITCH --rungs";
            Refusal::new(
                Why::NotFound,
                Fault::new(format!("flow {flow:?} of switch {switch}"), "find it", cause, remedy),
            )
        };
        let line = lines.first().ok_or_else(unseen)?;
        let (explained, verdict) = self.offload.why(line.name).await.map_err(impossible)?;
        let explained = explained.ok_or_else(unseen)?;
        let names: HashMap<u32, String> = member
            .state()
            .ports
            .iter()
            .map(|(name, port)| (port.number, name.to_string()))
            .collect();
        let name = |at: PortAt| names.get(&at.port).cloned();
        let shown = offload::shown(
            &explained.line,
            MonotonicClock.now(),
            (switch, self.ports.ends()),
            name,
        );
        let (pps, bytes) = (explained.line.pps as f64, explained.line.rate as f64 / 8.0);
        let cost = |price: &::offload::Price| {
            pps * f64::from(price.per_frame_ns) + bytes * f64::from(price.per_byte_ns)
        };
        let price = verdict.as_ref().ok();
        // Tables and ports first: what a policy says is moot where no rung can.
        let declined = verdict.as_ref().err().or(explained.line.declined.as_ref());
        Ok(OffloadWhy {
            flow: shown,
            policy: explained.policy,
            rung: price.map(|(rung, _)| rung.to_string()),
            declined: verdict.as_ref().err().map(ToString::to_string),
            remedy: declined.map(|declined| declined.remedy().to_owned()),
            worker_ns_per_s: explained.worker_ns_per_s,
            rung_ns_per_s: price.map(|(_, price)| cost(price) as u64),
            worker_ns_per_frame: explained.worker.frame_ns,
            worker_ns_per_byte: explained.worker.byte_ns,
            rung_ns_per_frame: price.map(|(_, price)| price.per_frame_ns.into()),
            rung_ns_per_byte: price.map(|(_, price)| price.per_byte_ns.into()),
            rung_is_measured: price.map(|(_, price)| price.is_measured),
        })
    }

    fn matched(&self, member: &Member, switch: &str, words: &str) -> Result<(Key, Key), Refusal> {
        let thing = format!("switch {switch}");
        let read = offload::matched(&thing, words, &resolver(member), self.ports.ends());
        read.map_err(|fault| Refusal::new(Why::Invalid, fault))
    }
}

fn impossible(fault: Fault) -> Refusal {
    Refusal::new(Why::Impossible, fault)
}
