//! From spec and decision to what each node holds.
//!
//! Links within a node are vlinks between U-switches. A circuit's end is a port of `K`: a vlink to the U-switch, or the guest's own port.
//! `K` forwards it by static rules along one fixed way, so it cannot loop:
//!
//! ```text
//! end      in_port=c…          → meter:ID, set_field:ID->tun_id, output:TUNNEL
//!          in_port=TUNNEL, tun_id=ID → output:c…
//! transit  in_port=TUNNEL, tun_id=ID → set_field:ID->tun_id, output:NEXT, and back
//! probes   the same for ID + 1, with the port `probe` in place of c…; there the destination address says the path
//!          at a transit node they go on, and a copy to `probe`
//! strays   in_port=TUNNEL, any other odd tun_id → the port `probe`, with the address of no path
//! ```
//!
//! An external is an end, too. In place of `in_port=c…` stands the node's interface with the VLAN, whose tag is taken off and put on. Frames
//! of a link's own protocols (01:80:c2:00:00:00 to 0f, IEEE 802.1Q 8.6.3, LLDP and spanning tree among them) pass in neither direction.

use crate::admit::{CONTROL_PREFIX, inside};
use crate::decision::{Circuit, Control, Decision, Door};
use crate::file::slice::{Guest, GuestKind, Named, PortType, SliceSpec};
use crate::names::{self, CONTROL_INTERFACE, CONTROL_SWITCH, Names, PROBE, PROBE_INTERFACE};
use crate::part::{Part, PartSwitch, UNDERLAY};
use crate::wire::{Wire, wires};
use crate::words::{End, EndPort, Name, Uid};
use crate::world::World;
use api::{
    Addresses, AfPacket, CircuitSpec, Controller, Dpid, FailMode, GuestInterface, GuestSpec,
    IfName, Kind, Peer, PortName, PortNumber, PortSpec, Remote, SwitchName, Tap, TunnelKey,
    VhostUser, Vlink, Vxlan,
};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What a slice is on each node that has something of it.
pub fn compile(spec: &SliceSpec, decision: &Decision) -> Named<Part> {
    let key = spec.key();
    let mut work = Work {
        spec,
        decision,
        names: Names::new(&key, decision.uid),
        switches: BTreeMap::new(),
        parts: Named::new(),
    };
    work.switches();
    work.guests();
    wires(spec).iter().for_each(|wire| work.wire(wire));
    decision.control.iter().for_each(|control| work.control(control));
    work.finish()
}

struct Work<'a> {
    spec: &'a SliceSpec,
    decision: &'a Decision,
    names: Names<'a>,
    /// Switches by node and name; `K` among them.
    switches: BTreeMap<(Name, SwitchName), PartSwitch>,
    parts: Named<Part>,
}

/// One end of a circuit as `K` has it.
struct KEnd {
    /// What frames from there match.
    from: String,
    /// What is done to them first.
    enter: &'static str,
    /// What sends frames there.
    leave: String,
    /// What frames to there that are dropped match, beside what says their circuit.
    kept_out: Option<&'static str>,
    /// The port that is joined there; none: an interface that leads outside, which others use as well.
    joined: Option<Peer>,
}

/// Addresses of a link's own protocols (IEEE 802.1Q, table 8-1).
const LINK_PROTOCOLS: &str = "dl_dst=01:80:c2:00:00:00/ff:ff:ff:ff:ff:f0";
/// Of rules that drop: above those that forward.
const DROPS_FIRST: &str = "priority=40000";

impl KEnd {
    /// A port that is this end alone.
    fn port(port: &PortName, joined: Peer) -> Self {
        let (from, leave) = (format!("in_port={port}"), format!("output:{port}"));
        Self { from, enter: "", leave, kept_out: None, joined: Some(joined) }
    }

