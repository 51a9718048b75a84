//! Where encrypted tunnels seal.

use super::Node;
use super::directory::{Member, MemberPort};
use super::plan::Origin;
use super::ports::{checked_name, label};
use crate::refusal::{Refusal, Why};
use api::{Fault, PortName, PortSpec, SealCore};
use place::{CoreTable, Role, sealing_core};
use port::SealOn;

impl Node {
    /// Where a port shall seal, as its specification says it and the host's cores are now.
    pub(super) async fn sealing(&self, spec: &PortSpec) -> SealOn {
        match spec.seal_core {
            _ if spec.encrypt.is_none() => SealOn::default(),
            None => SealOn::default(),
            Some(SealCore::WithForwarding) => SealOn { core: None, why: "asked for".into() },
            Some(SealCore::Core(core)) => {
                SealOn { core: Some(core.into()), why: "asked for".into() }
            }
            Some(SealCore::Auto) => match self.free_core().await {
                Ok(core) => {
                    let why = "auto: it has no worker and no guest".into();
                    SealOn { core: Some(core), why }
                }
                Err(why) => SealOn { core: None, why: format!("auto: {why}") },
            },
        }
    }

    /// A core for one more stage, or why there is none.
    async fn free_core(&self) -> Result<usize, String> {
        let report = self.steer.ask(|agent| Ok(agent.host_report())).await;
        let mut cores = report.map_err(|refusal| refusal.fault.cause)?.cores;
        let stages = self.ports.sealing_cores();
        for core in &mut cores {
            let number = usize::from(core.id().0);
            let is_ours = self.facts.cores().contains(&number);
            if !is_ours || self.facts.config.cores.contains(&number) {
                core.role = Role::Excluded;
            }
            core.placed = stages.iter().filter(|&&stage| stage == number).count() as u32;
        }
        let table = CoreTable::new(cores).map_err(|error| error.to_string())?;
        sealing_core(&table).map(|core| core.0.into()).map_err(|error| error.to_string())
    }

    /// Has a port that the API made seal where `spec` says, and keeps that.
    pub(super) async fn change_sealing(
        &self,
        member: &Member,
        (name, port): (&PortName, &MemberPort),
        spec: &PortSpec,
    ) -> Result<(), Refusal> {
        let thing = label(&member.name(), name);
        if port.origin == Origin::File {
            return Err(Refusal::declared(thing, "change where it seals"));
        }
        checked_name(&member.name(), spec)?;
        self.check_sealing(&thing, spec.seal_core)?;
        self.reseal(member, (name, port), spec).await?;
        self.store.put_port(&member.name(), name, spec);
        Ok(())
    }

    /// Has a port seal where `spec` says.
    pub(super) async fn reseal(
        &self,
        member: &Member,
        (name, port): (&PortName, &MemberPort),
        spec: &PortSpec,
    ) -> Result<(), Refusal> {
        let set = self.ports.set_sealing(member.at(port.number), self.sealing(spec).await).await;
        set.map_err(|fault| Refusal::new(Why::Impossible, fault))?;
        if let Some(port) = member.state().ports.get_mut(name) {
            port.spec.seal_core = spec.seal_core;
        }
        Ok(())
    }

    /// Refuses a core that this node has not.
    pub(super) fn check_sealing(&self, thing: &str, core: Option<SealCore>) -> Result<(), Refusal> {
        let Some(SealCore::Core(core)) = core else { return Ok(()) };
        let cores = self.facts.cores();
        if cores.contains(&core.into()) {
            return Ok(());
        }
        let there: Vec<_> = cores.iter().map(ToString::to_string).collect();
        let cause = format!("there is no core {core}");
        let remedy = format!("choose one of {}, or auto", there.join(", "));
        Err(Refusal::new(Why::Impossible, Fault::new(thing, "seal on a core", cause, remedy)))
    }
}
