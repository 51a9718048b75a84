//! Bringing a node up: what the file declares and what was kept, switch by switch.

use super::Node;
use super::arrival::Arrival;
use super::directory::{Member, MemberPort};
use super::numbers::{Numbers, named};
use super::order::{MANY_RULES, lightest_first, weight};
use super::owner::Owner;
use super::parts::KeptPart;
use super::plan::{Forgettable, KeptThings, Plan, PlannedPort, PlannedSwitch, plan};
use crate::config::Config;
use crate::journal::Change;
use crate::ports::UnderWay;
use crate::store::{Kept, StoreError};
use api::{Fault, PortNumber, SwitchName};
use openflow::PortConfig;
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use tokio::task::JoinSet;

/// Rules handed to a switch at a time while it is restored: memory stays bounded whatever the store holds.
const PORTION: usize = 10_000;

/// Why a node does not come up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StartFault(pub Vec<Fault>);

impl fmt::Display for StartFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&texts.join("\n"))
    }
}

/// What the store kept cannot be brought up, or not read.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It contradicts the configuration file.
    #[error("{0}")]
    Contradictions(StartFault),
    /// The file is damaged.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What to do with what was kept and contradicts the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnConflict {
    /// Do not start.
    Refuse,
    /// Forget it: the file wins.
    Forget,
}

impl Node {
    /// Brings up everything that is wanted. A port or an address that cannot be had now is tried again later.
    ///
    /// # Errors
    /// The store contradicts the file, or cannot be read.
    pub async fn restore(
        self: &Arc<Self>,
        config: &Config,
        kept: &Kept,
        on_conflict: OnConflict,
    ) -> Result<(), StartError> {
        let _change = self.change.of_all().await;
        let parts = self.kept_parts(kept)?;
        let found = plan(config, &parts, &kept_things(config, &parts, kept)?);
        self.settle_contradictions(&found, on_conflict)?;
        found.taken_over.iter().for_each(|what| self.forget(what));
        self.restore_steering(kept).await?;
        self.prepare_offload(kept).await?;
        let forgotten = |part: &&KeptPart| {
            let what = Forgettable::Part(part.name.clone());
            found.contradictions.iter().all(|contradiction| contradiction.what != what)
        };
        let parts: Vec<_> = parts.iter().filter(forgotten).collect();
        self.restore_guests(config, &parts).await;
        let weight = |planned: &PlannedSwitch| {
            let ports = planned.ports.iter().map(|port| port.spec.kind.kind());
            let rules = kept.rules_up_to(planned.name(), MANY_RULES)?;
            Ok::<_, StoreError>(weight(ports, rules))
        };
        let mut serving = JoinSet::new();
        for planned in lightest_first(&found.switches, weight)? {
            let (member, opening) = self.restore_switch(planned, kept).await?;
            // It does not wait for others' rules, nor they for its ports.
            let node = self.clone();
            serving.spawn(async move { node.serve(&member, opening).await });
        }
        // One that panicked has said so.
        while serving.join_next().await.is_some() {}
        self.settle_parts(&parts, kept).await?;
        self.offload.adopt().await.unwrap_or_else(|fault| tracing::warn!("{fault}"));
        self.ports.release_others();
        Ok(())
    }

    /// Guests come before ports, for their namespaces; those that run are adopted, and those that nobody declares any more are removed.
    async fn restore_guests(&self, config: &Config, parts: &[&KeptPart]) {
        let parts = parts.iter().map(|part| (Owner::Part(part.name.clone()), &part.things));
        for (owner, things) in std::iter::once((Owner::File, &config.things)).chain(parts) {
            if let Err(refusal) = self.begin_things(&owner, things).await {
                tracing::error!("{refusal}");
            }
            self.set_things(&owner, things).await;
        }
        self.guests.release_others().await;
    }

    fn settle_contradictions(
        &self,
        found: &Plan,
        on_conflict: OnConflict,
    ) -> Result<(), StartError> {
        if found.contradictions.is_empty() {
            return Ok(());
        }
        if on_conflict == OnConflict::Refuse {
            let faults = found.contradictions.iter().map(|found| found.fault.clone()).collect();
            return Err(StartError::Contradictions(StartFault(faults)));
        }
        for contradiction in &found.contradictions {
            tracing::warn!(
                "{}: forgotten: {}",
                contradiction.fault.thing,
                contradiction.fault.cause
            );
            self.forget(&contradiction.what);
        }
        Ok(())
    }

    /// Its rules and numbers stay: they are the switch's, whoever declares it.
    pub(super) fn forget(&self, what: &Forgettable) {
        match what {
            Forgettable::Switch(switch) => self.store.forget_made_switch(switch),
            Forgettable::Port(switch, port) => self.store.forget_made_port(switch, port),
            Forgettable::Part(part) => self.store.forget_part(part),
        }
    }

