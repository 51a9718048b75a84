//! What is told of slices and nodes: computed from what is wanted and what nodes have said, never kept beside them.

use crate::state::{Kept, State};
use api::{DomainNodeView, Fault, GuestPlace, PROVE, SitesView, SliceState, SliceView};
use domain::{Door, Name, Names, SliceKey, UNDERLAY};
use std::collections::BTreeMap;

impl State {
    /// A slice.
    pub fn slice(&self, key: &SliceKey) -> Option<SliceView> {
        self.slices.get(key).map(|kept| self.show(key, kept))
    }

    /// All slices.
    pub fn all_slices(&self) -> Vec<SliceView> {
        self.slices.iter().map(|(key, kept)| self.show(key, kept)).collect()
    }

    /// Notes which slices have been ready.
    pub fn note_ready(&mut self) {
        let ready = |(key, kept): (&SliceKey, &Kept)| {
            (!kept.was_ready && self.state_of(kept).0 == SliceState::Ready).then(|| key.clone())
        };
        let ready: Vec<_> = self.slices.iter().filter_map(ready).collect();
        ready
            .iter()
            .filter_map(|key| self.slices.get_mut(key).map(|kept| kept.was_ready = true))
            .for_each(drop);
    }

    /// Sites, and what of them is free.
    pub fn sites(&self) -> SitesView {
        domain::sites(&self.world, |node| self.said(node).is_some())
    }

    /// All nodes of the domain.
    pub fn all_nodes(&self) -> Vec<DomainNodeView> {
        let one = |(name, node): (&Name, &domain::file::domain::Node)| {
            let (said, wanted) = (self.said(name), self.wanted(name));
            let has = |part| {
                said.and_then(|report| report.parts.get(part)).and_then(|part| part.version.clone())
            };
            let kept = wanted.iter().filter(|(part, version)| has(*part) == **version).count();
            DomainNodeView {
                name: name.to_string(),
                site: node.site.to_string(),
                alive: said.is_some(),
                parts: (kept, wanted.len()),
            }
        };
        self.world.domain().nodes.iter().map(one).collect()
    }

    fn show(&self, key: &SliceKey, kept: &Kept) -> SliceView {
        let record = &kept.record;
        let (state, waits_for) = self.state_of(kept);
        let links = if kept.has_begun { self.links(kept).views } else { BTreeMap::new() };
        let names = Names::new(key, record.decision.uid);
        let guest = |name: &Name| {
            let node = &record.decision.nodes[name];
            let host = self.nodes.get(node).map(|(report, _)| report.host.clone());
            let place = GuestPlace {
                node: node.to_string(),
                netns: names.netns(name).to_string(),
                part: record.part(),
                host,
            };
            (name.to_string(), place)
        };
        SliceView {
            slice: key.to_string(),
            uid: record.decision.uid.to_string(),
            generation: record.generation,
            revision: kept.revision,
            state,
            from: record.spec.from.as_ref().map(ToString::to_string),
            until: record.spec.until.as_ref().map(ToString::to_string),
            nodes: record
                .decision
                .nodes
                .iter()
                .map(|(thing, node)| (thing.to_string(), node.to_string()))
                .collect(),
            guests: record.spec.guests.keys().map(guest).collect(),
            externals: record
                .decision
                .doors
                .iter()
                .map(|(name, door)| (name.to_string(), door.name.to_string()))
                .collect(),
            links,
            waits_for,
        }
    }

    /// How a slice is, and what it waits for.
    pub fn state_of(&self, kept: &Kept) -> (SliceState, Vec<Fault>) {
        if !kept.has_begun && !kept.record.going {
            return (SliceState::Scheduled, Vec::new());
        }
        let part = kept.record.part();
        let (mut faults, mut waits_for) = (Vec::new(), Vec::new());
        for node in &kept.record.had {
            let Some(report) = self.said(node) else {
                faults.push(Fault::new(
                    format!("node {node}"),
                    "hear from it",
                    "it has not called for some seconds",
                    "see that it runs and reaches the controller; its log says more",
                ));
                continue;
            };
            let said = report.parts.get(&part).cloned().unwrap_or_default();
            let wanted = kept.parts.get(node).map(|part| &part.version);
            if said.version.as_ref() != wanted {
                let wait = || {
                    vec![Fault::new(
                        format!("node {node}"),
                        "take its part",
                        "it has not yet",
                        "wait a moment",
                    )]
                };
                faults.extend(if said.faults.is_empty() { wait() } else { said.faults });
            }
            // Of links both ends tell more together than each port by itself.
            waits_for.extend(said.waits_for.into_iter().filter(|fault| fault.step != PROVE));
        }
        waits_for.extend(self.links(kept).faults);
        waits_for.extend(self.doors(kept));
        let state = match (faults.is_empty(), waits_for.is_empty()) {
            _ if kept.record.going => SliceState::Deleting,
            (true, true) => SliceState::Ready,
            _ if kept.was_ready => SliceState::Degraded,
            (false, _) => SliceState::Building,
            (true, false) => SliceState::Proving,
        };
        faults.extend(waits_for);
        (state, faults)
    }

    /// What is wrong with interfaces that lead outside. They are the underlay's, not the slice's.
    fn doors(&self, kept: &Kept) -> Vec<Fault> {
        let decision = &kept.record.decision;
        let wrong = |(name, door): (&Name, &Door)| {
            let port = format!("port {} of switch ", domain::door_port(&door.interface));
            let underlay = self.said(&decision.nodes[name])?.parts.get(UNDERLAY)?;
            let mut faults = underlay.waits_for.iter().chain(&underlay.faults);
            let fault = faults.find(|fault| fault.thing.starts_with(&port))?;
            let thing = format!("external {name}");
            Some(Fault::new(
                thing,
                &*fault.step,
                &*fault.cause,
                "ask the operator: the interface is theirs",
            ))
        };
        decision.doors.iter().filter_map(wrong).collect()
    }
}
