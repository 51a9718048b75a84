//! Offload, as the API asks for it.

use super::Node;
use super::directory::Member;
use super::rules::resolver;
use crate::offload::{self, Journal};
use crate::refusal::{Refusal, Why};
use crate::store::{Kept, StoreError};
use api::{Fault, OffloadPolicy, OffloadRung, OffloadView, OffloadWhy, OffloadedFlow};
use datapath::{Clock, MonotonicClock, PortAt};
use std::collections::HashMap;
use wire::Key;

const THING: &str = "offload";

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
        match offload::policies(&desired.policies, self.ports.ends()) {
            Ok(policies) => {
                *self.policies() = desired.policies;
                self.offload.set_policies(policies).await.unwrap_or_else(log);
            }
            Err(fault) => log(fault),
        }
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
        let change = self.change.lock().await;
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
        };
        Ok(OffloadView {
            on: look.is_on,
            rungs: look.rungs.iter().map(rung).collect(),
            moves: look.moves,
            flaps: look.flaps,
            policies: self.policies().clone(),
        })
    }

    /// Adds a policy, in place of the one of its name if there is one.
    ///
    /// # Errors
    /// It says nothing that can be, or it is in force but not saved.
    pub async fn put_offload_policy(
        &self,
        policy: OffloadPolicy,
    ) -> Result<OffloadPolicy, Refusal> {
        let change = self.change.lock().await;
        let mut policies = self.policies().clone();
        match policies.iter_mut().find(|other| other.name == policy.name) {
            Some(other) => *other = policy.clone(),
            None => policies.push(policy.clone()),
        }
        self.set_offload_policies(policies).await?;
        Journal(self.store.offload_records()).put_policy(&policy.name, Some(&policy));
        drop(change);
        self.saved(THING).await?;
        Ok(policy)
    }

    /// Removes a policy.
    ///
    /// # Errors
    /// There is none of that name, or it is gone but that is not saved.
    pub async fn remove_offload_policy(&self, name: &str) -> Result<(), Refusal> {
        let change = self.change.lock().await;
        let mut policies = self.policies().clone();
        let before = policies.len();
        policies.retain(|policy| policy.name != name);
        if policies.len() == before {
            let remedy = "list the policies with: suiro offload policy list";
            let fault = Fault::new(
                format!("offload policy {name}"),
                "find it",
                "there is no policy of that name",
                remedy,
            );
            return Err(Refusal::new(Why::NotFound, fault));
        }
        self.set_offload_policies(policies).await?;
        Journal(self.store.offload_records()).put_policy(name, None);
        drop(change);
        self.saved(THING).await
    }

    async fn set_offload_policies(&self, policies: Vec<OffloadPolicy>) -> Result<(), Refusal> {
        let read = offload::policies(&policies, self.ports.ends());
        let read = read.map_err(|fault| Refusal::new(Why::Invalid, fault))?;
        self.offload.set_policies(read).await.map_err(impossible)?;
        *self.policies() = policies;
        Ok(())
    }

    fn policies(&self) -> std::sync::MutexGuard<'_, Vec<OffloadPolicy>> {
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
