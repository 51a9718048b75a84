//! What of the domain is not as it is declared: parts by their versions, links by their probes, and what nodes find in their own world.

use super::Controller;
use crate::state::State;
use api::{CircuitState, Deviation, Fault, PartName};
use domain::Name;
use std::collections::BTreeMap;

/// How a part is called that people know by another name.
type Named = BTreeMap<String, String>;

impl Controller {
    /// Asks all nodes to look at their world anew; returns the question's number.
    pub fn ask(&self) -> u64 {
        let mut state = self.state();
        state.asked += 1;
        let number = state.asked;
        drop(state);
        self.moved();
        number
    }

    /// Whether all nodes that can be heard have answered this question, or a later one.
    pub fn is_answered(&self, number: u64) -> bool {
        let state = self.state();
        let told = |node| state.audits.get(node).is_some_and(|audit| audit.number >= number);
        state.world.domain().nodes.keys().all(|node| state.said(node).is_none() || told(node))
    }

    /// What is not as it is declared, as far as this question has been answered; without one, as far as reports say.
    pub fn deviations(&self, number: Option<u64>) -> Vec<Deviation> {
        let state = self.state();
        let slices = state.slices.iter();
        let named: Named = slices
            .map(|(key, kept)| (format!("part {}", kept.record.part()), format!("slice {key}")))
            .collect();
        let mut found = Vec::new();
        for node in state.world.domain().nodes.keys() {
            let faults = state.deviations(node, number).into_iter();
            found.extend(
                faults.map(|fault| Deviation {
                    node: node.to_string(),
                    fault: renamed(fault, &named),
                }),
            );
        }
        found
    }
}

impl State {
    fn deviations(&self, node: &Name, number: Option<u64>) -> Vec<Fault> {
        let Some(report) = self.said(node) else {
            let remedy = "see that it runs and reaches the controller; a host that is gone for good: suiro domain node forget";
            return vec![Deviation::of("node", "it is away: what it has is not known", remedy)];
        };
        let wanted = self.wanted(node);
        let of_part = |part: &PartName, cause: String| {
            let remedy = "the node puts it right as soon as it can: see suiro slice show, and suiro part list there";
            Deviation::of(format!("part {part}"), cause, remedy)
        };
        let mut found = Vec::new();
        for (part, version) in &wanted {
            let has = report.parts.get(part);
            let in_force = has.and_then(|has| has.version.as_ref());
            match (version, in_force) {
                (shall, is) if shall.as_ref() == is => {}
                (None, _) => found.push(of_part(part, "it is there and shall go".into())),
                (Some(_), None) => found.push(of_part(part, "it is not there".into())),
                (Some(_), Some(_)) => {
                    found.push(of_part(part, "another version is in force".into()))
                }
            }
            found.extend(has.into_iter().flat_map(|has| has.faults.clone()));
        }
        let strange = report.parts.keys().filter(|part| !wanted.contains_key(*part));
        found.extend(strange.map(|part| {
            let remedy = format!("on the node: suiro part del {part}");
            Deviation::of(format!("part {part}"), "no slice of the domain declares it", remedy)
        }));
        let down = report.circuits.iter().filter(|it| it.state != CircuitState::Up);
        found.extend(down.map(|circuit| {
            let remedy =
                format!("see which way and why: suiro why, or suiro circuit list on {node}");
            let thing = format!("link {} of part {}", circuit.spec.link, circuit.part);
            let cause = format!("it is {}: {}", circuit.state.word(), circuit.why());
            Deviation::of(thing, cause, remedy)
        }));
        let Some(number) = number else { return found };
        match self.audits.get(node).filter(|audit| audit.number >= number) {
            Some(audit) => found.extend(audit.found.iter().cloned()),
            None => found.push(Deviation::of(
                "node",
                "it has not said in time what it has",
                "ask again; if it stays so, restart the node",
            )),
        }
        found
    }
}

/// Says a slice's name in place of its part's.
fn renamed(mut fault: Fault, named: &Named) -> Fault {
    for (part, slice) in named {
        fault.thing = fault.thing.replace(part, slice);
    }
    fault
}
