//! What to bring up at the start: what the configuration file declares, and what the store kept. Pure.

use super::numbers::Numbers;
use super::owner::Owner;
use super::parts::KeptPart;
use super::taken::Taken;
use crate::config::{Config, SwitchConfig};
use crate::refusal::{Refusal, Why};
use api::{Fault, PartName, PortName, PortNumber, PortSpec, SwitchName, SwitchSpec};
use std::collections::{BTreeMap, BTreeSet};

/// A port to bring up; its number is decided.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedPort {
    /// What it is, with its number.
    pub spec: PortSpec,
    /// Who wants it.
    pub owner: Owner,
}

/// A switch to bring up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedSwitch {
    /// What it is, and the rules that its owner declares.
    pub declared: SwitchConfig,
    /// Who wants it.
    pub owner: Owner,
    /// Its ports, whoever wants them.
    pub ports: Vec<PlannedPort>,
    /// Which numbers ports have had, these included.
    pub numbers: Numbers,
    /// An earlier release ran it, which remembered none: whatever its rules name may be of ports that went.
    pub past_is_unknown: bool,
}

impl PlannedSwitch {
    fn of(declared: SwitchConfig, owner: Owner, ports: Vec<PlannedPort>) -> Self {
        Self { declared, owner, ports, numbers: Numbers::default(), past_is_unknown: false }
    }

    /// Its name.
    pub fn name(&self) -> &SwitchName {
        &self.declared.spec.name
    }
}

/// What the store kept of switches and ports.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KeptThings {
    /// Switches that the API made.
    pub switches: Vec<SwitchSpec>,
    /// Ports that the API made, by switch.
    pub ports: BTreeMap<SwitchName, Vec<PortSpec>>,
    /// Port numbers in use before, by switch.
    pub numbers: BTreeMap<SwitchName, Vec<(PortName, u32)>>,
    /// Which numbers ports have had, by switch.
    pub past: BTreeMap<SwitchName, Numbers>,
}

/// A plan, and what it could not contain.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Plan {
    /// Switches in order: the file's first.
    pub switches: Vec<PlannedSwitch>,
    /// What was kept and contradicts the file, each with both sides.
    pub contradictions: Vec<Contradiction>,
    /// What the API made and somebody declares just so: it is the declarer's from now on, and stays as it is.
    pub taken_over: Vec<Forgettable>,
}

/// Something kept that a start may forget.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Forgettable {
    /// A switch that the API made.
    Switch(SwitchName),
    /// A port that the API made.
    Port(SwitchName, PortName),
    /// A part.
    Part(PartName),
}

/// Something kept that contradicts the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contradiction {
    /// What was kept.
    pub what: Forgettable,
    /// Both sides, for people.
    pub fault: Fault,
}

/// Puts together what the file and parts declare and what was kept.
pub fn plan(config: &Config, parts: &[KeptPart], kept: &KeptThings) -> Plan {
    let mut planner = Planner::default();
    config.switches.iter().for_each(|switch| planner.declare(switch, &Owner::File));
    // Who adds to a switch of another part finds it there.
    let adds = |part: &&KeptPart| part.wish.iter().any(|switch| switch.declared_by.is_some());
    let (adding, alone): (Vec<_>, Vec<_>) = parts.iter().partition(adds);
    alone.into_iter().chain(adding).for_each(|part| planner.declare_part(part));
    kept.switches.iter().for_each(|spec| planner.take_back(spec));
    let names: Vec<SwitchName> =
        planner.plan.switches.iter().map(|switch| switch.name().clone()).collect();
    for (index, name) in names.iter().enumerate() {
        kept.ports
            .get(name)
            .into_iter()
            .flatten()
            .for_each(|port| planner.take_back_port(index, port));
    }
    for (index, name) in names.iter().enumerate() {
        let before = kept.numbers.get(name).map_or(&[][..], Vec::as_slice);
        let seen = before.iter().map(|&(_, number)| number);
        planner.plan.switches[index].past_is_unknown =
            !before.is_empty() && !kept.past.contains_key(name);
        let past = kept.past.get(name).copied().unwrap_or_else(|| Numbers::after(seen));
        planner.number_ports(index, before, past);
    }
    planner.plan
}

