//! Parts as they are shown.

use super::super::Node;
use super::super::directory::Member;
use super::super::owner::{FILE, Owner};
use super::super::ports::label;
use super::{Record, no_part};
use crate::agent::Phase;
use crate::refusal::Refusal;
use api::{Fault, PartName, PartView};

impl Node {
    /// All parts, the configuration file first.
    pub fn parts(&self) -> Vec<PartView> {
        let parts = self.parts.lock().clone();
        let file = FILE.parse().ok().map(|name| self.view_part(&name, &Owner::File, None));
        let others = parts
            .iter()
            .map(|(name, record)| self.view_part(name, &Owner::Part(name.clone()), Some(record)));
        file.into_iter().chain(others).collect()
    }

    /// One part.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn part(&self, name: &PartName) -> Result<PartView, Refusal> {
        if **name == *FILE {
            return Ok(self.view_part(name, &Owner::File, None));
        }
        let record = self.parts.lock().get(name).cloned().ok_or_else(|| no_part(name))?;
        Ok(self.view_part(name, &Owner::Part(name.clone()), Some(&record)))
    }

    fn view_part(&self, name: &PartName, owner: &Owner, record: Option<&Record>) -> PartView {
        let members = self.directory.all();
        let owned: Vec<_> = members.iter().filter(|member| member.owner() == *owner).collect();
        let count = |member: &std::sync::Arc<Member>| {
            member.state().ports.values().filter(|port| port.owner == *owner).count()
        };
        PartView {
            name: name.clone(),
            generation: record.map_or(0, |record| record.generation),
            switches: owned.iter().map(|member| member.name()).collect(),
            ports: members.iter().map(count).sum(),
            waits_for: members.iter().flat_map(|member| self.waits_for(member, owner)).collect(),
            declared: record.and_then(|record| record.text.clone()),
        }
    }

    /// What does not work yet of what an owner has on a switch.
    fn waits_for(&self, member: &Member, owner: &Owner) -> Vec<Fault> {
        let name = member.name();
        let state = member.state().clone();
        let is_own = member.owner() == *owner;
        let mut found: Vec<_> = state.fault.into_iter().filter(|_| is_own).collect();
        let conditions = member.switch.conditions();
        for (port, entry) in state.ports.iter().filter(|(_, entry)| entry.owner == *owner) {
            let status = self.ports.status(member.at(entry.number)).unwrap_or_default();
            let condition = conditions.get(&entry.number).copied();
            if condition == Some("link down") || status.fault.is_some() {
                let remedy = format!("see what it waits for with: suiro port show {name} {port}");
                let down = || Fault::new(label(&name, port), "wait for it", "link down", remedy);
                found.push(status.fault.unwrap_or_else(down));
            }
        }
        let waiting = member
            .links()
            .into_iter()
            .filter(|link| is_own && !matches!(link.phase, Phase::Connected | Phase::Listening));
        found.extend(waiting.map(|link| {
            let thing = format!("controller {} of switch {name}", link.target);
            let remedy = format!("see what last went wrong with: suiro switch show {name}");
            match link.trouble {
                Some((_, trouble)) => Fault::new(thing, "connect", trouble.cause, trouble.remedy),
                None => Fault::new(thing, "connect", link.phase.word(), remedy),
            }
        }));
        found
    }
}
