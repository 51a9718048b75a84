//! A small obvious model of all nodes: where does a frame come out that enters a port?
//!
//! It knows nothing of slices. It has the ports and rules of the parts, finds the rules that match, and follows them from node to node.

use api::{CircuitSpec, Kind, PortSpec};
use domain::{Name, Part};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Where frames enter and leave: a port of a switch on a node.
pub type Spot = (Name, String, String);

/// What enters `K`.
#[derive(Clone, Debug)]
pub struct Frame {
    pub tun_id: Option<u32>,
    pub dl_dst: String,
}

/// All nodes.
#[derive(Default)]
pub struct Net {
    ports: BTreeMap<Spot, PortSpec>,
    rules: BTreeMap<Name, Vec<String>>,
}

impl Net {
    pub fn add(&mut self, node: &Name, part: &Part) {
        for switch in &part.switch {
            for port in &switch.port {
                let spot = (node.clone(), switch.name.to_string(), port.name.to_string());
                let twin = self.ports.insert(spot.clone(), port.clone());
                assert!(twin.is_none(), "{spot:?} is declared twice");
            }
            if &*switch.name == "K" {
                self.rules.entry(node.clone()).or_default().extend(switch.flows.iter().cloned());
            }
        }
    }

    /// Ends of vlinks and guests' ports at `K`: where users' frames enter it.
    pub fn entrances(&self) -> Vec<(Name, String)> {
        let own = |spot: &&Spot| spot.1 == "K" && spot.2.starts_with('c');
        self.ports.keys().filter(own).map(|(node, _, port)| (node.clone(), port.clone())).collect()
    }

    /// Where a frame comes out that a user sends into that port of `K`.
    pub fn user_frame(&self, node: &Name, port: &str) -> Spot {
        let frame = Frame { tun_id: None, dl_dst: "02:73:75:00:01:00".into() };
        self.walk(node, port, frame).0
    }

    /// Where a probe of that path comes out.
    pub fn probe(&self, node: &Name, id: u32) -> (Spot, Frame) {
        let dl_dst = CircuitSpec::probe_address(id).map(|byte| format!("{byte:02x}")).join(":");
        self.walk(node, "probe", Frame { tun_id: None, dl_dst })
    }

    fn walk(&self, node: &Name, port: &str, mut frame: Frame) -> (Spot, Frame) {
        let (mut node, mut port, probing) = (node.clone(), port.to_owned(), port == "probe");
        for _ in 0..10 {
            let actions = self.matching(&node, &port, &frame);
            let mut out = None;
            for action in actions.split(',') {
                let (word, value) = action.split_once(':').expect("an action has a value");
                match word {
                    "meter" => {}
                    "set_field" => {
                        let (value, field) = value.split_once("->").expect("a field");
                        match field {
                            "tun_id" => frame.tun_id = value.parse().ok(),
                            "eth_dst" => {
                                assert!(
                                    port != "probe" && frame.tun_id.is_some_and(|id| id & 1 == 1)
                                );
                                value.clone_into(&mut frame.dl_dst);
                            }
                            other => panic!("{other}: a field that K does not set"),
                        }
                    }
                    "output" if value == "probe" && out.is_some() => {
                        assert_eq!(frame.tun_id.map(|id| id & 1), Some(1), "a copy of a probe");
                    }
                    "output" => assert!(out.replace(value.to_owned()).is_none(), "one copy"),
                    other => panic!("{other}: an action that K has not"),
                }
            }
            let out = out.expect("every rule forwards");
            let spec = &self.ports[&(node.clone(), "K".to_owned(), out.clone())];
            match &spec.kind {
                Kind::Vxlan(tunnel) => {
                    let id = frame.tun_id.expect("what leaves has an id");
                    assert!(
                        id < 1 << 24 && (probing || id.is_multiple_of(2)),
                        "{id} is the probes'"
                    );
                    (node, port) = self.other_end(&node, tunnel);
                }
                Kind::Vlink(vlink) => {
                    let peer = &vlink.peer;
                    let spot = (node.clone(), peer.switch().to_string(), peer.port().to_string());
                    let back =
                        self.ports.get(&spot).unwrap_or_else(|| panic!("{spot:?} is not there"));
                    assert_eq!(back.peer().map(ToString::to_string), Some(format!("K:{out}")));
                    return (spot, frame);
                }
                _ => return ((node, "K".into(), out), frame),
            }
        }
        panic!("a frame goes round from {node} {port}");
    }

    fn matching(&self, node: &Name, port: &str, frame: &Frame) -> &str {
        let fits = |rule: &&String| {
            let (wanted, _) = rule.split_once(",actions=").expect("actions");
            wanted.split(',').all(|field| match field.split_once('=').expect("a field") {
                ("in_port", name) => name == port,
                ("priority", _) => true,
                ("tun_id", "1/1") => frame.tun_id.is_some_and(|id| id & 1 == 1),
                ("tun_id", id) => frame.tun_id == id.parse().ok(),
                ("dl_dst", address) => frame.dl_dst == address,
                other => panic!("{other:?}: a field that K has not"),
            })
        };
        let priority = |rule: &str| {
            let wished = rule.strip_prefix("priority=").and_then(|rest| rest.split(',').next());
            wished.map_or(0x8000, |wished| wished.parse::<u16>().expect("a number"))
        };
        let fitting = || self.rules.get(node).into_iter().flatten().filter(fits);
        let highest = fitting().map(|rule| priority(rule)).max();
        let found: Vec<&String> =
            fitting().filter(|rule| Some(priority(rule)) == highest).collect();
        let [rule] = found[..] else { panic!("{node} {port} {frame:?}: {found:?}") };
        rule.split_once(",actions=").expect("actions").1
    }

    /// The node that a tunnel leads to, and its port back.
    fn other_end(&self, node: &Name, tunnel: &api::Vxlan) -> (Name, String) {
        let list = |text: String| {
            text.split(',').map(|it| it.parse().expect("an address")).collect::<Vec<IpAddr>>()
        };
        let local = list(tunnel.local.as_ref().expect("a local address").to_string());
        let remote = list(tunnel.remote.to_string());
        let back = |(spot, port): (&Spot, &PortSpec)| {
            let other = port.tunnel()?;
            let ours = list(other.local.as_ref()?.to_string());
            (ours == remote && list(other.remote.to_string()) == local)
                .then(|| (spot.0.clone(), spot.2.clone()))
        };
        let found: Vec<_> = self.ports.iter().filter_map(back).collect();
        let [(other, port)] = &found[..] else {
            panic!("{node}: {remote:?} has {} ports back", found.len())
        };
        (other.clone(), port.clone())
    }
}