    /// What is declared of a switch comes first: what a controller made of it later is in the store, and wins.
    async fn restore_switch(
        &self,
        planned: &PlannedSwitch,
        kept: &Kept,
    ) -> Result<(Arc<Member>, Vec<UnderWay>), StoreError> {
        let name = planned.name();
        let arrival = arrival(planned, &port_configs(kept, name)?);
        let member = self.arrive(&arrival);
        if let Some(tables) = kept.tables(name)? {
            member.switch.restore_tables(tables);
        }
        if let Err(refusal) = self.put_declared(&member, &planned.declared).await {
            tracing::error!(remedy = refusal.fault.remedy, "{refusal}");
        }
        self.restore_rules(&member, kept)?;
        for (number, before) in kept.port_counts(name)? {
            self.datapath.count_before(member.at(number), &before);
        }
        self.store.forget_counts(name);
        if planned.past_is_unknown {
            let named = named(&member.switch).into_iter().filter_map(PortNumber::new);
            named.for_each(|number| member.state().numbers.note(number, true));
        }
        let opening = self.begin_to_open(&member, &arrival).await;
        Ok((member, opening))
    }

    fn restore_rules(&self, member: &Member, kept: &Kept) -> Result<(), StoreError> {
        let name = member.name();
        let mut portion = Vec::new();
        let mut count = 0;
        kept.changes(&name, |change| {
            // Meters and groups stay together with the first rules: they refer to each other.
            let full = portion.len() >= PORTION && matches!(change, Change::FlowSet(..));
            portion.push(change);
            if full {
                count += self.restore_portion(member, std::mem::take(&mut portion));
            }
        })?;
        count += self.restore_portion(member, portion);
        if count > 0 {
            tracing::info!("switch {name}: {count} rules, groups and meters restored");
        }
        Ok(())
    }

    /// Returns how many things are in force. What the switch does not take back leaves the store: a controller that deletes everything
    /// cannot delete what is not there, and must not meet it again.
    fn restore_portion(&self, member: &Member, portion: Vec<Change>) -> usize {
        let all = portion.len();
        let refused = member.switch.restore(portion);
        for refused in &refused {
            tracing::error!(
                remedy = "add it anew if it is still wanted",
                "switch {}: not restored, and forgotten: {:?}: {}",
                member.name(),
                refused.change,
                refused.fault
            );
            self.store.forget_refused(&member.name(), &refused.change);
        }
        all - refused.len()
    }
}

fn arrival(planned: &PlannedSwitch, configs: &HashMap<u32, PortConfig>) -> Arrival {
    let port = |PlannedPort { spec, owner }: &PlannedPort| {
        let number = spec.number.map_or(0, PortNumber::get);
        let config = configs.get(&number).copied().unwrap_or_default();
        (MemberPort { spec: spec.clone(), number, owner: owner.clone() }, config)
    };
    Arrival {
        spec: planned.declared.spec.clone(),
        owner: planned.owner.clone(),
        numbers: planned.numbers,
        ports: planned.ports.iter().map(port).collect(),
    }
}

fn kept_things(config: &Config, parts: &[KeptPart], kept: &Kept) -> Result<KeptThings, StoreError> {
    let switches = kept.switches()?;
    let of_parts = parts.iter().flat_map(|part| &part.wish);
    let declared = config.switches.iter().chain(of_parts);
    let declared = declared.map(|switch| switch.spec.name.clone());
    let names: Vec<SwitchName> =
        declared.chain(switches.iter().map(|spec| spec.name.clone())).collect();
    let mut things = KeptThings { switches, ..KeptThings::default() };
    for name in &names {
        things.ports.insert(name.clone(), kept.ports(name)?);
        things.numbers.insert(name.clone(), kept.numbers(name)?);
        let past = kept.past_numbers(name)?;
        let past = past.and_then(|past| Numbers::from_bytes(&past));
        things.past.extend(past.map(|past| (name.clone(), past)));
    }
    for orphan in kept.orphans(&names)? {
        tracing::warn!(
            "switch {orphan}: its rules are kept, but no file declares it any more; they wait for it to come back"
        );
    }
    Ok(things)
}

fn port_configs(kept: &Kept, switch: &SwitchName) -> Result<HashMap<u32, PortConfig>, StoreError> {
    let mut configs = HashMap::new();
    kept.port_configs(switch, |port, bits| {
        configs.insert(port, PortConfig::from_bits_truncate(bits));
    })?;
    Ok(configs)
}

/// Unpredictable bits: the standard library draws the keys of its hash maps from the operating system.
pub(super) fn random_secret() -> [u64; 2] {
    std::array::from_fn(|_| RandomState::new().build_hasher().finish())
}
