//! What several tables say together: nothing is claimed twice, and every vlink has two ends that name each other.

use super::read::Notes;
use super::{Config, SwitchConfig, Things};
use api::{CircuitSpec, Peer, PortName, PortSpec, SwitchSpec};
use openflow::text::{self, TextError};
use openflow::{FlowModCommand, GroupModCommand, MeterModCommand, PortNo};
use std::collections::HashMap;
use std::hash::Hash;

/// Whose document it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All that the node's file declares.
    Node,
    /// A part, which may name what other owners have.
    Part,
}

/// Notes every contradiction.
pub fn check(config: &Config, extent: Extent, notes: &Notes) {
    check_switches(config, notes);
    config.switches.iter().for_each(|switch| check_ports(switch, notes));
    check_interfaces(config, notes);
    check_sockets(config, notes);
    check_vlinks(config, extent, notes);
    config.switches.iter().for_each(|switch| check_texts(switch, notes));
    config.switches.iter().for_each(|switch| check_tls(switch, config, notes));
    config.switches.iter().for_each(|switch| check_additions(switch, extent, notes));
    check_things(&config.things, notes);
}

/// What adds to a switch says of that switch only its name.
fn check_additions(switch: &SwitchConfig, extent: Extent, notes: &Notes) {
    let Some(declarer) = &switch.declared_by else { return };
    let thing = format!("switch {}", switch.spec.name);
    if extent == Extent::Node {
        let cause = format!("only a part may add to a switch that part {declarer} declares");
        notes.add(switch.line, &thing, cause, "remove declared_by, or move the table to a part");
    }
    if switch.spec != SwitchSpec::named(switch.spec.name.clone()) {
        let cause = format!("its own keys are for part {declarer} to say");
        notes.add(switch.line, &thing, cause, "keep name, declared_by, ports and rules");
    }
}

/// Guests and circuits: each alone, and no name or namespace twice.
fn check_things(things: &Things, notes: &Notes) {
    let mut names = Claims::new(notes, "give each guest of a part its own name");
    let mut places = Claims::new(notes, "give each guest its own namespace");
    for guest in &things.guests {
        let thing = format!("guest {}", guest.value.name);
        names.claim(&guest.value.name, guest.line, &thing, &format!("name {}", guest.value.name));
        let netns = &guest.value.netns;
        places.claim(netns, guest.line, &thing, &format!("namespace {netns}"));
        for (cause, remedy) in guest.value.faults() {
            notes.add(guest.line, &thing, cause, remedy);
        }
    }
    let mut ports = Claims::new(notes, "a port ends one circuit");
    let mut ids = Claims::new(notes, "give each path its own id");
    for circuit in &things.circuits {
        let thing = format!("circuit {}", circuit.value.link);
        let CircuitSpec { port, id, .. } = &circuit.value;
        if let Some(port) = port {
            ports.claim(port, circuit.line, &thing, &format!("port {port}"));
        }
        ids.claim(id, circuit.line, &thing, &format!("id {id}"));
        if let Some((cause, remedy)) = circuit.value.fault() {
            notes.add(circuit.line, &thing, cause, remedy);
        }
    }
}

/// TLS needs certificates, the switch's or the node's.
fn check_tls(SwitchConfig { spec, line, .. }: &SwitchConfig, config: &Config, notes: &Notes) {
    if spec.uses_tls() && spec.tls.is_none() && config.node.tls.is_none() {
        let (cause, remedy) = super::tls::NO_CERTIFICATE;
        notes.add(*line, &format!("switch {}", spec.name), cause, remedy);
    }
}

/// Who claimed what first.
struct Claims<'a, K> {
    first: HashMap<K, (usize, String)>,
    notes: &'a Notes,
    remedy: &'static str,
}

impl<'a, K: Eq + Hash> Claims<'a, K> {
    fn new(notes: &'a Notes, remedy: &'static str) -> Self {
        Self { first: HashMap::new(), notes, remedy }
    }

    fn claim(&mut self, key: K, line: usize, thing: &str, what: &str) {
        if let Some((first_line, first)) = self.first.get(&key) {
            let cause = format!("{what} is already taken by {first} on line {first_line}");
            self.notes.add(line, thing, cause, self.remedy);
        } else {
            self.first.insert(key, (line, thing.into()));
        }
    }
}

fn check_switches(config: &Config, notes: &Notes) {
    let mut names = Claims::new(notes, "give each switch its own name");
    let mut ids =
        Claims::new(notes, "give each switch its own dpid: controllers tell switches apart by it");
    let mut addresses = Claims::new(notes, "give each switch its own TCP port");
    for SwitchConfig { spec, line, .. } in &config.switches {
        let (thing, netns) = (format!("switch {}", spec.name), &spec.session_netns);
        names.claim(&spec.name, *line, &thing, &format!("name {}", spec.name));
        if let Some(dpid) = &spec.dpid {
            ids.claim((netns, dpid), *line, &thing, &format!("datapath id {dpid}"));
        }
        for listen in &spec.listen {
            addresses.claim((netns, listen.claim()), *line, &thing, &format!("address {listen}"));
        }
    }
}