    /// An interface that leads outside, or a VLAN of it.
    fn outside(door: &Door) -> Self {
        let port = names::door(&door.interface);
        let kept_out = Some(LINK_PROTOCOLS);
        let Some(vlan) = door.vlan else {
            let (from, leave) = (format!("in_port={port}"), format!("output:{port}"));
            return Self { from, enter: "", leave, kept_out, joined: None };
        };
        // OpenFlow 1.3, 7.2.3.7: bit 12 says that there is a tag.
        let tag = 0x1000 | vlan;
        Self {
            from: format!("in_port={port},dl_vlan={vlan}"),
            enter: "pop_vlan,",
            leave: format!("push_vlan:0x8100,set_field:{tag}->vlan_vid,output:{port}"),
            kept_out,
            joined: None,
        }
    }

    /// Rules that drop what may not come in or go out here; `to`: what frames to here match.
    fn drops(&self, to: &str) -> Vec<String> {
        let drop = |of: &str| Some(format!("{DROPS_FIRST},{of},{},actions=drop", self.kept_out?));
        [&*self.from, to].into_iter().filter_map(drop).collect()
    }
}

impl Work<'_> {
    fn part(&mut self, node: &Name) -> &mut Part {
        self.parts.entry(node.clone()).or_default()
    }

    fn switch(&mut self, node: &Name, name: SwitchName) -> &mut PartSwitch {
        let entry = self.switches.entry((node.clone(), name.clone()));
        entry.or_insert_with(|| PartSwitch::named(name))
    }

    fn k(&mut self, node: &Name) -> &mut PartSwitch {
        let k = self.switch(node, names::k());
        k.declared_by = UNDERLAY.parse().ok();
        k
    }

    fn switches(&mut self) {
        for (name, it) in &self.spec.switches {
            let settings = self.spec.switch(it);
            let controllers = settings.controllers.unwrap_or_default();
            let sessions = controllers.iter().any(|it| inside(self.spec, it).is_some());
            let called = controllers.iter().map(|it| self.controller(it)).collect();
            let node = &self.decision.nodes[name];
            let netns = sessions.then(|| self.names.control(node));
            let named = self.names.switch(name);
            let dpid = it
                .dpid
                .clone()
                .unwrap_or_else(|| Dpid::derived(&self.decision.uid.to_string(), &named));
            let packet_ins = self.spec.budget.packet_ins;
            let switch = self.switch(node, named);
            switch.dpid = Some(dpid);
            switch.fail_mode = settings.fail_mode;
            switch.protocols = settings.protocols.unwrap_or_default();
            switch.controllers = called;
            switch.session_netns = netns;
            switch.max_packet_in_per_s = packet_ins;
        }
    }

    /// A controller as the node calls it: a guest's name is its address on the control network.
    fn controller(&self, controller: &Controller) -> Controller {
        let control = self.decision.control.as_ref();
        let number = inside(self.spec, controller).and_then(|guest| control?.guests.get(guest));
        let Some(&number) = number else { return controller.clone() };
        let target = controller.target();
        Controller::at(target.transport, (control_v4(number), target.port).into())
    }

    fn guests(&mut self) {
        for (name, guest) in self.spec.guests.iter().filter(|(_, it)| it.kind == GuestKind::Process)
        {
            let interface =
                |(port, wish): (&Name, &crate::file::slice::GuestPort)| GuestInterface {
                    name: port.parse().expect("the grammar allows names of interfaces alone"),
                    addresses: wish.addresses.iter().map(ToString::to_string).collect(),
                };
            let mut interfaces: Vec<GuestInterface> = guest.ports.iter().map(interface).collect();
            let member = self.decision.control.as_ref().filter(|_| guest.control);
            interfaces.extend(
                member.map(|control| control_interface(self.decision.uid, control.guests[name])),
            );
            let hosts = member.map(|control| hosts(self.decision.uid, control)).unwrap_or_default();
            let made = GuestSpec {
                name: name.to_string(),
                netns: self.names.netns(name),
                command: guest.command.clone(),
                files: texts(guest),
                hosts,
                restart: self.spec.restart(guest),
                cpu_milli: Some(self.spec.cpu(guest).0),
                memory: Some(self.spec.memory(guest).0),
                pids: Some(self.spec.pids(guest)),
                interface: interfaces,
            };
            self.part(&self.decision.nodes[name]).guest.push(made);
        }
    }

    fn wire(&mut self, wire: &Wire) {
        if let Some(circuit) = self.decision.circuits.get(&wire.name) {
            let ends = [0, 1].map(|n| self.k_end(wire, n));
            return self.circuit(&wire.name, circuit, ends);
        }
        let [a, b] = &wire.ends;
        match [a, b].map(|end| self.spec.switches.contains_key(&end.of)) {
            [true, true] => self.vlink(a, b),
            [true, false] => self.guest_port(b, a),
            _ => self.guest_port(a, b),
        }
    }

    /// A link of two switches on one node.
    fn vlink(&mut self, a: &End, b: &End) {
        for (own, other) in [(a, b), (b, a)] {
            let kind = Kind::Vlink(Vlink { peer: self.peer(other) });
            self.add_port(own, kind, None);
        }
    }

    /// A guest's port that is a port of a switch on its node.
    fn guest_port(&mut self, guest: &End, switch: &End) {
        let kind = self.port_of_guest(guest);
        let mtu = self.mtu_at(switch);
        self.add_port(switch, kind, mtu);
    }

    fn add_port(&mut self, end: &End, kind: Kind, mtu: Option<u32>) {
        let number = self.number(end);
        let mut port = PortSpec::new(names::port(number), kind);
        port.number = PortNumber::new(number.into());
        port.mtu = mtu;
        let (node, name) = (self.decision.nodes[&end.of].clone(), self.names.switch(&end.of));
        self.switch(&node, name).port.push(port);
    }

    fn number(&self, end: &End) -> u16 {
        match &end.port {
            EndPort::Number(number) => *number,
            EndPort::Named(_) => self.decision.ports[&end.to_string()],
        }
    }

    /// A switch's port as others name it.
    fn peer(&self, end: &End) -> Peer {
        Peer::new(self.names.switch(&end.of), names::port(self.number(end)))
    }

    fn port_of_guest(&self, end: &End) -> Kind {
        let EndPort::Named(name) = &end.port else { unreachable!("a guest's port has a name") };
        let guest = &self.spec.guests[&end.of];
        let port = &guest.ports[name];
        let mac = port.mac.clone().unwrap_or_else(|| self.names.mac(&end.of, name));
        match (port.kind.unwrap_or(PortType::Tap), guest.kind) {
            (PortType::VhostUser, _) => Kind::VhostUser(VhostUser {
                socket: self.names.socket(port.socket.as_deref().unwrap_or_default()),
                server: None,
                owner: None,
                group: None,
                mode: None,
                queues: port.queues,
                mac: Some(mac),
            }),
            (PortType::Tap, GuestKind::Process) => Kind::Tap(Tap {
                interface: name.parse().ok(),
                netns: Some(self.names.netns(&end.of)),
                mac: Some(mac),
                queues: None,
            }),
            (PortType::Tap, GuestKind::Port) => Kind::Tap(Tap {
                interface: Some(self.names.interface(&end.of, name)),
                mac: Some(mac),
                ..Tap::default()
            }),
        }
    }

    /// The least MTU of a switch's links, where it is not Ethernet's own: what a guest there may send.
    fn mtu_at(&self, switch: &End) -> Option<u32> {
        let links = self.spec.links.values();
        let here = links.filter(|link| link.between.iter().any(|end| end.of == switch.of));
        let least = here.map(|link| self.spec.mtu(link)).min();
        let mtu = least.or(self.spec.defaults.link.mtu)?;
        (mtu != crate::file::slice::LINK_MTU).then_some(mtu.into())
    }

    /// Makes the port of `K` that a wire's end is.
    fn k_end(&mut self, wire: &Wire, n: usize) -> KEnd {
        if let Some(door) = self.decision.doors.get(&wire.ends[n].of) {
            return KEnd::outside(door);
        }
        let (end, port) = (&wire.ends[n], self.names.k_port(&wire.name, n));
        let node = self.decision.nodes[&end.of].clone();
        let in_k = Peer::new(names::k(), port.clone());
        if self.spec.switches.contains_key(&end.of) {
            self.add_port(end, Kind::Vlink(Vlink { peer: in_k }), None);
            let joined = self.peer(end);
            self.k(&node)
                .port
                .push(PortSpec::new(port.clone(), Kind::Vlink(Vlink { peer: joined.clone() })));
            return KEnd::port(&port, joined);
        }
        let mut own = PortSpec::new(port.clone(), self.port_of_guest(end));
        own.mtu = (wire.mtu != crate::file::slice::LINK_MTU).then_some(wire.mtu.into());
        self.k(&node).port.push(own);
        KEnd::port(&port, in_k)
    }

    /// Rules of a circuit on all its nodes, and what is to be proved at its ends.
    fn circuit(&mut self, wire: &str, circuit: &Circuit, ends: [KEnd; 2]) {
        let id = circuit.id;
        if circuit.hops.is_empty() {
            let k = self.k(&circuit.from);
            for (n, meter) in [(0, id), (1, id | 1)] {
                let (own, other) = (&ends[n], &ends[1 - n]);
                k.meters.push(meter_text(meter, circuit.rate));
                let (from, enter, leave) = (&own.from, own.enter, &other.leave);
                k.flows.push(format!("{from},actions={enter}meter:{meter},{leave}"));
                k.flows.extend(own.drops(&other.from));
            }
            return;
        }
        let nodes: Vec<&Name> = circuit.nodes().collect();
        let ways =
            [self.tunnel(circuit, 0, 1), self.tunnel(circuit, nodes.len() - 1, nodes.len() - 2)];
        for ((end, way), n) in ends.into_iter().zip(ways).zip([0, 1]) {
            let (near, far) =
                if n == 0 { (&circuit.from, circuit.to()) } else { (circuit.to(), &circuit.from) };
            let k = self.k(near);
            k.meters.push(meter_text(id, circuit.rate));
            k.flows.extend(end_rules(id, &end, &way));
            k.flows.extend(end.drops(&format!("in_port={way},tun_id={id}")));
            let spec = CircuitSpec {
                link: wire.into(),
                port: end.joined.clone(),
                id,
                near: near.to_string(),
                far: far.to_string(),
                mtu: circuit.mtu,
            };
            self.part(near).circuit.push(spec);
        }
        for (at, node) in nodes.iter().enumerate().take(nodes.len() - 1).skip(1) {
            let (back, on) = (self.tunnel(circuit, at, at - 1), self.tunnel(circuit, at, at + 1));
            for (from, to) in [(&back, &on), (&on, &back)] {
                self.k(node).flows.extend(transit(id, from, to));
            }
        }
    }

    /// The port of `K` by which one node of a way reaches the one before or after it.
    fn tunnel(&self, circuit: &Circuit, from: usize, to: usize) -> PortName {
        let hop = &circuit.hops[from.min(to)];
        let node = circuit.nodes().nth(to).expect("a way has a node at each end of a hop");
        names::tunnel(&hop.underlay, node)
    }

    fn control(&mut self, control: &Control) {
        for (node, number) in &control.nodes {
            let hidden = self.names.switch(CONTROL_SWITCH);
            let dpid = Dpid::derived(&format!("{}/{node}", self.decision.uid), &hidden);
            let netns = self.names.control(node);
            let mut taps = vec![netns.clone()];
            let members =
                control.guests.keys().filter(|guest| self.decision.nodes[*guest] == *node);
            taps.extend(members.map(|guest| self.names.netns(guest)));
            let session = GuestSpec {
                name: CONTROL_SWITCH.into(),
                netns: netns.clone(),
                command: Vec::new(),
                files: BTreeMap::new(),
                hosts: BTreeMap::new(),
                restart: api::Restart::Always,
                cpu_milli: None,
                memory: None,
                pids: None,
                interface: vec![control_interface(self.decision.uid, *number)],
            };
            self.part(node).guest.push(session);
            let switch = self.switch(node, hidden);
            (switch.dpid, switch.fail_mode) = (Some(dpid), Some(FailMode::Standalone));
            switch.session_netns = Some(netns);
            for netns in taps {
                let interface = CONTROL_INTERFACE.parse().ok();
                let tap = Tap { interface, netns: Some(netns), ..Tap::default() };
                next_port(switch, Kind::Tap(tap));
            }
        }
        for node in control.nodes.keys() {
            let wire = format!("{CONTROL_PREFIX}{node}");
            let Some(circuit) = self.decision.circuits.get(&wire) else { continue };
            let ends = [(0, &control.hub), (1, node)].map(|(n, at)| {
                let (port, hidden) =
                    (self.names.k_port(&wire, n), self.names.switch(CONTROL_SWITCH));
                let in_k = Peer::new(names::k(), port.clone());
                let own =
                    next_port(self.switch(at, hidden.clone()), Kind::Vlink(Vlink { peer: in_k }));
                let joined = Peer::new(hidden, own);
                self.k(at)
                    .port
                    .push(PortSpec::new(port.clone(), Kind::Vlink(Vlink { peer: joined.clone() })));
                KEnd::port(&port, joined)
            });
            self.circuit(&wire, circuit, ends);
        }
    }

    fn finish(mut self) -> Named<Part> {
        for ((node, _), mut switch) in std::mem::take(&mut self.switches) {
            switch.port.sort_by(|a, b| (a.number, &a.name).cmp(&(b.number, &b.name)));
            switch.flows.sort();
            switch.meters.sort();
            self.part(&node).switch.push(switch);
        }
        for part in self.parts.values_mut() {
            part.guest.sort_by(|a, b| a.name.cmp(&b.name));
            part.circuit.sort_by(|a, b| (&a.link, &a.port).cmp(&(&b.link, &b.port)));
        }
        self.parts
    }
}

