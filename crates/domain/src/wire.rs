//! Wires: everything of a slice that has two ends, whoever wrote it down: a link, a guest's port that says to which switch it
//! goes, or an external.

use crate::file::slice::{LINK_MTU, Named, SliceSpec};
use crate::words::{Delay, End, EndPort, Name};

/// What the wire of an external is called: `_out.NAME`. No name of a user's begins so.
pub const OUTSIDE: &str = "_out.";

/// Something with two ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wire {
    /// Its name among the slice's wires: a link's, `guest.port`, or `_out.external`. Names of links have no dot.
    pub name: String,
    /// Its ends.
    pub ends: [End; 2],
    /// Bit/s each way; the greatest number where the operator says it.
    pub rate: u64,
    /// Whether somebody asked for that rate.
    pub rated: bool,
    /// Bytes behind the Ethernet header, beside two tags.
    pub mtu: u16,
    /// Longest time that the underlay may take.
    pub max_delay: Option<Delay>,
    /// Where it is written.
    pub pointer: String,
    /// What sentences call it.
    pub thing: String,
}

/// All wires of a slice, by name.
pub fn wires(spec: &SliceSpec) -> Vec<Wire> {
    let links = spec.links.iter().map(|(name, link)| Wire {
        name: name.to_string(),
        ends: link.between.clone(),
        rate: spec.rate(link).bits().get(),
        rated: link.rate.or(spec.defaults.link.rate).is_some(),
        mtu: spec.mtu(link),
        max_delay: link.max_delay,
        pointer: format!("/links/{name}"),
        thing: format!("link {name}"),
    });
    let default = spec.defaults.link.rate.map(|rate| rate.bits().get());
    let ports = spec.guests.iter().flat_map(move |(guest, it)| {
        it.ports.iter().filter_map(move |(port, wish)| {
            let own = End { of: guest.clone(), port: EndPort::Named(port.clone()) };
            Some(Wire {
                name: format!("{guest}.{port}"),
                ends: [own, wish.to.clone()?],
                rate: default.unwrap_or(crate::file::slice::LINK_RATE),
                rated: false,
                mtu: spec.defaults.link.mtu.unwrap_or(LINK_MTU),
                max_delay: None,
                pointer: format!("/guests/{guest}/ports/{port}"),
                thing: format!("port {port} of guest {guest}"),
            })
        })
    });
    let outside = spec.externals.iter().map(|(name, it)| Wire {
        name: format!("{OUTSIDE}{name}"),
        ends: [End { of: name.clone(), port: EndPort::Named(name.clone()) }, it.to.clone()],
        rate: it.rate.map_or(u64::MAX, |rate| rate.bits().get()),
        rated: true,
        mtu: spec.defaults.link.mtu.unwrap_or(LINK_MTU),
        max_delay: None,
        pointer: format!("/externals/{name}"),
        thing: format!("external {name}"),
    });
    links.chain(ports).chain(outside).collect()
}

impl Wire {
    /// The nodes of its ends.
    pub fn nodes<'a>(&self, nodes: &'a Named<Name>) -> [&'a Name; 2] {
        [&nodes[&self.ends[0].of], &nodes[&self.ends[1].of]]
    }

    /// Whether it needs the switch `K`: its ends are on two nodes, are both guests' or of one switch, a rate is to
    /// be kept between two switches, or it leads outside, where `K` has the interface.
    ///
    /// Otherwise it is a vlink, or the guest's port is the switch's own.
    pub fn is_circuit(&self, spec: &SliceSpec, nodes: &Named<Name>) -> bool {
        let [a, b] = self.nodes(nodes);
        let switches = self.ends.iter().filter(|end| spec.switches.contains_key(&end.of)).count();
        // A vlink joins two switches; a loop of one goes by `K`, too.
        let loops = self.ends[0].of == self.ends[1].of;
        a != b || switches == 0 || self.rated || loops
    }
}