#[derive(Default)]
struct Planner {
    plan: Plan,
    taken: Taken,
}

impl Planner {
    /// The file's own contradictions were found when it was read.
    fn declare(&mut self, switch: &SwitchConfig, owner: &Owner) {
        let name = &switch.spec.name;
        let place = |line| format!("{}, line {line}", owner.place());
        self.taken.add_switch(&switch.spec, owner.slice(), &place(switch.line));
        let mut ports = Vec::with_capacity(switch.ports.len());
        for port in &switch.ports {
            self.taken.add_port(name, &port.value.name, &port.value, &place(port.line));
            ports.push(PlannedPort { spec: port.value.clone(), owner: owner.clone() });
        }
        self.plan.switches.push(PlannedSwitch::of(switch.clone(), owner.clone(), ports));
    }

    /// A part is in force whole or not at all.
    fn declare_part(&mut self, part: &KeptPart) {
        let owner = Owner::Part(part.name.clone());
        let clash = part.wish.iter().find_map(|switch| {
            let name = &switch.spec.name;
            let ports = switch.ports.iter().filter_map(|port| {
                self.taken.check_port(name, &port.value.name, &port.value).err()
            });
            let refused = match &switch.declared_by {
                None => self.taken.check_switch(&switch.spec, owner.slice()).err(),
                Some(declarer) => self.check_declarer(name, declarer).err(),
            };
            refused.into_iter().chain(ports).next()
        });
        match clash {
            Some(mut refusal) => {
                refusal.fault.thing += &format!(" ({})", owner.place());
                self.contradict(Forgettable::Part(part.name.clone()), refusal);
            }
            None => part.wish.iter().for_each(|switch| match switch.declared_by {
                None => self.declare(switch, &owner),
                Some(_) => self.add_to(switch, &owner),
            }),
        }
    }

    fn check_declarer(&self, switch: &SwitchName, declarer: &PartName) -> Result<(), Refusal> {
        let owner = Owner::Part(declarer.clone());
        let is_it = |planned: &PlannedSwitch| planned.name() == switch && planned.owner == owner;
        if self.plan.switches.iter().any(is_it) {
            return Ok(());
        }
        let cause = format!("part {declarer} does not declare it");
        let fault = Fault::new(format!("switch {switch}"), "add to it", cause, "");
        Err(Refusal::new(Why::Conflict, fault))
    }

    /// Adds what a part declares of another part's switch.
    fn add_to(&mut self, addition: &SwitchConfig, owner: &Owner) {
        let name = &addition.spec.name;
        let switches = &mut self.plan.switches;
        let Some(planned) = switches.iter_mut().find(|planned| planned.name() == name) else {
            return;
        };
        for port in &addition.ports {
            let (spec, place) =
                (port.value.clone(), format!("{}, line {}", owner.place(), port.line));
            self.taken.add_port(name, &spec.name, &spec, &place);
            planned.ports.push(PlannedPort { spec, owner: owner.clone() });
        }
        let declared = &mut planned.declared;
        declared.flows.extend(addition.flows.iter().cloned());
        declared.groups.extend(addition.groups.iter().cloned());
        declared.meters.extend(addition.meters.iter().cloned());
    }

    fn take_back(&mut self, spec: &SwitchSpec) {
        let is_it = |planned: &PlannedSwitch| is_switch_declared_so(&planned.declared.spec, spec);
        if self.plan.switches.iter().any(is_it) {
            return self.plan.taken_over.push(Forgettable::Switch(spec.name.clone()));
        }
        if let Err(refusal) = self.taken.check_switch(spec, None) {
            return self.contradict(Forgettable::Switch(spec.name.clone()), refusal);
        }
        self.taken.add_switch(spec, None, "made through the API");
        let bare = SwitchConfig::bare(spec.clone());
        self.plan.switches.push(PlannedSwitch::of(bare, Owner::Api, Vec::new()));
    }

