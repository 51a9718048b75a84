//! The domain's simulator: random slices of several tenants come, change and go, and after each step everything still holds.

mod common;

use common::walk::{Net, Spot};
use common::{all, slice, world};
use domain::{
    Admitted, Change, Decision, Name, Names, Part, Slice, SliceKey, Uid, World, admit, compile,
    diff,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

const SITES: [&str; 3] = ["tokyo", "osaka", "sendai"];

/// What somebody does to one of the slices.
#[derive(Clone, Debug)]
enum Edit {
    Apply {
        which: usize,
        shape: Shape,
    },
    Delete {
        which: usize,
    },
    /// A node goes away, or comes back.
    Node {
        which: usize,
        alive: bool,
    },
    /// Time passes, and nodes confirm what they have.
    Wait,
}

/// A slice in a few numbers.
#[derive(Clone, Debug)]
struct Shape {
    switches: Vec<usize>,
    /// Site, switch, and whether it has the control network.
    guests: Vec<(usize, usize, bool)>,
    /// Switches and rate.
    links: Vec<(usize, usize, u64)>,
    mib: u64,
}

fn shapes() -> impl Strategy<Value = Shape> {
    let guests = prop::collection::vec((0..3_usize, 0..9_usize, any::<bool>()), 0..5);
    let links = prop::collection::vec((0..9_usize, 0..9_usize, 0..400_u64), 0..6);
    (prop::collection::vec(0..3_usize, 1..5), guests, links, 1..3_000_u64)
        .prop_map(|(switches, guests, links, mib)| Shape { switches, guests, links, mib })
}

fn edits() -> impl Strategy<Value = Edit> {
    prop_oneof![
        6 => (0..4_usize, shapes()).prop_map(|(which, shape)| Edit::Apply { which, shape }),
        2 => (0..4_usize).prop_map(|which| Edit::Delete { which }),
        1 => (0..5_usize, any::<bool>()).prop_map(|(which, alive)| Edit::Node { which, alive }),
        2 => Just(Edit::Wait),
    ]
}

/// Two tenants with equal names, addresses and datapath ids.
fn key(which: usize) -> SliceKey {
    format!("{}/{}", ["red", "blue"][which % 2], ["demo", "lab"][which / 2])
        .parse()
        .expect("it is built to fit")
}

impl Shape {
    fn slice(&self, key: &SliceKey) -> Slice {
        let mut text =
            format!("suiro: slice/1\nname: {}\ntenant: {}\nswitches:\n", key.slice, key.tenant);
        let controlled = self.guests.iter().any(|guest| guest.2);
        let first = self.guests.iter().position(|guest| guest.2).unwrap_or(0);
        for (n, site) in self.switches.iter().enumerate() {
            let calls = if controlled && n % 2 == 0 {
                format!(", controllers: [\"tcp:h{first}\"]")
            } else {
                String::new()
            };
            writeln!(text, "  s{n}: {{site: {}, dpid: \"{}\"{calls}}}", SITES[*site], n + 1)
                .expect("it is built to fit");
        }
        text += "guests:\n";
        for (n, (site, switch, control)) in self.guests.iter().enumerate() {
            let switch = switch % self.switches.len();
            let memory = self.mib;
            writeln!(text, "  h{n}: {{kind: process, site: {}, control: {control}, memory: {memory}M, ports: {{eth0: {{to: \"s{switch}:g{n}\", addresses: [10.0.0.{}/24]}}}}}}", SITES[*site], n + 1).expect("it is built to fit");
        }
        text += "links:\n";
        for (n, (a, b, rate)) in self.links.iter().enumerate() {
            let (a, b) = (a % self.switches.len(), b % self.switches.len());
            let rate = if *rate < 100 { String::new() } else { format!(", rate: {rate}M") };
            writeln!(
                text,
                "  l{n}: {{between: [\"s{a}:{}\", \"s{b}:{}\"]{rate}}}",
                2 * n + 1,
                2 * n + 2
            )
            .expect("it is built to fit");
        }
        slice(&text)
    }
}

/// The domain, what nodes have, and the time.
struct Sim {
    world: World,
    parts: BTreeMap<(SliceKey, Name), Part>,
    now_s: u64,
    lives: u128,
}

impl Sim {
    fn new() -> Self {
        Self { world: world(), parts: BTreeMap::new(), now_s: 0, lives: 0 }
    }

    fn edit(&mut self, edit: &Edit) {
        match edit {
            Edit::Apply { which, shape } => self.apply(&key(*which), shape),
            Edit::Delete { which } => self.delete(&key(*which)),
            Edit::Node { which, alive } => {
                let nodes: Vec<Name> = self.world.domain().nodes.keys().cloned().collect();
                let mut facts = common::facts("4", "2G");
                facts.alive = *alive;
                self.world.set_facts(nodes[which % nodes.len()].clone(), facts);
            }
            Edit::Wait => {
                let nodes: Vec<Name> = self.world.domain().nodes.keys().cloned().collect();
                let alive =
                    nodes.iter().filter(|node| self.world.facts(node).is_some_and(|it| it.alive));
                let held: Vec<(Name, Vec<u32>)> = alive
                    .map(|node| (node.clone(), self.world.quarantine().waits_for(node).collect()))
                    .collect();
                for (node, ids) in held {
                    ids.into_iter()
                        .for_each(|id| self.world.quarantine_mut().confirm(id, &node, self.now_s));
                }
                self.now_s += 70;
                let now_s = self.now_s;
                self.world.quarantine_mut().release(now_s);
            }
        }
    }

    fn apply(&mut self, key: &SliceKey, shape: &Shape) {
        let slice = shape.slice(key);
        self.lives += 1;
        let before = self.world.slice(key).cloned();
        let Ok(decision) = admit(&self.world, &slice, Uid(self.lives << 64 | 7)) else {
            // What is refused changes nothing.
            return assert_eq!(self.world.slice(key).cloned(), before);
        };
        let admitted = Admitted { spec: slice.spec.clone(), decision };
        let again = admit(&self.world, &slice, Uid(self.lives << 64 | 7))
            .unwrap_or_else(|faults| panic!("{}", all(&faults)));
        assert_eq!(again, admitted.decision, "the same world and slice have the same decision");
        self.hold_back(before.as_ref(), Some(&admitted));
        let plan = diff(before.as_ref(), Some(&admitted));
        if let Some(before) = &before {
            check_plan(before, &admitted, &plan.changes);
        }
        self.world.insert(admitted.clone());
        self.parts.retain(|(of, _), _| of != key);
        let parts = compile(&admitted.spec, &admitted.decision);
        self.parts.extend(parts.into_iter().map(|(node, part)| ((key.clone(), node), part)));
    }

    fn delete(&mut self, key: &SliceKey) {
        let old = self.world.remove(key);
        self.hold_back(old.as_ref(), None);
        self.parts.retain(|(of, _), _| of != key);
    }

    /// Ids that are used no more are out of use until their nodes have confirmed.
    fn hold_back(&mut self, old: Option<&Admitted>, new: Option<&Admitted>) {
        let ids = |it: Option<&Admitted>| it.map(|it| it.decision.ids()).unwrap_or_default();
        let kept = ids(new);
        for id in kept.keys() {
            assert!(!self.world.quarantine().holds(*id), "id {id} is out of use");
        }
        let gone = ids(old).into_iter().filter(|(id, _)| !kept.contains_key(id));
        for (id, nodes) in gone {
            self.world.quarantine_mut().hold(id, nodes, self.now_s);
        }
    }

    fn check(&self) {
        self.check_sums();
        self.check_ids();
        self.check_links();
    }

    /// Nobody is promised more than there is, and the ledger is the sum of what has been decided.
    fn check_sums(&self) {
        let domain = self.world.domain();
        let mut memory: BTreeMap<&Name, u64> = BTreeMap::new();
        let mut rates: BTreeMap<&Name, u64> = BTreeMap::new();
        for (_, Admitted { spec, decision }) in self.world.slices() {
            for (name, guest) in &spec.guests {
                *memory.entry(&decision.nodes[name]).or_default() += spec.memory(guest).0;
            }
            for circuit in decision.circuits.values() {
                for segment in circuit.hops.iter().filter_map(|hop| hop.segment.as_ref()) {
                    *rates.entry(segment).or_default() += circuit.rate;
                }
            }
        }
        for (node, sum) in memory {
            assert_eq!(self.world.ledger().nodes[node].memory, sum);
            assert!(sum <= 8 << 30, "{node} has 8 GiB at most");
        }
        for (segment, sum) in rates {
            assert_eq!(self.world.ledger().segments[segment], sum);
            assert!(sum * 100 <= domain.segments[segment].capacity.bits().get() * 95, "{segment}");
        }
    }

    /// An id belongs to one circuit, and is not out of use at once.
    fn check_ids(&self) {
        let mut seen = BTreeSet::new();
        for (_, admitted) in self.world.slices() {
            for id in admitted.decision.ids().keys() {
                assert!(
                    id.is_multiple_of(2) && seen.insert(*id) && !self.world.quarantine().holds(*id),
                    "{id}"
                );
            }
        }
    }

    /// Each wire reaches exactly its two ends, and nobody else's frames come there.
    fn check_links(&self) {
        let mut net = Net::default();
        for (node, part) in domain::compile::underlay(&self.world) {
            net.add(&node, &part);
        }
        self.parts.iter().for_each(|((_, node), part)| net.add(node, part));
        let mut entrances: BTreeSet<(Name, String)> = net.entrances().into_iter().collect();
        for (key, Admitted { spec, decision }) in self.world.slices() {
            let names = Names::new(key, decision.uid);
            for (wire, circuit) in &decision.circuits {
                let nodes = [&circuit.from, circuit.to()];
                let ports = [0, 1].map(|end| names.k_port(wire, end).to_string());
                let spots: Vec<Spot> =
                    [1, 0].map(|other| net.user_frame(nodes[1 - other], &ports[1 - other])).into();
                // There and back: what one end sends comes out where the other end enters.
                for (n, spot) in [1, 0].into_iter().zip(&spots) {
                    assert_eq!(spot.0, *nodes[n], "{key} {wire}");
                    assert!(belongs(spot, &names, &ports[n], spec), "{key} {wire}: {spot:?}");
                    assert!(
                        entrances.remove(&(nodes[n].clone(), ports[n].clone())),
                        "{key} {wire}: its own entrance"
                    );
                }
                if !circuit.hops.is_empty() {
                    for (near, far) in [(0, 1), (1, 0)] {
                        let (spot, frame) = net.probe(nodes[near], circuit.id);
                        assert_eq!(spot, (nodes[far].clone(), "K".into(), "probe".into()));
                        assert_eq!(frame.tun_id, Some(circuit.id | 1));
                    }
                }
            }
        }
        assert!(entrances.is_empty(), "entrances of nobody: {entrances:?}");
    }
}

/// Whether a port is one of that slice: its own at `K`, or one of its switches.
fn belongs(
    spot: &Spot,
    names: &Names,
    k_port: &str,
    spec: &domain::file::slice::SliceSpec,
) -> bool {
    let own = spec.switches.keys().map(|name| names.switch(name)).chain([names.switch("_ctl")]);
    (spot.1 == "K" && spot.2 == k_port) || own.into_iter().any(|name| name.to_string() == spot.1)
}

/// What the plan does not name is untouched: the difference, applied to the old parts, gives the new ones.
fn check_plan(old: &Admitted, new: &Admitted, changes: &[Change]) {
    let named: BTreeSet<&str> = changes.iter().map(|change| change.thing.as_str()).collect();
    let versions = [old, new].map(|it| (it, compile(&it.spec, &it.decision)));
    let of_switch = |(it, parts): &(&Admitted, BTreeMap<Name, Part>), name: &Name| {
        let node = it.decision.nodes.get(name)?;
        let own = Names::new(&it.spec.key(), it.decision.uid).switch(name);
        let mut switch = parts[node].switch.iter().find(|switch| switch.name == own)?.clone();
        switch.port.clear();
        Some((node.clone(), switch))
    };
    for name in
        old.spec.switches.keys().filter(|name| !named.contains(format!("switch {name}").as_str()))
    {
        assert_eq!(of_switch(&versions[0], name), of_switch(&versions[1], name), "switch {name}");
    }
    let of_guest = |(it, parts): &(&Admitted, BTreeMap<Name, Part>), name: &Name| {
        let node = it.decision.nodes.get(name)?;
        let mut guest = parts[node].guest.iter().find(|guest| guest.name == **name)?.clone();
        guest.hosts.clear();
        Some((node.clone(), guest))
    };
    for name in
        old.spec.guests.keys().filter(|name| !named.contains(format!("guest {name}").as_str()))
    {
        assert_eq!(of_guest(&versions[0], name), of_guest(&versions[1], name), "guest {name}");
    }
    let of_link = |(it, parts): &(&Admitted, BTreeMap<Name, Part>), name: &str| {
        let circuit = it.decision.circuits.get(name)?;
        let own = |rule: &&String| {
            [circuit.id, circuit.id | 1].iter().any(|id| {
                rule.contains(&format!("tun_id={id},"))
                    || rule.contains(&format!("set_field:{id}->"))
                    || rule.contains(&format!("meter:{id},"))
            })
        };
        let rules = parts.iter().flat_map(|(node, part)| {
            part.switch
                .iter()
                .flat_map(|switch| switch.flows.iter().filter(own))
                .map(move |rule| (node.clone(), rule.clone()))
        });
        Some(rules.collect::<Vec<_>>())
    };
    for name in
        old.spec.links.keys().filter(|name| !named.contains(format!("link {name}").as_str()))
    {
        assert_eq!(of_link(&versions[0], name), of_link(&versions[1], name), "link {name}");
    }
    if changes.is_empty() {
        assert_eq!(versions[0].1, versions[1].1, "a plan without a line changes nothing");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_edits_leave_every_link_with_its_own_two_ends(edits in prop::collection::vec(edits(), 1..14)) {
        let mut sim = Sim::new();
        for edit in &edits {
            sim.edit(edit);
            sim.check();
        }
    }
}

#[test]
fn a_way_stays_as_long_as_it_holds() {
    let mut world = world();
    let shape = Shape {
        switches: vec![0, 1, 2],
        guests: vec![],
        links: vec![(0, 1, 100), (1, 2, 100)],
        mib: 1,
    };
    let first = admit(&world, &shape.slice(&key(0)), Uid(9)).expect("it is built to fit");
    world.insert(Admitted { spec: shape.slice(&key(0)).spec, decision: first.clone() });
    let more = Shape { links: vec![(0, 1, 200), (1, 2, 100), (0, 2, 300)], ..shape };
    let second: Decision =
        admit(&world, &more.slice(&key(0)), Uid(10)).expect("it is built to fit");
    assert_eq!((second.uid, &second.nodes), (first.uid, &first.nodes));
    for link in ["l0", "l1"] {
        let of = |decision: &Decision| {
            (decision.circuits[link].id, decision.circuits[link].hops.clone())
        };
        assert_eq!(of(&first), of(&second), "{link}");
    }
    assert_eq!(second.circuits["l0"].rate, 200_000_000);
}
