//! A packet's way over a slice: what its nodes foretell, in the slice's words, and where the next one is to be asked.
//!
//! A node answers about all that is on it. What is not the slice's own (the switch `K`, tunnels, ids) is taken out here: a tenant is told which
//! link a packet goes by, and nothing of what others have there.

use crate::record::Record;
use api::{Peer, SliceOnward, WhyAnswer, WhyDrop, WhyExit, WhyQuestion, WhyVerdict, WhyWatch};
use domain::file::slice::SliceSpec;
use domain::{Decision, End, EndPort, Name, Names, SliceKey, Wire, wires};
use std::collections::BTreeMap;

/// A slice as packets find it.
pub struct Ways {
    key: SliceKey,
    spec: SliceSpec,
    decision: Decision,
    wires: Vec<Wire>,
    /// Its switches by the names that nodes have for them.
    own: BTreeMap<String, Name>,
}

/// Where a packet goes on to.
pub struct Onward {
    /// As it is told.
    pub told: SliceOnward,
    /// The switch at which it comes in next, and what is to be asked there; none where it leaves the slice's switches.
    pub next: Option<(Name, WhyQuestion)>,
}

impl Ways {
    /// Of a slice.
    pub fn of(record: &Record) -> Self {
        let (key, spec, decision) =
            (record.spec.key(), record.spec.clone(), record.decision.clone());
        let own = {
            let names = Names::new(&key, decision.uid);
            spec.switches
                .keys()
                .map(|name| (names.switch(name).to_string(), name.clone()))
                .collect()
        };
        Self { wires: wires(&spec), key, spec, decision, own }
    }

    /// A text in which switches have the slice's names.
    pub fn own_words(&self, text: &str) -> String {
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
        let mut told = String::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
            let (word, more) = rest.split_at(end);
            match self.own.get(word) {
                Some(name) => told += name,
                None => told += word,
            }
            let next = more.find(is_of_name).unwrap_or(more.len());
            told += &more[..next];
            rest = &more[next..];
        }
        told
    }

    /// A node's answer in the slice's words, and where the packet goes on to, for each of its exits.
    pub fn told(
        &self,
        node: &Name,
        mut why: WhyAnswer,
        asked: &WhyQuestion,
    ) -> (WhyAnswer, Vec<Onward>) {
        let mut onward = Vec::new();
        let exits = std::mem::take(&mut why.exits);
        for exit in exits {
            let Some((from, wire, far)) = self.leaves(node, &exit) else { continue };
            why.exits.push(WhyExit {
                switch: from.of.to_string(),
                port: self.port(from),
                packet: inside(&exit.packet),
                ..exit.clone()
            });
            onward.push(self.onward((from, wire, far), &exit, asked));
        }
        // What follows on the link is told by it.
        for at in 0..why.steps.len() {
            let is_last = why.steps.get(at + 1).is_some_and(|next| !self.is_own(&next.switch));
            let step = &mut why.steps[at];
            if is_last && let Some(wire) = self.wire_at(&step.switch, &step.at) {
                step.what = format!("by {}", wire.thing);
            }
        }
        why.steps.retain(|step| self.is_own(&step.switch));
        for step in &mut why.steps {
            (step.switch, step.what) = (self.own_words(&step.switch), self.own_words(&step.what));
        }
        why.drops = why.drops.into_iter().map(|drop| self.lost(node, drop)).collect();
        why.watch = WhyWatch::default();
        (why, onward)
    }

    /// A port that another is joined with, if it is the slice's own.
    pub fn own_peer(&self, peer: &Peer) -> Option<Peer> {
        let own = self.own.get(&peer.switch().to_string())?;
        Some(Peer::new(own.parse().ok()?, peer.port().clone()))
    }

    fn is_own(&self, switch: &str) -> bool {
        self.own.contains_key(switch)
    }

    /// A loss between switches is the link's, and the operator's to mend.
    fn lost(&self, node: &Name, drop: WhyDrop) -> WhyDrop {
        let switch = drop.at.split(' ').next().unwrap_or_default();
        if self.is_own(switch) {
            return WhyDrop {
                at: self.own_words(&drop.at),
                cause: self.own_words(&drop.cause),
                remedy: self.own_words(&drop.remedy),
                ..drop
            };
        }
        WhyDrop {
            at: format!("between switches, on node {node}"),
            cause: "what carries the slice's links there does not take it".into(),
            remedy: format!(
                "see whether its links are up, then ask the operator: suiro slice show {}",
                self.key
            ),
            ..drop
        }
    }

    /// The wire at a switch's port, from a step such as `p2 tx`.
    fn wire_at(&self, switch: &str, step: &str) -> Option<&Wire> {
        let port = step.strip_suffix(" tx")?;
        let own = self.own.get(switch)?;
        self.wires
            .iter()
            .find(|wire| wire.ends.iter().any(|end| end.of == *own && self.port(end) == port))
    }

    /// By which of the slice's ports a packet leaves its switches at an exit of the node, over which wire, and which of its ends is the far one.
    fn leaves(&self, node: &Name, exit: &WhyExit) -> Option<(&End, &Wire, usize)> {
        let names = Names::new(&self.key, self.decision.uid);
        let found = |wire: &Wire| -> Option<usize> {
            if let Some(own) = self.own.get(&exit.switch) {
                let near = wire
                    .ends
                    .iter()
                    .position(|end| end.of == *own && self.port(end) == exit.port)?;
                return Some(1 - near);
            }
            let circuit = self.decision.circuits.get(&wire.name)?;
            if tunnel_id(&exit.packet) == Some(circuit.id) && !circuit.hops.is_empty() {
                return Some(if circuit.from == *node { 1 } else { 0 });
            }
            (0..2).find(|&n| {
                let door = self.decision.doors.get(&wire.ends[n].of);
                let door = door.map(|door| domain::door_port(&door.interface));
                door.unwrap_or_else(|| names.k_port(&wire.name, n)).to_string() == exit.port
            })
        };
        self.wires.iter().find_map(|wire| {
            let far = found(wire)?;
            Some((&wire.ends[1 - far], wire, far))
        })
    }

    /// The name of a switch's port on its node.
    fn port(&self, end: &End) -> String {
        match (&end.port, self.decision.ports.get(&end.to_string())) {
            (EndPort::Number(number), _) | (_, Some(number)) => format!("p{number}"),
            (EndPort::Named(name), None) => name.to_string(),
        }
    }

    fn onward(
        &self,
        (from, wire, far): (&End, &Wire, usize),
        exit: &WhyExit,
        asked: &WhyQuestion,
    ) -> Onward {
        let to = &wire.ends[far];
        let told = SliceOnward {
            from: from.to_string(),
            by: wire.thing.clone(),
            to: to.to_string(),
            node: self.decision.nodes[&to.of].to_string(),
        };
        let flow = format!("in_port={},{}", self.port(to), inside(&exit.packet));
        let question = WhyQuestion { flow, packet: None, len: Some(exit.bytes), gso: asked.gso };
        let next = self.spec.switches.contains_key(&to.of).then(|| (to.of.clone(), question));
        Onward { told, next }
    }
}

