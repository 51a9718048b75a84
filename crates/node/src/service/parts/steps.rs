//! What a new version of a part makes of switches and ports. Pure.

use super::super::owner::{API, Owner};
use super::super::switches::connects_otherwise;
use crate::config::SwitchConfig;
use api::{
    Action, Declared, KeyChange, ObjectChange, PortName, PortNumber, PortSpec, SwitchName,
    SwitchSpec,
};
use std::collections::BTreeMap;

/// A switch that the owner has, with the ports of this owner.
pub struct Have {
    /// What it is.
    pub spec: SwitchSpec,
    /// Its ports.
    pub ports: BTreeMap<PortName, PortSpec>,
    /// Whether the switch itself is the owner's; of another's it has these ports.
    pub is_own: bool,
}

/// All that an owner has.
pub type Possessions = BTreeMap<SwitchName, Have>;

const REMADE_SWITCH: &str = "it is made anew: its ports are, its sessions end, rules of others go";
const RECONNECTED: &str = "its OpenFlow connections are made anew";
const REMADE_PORT: &str = "no frame passes while it is made anew";
const LOST_SWITCH: &str = "its ports and all its rules go";
const LOST_PORT: &str = "no frame passes any more";

/// The wish, with the number that the node gave to a port that goes on and asks for none.
pub fn settled(have: &Possessions, wish: &[SwitchConfig]) -> Vec<SwitchConfig> {
    let mut wish = wish.to_vec();
    for switch in &mut wish {
        let Some(had) = have.get(&switch.spec.name) else { continue };
        for port in &mut switch.ports {
            let given = had.ports.get(&port.value.name).and_then(|port| port.number);
            // A port is the local one only as long as somebody says so.
            let given = given.filter(PortNumber::is_ordinary);
            port.value.number = port.value.number.or(given);
        }
    }
    wish
}

/// What becomes of each switch and port, switches before their ports.
pub fn steps(have: &Possessions, wish: &[SwitchConfig]) -> Vec<ObjectChange> {
    let wished: Vec<_> = wish.iter().flat_map(|switch| of_wished(have, switch)).collect();
    let leaves = |name: &SwitchName| wish.iter().all(|switch| switch.spec.name != *name);
    let left = have.iter().filter(|(name, _)| leaves(name)).flat_map(|(name, had)| {
        let ports = had.ports.keys().map(|port| of_port(Action::Remove, name, port, LOST_PORT));
        let switch = || of_switch(Action::Remove, name, Vec::new(), Some(LOST_SWITCH));
        had.is_own.then(switch).into_iter().chain(ports).collect::<Vec<_>>()
    });
    wished.into_iter().chain(left).collect()
}

fn of_wished(have: &Possessions, wish: &SwitchConfig) -> Vec<ObjectChange> {
    let name = &wish.spec.name;
    let Some(had) = have.get(name) else {
        let ports = wish.ports.iter().map(|port| added(name, &port.value));
        let switch = || of_switch(Action::Add, name, Vec::new(), None);
        let is_own = wish.declared_by.is_none();
        return is_own.then(switch).into_iter().chain(ports).collect();
    };
    let keys = match wish.declared_by {
        None => wish.spec.changes_from(&had.spec),
        Some(_) => Vec::new(),
    };
    let is_remade = keys.iter().any(|change| ["dpid", "miss_send_len"].contains(&&*change.key));
    let reconnects = connects_otherwise(&had.spec, &wish.spec).then_some(RECONNECTED);
    let mut found = Vec::new();
    if is_remade {
        found.push(of_switch(Action::Remake, name, keys, Some(REMADE_SWITCH)));
    } else if !keys.is_empty() {
        found.push(of_switch(Action::Change, name, keys, reconnects));
    }
    found.extend(wish.ports.iter().filter_map(|port| match had.ports.get(&port.value.name) {
        None => Some(added(name, &port.value)),
        Some(before) if is_remade => Some(remade(name, before, &port.value)),
        Some(before) if !before.can_become(&port.value) => Some(remade(name, before, &port.value)),
        Some(before) => changed(name, before, &port.value),
    }));
    let leaves = |port: &&PortName| wish.ports.iter().all(|wished| wished.value.name != **port);
    let left = had.ports.keys().filter(leaves);
    found.extend(left.map(|port| of_port(Action::Remove, name, port, LOST_PORT)));
    found
}

fn of_switch(
    action: Action,
    switch: &SwitchName,
    keys: Vec<KeyChange>,
    interrupts: Option<&str>,
) -> ObjectChange {
    let (switch, interrupts) = (Some(switch.clone()), interrupts.map(Into::into));
    ObjectChange { action, kind: Declared::Switch, switch, name: None, keys, interrupts }
}

fn of_port(action: Action, switch: &SwitchName, port: &PortName, interrupts: &str) -> ObjectChange {
    let name = Some(port.to_string());
    let interrupts = Some(interrupts.into());
    ObjectChange {
        kind: Declared::Port,
        name,
        interrupts,
        ..of_switch(action, switch, Vec::new(), None)
    }
}

