//! What is taken: names, datapath ids, addresses, port numbers and interfaces, each by at most one switch or port of a node.

use crate::refusal::{Refusal, Why};
use api::{
    Dpid, Fault, IfName, Listen, Netns, PortName, PortNumber, PortSpec, SocketPath, SwitchName,
    SwitchSpec,
};
use std::collections::HashMap;
use std::hash::Hash;
use std::net::SocketAddr;

/// An address to listen on: what [`api::Listen::claim`] says.
type Claim = (SocketAddr, Option<IfName>);

/// Who has what, in words for messages.
#[derive(Default)]
pub struct Taken {
    names: HashMap<SwitchName, String>,
    /// By the namespace that sessions begin in.
    dpids: HashMap<(Option<Netns>, Dpid), String>,
    listens: HashMap<(Option<Netns>, Claim), String>,
    ports: HashMap<(SwitchName, PortName), String>,
    numbers: HashMap<(SwitchName, PortNumber), String>,
    interfaces: HashMap<(Option<Netns>, IfName), String>,
    sockets: HashMap<SocketPath, String>,
}

/// One claim: what is claimed, in words, and who has it already.
struct Clash<'a> {
    what: String,
    holder: &'a str,
    remedy: &'static str,
}

impl Taken {
    /// Notes a switch; `from` says who declared it, such as "the configuration file, line 12".
    pub fn add_switch(&mut self, spec: &SwitchSpec, from: &str) {
        let holder = format!("switch {} ({from})", spec.name);
        self.names.insert(spec.name.clone(), holder.clone());
        let netns = &spec.session_netns;
        self.dpids.extend(spec.dpid.clone().map(|dpid| ((netns.clone(), dpid), holder.clone())));
        let claims = spec.listen.iter().map(|listen| (netns.clone(), listen.claim()));
        self.listens.extend(claims.map(|claim| (claim, holder.clone())));
    }

    /// Notes a port.
    pub fn add_port(&mut self, switch: &SwitchName, name: &PortName, spec: &PortSpec, from: &str) {
        let holder = format!("port {name} of switch {switch} ({from})");
        self.ports.insert((switch.clone(), name.clone()), holder.clone());
        if let Some(number) = spec.number {
            self.numbers.insert((switch.clone(), number), holder.clone());
        }
        if let Some(interface) = spec.interface() {
            self.interfaces.insert((spec.netns().cloned(), interface), holder.clone());
        }
        self.sockets.extend(spec.socket().cloned().map(|socket| (socket, holder)));
    }

    /// Whether a switch contradicts what is there.
    ///
    /// # Errors
    /// It does, with both sides named.
    pub fn check_switch(&self, spec: &SwitchSpec) -> Result<(), Refusal> {
        let name = clash(&self.names, &spec.name, || "this name".into(), "choose another name");
        let dpid = spec.dpid.as_ref().and_then(|dpid| {
            let what = || format!("datapath id {dpid}");
            clash(
                &self.dpids,
                &(spec.session_netns.clone(), dpid.clone()),
                what,
                "choose another dpid: controllers tell switches apart by it",
            )
        });
        refuse(name.or(dpid), || format!("switch {}", spec.name))?;
        self.check_addresses(spec)
    }

    /// Whether an address of a switch is another one's.
    ///
    /// # Errors
    /// It is, with both sides named.
    pub fn check_addresses(&self, spec: &SwitchSpec) -> Result<(), Refusal> {
        let clashing = |at: &Listen| {
            let claim = (spec.session_netns.clone(), at.claim());
            clash(&self.listens, &claim, || format!("address {at}"), "choose another TCP port")
        };
        refuse(spec.listen.iter().find_map(clashing), || format!("switch {}", spec.name))
    }

    /// Whether a port contradicts what is there.
    ///
    /// # Errors
    /// It does, with both sides named.
    pub fn check_port(
        &self,
        switch: &SwitchName,
        name: &PortName,
        spec: &PortSpec,
    ) -> Result<(), Refusal> {
        let key = (switch.clone(), name.clone());
        let name_clash = clash(&self.ports, &key, || "this name".into(), "choose another name");
        let number = spec.number.and_then(|number| {
            clash(
                &self.numbers,
                &(switch.clone(), number),
                || format!("number {number}"),
                match number {
                    PortNumber::LOCAL => "a switch has one local port: remove that one first, or choose another number",
                    _ => "choose another number, or none",
                },
            )
        });
        let interface = spec.interface().and_then(|interface| {
            let what = format!("interface {interface}");
            let key = (spec.netns().cloned(), interface);
            clash(
                &self.interfaces,
                &key,
                || what,
                "an interface can be one port only: remove that one first",
            )
        });
        let socket = spec.socket().and_then(|socket| {
            let what = || format!("socket {socket}");
            clash(&self.sockets, socket, what, "a socket is one guest's: choose another path")
        });
        refuse(name_clash.or(number).or(interface).or(socket), || {
            format!("port {name} of switch {switch}")
        })
    }

    /// Whether a port has the interface of this one.
    pub fn has_interface(&self, spec: &PortSpec) -> bool {
        let key = spec.interface().map(|interface| (spec.netns().cloned(), interface));
        key.is_some_and(|key| self.interfaces.contains_key(&key))
    }

    /// Whether a port of the switch has the number.
    pub fn has_number(&self, switch: &SwitchName, number: PortNumber) -> bool {
        self.numbers.contains_key(&(switch.clone(), number))
    }
}

fn clash<'a, K: Eq + Hash>(
    held: &'a HashMap<K, String>,
    key: &K,
    what: impl FnOnce() -> String,
    remedy: &'static str,
) -> Option<Clash<'a>> {
    held.get(key).map(|holder| Clash { what: what(), holder, remedy })
}

fn refuse(clash: Option<Clash<'_>>, thing: impl FnOnce() -> String) -> Result<(), Refusal> {
    let Some(Clash { what, holder, remedy }) = clash else { return Ok(()) };
    let cause = format!("{what} is already taken by {holder}");
    Err(Refusal::new(Why::Conflict, Fault::new(thing(), "add it", cause, remedy)))
}
