//! Where encrypted tunnels seal.

use super::Node;
use crate::refusal::{Refusal, Why};
use api::{Fault, PortSpec, SealCore};
use place::{CoreTable, Role, sealing_core};
use port::SealOn;

impl Node {
    /// Where a port shall seal, as its specification says it and the host's cores are now.
    pub(super) async fn sealing(&self, spec: &PortSpec) -> SealOn {
        let encrypted = spec.tunnel().filter(|tunnel| tunnel.encrypt.is_some());
        match encrypted.and_then(|tunnel| tunnel.seal_core) {
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

    /// Refuses a core that this node has not.
    pub(super) fn check_sealing(&self, thing: &str, spec: &PortSpec) -> Result<(), Refusal> {
        let core = spec.tunnel().and_then(|tunnel| tunnel.seal_core);
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