    fn take_back_port(&mut self, index: usize, spec: &PortSpec) {
        let switch = self.plan.switches[index].name().clone();
        let name = spec.name.clone();
        let is_it = |planned: &PlannedPort| is_declared_so(&planned.spec, spec);
        if self.plan.switches[index].ports.iter().any(is_it) {
            return self.plan.taken_over.push(Forgettable::Port(switch, name));
        }
        if let Err(refusal) = self.taken.check_port(&switch, &name, spec) {
            return self.contradict(Forgettable::Port(switch, name), refusal);
        }
        self.taken.add_port(&switch, &name, spec, "made through the API");
        self.plan.switches[index].ports.push(PlannedPort { spec: spec.clone(), owner: Owner::Api });
    }

    fn contradict(&mut self, what: Forgettable, refusal: Refusal) {
        let mut fault = *refusal.fault;
        fault.step = "bring back what was made through the API".into();
        fault.remedy = "remove one of the two: from the file by hand, or the one made through the API by starting once with --forget-conflicts".into();
        self.plan.contradictions.push(Contradiction { what, fault });
    }

    /// Ports without a number get the one they had, or the next.
    fn number_ports(&mut self, index: usize, before: &[(PortName, u32)], mut numbers: Numbers) {
        let switch = self.plan.switches[index].name().clone();
        let remembered: BTreeMap<_, _> = before.iter().cloned().collect();
        let asked = self.plan.switches[index].ports.iter().filter_map(|port| port.spec.number);
        asked.for_each(|number| numbers.note(number, true));
        for pass in [Pass::Remembered, Pass::New] {
            for port in
                self.plan.switches[index].ports.iter_mut().filter(|port| port.spec.number.is_none())
            {
                let number = match pass {
                    Pass::Remembered => remembered
                        .get(&port.spec.name)
                        .copied()
                        .and_then(PortNumber::new)
                        // A port is the local one only as long as somebody says so.
                        .filter(PortNumber::is_ordinary)
                        .filter(|&number| !self.taken.has_number(&switch, number)),
                    // Rules are not read yet: a number that came round again may be named.
                    Pass::New => {
                        let is_taken = |number| self.taken.has_number(&switch, number);
                        numbers.next(is_taken, &BTreeSet::new())
                    }
                };
                if let Some(number) = number {
                    numbers.note(number, matches!(pass, Pass::Remembered));
                    port.spec.number = Some(number);
                    self.taken.add_port(&switch, &port.spec.name, &port.spec, "");
                }
            }
        }
        self.plan.switches[index].numbers = numbers;
    }
}

/// Whether a switch that is there is as declared. Who declares no datapath id takes the one that it has.
pub fn is_switch_declared_so(declared: &SwitchSpec, there: &SwitchSpec) -> bool {
    let dpid = declared.dpid.clone().or(there.dpid.clone());
    SwitchSpec { dpid, ..declared.clone() } == *there
}

/// Whether a port that is there is as declared. Who declares no number takes the one that it has.
pub fn is_declared_so(declared: &PortSpec, there: &PortSpec) -> bool {
    let number = declared.number.or(there.number);
    PortSpec { number, ..declared.clone() } == *there
}

#[derive(Clone, Copy)]
enum Pass {
    Remembered,
    New,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Host;
    use api::{Kind, Tap};

    fn config(text: &str) -> Config {
        Config::parse(
            text,
            "test",
            &Host { cores: vec![0], node_id: "n".into(), copied_from: None },
        )
        .unwrap()
    }

    fn tap(name: &str, number: Option<u32>) -> PortSpec {
        let kind = Kind::Tap(Tap::default());
        let number = number.and_then(PortNumber::new);
        PortSpec { number, ..PortSpec::new(name.parse().unwrap(), kind) }
    }