/// The tunnel id in a packet's match.
fn tunnel_id(packet: &str) -> Option<u32> {
    let id = packet.split(',').find_map(|word| word.strip_prefix("tun_id="))?;
    id.strip_prefix("0x").map_or_else(|| id.parse().ok(), |id| u32::from_str_radix(id, 16).ok())
}

/// A packet's match without what the tunnel around it has, and without the port that it came in by.
fn inside(packet: &str) -> String {
    let outside = |word: &&str| word.starts_with("tun_") || word.starts_with("in_port=");
    packet.split(',').filter(|word| !outside(word)).collect::<Vec<_>>().join(",")
}

/// What comes of a packet in the end, from what comes of it on each node: `reaches` tells whether it leaves a leg for somebody who receives it.
pub fn verdict(legs: &[(Option<WhyVerdict>, bool)], is_whole: bool) -> WhyVerdict {
    let any = |wanted| legs.iter().any(|(verdict, _)| *verdict == Some(wanted));
    if !is_whole || any(WhyVerdict::Storm) {
        return WhyVerdict::Storm;
    }
    match legs.iter().any(|(_, reaches)| *reaches) {
        true => WhyVerdict::Leaves,
        false if any(WhyVerdict::Controller) => WhyVerdict::Controller,
        false => WhyVerdict::Dropped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const FILE: &str = "suiro: slice/1\nname: demo\ntenant: red\nswitches: {s1: {site: tokyo}, s2: {site: osaka}, s10: {site: tokyo}}\nguests: {h1: {kind: process, site: tokyo, ports: {eth0: {to: 's1:1'}}}}\nlinks: {a: {between: ['s1:2', 's2:3'], rate: 10M}}\n";

    /// A slice of two nodes, t1 and o1, whose link has the id 256.
    fn ways() -> Ways {
        let spec = domain::Slice::parse("demo.yaml", FILE).unwrap().spec;
        let decision = json!({
            "uid": "9f31c2aa00000000000000000000c0de",
            "nodes": {"s1": "t1", "s2": "o1", "s10": "t1", "h1": "t1"},
            "circuits": {"a": {"id": 256, "rate": 10_000_000, "mtu": 1500, "from": "t1", "hops": [{"to": "o1", "underlay": "wan4"}]}},
        });
        let record = json!({
            "generation": 1, "declared": {"file": "demo.yaml", "text": FILE}, "spec": spec,
            "decision": decision, "had": ["t1", "o1"], "going": false,
        });
        Ways::of(&serde_json::from_value(record).unwrap())
    }

    fn answer(
        steps: &[(&str, &str, &str)],
        exits: &[(&str, &str, &str)],
        lost: &[&str],
    ) -> WhyAnswer {
        let step = |(switch, at, what): &(&str, &str, &str)| json!({"switch": switch, "hops": 0, "at": at, "what": what});
        let exit = |(switch, port, packet): &(&str, &str, &str)| json!({"switch": switch, "port": port, "queue": 0, "packet": packet, "bytes": 60});
        let drop = |at: &&str| json!({"at": at, "reason": "by_rule", "cause": if at.starts_with("K ") { "tun_id=0x102" } else { "a rule drops it" }, "remedy": "suiro flow list K"});
        let answer = json!({
            "packet": "icmp,in_port=p1", "bytes": 60, "verdict": "leaves",
            "place": {"cores": [1], "rung": "worker", "rung_why": ""},
            "steps": steps.iter().map(step).collect::<Vec<_>>(),
            "exits": exits.iter().map(exit).collect::<Vec<_>>(),
            "drops": lost.iter().map(drop).collect::<Vec<_>>(),
            "watch": {"entry": "red.demo.s1:p1 rx", "switches": ["red.demo.s1", "K"], "match": "icmp", "seen": ["K:wan4.o1 tx"]},
        });
        serde_json::from_value(answer).unwrap()
    }

    #[test]
    fn a_packet_goes_on_by_its_link_and_nothing_of_the_nodes_own_is_told() {
        let (ways, t1) = (ways(), "t1".parse().unwrap());
        let steps = [
            ("red.demo.s1", "p1 rx", "comes in"),
            ("red.demo.s1", "p2 tx", "over the link to K:c82882eedfd45"),
            ("K", "table 0", "finds a rule"),
            ("K", "wan4.o1 outside", "vxlan 256 to 192.0.2.11"),
        ];
        let exits = [
            ("K", "wan4.o1", "icmp,tun_id=0x100,tun_src=192.0.2.10,nw_src=10.0.0.1"),
            ("red.demo.s1", "p1", "icmp,nw_src=10.0.0.1"),
        ];
        let why = answer(&steps, &exits, &["K table 0", "red.demo.s1 table 0"]);
        let (told, onward) = ways.told(&t1, why, &WhyQuestion::default());
        let text = serde_json::to_string(&told).unwrap();
        for hidden in ["\"K\"", "tun_", "192.0.2", "red.demo", "0x102", "c82882"] {
            assert!(!text.contains(hidden), "{hidden}: {text}");
        }
        assert_eq!(told.steps.last().unwrap().what, "by link a");
        assert_eq!(told.drops[1].at, "s1 table 0");
        let on = |at: usize| {
            let SliceOnward { from, by, to, node } = &onward[at].told;
            format!("{from} by {by} to {to} at {node}")
        };
        assert_eq!(on(0), "s1:2 by link a to s2:3 at o1");
        assert_eq!(on(1), "s1:1 by port eth0 of guest h1 to h1:eth0 at t1");
        let (switch, question) = onward[0].next.clone().unwrap();
        assert_eq!((&*switch, &*question.flow), ("s2", "in_port=p3,icmp,nw_src=10.0.0.1"));
        assert_eq!(question.len, Some(60));
        assert!(onward[1].next.is_none());
    }

    #[test]
    fn the_far_end_of_a_link_is_the_other_one() {
        let o1 = "o1".parse().unwrap();
        let why = answer(&[], &[("K", "wan4.t1", "icmp,tun_id=256")], &[]);
        let (_, onward) = ways().told(&o1, why, &WhyQuestion::default());
        assert_eq!(onward[0].told.to, "s1:2");
    }

    #[test]
    fn what_leaves_by_no_wire_of_the_slice_is_not_told() {
        let t1 = "t1".parse().unwrap();
        let exits = [("K", "wan4.o1", "icmp,tun_id=0x200"), ("blue.demo.s1", "p1", "icmp")];
        let (told, onward) = ways().told(&t1, answer(&[], &exits, &[]), &WhyQuestion::default());
        assert!(told.exits.is_empty() && onward.is_empty());
    }

    #[test]
    fn a_peer_is_told_by_the_slices_name_and_the_nodes_own_switch_is_not() {
        let told = |peer: &str| ways().own_peer(&peer.parse().unwrap()).map(|it| it.to_string());
        assert_eq!(told("red.demo.s10:p2").as_deref(), Some("s10:p2"));
        assert_eq!(told("K:c82882eedfd45"), None);
    }

    #[test]
    fn names_are_the_slices_where_they_are_whole_words() {
        let ways = ways();
        assert_eq!(
            ways.own_words("over the link to red.demo.s10:p2, red.demo.s1"),
            "over the link to s10:p2, s1"
        );
        assert_eq!(ways.own_words("red.demo.s11 né"), "red.demo.s11 né");
        assert_eq!(ways.own_words(""), "");
    }

    #[test]
    fn one_copy_that_arrives_is_an_arrival_and_a_way_without_end_is_a_storm() {
        use WhyVerdict::{Controller, Dropped, Leaves, Storm};
        let leg = |verdict, reaches| (Some(verdict), reaches);
        assert_eq!(verdict(&[leg(Leaves, false), leg(Leaves, true)], true), Leaves);
        assert_eq!(verdict(&[leg(Leaves, false), leg(Dropped, false)], true), Dropped);
        assert_eq!(verdict(&[leg(Leaves, false), leg(Controller, false)], true), Controller);
        assert_eq!(verdict(&[leg(Leaves, true)], false), Storm);
        assert_eq!(verdict(&[leg(Leaves, true), leg(Storm, false)], true), Storm);
    }
}
