//! Ports whose links are held down, whatever their interfaces say: ends of circuits that are not proved.

use super::keeper::{Entry, Keeper};
use super::vlink::vlink_facts;
use api::Fault;
use datapath::PortAt;
use port::{PortControl, PortFacts};
use std::collections::HashMap;

/// Why each is held, by label. One may be held before it is there.
#[derive(Default)]
pub(super) struct Held(HashMap<String, Fault>);

impl Held {
    /// Takes the link from a port's facts if it is held; returns why.
    pub(super) fn apply(&self, label: &str, facts: &mut PortFacts) -> Option<Fault> {
        let fault = self.0.get(label)?;
        (facts.carrier, facts.up) = (false, false);
        Some(fault.clone())
    }
}

impl Keeper {
    /// Takes ports' links away, or gives them back.
    pub(super) fn hold(&mut self, ports: HashMap<String, Option<Fault>>) {
        let labels: Vec<String> = ports.keys().cloned().collect();
        for (label, why) in ports {
            match why {
                Some(why) => drop(self.held.0.insert(label, why)),
                None => drop(self.held.0.remove(&label)),
            }
        }
        let is_it = |entry: &Entry| entry.open.is_some() && labels.contains(&entry.wanted.label);
        let found: Vec<PortAt> =
            self.entries.iter().filter(|(_, entry)| is_it(entry)).map(|(&at, _)| at).collect();
        for at in found {
            let entry = &self.entries[&at];
            let facts = match entry.control() {
                Some(control) => PortControl::facts(control).ok(),
                None => Some(vlink_facts(entry, true)),
            };
            facts.into_iter().for_each(|facts| self.show_facts(at, facts));
        }
    }
}
