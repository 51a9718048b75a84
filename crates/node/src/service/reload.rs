//! The configuration file changed: what it declares now replaces what it declared before. What parts, the API and controllers made stays.

use super::Node;
use super::directory::Member;
use crate::config::{Config, ConfigError, NodeConfig};
use crate::host::notify;
use crate::refusal::{Refusal, Why};
use api::{Fault, PortSpec};
use std::sync::{Arc, PoisonError};

impl Node {
    /// Reads the configuration file again. A wrong one changes nothing, and stays a fault of the node until one is read that is right.
    ///
    /// # Errors
    /// Everything that is wrong with it, or why it cannot be in force.
    pub async fn reload_file(&self) -> Result<(), Refusal> {
        notify::reloading();
        let (file, host) = (self.facts.config_file.clone(), self.facts.host().clone());
        // Aside: a long file, or one on a slow disk, is nobody else's time.
        let read = tokio::task::spawn_blocking(move || file.read(&host)).await;
        let done = match read.expect("reading a file panics on no input") {
            Ok(config) => self.reload(&config).await.map(|()| config.text),
            Err(error) => Err(refused(&error)),
        };
        let faults: Vec<Fault> = match &done {
            Ok(_) => Vec::new(),
            Err(refusal) => refusal.faults().cloned().collect(),
        };
        // Also who asks by command is one of several who look after the node: the others read the log.
        for fault in &faults {
            tracing::error!(
                remedy = fault.remedy,
                "the configuration file is not in force: {fault}"
            );
        }
        *self.config_faults.lock().unwrap_or_else(PoisonError::into_inner) = faults;
        notify::ready(if done.is_ok() {
            "serving"
        } else {
            "serving; the configuration file is broken"
        });
        done.map(|text| self.keep_as_good(&text))
    }

    /// What is wrong with the configuration file as it was last read.
    pub(super) fn config_faults(&self) -> Vec<Fault> {
        self.config_faults.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps this text as that of the last configuration that worked.
    pub fn keep_as_good(&self, text: &str) {
        if let Err(error) = self.facts.config_file.keep(text) {
            tracing::warn!(
                "the configuration works, but cannot be kept as the last good one: {error}"
            );
        }
    }

    /// Makes the switches and ports of the file those of `config`, whole or not at all.
    ///
    /// Rules that the file declares are there then; a rule that it no longer declares stays until somebody deletes it, since a controller may
    /// rely on it by now.
    ///
    /// # Errors
    /// Something contradicts what another owner has, or the host refuses a change of a port: nothing has changed then.
    async fn reload(&self, config: &Config) -> Result<(), Refusal> {
        let _change = self.change.of_all().await;
        let tls_before = self.tls();
        self.set_tls(config.node.tls.clone());
        if let Err(refusal) = self.apply_file(config).await {
            self.set_tls(tls_before);
            return Err(refusal);
        }
        self.datapath.set_rungs(config.node.rungs);
        self.set_file_policies(config.node.offload_policy.clone());
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
    let with = NodeConfig {
        tls: now.tls.clone(),
        rungs: now.rungs,
        offload_policy: now.offload_policy.clone(),
        ..before.clone()
    };
    with != *now
}

fn is_encrypted(spec: &PortSpec) -> bool {
    spec.tunnel().is_some_and(|tunnel| tunnel.encrypt.is_some())
}

fn refused(error: &ConfigError) -> Refusal {
    let mut faults = error.faults();
    let others = faults.split_off(1);
    let first = faults.remove(0);
    Refusal { others, ..Refusal::new(Why::Invalid, first) }
}
