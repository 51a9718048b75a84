//! Parts at the start: those that the store kept, and a change that the end of the node before interrupted.

use super::super::Node;
use super::{Record, file_of};
use crate::config::{Config, Declaration, Host, SwitchConfig, Things};
use crate::store::{Kept, StoreError};
use api::{Kind, PartName, PortName, PortNumber, PortSpec, SwitchName, TlsSpec};

/// A part that the store kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeptPart {
    /// Its name.
    pub name: PartName,
    /// What it declares.
    pub wish: Vec<SwitchConfig>,
    /// Its guests and circuits.
    pub things: Things,
    record: Record,
}

/// The ports that kept parts declare, those of a change under way included.
///
/// # Errors
/// The file is damaged.
pub fn ports_of_parts(kept: &Kept, tls: Option<&TlsSpec>) -> Result<Vec<PortSpec>, StoreError> {
    let host = Host { cores: Vec::new(), node_id: String::new(), copied_from: None };
    let mut found = Vec::new();
    for (name, record) in kept.parts::<Record>()? {
        for text in [record.text, record.other].into_iter().flatten() {
            let file = file_of(&name, &text);
            match Config::parse_part(&text.text, &file, &host, tls.cloned()) {
                Ok(part) => found.extend(part.switches.into_iter().flat_map(|switch| switch.ports)),
                Err(problems) => {
                    tracing::warn!("part {name}: its ports are not known:\n{problems}");
                }
            }
        }
    }
    Ok(found.into_iter().map(|port| port.value).collect())
}

impl Node {
    /// Reads the parts that were kept. One that says what this version does not take is left out, and kept.
    ///
    /// # Errors
    /// The file is damaged.
    pub(in crate::service) fn kept_parts(&self, kept: &Kept) -> Result<Vec<KeptPart>, StoreError> {
        let mut found = Vec::new();
        for (name, record) in kept.parts::<Record>()? {
            let text = record.text.clone().unwrap_or_default();
            let file = file_of(&name, &text);
            match Config::parse_part(&text.text, &file, self.facts.host(), self.tls()) {
                Ok(Declaration { switches: wish, things }) => {
                    found.push(KeptPart { name, wish, things, record });
                }
                Err(problems) => {
                    tracing::error!("part {name}: not in force, and kept:\n{problems}");
                    self.parts.lock().insert(name, record);
                }
            }
        }
        Ok(found)
    }

    /// Takes the parts up that are in force now. Of a change that was under way when the node before ended, what was to come or was still to go
    /// is taken off.
    ///
    /// # Errors
    /// The file is damaged.
    pub(in crate::service) async fn settle_parts(
        &self,
        parts: &[&KeptPart],
        kept: &Kept,
    ) -> Result<(), StoreError> {
        for part in parts {
            let KeptPart { name, record, wish, .. } = part;
            let Some(other) = &record.other else {
                self.parts.lock().insert(name.clone(), record.clone());
                continue;
            };
            tracing::warn!(
                "part {name}: a change was under way: generation {} is in force",
                record.generation
            );
            let file = file_of(name, other);
            // It was read when the change began.
            let other = Config::parse_part(&other.text, &file, self.facts.host(), self.tls());
            self.take_off_other(wish, other.unwrap_or_default().switches, kept).await?;
            let record = Record { other: None, ..record.clone() };
            self.keep_part(name, Some(&record).filter(|record| record.text.is_some()));
        }
        Ok(())
    }

    async fn take_off_other(
        &self,
        wish: &[SwitchConfig],
        other: Vec<SwitchConfig>,
        kept: &Kept,
    ) -> Result<(), StoreError> {
        for mut switch in other {
            let name = switch.spec.name.clone();
            let numbers = kept.numbers(&name)?;
            // By them its rules are found: the ports themselves are not there.
            give_numbers(&mut switch, &numbers);
            let wished = wish.iter().find(|wished| wished.spec.name == name);
            if let (Some(member), Some(wished)) = (self.directory.by_name(&name), wished)
                && let Ok(moves) = self.moves(Some(&member), wished, Some(&switch))
            {
                for mods in [&moves.put, &moves.take] {
                    if let Err(refusal) = mods.apply(&member).await {
                        tracing::error!("{refusal}");
                    }
                }
            }
            for port in &switch.ports {
                self.discard(&name, &port.value, &numbers).await;
            }
            if self.directory.by_name(&name).is_none() {
                self.store.forget_switch(&name);
            }
        }
        Ok(())
    }

    /// Forgets a port that nobody wants, with the TAP that may be there.
    async fn discard(&self, switch: &SwitchName, port: &PortSpec, numbers: &[(PortName, u32)]) {
        let member = self.directory.by_name(switch);
        let wanted = member.and_then(|member| member.port(&port.name));
        if wanted.is_none() {
            let number = numbers.iter().find(|(name, _)| *name == port.name);
            number.iter().for_each(|(name, number)| self.store.forget_port(switch, name, *number));
        }
        if matches!(port.kind, Kind::Tap(_)) && !self.taken().has_interface(port) {
            // One that was never made, or whose namespace is gone, is as good as removed.
            let _ = self.ports.discard(port.clone()).await;
        }
    }
}

fn give_numbers(switch: &mut SwitchConfig, numbers: &[(PortName, u32)]) {
    for port in &mut switch.ports {
        let known = numbers.iter().find(|(name, _)| *name == port.value.name);
        let known = known.and_then(|&(_, number)| PortNumber::new(number));
        port.value.number = port.value.number.or(known);
    }
}
