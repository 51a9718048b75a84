//! Steering, as the API asks for it: the agent does it, what took effect is on disk before it is answered.

use super::Node;
use crate::refusal::Refusal;
use crate::steer::{Journal, restore};
use crate::store::{Kept, StoreError};
use api::steer::{
    Detached, FlowView, InterfaceSpec, InterfaceView, PolicyPatch, PolicySpec, SteerRules,
    SteerView, UnitView, VmSpec, VmView, WhyView,
};
use steer::Strictness;

const THING: &str = "steering";

impl Node {
    /// Takes up what steering was asked for by the time of the last node.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(super) async fn restore_steering(&self, kept: &Kept) -> Result<(), StoreError> {
        let desired = restore(kept)?;
        let journal = Journal(self.store.steer_records());
        let restored = self.steer.ask(move |agent| {
            agent.restore(desired, journal);
            Ok(())
        });
        if let Err(refusal) = restored.await {
            tracing::error!(
                remedy = refusal.fault.remedy,
                "{}: {}",
                refusal.fault.thing,
                refusal.fault.cause
            );
        }
        Ok(())
    }

    /// All of steering as it is now.
    pub async fn steering(&self) -> Result<SteerView, Refusal> {
        self.steer.ask(|agent| agent.view()).await
    }

    /// Units, the busiest first.
    pub async fn steer_units(&self) -> Result<Vec<UnitView>, Refusal> {
        self.steer.ask(|agent| agent.unit_views()).await
    }

    /// Steers an interface.
    pub async fn steer_attach(
        &self,
        name: String,
        spec: InterfaceSpec,
    ) -> Result<InterfaceView, Refusal> {
        let view = self.steer.ask(move |agent| agent.attach(&name, spec)).await?;
        self.saved(THING).await?;
        Ok(view)
    }

    /// Steers an interface no more. The last one ends a node that was started for it.
    pub async fn steer_detach(&self, name: String) -> Result<Detached, Refusal> {
        let left = self.steer.ask(move |agent| {
            agent.detach(&name)?;
            Ok(agent.interface_names().len())
        });
        let left = left.await?;
        self.saved(THING).await?;
        let node_ends = self.background && left == 0 && self.directory.all().is_empty();
        if node_ends {
            tracing::info!("nothing is steered any more: ending");
            self.end.notify_one();
        }
        Ok(Detached { node_ends })
    }

    /// Adds rules; returns how many.
    pub async fn add_steer_rules(&self, change: SteerRules) -> Result<usize, Refusal> {
        let SteerRules { rules, on, .. } = change;
        let applied = self.steer.ask(move |agent| agent.add_rules(on.as_deref(), &rules)).await?;
        self.saved(THING).await?;
        Ok(applied)
    }

    /// Deletes rules; returns how many.
    pub async fn del_steer_rules(&self, change: SteerRules) -> Result<usize, Refusal> {
        let SteerRules { rules, on, strict, all } = change;
        let strictness = if strict { Strictness::Strict } else { Strictness::Loose };
        let deletion = self.steer.ask(move |agent| match all {
            true => agent.del_all_rules(on.as_deref()),
            false => agent.del_rules(on.as_deref(), &rules, strictness),
        });
        let applied = deletion.await?;
        self.saved(THING).await?;
        Ok(applied)
    }

    /// Rules with counters.
    pub async fn steer_flows(
        &self,
        on: Option<String>,
        filter: String,
    ) -> Result<Vec<FlowView>, Refusal> {
        self.steer.ask(move |agent| agent.flows(on.as_deref(), &filter)).await
    }

    /// Why a flow is processed where it is.
    pub async fn steer_why(&self, on: Option<String>, flow: String) -> Result<WhyView, Refusal> {
        self.steer.ask(move |agent| agent.why(&flow, on.as_deref())).await
    }

    /// Changes how cores are chosen.
    pub async fn set_steer_policy(&self, patch: PolicyPatch) -> Result<PolicySpec, Refusal> {
        let policy = self.steer.ask(move |agent| agent.set_policy(&patch)).await?;
        self.saved(THING).await?;
        Ok(policy)
    }

    /// Declares a virtual machine.
    pub async fn put_steer_vm(&self, name: String, spec: VmSpec) -> Result<VmView, Refusal> {
        let view = self.steer.ask(move |agent| agent.put_vm(&name, spec)).await?;
        self.saved(THING).await?;
        Ok(view)
    }

    /// Forgets a declared virtual machine.
    pub async fn del_steer_vm(&self, name: String) -> Result<(), Refusal> {
        self.steer.ask(move |agent| agent.del_vm(&name)).await?;
        self.saved(THING).await
    }
}