/// Adds a port with the next number. Its number depends on what is before it, which the decision's order fixes.
fn next_port(switch: &mut PartSwitch, kind: Kind) -> PortName {
    let number = u16::try_from(switch.port.len() + 1).expect("a hidden switch has few ports");
    let mut port = PortSpec::new(names::port(number), kind);
    port.number = PortNumber::new(number.into());
    switch.port.push(port);
    names::port(number)
}

fn meter_text(meter: u32, rate: u64) -> String {
    format!("meter={meter},kbps,band=type=drop,rate={}", (rate / 1000).max(1))
}

fn end_rules(id: u32, end: &KEnd, way: &PortName) -> [String; 4] {
    let (probe_id, address) = (id | 1, address(id));
    let KEnd { from, enter, leave, .. } = end;
    [
        format!("{from},actions={enter}meter:{id},set_field:{id}->tun_id,output:{way}"),
        format!("in_port={way},tun_id={id},actions={leave}"),
        format!(
            "in_port={PROBE},dl_dst={address},actions=set_field:{probe_id}->tun_id,output:{way}"
        ),
        format!(
            "in_port={way},tun_id={probe_id},actions=set_field:{address}->eth_dst,output:{PROBE}"
        ),
    ]
}

fn address(id: u32) -> String {
    let [a, b, c, d, e, f] = CircuitSpec::probe_address(id);
    format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
}