fn check_ports(switch: &SwitchConfig, notes: &Notes) {
    let mut names = Claims::new(notes, "give each port of a switch its own name");
    let mut numbers = Claims::new(notes, "give each port of a switch its own number, or none");
    for port in &switch.ports {
        let thing = thing_of(switch, &port.value);
        let name = &port.value.name;
        names.claim(name.clone(), port.line, &thing, &format!("name {name}"));
        if let Some(number) = port.value.number {
            numbers.claim(number, port.line, &thing, &format!("number {number}"));
        }
    }
}

fn check_interfaces(config: &Config, notes: &Notes) {
    let mut interfaces =
        Claims::new(notes, "an interface can be one port only: choose another one");
    for (switch, port) in all_ports(config) {
        if let Some(interface) = port.value.interface() {
            let inside = port
                .value
                .netns()
                .map_or_else(String::new, |netns| format!(" in namespace {netns}"));
            let what = format!("interface {interface}{inside}");
            interfaces.claim(
                (port.value.netns().cloned(), interface),
                port.line,
                &thing_of(switch, &port.value),
                &what,
            );
        }
    }
}

fn check_sockets(config: &Config, notes: &Notes) {
    let mut sockets = Claims::new(notes, "a socket is one guest's: choose another path");
    for (switch, port) in all_ports(config) {
        if let Some(socket) = port.value.socket() {
            let what = format!("socket {socket}");
            sockets.claim(socket.clone(), port.line, &thing_of(switch, &port.value), &what);
        }
    }
}

fn check_vlinks(config: &Config, extent: Extent, notes: &Notes) {
    let ends: HashMap<Peer, &PortSpec> = all_ports(config)
        .map(|(switch, port)| {
            (Peer::new(switch.spec.name.clone(), port.value.name.clone()), &port.value)
        })
        .collect();
    for (switch, port) in all_ports(config) {
        let Some(peer) = port.value.peer() else { continue };
        let is_here = |other: &SwitchConfig| other.spec.name == *peer.switch();
        if extent == Extent::Part && !config.switches.iter().any(is_here) {
            continue;
        }
        if let Some((cause, remedy)) = vlink_fault(switch, &port.value.name, peer, &ends) {
            notes.add(port.line, &thing_of(switch, &port.value), cause, remedy);
        }
    }
}

fn vlink_fault(
    switch: &SwitchConfig,
    name: &PortName,
    peer: &Peer,
    ends: &HashMap<Peer, &PortSpec>,
) -> Option<(String, String)> {
    let me = Peer::new(switch.spec.name.clone(), name.clone());
    if peer.switch() == me.switch() {
        return Some((
            format!("peer {peer} is on the same switch"),
            "a vlink joins two switches: name a port of another one".into(),
        ));
    }
    let Some(other) = ends.get(peer) else {
        let cause = format!("peer {peer} does not exist");
        return Some((
            cause,
            format!(
                "add a vlink port {} with peer = \"{me}\" to switch {}",
                peer.port(),
                peer.switch()
            ),
        ));
    };
    match other.peer() {
        None => Some((
            format!("peer {peer} is of type {}", other.kind.kind().word()),
            "make both ends vlinks".into(),
        )),
        Some(back) if *back == me => None,
        Some(back) => Some((
            format!("peer {peer} names {back} as its own peer"),
            format!("let both ends name each other: peer = \"{me}\" there"),
        )),
    }
}

/// Rules, groups and meters, each by the parser that will read it at the start. Ports may be named; their numbers do not matter here.
fn check_texts(switch: &SwitchConfig, notes: &Notes) {
    let thing = format!("switch {}", switch.spec.name);
    let resolve = |name: &str| {
        let named = switch.ports.iter().any(|port| &*port.value.name == name);
        // Of a switch that another part declares, more ports are there than are known here.
        (named || switch.declared_by.is_some()).then_some(PortNo(1))
    };
    let note = |what: &str, line: usize, error: TextError| {
        let cause = format!("{what}: column {}: {:?}: {}", error.at + 1, error.word, error.problem);
        notes.add(line, &thing, cause, error.remedy);
    };
    for text in &switch.flows {
        let parsed = text::parse_flow(&text.value, FlowModCommand::Add, &resolve);
        parsed.map_or_else(|error| note("flow", text.line, error), drop);
    }
    for text in &switch.groups {
        let parsed = text::parse_group(&text.value, GroupModCommand::Add, &resolve);
        parsed.map_or_else(|error| note("group", text.line, error), drop);
    }
    for text in &switch.meters {
        let parsed = text::parse_meter(&text.value, MeterModCommand::Add);
        parsed.map_or_else(|error| note("meter", text.line, error), drop);
    }
}

fn all_ports(config: &Config) -> impl Iterator<Item = (&SwitchConfig, &super::Located<PortSpec>)> {
    config.switches.iter().flat_map(|switch| switch.ports.iter().map(move |port| (switch, port)))
}

fn thing_of(switch: &SwitchConfig, port: &PortSpec) -> String {
    format!("switch {} port {}", switch.spec.name, port.name)
}
