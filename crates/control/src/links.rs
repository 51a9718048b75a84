//! A slice's links as probes find them: what the nodes of both ends say, put together.
//!
//! The node at which a way arrives judges it; the other one repeats that, and is asked where the first is silent.

use crate::state::{Kept, State};
use api::{CircuitState, CircuitView, Fault, LinkView, LinkWay, PROVE, StrayView, WayView};
use domain::{Circuit, Name, OUTSIDE, wires};
use std::collections::BTreeMap;

/// What is proved of a slice.
pub struct Links {
    /// All links.
    pub views: BTreeMap<String, LinkView>,
    /// What is wrong with those that are not up, or what they wait for.
    pub faults: Vec<Fault>,
}

impl State {
    /// A slice's links.
    pub fn links(&self, kept: &Kept) -> Links {
        let (spec, decision) = (&kept.record.spec, &kept.record.decision);
        let within = wires(spec).into_iter().filter_map(|wire| {
            let [a, b] = wire.nodes(&decision.nodes);
            let is_link = spec.links.keys().any(|link| **link == *wire.name);
            let view = LinkView {
                nodes: vec![a.to_string()],
                state: None,
                round_trip_us: None,
                ways: Vec::new(),
            };
            (is_link && a == b).then_some((wire.name, view))
        });
        let circuits = decision.circuits.iter().filter(|(_, circuit)| !circuit.hops.is_empty());
        let proved = circuits.map(|(name, circuit)| (name.clone(), self.link(kept, name, circuit)));
        let views: BTreeMap<_, _> = within.chain(proved).collect();
        let faults = views.iter().flat_map(|(name, view)| faults(name, view)).collect();
        Links { views, faults }
    }

    fn link(&self, kept: &Kept, name: &str, circuit: &Circuit) -> LinkView {
        let part = kept.record.part().to_string();
        let end = |node: &Name| {
            let is_it = |view: &&CircuitView| {
                view.part == part && view.spec.link == name && view.spec.id == circuit.id
            };
            self.said(node).and_then(|report| report.circuits.iter().find(is_it))
        };
        let nodes = [&circuit.from, circuit.to()];
        let ends = nodes.map(end);
        let way = |from: usize, to: usize| {
            let said = ends[to].map(|end| &end.back).or(ends[from].map(|end| &end.there));
            let WayView { probes, lost, mut why } = said.cloned().unwrap_or_default();
            if let Some(why) = &mut why {
                let mut by: Vec<&Name> = circuit.nodes().collect();
                if from == 1 {
                    by.reverse();
                }
                let lost = self.where_lost(&part, name, &by, why);
                *why += &lost;
            }
            LinkWay { from: nodes[from].to_string(), to: nodes[to].to_string(), probes, lost, why }
        };
        let worst = |a: CircuitState, b: CircuitState| if rank(a) <= rank(b) { a } else { b };
        let state = match ends.map(|end| end.map(|end| end.state)) {
            [Some(a), Some(b)] => worst(a, b),
            [Some(one), None] | [None, Some(one)] => worst(one, CircuitState::Proving),
            [None, None] => CircuitState::Proving,
        };
        let mut ways = vec![way(0, 1), way(1, 0)];
        name_crossing(&mut ways);
        LinkView {
            nodes: circuit.nodes().map(ToString::to_string).collect(),
            state: Some(state),
            round_trip_us: ends.into_iter().flatten().filter_map(|end| end.round_trip_us).min(),
            ways,
        }
    }

    /// At which hop of a way probes are lost, and where else they come out: by which nodes see them that are no end of the link.
    fn where_lost(&self, part: &str, link: &str, way: &[&Name], why: &str) -> String {
        let long = why.starts_with("frames of ");
        if !long && why != "no probe arrives" {
            return String::new();
        }
        let is_it = |stray: &StrayView| {
            (&*stray.part, &*stray.link, &*stray.from, stray.long) == (part, link, way[0], long)
        };
        let sees =
            |node: &Name| self.said(node).is_some_and(|report| report.strays.iter().any(is_it));
        let mut text = String::new();
        if way.len() > 2 {
            let far = (1..way.len() - 1).rev().find(|&at| sees(way[at])).unwrap_or(0);
            text += &format!("; lost at hop {} → {}", way[far], way[far + 1]);
        }
        let astray = self.nodes.keys().filter(|node| !way.contains(node) && sees(node));
        let astray: Vec<_> = astray.map(ToString::to_string).collect();
        if !astray.is_empty() {
            text += &format!("; they come out at {}", astray.join(", "));
        }
        text
    }
}

/// Ids that are exchanged in both ways, with the same link, are ends that are crossed.
fn name_crossing(ways: &mut [LinkWay]) {
    const EXCHANGED: &str = ": ids are exchanged";
    let with = |way: &LinkWay| Some(way.why.as_ref()?.strip_suffix(EXCHANGED)?.to_owned());
    let others: Vec<_> = ways.iter().map(with).collect();
    if let [Some(one), Some(other)] = &others[..]
        && one == other
    {
        let why = format!("{one}: ends are crossed");
        ways.iter_mut().for_each(|way| way.why = Some(why.clone()));
    }
}

fn rank(state: CircuitState) -> u8 {
    match state {
        CircuitState::Down => 0,
        CircuitState::Proving => 1,
        CircuitState::Lossy => 2,
        CircuitState::Up => 3,
    }
}

/// Each way that is not good; of a link of which none is known to be bad, that it is being proved.
fn faults(name: &str, view: &LinkView) -> Vec<Fault> {
    if view.state.is_none_or(|state| state == CircuitState::Up) {
        return Vec::new();
    }
    let named = match name.strip_prefix(OUTSIDE) {
        Some(external) => format!("external {external}"),
        None => format!("link {name}"),
    };
    let by = match &view.nodes[..] {
        [_, middle @ .., _] if !middle.is_empty() => format!(" by {}", middle.join(", ")),
        _ => String::new(),
    };
    let bad = |way: &LinkWay| {
        let thing = format!("{named}, {} → {}{by}", way.from, way.to);
        let remedy = format!(
            "compare K's rules at {} and {}, and the way between them: suiro flow list K; suiro port show K",
            way.from, way.to
        );
        Some(Fault::new(thing, PROVE, way.why.as_ref()?, remedy))
    };
    let found: Vec<_> = view.ways.iter().filter_map(bad).collect();
    if !found.is_empty() {
        return found;
    }
    let probes: u32 = view.ways.iter().map(|way| way.probes).sum();
    let thing = format!("{named} between {} and {}", view.ways[0].from, view.ways[0].to);
    vec![Fault::new(thing, PROVE, format!("{probes} probes have come so far"), "wait a moment")]
}
