//! Bringing a node up: what the file declares and what was kept, switch by switch.

use super::Node;
use super::directory::{Member, MemberPort};
use super::numbers::{Numbers, named};
use super::parts::KeptPart;
use super::plan::{Forgettable, KeptThings, Plan, PlannedPort, PlannedSwitch, plan};
use super::rules::{Parsed, RuleVerb};
use crate::config::{Config, Located};
use crate::journal::Change;
use crate::ports::OnFailure;
use crate::store::{Kept, StoreError};
use api::{Fault, PortNumber, RuleChange, SwitchName};
use openflow::PortConfig;
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;

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
        &self,
        config: &Config,
        kept: &Kept,
        on_conflict: OnConflict,
    ) -> Result<(), StartError> {
        let _change = self.change.lock().await;
        let parts = self.kept_parts(kept)?;
        let found = plan(config, &parts, &kept_things(config, &parts, kept)?);
        self.settle_contradictions(&found, on_conflict)?;
        self.restore_steering(kept).await?;
        self.prepare_offload(kept).await?;
        for planned in &found.switches {
            let member = self.restore_switch(planned, kept).await?;
            // Ports after rules: no frame meets a switch that does not know yet what to do with it.
            let configs = port_configs(kept, &planned.spec.name)?;
            for port in &planned.ports {
                self.restore_port(&member, port, &configs).await;
            }
            member.switch.publish();
            if let Err(fault) = self.start_agent(&member).await {
                tracing::error!(
                    remedy = fault.remedy,
                    "{}: {}: {}; trying on",
                    fault.thing,
                    fault.step,
                    fault.cause
                );
            }
            member.gate.open();
        }
        let forgotten = |part: &&KeptPart| {
            let what = Forgettable::Part(part.name.clone());
            found.contradictions.iter().all(|contradiction| contradiction.what != what)
        };
        let parts: Vec<_> = parts.iter().filter(forgotten).collect();
        self.settle_parts(&parts, kept).await?;
        self.offload.adopt().await.unwrap_or_else(|fault| tracing::warn!("{fault}"));
        self.ports.release_others();
        Ok(())
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
            match &contradiction.what {
                Forgettable::Switch(switch) => self.store.forget_made_switch(switch),
                Forgettable::Port(switch, port) => self.store.forget_made_port(switch, port),
                Forgettable::Part(part) => self.store.forget_part(part),
            }
        }
        Ok(())
    }

    async fn restore_switch(
        &self,
        planned: &PlannedSwitch,
        kept: &Kept,
    ) -> Result<Arc<Member>, StoreError> {
        let member = self.bring_up(planned.spec.clone(), planned.owner.clone());
        let name = &planned.spec.name;
        for port in &planned.ports {
            let number = port.spec.number.map_or(0, PortNumber::get);
            self.store.put_number(name, &port.name, number);
            let entry = MemberPort { spec: port.spec.clone(), number, owner: port.owner.clone() };
            member.state().ports.insert(port.name.clone(), entry);
        }
        member.state().numbers = planned.numbers;
        if let Some(tables) = kept.tables(name)? {
            member.switch.restore_tables(tables);
        }
        declare_rules(&member, name, (&planned.flows, &planned.groups, &planned.meters)).await;
        self.restore_rules(&member, kept)?;
        if planned.past_is_unknown {
            let named = named(&member.switch).into_iter().filter_map(PortNumber::new);
            named.for_each(|number| member.state().numbers.note(number, true));
        }
        self.store.put_numbers(name, &member.state().numbers.to_bytes());
        Ok(member)
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

    async fn restore_port(
        &self,
        member: &Member,
        port: &PlannedPort,
        configs: &HashMap<u32, PortConfig>,
    ) {
        let number = port.spec.number.map_or(0, PortNumber::get);
        let config = configs.get(&number).copied().unwrap_or_default();
        // The fault is the port's state, and logged by the ports' thread.
        let wanted = self.wanted(member, &port.name, &port.spec, config).await;
        let _ = self.ports.add(wanted, OnFailure::Keep).await;
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

/// Flows, groups and meters of one switch, as the file has them.
type DeclaredTexts<'a> = (&'a [Located<String>], &'a [Located<String>], &'a [Located<String>]);

/// What the file declares comes first: what a controller made of it later is in the store, and wins.
async fn declare_rules(member: &Arc<Member>, name: &SwitchName, texts: DeclaredTexts<'_>) {
    let text =
        |located: &[Located<String>]| located.iter().map(|text| text.value.clone()).collect();
    let (flows, groups, meters) = texts;
    let change = RuleChange {
        flows: text(flows),
        groups: text(groups),
        meters: text(meters),
        ..RuleChange::default()
    };
    let declared = match Parsed::read(member, name, RuleVerb::Add, &change) {
        Ok(parsed) => parsed.apply(member, name, &change).await,
        Err(refusal) => Err(refusal),
    };
    if let Err(refusal) = declared {
        tracing::error!(
            remedy = refusal.fault.remedy,
            "{}: {}: {}",
            refusal.fault.thing,
            refusal.fault.step,
            refusal.fault.cause
        );
    }
}

/// Unpredictable bits: the standard library draws the keys of its hash maps from the operating system.
pub(super) fn random_secret() -> [u64; 2] {
    std::array::from_fn(|_| RandomState::new().build_hasher().finish())
}
