//! What is taken: names, datapath ids, addresses, port numbers and interfaces, each by at most one switch or port of a node.

use crate::refusal::{Refusal, Why};
use api::{
    Dpid, Fault, IfName, Listen, Netns, PartName, PortName, PortNumber, PortSpec, SocketPath,
    SwitchName, SwitchSpec,
};
use std::collections::HashMap;
use std::hash::Hash;
use std::net::SocketAddr;

/// An address to listen on: what [`api::Listen::claim`] says.
type Claim = (SocketAddr, Option<IfName>);

/// A datapath id, by the slice whose controllers know it, if any, and the namespace that sessions begin in.
type Known = (Option<PartName>, Option<Netns>, Dpid);

/// Who has what, in words for messages.
#[derive(Default)]
pub struct Taken {
    names: HashMap<SwitchName, String>,
    dpids: HashMap<Known, String>,
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
    /// Notes a switch, a slice's or one of the host; `from` says who declared it, such as "the configuration file, line 12".
    pub fn add_switch(&mut self, spec: &SwitchSpec, slice: Option<&PartName>, from: &str) {
        let holder = format!("switch {} ({from})", spec.name);
        self.names.insert(spec.name.clone(), holder.clone());
        let netns = &spec.session_netns;
        self.dpids.extend(known(spec, slice).map(|known| (known, holder.clone())));
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

    /// Whether a switch, a slice's or one of the host, contradicts what is there.
    ///
    /// # Errors
    /// It does, with both sides named.
    pub fn check_switch(&self, spec: &SwitchSpec, slice: Option<&PartName>) -> Result<(), Refusal> {
        let name = clash(&self.names, &spec.name, || "this name".into(), "choose another name");
        let dpid = known(spec, slice).and_then(|known| {
            let what = || format!("datapath id {}", known.2);
            let remedy = "choose another dpid: controllers tell switches apart by it";
            clash(&self.dpids, &known, what, remedy)
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

/// Controllers of two slices never meet, so one datapath id may be a switch's of each.
fn known(spec: &SwitchSpec, slice: Option<&PartName>) -> Option<Known> {
    let dpid = spec.dpid.clone()?;
    Some((slice.cloned(), spec.session_netns.clone(), dpid))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn of(slice: char) -> PartName {
        slice.to_string().repeat(32).parse().expect("a uid")
    }

    #[test]
    fn a_datapath_id_is_one_switchs_of_a_host_and_one_of_each_slice() {
        let spec = |name: &str| SwitchSpec {
            dpid: Some(Dpid::new(7)),
            ..SwitchSpec::named(name.parse().expect("a name"))
        };
        let mut taken = Taken::default();
        taken.add_switch(&spec("host"), None, "there");
        taken.add_switch(&spec("red"), Some(&of('a')), "there");
        assert!(taken.check_switch(&spec("blue"), Some(&of('b'))).is_ok());
        for slice in [None, Some(of('a'))] {
            let refused =
                taken.check_switch(&spec("new"), slice.as_ref()).expect_err("it is taken");
            assert!(refused.fault.cause.contains("datapath id 0000000000000007 is already taken"));
        }
    }
}