/// Probes by an id that no rule of a circuit knows go to the prober, too: it says whose they are.
fn stray_rule(way: &PortName) -> String {
    let address = address(0);
    format!(
        "priority=1,in_port={way},tun_id=1/1,actions=set_field:{address}->eth_dst,output:{PROBE}"
    )
}

/// Of probes the node's prober has a copy: what comes so far and not to the end says at which hop it is lost.
fn transit(id: u32, from: &PortName, to: &PortName) -> [String; 2] {
    let on = |id| format!("in_port={from},tun_id={id},actions=set_field:{id}->tun_id,output:{to}");
    let address = address(id);
    [on(id), format!("{},set_field:{address}->eth_dst,output:{PROBE}", on(id | 1))]
}

fn texts(guest: &Guest) -> BTreeMap<String, String> {
    let text = |(name, file): (&String, &crate::file::slice::FileText)| match file {
        crate::file::slice::FileText::Text(text) => Some((name.clone(), text.clone())),
        crate::file::slice::FileText::From(_) => None,
    };
    guest.files.iter().filter_map(text).collect()
}

/// The control network's IPv4: 100.64.0.0/16 (RFC 6598), which no tenant's own network is likely to have. Each slice has it to itself.
fn control_v4(number: u16) -> IpAddr {
    let [high, low] = number.to_be_bytes();
    Ipv4Addr::new(100, 64, high, low).into()
}