    fn kept(switch: &str, ports: &[PortSpec], numbers: &[(&str, u32)]) -> KeptThings {
        let name: SwitchName = switch.parse().unwrap();
        let numbers =
            numbers.iter().map(|&(port, number)| (port.parse().unwrap(), number)).collect();
        KeptThings {
            switches: Vec::new(),
            ports: BTreeMap::from([(name.clone(), ports.to_vec())]),
            numbers: BTreeMap::from([(name, numbers)]),
            past: BTreeMap::new(),
        }
    }

    fn numbers(plan: &Plan) -> Vec<(String, u32)> {
        let ports = plan.switches.iter().flat_map(|switch| &switch.ports);
        ports.map(|port| (port.spec.name.to_string(), port.spec.number.unwrap().get())).collect()
    }

    const TWO_PORTS: &str = "[[switch]]\nname='a'\n[[switch.port]]\nname='x'\ntype='tap'\n[[switch.port]]\nname='y'\ntype='tap'";

    #[test]
    fn ports_keep_their_numbers_across_restarts_whoever_comes_new() {
        let first = plan(&config(TWO_PORTS), &[], &KeptThings::default());
        assert_eq!(numbers(&first), [("x".into(), 1), ("y".into(), 2)]);
        let again = plan(
            &config(TWO_PORTS),
            &[],
            &kept("a", &[tap("made", Some(1))], &[("x", 7), ("y", 3)]),
        );
        assert_eq!(numbers(&again), [("x".into(), 7), ("y".into(), 3), ("made".into(), 1)]);
        let clash = plan(&config(TWO_PORTS), &[], &kept("a", &[tap("made", Some(3))], &[("y", 3)]));
        assert_eq!(numbers(&clash), [("x".into(), 4), ("y".into(), 5), ("made".into(), 3)]);
    }

    #[test]
    fn a_port_is_the_local_one_only_as_long_as_it_is_asked_for() {
        let local = PortNumber::LOCAL.get();
        let asked = TWO_PORTS.replace("name='x'", "name='x'\nnumber='local'");
        let found = plan(&config(&asked), &[], &kept("a", &[], &[("x", 1)]));
        assert_eq!(numbers(&found), [("x".into(), local), ("y".into(), 2)]);
        let found = plan(&config(TWO_PORTS), &[], &kept("a", &[], &[("x", local), ("y", 1)]));
        assert_eq!(numbers(&found), [("x".into(), 2), ("y".into(), 1)]);
        let twice = plan(&config(&asked), &[], &kept("a", &[tap("made", Some(local))], &[]));
        let [contradiction] = &twice.contradictions[..] else { panic!("{twice:?}") };
        assert!(contradiction.fault.to_string().contains("number LOCAL"), "{contradiction:?}");
    }

    #[test]
    fn what_was_made_and_is_declared_just_so_is_taken_over() {
        let mut things = kept("a", &[tap("x", Some(7))], &[("x", 7)]);
        let config = config(TWO_PORTS);
        things.switches.push(config.switches[0].spec.clone());
        let found = plan(&config, &[], &things);
        assert_eq!(found.contradictions, []);
        assert_eq!(found.taken_over.len(), 2);
        assert_eq!(numbers(&found), [("x".into(), 7), ("y".into(), 8)]);
    }

    #[test]
    fn what_was_kept_and_contradicts_the_file_is_named_with_both_sides() {
        let other = PortSpec { mtu: Some(1300), ..tap("x", None) };
        let mut things = kept("a", &[other], &[]);
        let fail_mode = api::FailMode::Secure;
        things.switches.push(SwitchSpec { fail_mode, ..SwitchSpec::named("a".parse().unwrap()) });
        let found = plan(&config(TWO_PORTS), &[], &things);
        assert_eq!(found.switches.len(), 1);
        let causes: Vec<_> =
            found.contradictions.iter().map(|found| found.fault.to_string()).collect();
        assert_eq!(causes.len(), 2);
        assert!(causes[0].starts_with("switch a: bring back"), "{}", causes[0]);
        assert!(causes[0].contains("line 1"), "{}", causes[0]);
        assert!(causes[1].starts_with("port x of switch a"), "{}", causes[1]);
    }
}