/// A switch or port is the owner's from now on, as it is.
pub fn owned(owner: &Owner, switch: &SwitchName, port: Option<&PortName>) -> ObjectChange {
    let (from, to) = (API.into(), owner.to_string().into());
    let keys = vec![KeyChange { key: "owner".into(), from, to }];
    let change = of_switch(Action::Change, switch, keys, None);
    match port {
        Some(port) => ObjectChange { kind: Declared::Port, name: Some(port.to_string()), ..change },
        None => change,
    }
}

fn added(switch: &SwitchName, port: &PortSpec) -> ObjectChange {
    ObjectChange { interrupts: None, ..of_port(Action::Add, switch, &port.name, "") }
}

fn remade(switch: &SwitchName, before: &PortSpec, port: &PortSpec) -> ObjectChange {
    let keys = port.changes_from(before);
    ObjectChange { keys, ..of_port(Action::Remake, switch, &port.name, REMADE_PORT) }
}

fn changed(switch: &SwitchName, before: &PortSpec, port: &PortSpec) -> Option<ObjectChange> {
    let keys = port.changes_from(before);
    let change =
        || ObjectChange { interrupts: None, ..of_port(Action::Change, switch, &port.name, "") };
    (!keys.is_empty()).then(|| ObjectChange { keys, ..change() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Host};

    fn wish(text: &str) -> Vec<SwitchConfig> {
        let host = Host { cores: vec![0], node_id: "n".into(), copied_from: None };
        Config::parse_part(text, "t", &host, None).unwrap().switches
    }

    fn having(wish: &[SwitchConfig]) -> Possessions {
        let ports = |switch: &SwitchConfig| {
            let numbered = switch.ports.iter().enumerate().map(|(at, port)| {
                let number = port.value.number.or(PortNumber::new(at as u32 + 1));
                (port.value.name.clone(), PortSpec { number, ..port.value.clone() })
            });
            numbered.collect()
        };
        let have = |switch: &SwitchConfig| {
            let is_own = switch.declared_by.is_none();
            let have = Have { spec: switch.spec.clone(), ports: ports(switch), is_own };
            (switch.spec.name.clone(), have)
        };
        wish.iter().map(have).collect()
    }

    fn shown(before: &str, after: &str) -> Vec<String> {
        let have = having(&wish(before));
        steps(&have, &settled(&have, &wish(after))).iter().map(ToString::to_string).collect()
    }

    const TWO: &str = "[[switch]]\nname='a'\n[[switch.port]]\nname='x'\ntype='tap'\n[[switch.port]]\nname='y'\ntype='tap'\n";

    #[test]
    fn the_same_again_is_nothing_to_do() {
        assert_eq!(shown(TWO, TWO), [""; 0]);
        assert_eq!(shown("", ""), [""; 0]);
    }

    #[test]
    fn only_what_differs_moves_and_what_it_interrupts_is_said() {
        assert_eq!(shown("", TWO), ["+ switch a", "+ port x of switch a", "+ port y of switch a"]);
        let live = TWO.replacen("'tap'", "'tap'\nrate='1G'", 1);
        assert_eq!(shown(TWO, &live), ["~ port x of switch a: rate none → 1G"]);
        let other = TWO.replacen("'tap'", "'tap'\nqueues=2", 1);
        let anew = "-/+ port x of switch a: queues none → 2; no frame passes while it is made anew";
        assert_eq!(shown(TWO, &other), [anew]);
        let one = TWO.replace("'y'", "'z'");
        let left = "- port y of switch a; no frame passes any more";
        assert_eq!(shown(TWO, &one), ["+ port z of switch a", left]);
        let called = TWO.replace("name='a'", "name='a'\ncontrollers=['tcp:10.0.0.1']");
        let found = shown(TWO, &called);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("~ switch a: controllers [] → "), "{found:?}");
        assert!(found[0].ends_with("connections are made anew"), "{found:?}");
    }

    #[test]
    fn of_another_parts_switch_only_ports_come_and_go() {
        let added = TWO.replace("name='a'", "name='a'\ndeclared_by='land'");
        assert_eq!(shown("", &added), ["+ port x of switch a", "+ port y of switch a"]);
        assert_eq!(shown(&added, &added), [""; 0]);
        assert_eq!(shown(&added, "").len(), 2);
    }

    #[test]
    fn another_datapath_id_is_another_switch_with_all_its_ports() {
        let found = shown(TWO, &TWO.replace("name='a'", "name='a'\ndpid='77'"));
        let signs: Vec<_> = found.iter().map(|line| &line[..3]).collect();
        assert_eq!(signs, ["-/+", "-/+", "-/+"]);
        assert_eq!(shown(TWO, "").len(), 3);
    }
}
