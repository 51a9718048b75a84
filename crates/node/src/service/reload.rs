//! The configuration file changed: what it declares now replaces what it declared before. What parts, the API and controllers made stays.

use super::Node;
use super::directory::Member;
use crate::config::{Config, NodeConfig};
use crate::refusal::Refusal;
use api::PortSpec;
use std::sync::Arc;

impl Node {
    /// Makes the switches and ports of the file those of `config`, whole or not at all.
    ///
    /// Rules that the file declares are there then; a rule that it no longer declares stays until somebody deletes it, since a controller may
    /// rely on it by now.
    ///
    /// # Errors
    /// Something contradicts what another owner has, or the host refuses a change of a port: nothing has changed then.
    pub async fn reload(&self, config: &Config) -> Result<(), Refusal> {
        let _change = self.change.lock().await;
        let tls_before = self.tls();
        self.set_tls(config.node.tls.clone());
        if let Err(refusal) = self.apply_file(&config.switches).await {
            self.set_tls(tls_before);
            return Err(refusal);
        }
        self.datapath.set_rungs(config.node.rungs);
        if needs_restart(&self.facts.config, &config.node) {
            tracing::warn!("[node] has changed: restart suiro for that to take effect");
        }
        if tls_before != config.node.tls {
            let concerned = |member: &&Arc<Member>| {
                let state = member.state();
                state.spec.uses_tls() && state.spec.tls.is_none()
            };
            for member in self.directory.all().iter().filter(concerned) {
                // The fault is the switch's state, and tried again with each tick.
                let _ = self.start_agent(member).await;
            }
        }
        self.rekey().await;
        Ok(())
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
}

/// Whether anything of `[node]` has changed that only a restart puts in force.
fn needs_restart(before: &NodeConfig, now: &NodeConfig) -> bool {
    let with = NodeConfig { tls: now.tls.clone(), rungs: now.rungs, ..before.clone() };
    with != *now
}

fn is_encrypted(spec: &PortSpec) -> bool {
    spec.tunnel().is_some_and(|tunnel| tunnel.encrypt.is_some())
}