/// Its IPv6: a unique local prefix (RFC 4193) from the slice's uid.
fn control_v6(uid: Uid, number: u16) -> IpAddr {
    let hash = uid.hash("control").to_be_bytes();
    let word = |n: usize| u16::from_be_bytes([hash[n], hash[n + 1]]);
    Ipv6Addr::new(0xfd00 | word(0) >> 8, word(2), word(4), 0, 0, 0, 0, number).into()
}

fn control_interface(uid: Uid, number: u16) -> GuestInterface {
    GuestInterface {
        name: CONTROL_INTERFACE.parse().expect("a short word"),
        addresses: vec![
            format!("{}/16", control_v4(number)),
            format!("{}/64", control_v6(uid, number)),
        ],
    }
}

fn hosts(uid: Uid, control: &Control) -> BTreeMap<String, Vec<IpAddr>> {
    let host = |(name, number): (&Name, &u16)| {
        (name.to_string(), vec![control_v4(*number), control_v6(uid, *number)])
    };
    control.guests.iter().map(host).collect()
}

/// The part that each node has beside those of slices: `K`, a tunnel to each node that it reaches in one hop, the prober's port, and the
/// interfaces that lead outside.
pub fn underlay(world: &World) -> Named<Part> {
    let domain = world.domain();
    let one = |(name, node): (&Name, &crate::file::domain::Node)| {
        let mut k = PartSwitch::named(names::k());
        k.fail_mode = Some(FailMode::Secure);
        let widest =
            node.underlay.keys().filter_map(|it| domain.underlays.get(it)).map(|it| it.mtu).max();
        let tap = Tap { interface: PROBE_INTERFACE.parse().ok(), ..Tap::default() };
        let mut probe = PortSpec::new(PROBE.parse().expect("a short word"), Kind::Tap(tap));
        probe.mtu = widest.map(u32::from);
        k.port.push(probe);
        let tunnels = node.underlay.iter().flat_map(|(underlay, own)| {
            let others = domain.nodes.iter().filter(move |(other, _)| *other != name);
            others.filter_map(move |(other, it)| {
                let theirs = it.underlay.get(underlay)?;
                let joined = it.site == node.site
                    || domain.segments.values().any(|segment| {
                        segment.underlay == *underlay
                            && segment.between.contains(&node.site)
                            && segment.between.contains(&it.site)
                    });
                joined.then(|| {
                    tunnel_port(names::tunnel(underlay, other), &own.addresses, &theirs.addresses)
                })
            })
        });
        let doors = domain.externals.values().filter(|it| it.node == *name);
        let interfaces: BTreeSet<&IfName> = doors.map(|it| &it.interface).collect();
        k.port.extend(interfaces.into_iter().map(door_port));
        for tunnel in tunnels {
            k.flows.push(stray_rule(&tunnel.name));
            k.port.push(tunnel);
        }
        k.port.sort_by(|a, b| a.name.cmp(&b.name));
        (name.clone(), Part { switch: vec![k], ..Part::default() })
    };
    domain.nodes.iter().map(one).collect()
}

/// An interface that leads outside. It is the host's no more: one that the host uses is refused, unless somebody takes it over by hand.
fn door_port(interface: &IfName) -> PortSpec {
    let kind = AfPacket { interface: Some(interface.clone()), ..AfPacket::default() };
    PortSpec::new(names::door(interface), Kind::AfPacket(kind))
}

fn tunnel_port(name: PortName, own: &[IpAddr], theirs: &[IpAddr]) -> PortSpec {
    let list = |addresses: &[IpAddr]| {
        addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    };
    let vxlan = Vxlan {
        remote: list(theirs).parse::<Remote>().expect("addresses of one family"),
        key: "flow".parse::<TunnelKey>().expect("a word that it knows"),
        local: list(own).parse::<Addresses>().ok(),
        flow_id: None,
        netns: None,
        udp_port: None,
        dscp: None,
        ttl: None,
        mss_clamp: None,
        outer_checksum: None,
        forwarding: None,
        encrypt: None,
        seal_core: None,
        queues: None,
        mac: None,
    };
    PortSpec::new(name, Kind::Vxlan(Box::new(vxlan)))
}
