//! What several parts of a file say together: references, ports that are used once, ends that exist. Needs no domain.

use super::domain::{DomainSpec, Family};
use super::slice::{FileText, Guest, GuestKind, PortType, SliceSpec};
use crate::fault::Fault;
use crate::grammar::Source;
use crate::words::{End, EndPort, Name};
use api::nearest;
use std::collections::{BTreeMap, HashMap};

/// Most bytes of all files of a slice's guests.
const FILES_MAX: usize = 1 << 20;
/// Most ports of one switch. Chosen: what a node's switch is tested with.
const SWITCH_PORTS_MAX: usize = 4_096;

/// What names the nearest of some names.
pub fn unknown(thing: String, given: &str, names: impl Iterator<Item = String>) -> Fault {
    let names: Vec<String> = names.collect();
    let words: Vec<&str> = names.iter().map(String::as_str).collect();
    let remedy = match nearest(given, &words) {
        Some(name) => format!("did you mean {name}?"),
        None if words.is_empty() => "declare it".into(),
        None => {
            format!("there are: {}", words.iter().take(8).copied().collect::<Vec<_>>().join(", "))
        }
    };
    Fault::new(thing, "is unknown").remedy(remedy)
}

/// Every fault of a slice by itself.
pub fn slice(spec: &SliceSpec, source: &Source) -> Vec<Fault> {
    let mut check = Check { spec, source, faults: Vec::new(), ends: HashMap::new() };
    check.names();
    check.places();
    check.ends();
    check.guests();
    check.switches();
    let mut faults = check.faults;
    faults.sort_by_key(|fault| fault.at.as_ref().map(|at| at.line));
    faults
}

struct Check<'a> {
    spec: &'a SliceSpec,
    source: &'a Source,
    faults: Vec<Fault>,
    /// Who uses an end first.
    ends: HashMap<&'a End, String>,
}

impl<'a> Check<'a> {
    fn note(&mut self, pointer: &str, fault: Fault) {
        self.faults.push(fault.at(self.source.place(pointer)));
    }

    /// Switches, guests and externals share one set of names: all are ends of wires, and the first two wishes of places.
    fn names(&mut self) {
        let spec = self.spec;
        for name in spec.guests.keys().filter(|name| spec.switches.contains_key(*name)) {
            let fault = Fault::new(format!("guest {name}"), "has the name of a switch");
            self.note(&format!("/guests/{name}"), fault.remedy("give one of them another name"));
        }
        for name in spec.externals.keys() {
            let kinds = [
                ("guest", spec.guests.contains_key(name)),
                ("switch", spec.switches.contains_key(name)),
            ];
            for (kind, _) in kinds.into_iter().filter(|(_, has)| *has) {
                let fault =
                    Fault::new(format!("external {name}"), format!("has the name of a {kind}"));
                self.note(
                    &format!("/externals/{name}"),
                    fault.remedy("give one of them another name"),
                );
            }
        }
    }

    fn places(&mut self) {
        let spec = self.spec;
        let switches =
            spec.switches.iter().map(|(name, it)| ("switch", "switches", name, &it.place));
        let guests = spec.guests.iter().map(|(name, it)| ("guest", "guests", name, &it.place));
        for (kind, table, name, wish) in switches.chain(guests) {
            let pointer = format!("/{table}/{name}/place");
            for other in wish.with.iter().chain(&wish.apart_from) {
                if other == name {
                    let what = "has a place beside or apart from itself";
                    let fault = Fault::new(format!("{kind} {name}"), what);
                    self.note(&pointer, fault.remedy("name another one"));
                } else if self.site_of(other).is_none() {
                    let thing = format!("{other:?} in the place of {kind} {name}");
                    let names = spec.switches.keys().chain(spec.guests.keys());
                    let fault = unknown(thing, other, names.map(Name::to_string));
                    self.note(&pointer, fault);
                }
            }
            let with = wish.with.as_ref().and_then(|other| Some((other, self.site_of(other)?)));
            let own = self.site_of(name);
            if let Some((other, site)) = with.filter(|(_, site)| Some(*site) != own) {
                let what = format!("is to be with {other}, which is at {site}");
                let fault = Fault::new(format!("{kind} {name}"), what);
                self.note(
                    &pointer,
                    fault.remedy(format!("give both the same site, or drop `with: {other}`")),
                );
            }
        }
    }

    fn site_of(&self, name: &Name) -> Option<&'a Name> {
        let switch = self.spec.switches.get(name).map(|switch| &switch.site);
        switch.or_else(|| self.spec.guests.get(name).map(|guest| &guest.site))
    }

    fn ends(&mut self) {
        let spec = self.spec;
        for (name, link) in &spec.links {
            for (n, end) in link.between.iter().enumerate() {
                let pointer = format!("/links/{name}/between/{n}");
                self.claim(&pointer, format!("link {name}"), end);
            }
            if link.between[0].of == link.between[1].of
                && !spec.switches.contains_key(&link.between[0].of)
            {
                let fault = Fault::new(format!("link {name}"), "joins a guest with itself");
                self.note(&format!("/links/{name}"), fault.remedy("name a port of another one"));
            }
        }
        for (name, it) in &spec.externals {
            let (thing, pointer) = (format!("external {name}"), format!("/externals/{name}/to"));
            match spec.switches.contains_key(&it.to.of) {
                true => self.claim(&pointer, thing, &it.to),
                false => {
                    let what = format!("switch {:?} of {thing}", it.to.of.to_string());
                    let names = spec.switches.keys().map(Name::to_string);
                    self.note(&pointer, unknown(what, &it.to.of, names));
                }
            }
        }
        for (guest, it) in &spec.guests {
            for (port, wish) in &it.ports {
                let pointer = format!("/guests/{guest}/ports/{port}");
                let thing = format!("port {port} of guest {guest}");
                let own = End { of: guest.clone(), port: EndPort::Named(port.clone()) };
                let linked = spec.links.values().any(|link| link.between.contains(&own));
                match &wish.to {
                    Some(to) if !spec.switches.contains_key(&to.of) => {
                        let what = format!("switch {:?} of {thing}", to.of.to_string());
                        let fault =
                            unknown(what, &to.of, spec.switches.keys().map(Name::to_string));
                        self.note(&format!("{pointer}/to"), fault);
                    }
                    Some(_) if linked => {
                        let fault = Fault::new(
                            thing,
                            "is joined with a switch and is the end of a link, too",
                        );
                        self.note(&pointer, fault.remedy("drop `to`, or the link"));
                    }
                    Some(to) => self.claim(&format!("{pointer}/to"), thing, to),
                    None if !linked => {
                        let fault = Fault::new(thing, "is joined with nothing");
                        self.note(&pointer, fault.remedy("add to: \"SWITCH:NUMBER\", or a link"));
                    }
                    None => {}
                }
            }
        }
    }

    /// An end exists, and is used once.
    fn claim(&mut self, pointer: &str, thing: String, end: &'a End) {
        let spec = self.spec;
        let is_switch = spec.switches.contains_key(&end.of);
        let guest = spec.guests.get(&end.of);
        match (is_switch, guest, &end.port) {
            (true, _, _) => {}
            (_, Some(guest), EndPort::Named(port)) if guest.ports.contains_key(port) => {}
            (_, Some(guest), _) => {
                let given = end.to_string();
                let names = guest.ports.keys().map(|port| format!("{}:{port}", end.of));
                let fault = unknown(format!("end {given:?} of {thing}"), &given, names);
                return self.note(pointer, fault);
            }
            _ => {
                let names = spec.switches.keys().chain(spec.guests.keys()).map(Name::to_string);
                let fault = unknown(
                    format!("{:?}, an end of {thing},", end.of.to_string()),
                    &end.of,
                    names,
                );
                return self.note(pointer, fault);
            }
        }
        if let Some(first) = self.ends.get(end) {
            let what = format!("wants port {end}, which {first} has");
            self.note(pointer, Fault::new(thing, what).remedy("give each its own port"));
        } else {
            self.ends.insert(end, thing);
        }
    }

    fn guests(&mut self) {
        let spec = self.spec;
        let mut bytes = 0;
        for (name, guest) in &spec.guests {
            let pointer = format!("/guests/{name}");
            let (thing, port) = (format!("guest {name}"), guest.kind == GuestKind::Port);
            let of_process = [
                ("control", guest.control),
                ("command", !guest.command.is_empty()),
                ("files", !guest.files.is_empty()),
                ("cpu", guest.cpu.is_some()),
                ("memory", guest.memory.is_some()),
                ("pids", guest.pids.is_some()),
                ("restart", guest.restart.is_some()),
            ];
            for (key, _) in of_process.into_iter().filter(|(_, given)| *given && port) {
                let fault = Fault::new(thing.clone(), format!("is a port, and has no `{key}`"));
                self.note(
                    &format!("{pointer}/{key}"),
                    fault.remedy("remove it, or make it kind: process"),
                );
            }
            for text in guest.files.values() {
                bytes += if let FileText::Text(text) = text { text.len() } else { 0 };
            }
            self.ports_of(&pointer, &thing, guest);
        }
        if bytes > FILES_MAX {
            let fault = Fault::new(
                "files of guests",
                format!("have {bytes} bytes, and {FILES_MAX} are the most"),
            );
            self.note("/guests", fault.remedy("keep large files in images"));
        }
    }

    fn ports_of(&mut self, pointer: &str, thing: &str, guest: &Guest) {
        for (name, port) in &guest.ports {
            let here = format!("{pointer}/ports/{name}");
            let what = format!("port {name} of {thing}");
            let kind = port.kind.unwrap_or(PortType::Tap);
            let shared = kind == PortType::VhostUser;
            let wrong = [
                (
                    "type",
                    shared && guest.kind == GuestKind::Process,
                    "is of a process, which has interfaces alone",
                ),
                (
                    "socket",
                    shared && port.socket.is_none(),
                    "is of type vhost-user and needs `socket`",
                ),
                ("socket", !shared && port.socket.is_some(), "is an interface and has no `socket`"),
                ("queues", !shared && port.queues.is_some(), "is an interface and has no `queues`"),
                (
                    "addresses",
                    guest.kind == GuestKind::Port && !port.addresses.is_empty(),
                    "is for what you bring, which has its own addresses",
                ),
            ];
            for (key, _, problem) in wrong.into_iter().filter(|(_, wrong, _)| *wrong) {
                let remedy = if key == "socket" && shared {
                    "add socket: NAME.sock".into()
                } else {
                    format!("remove `{key}`")
                };
                self.note(
                    &format!("{here}/{key}"),
                    Fault::new(what.clone(), problem).remedy(remedy),
                );
            }
        }
    }

    fn switches(&mut self) {
        let spec = self.spec;
        let mut ids: BTreeMap<u64, &Name> = BTreeMap::new();
        for (name, switch) in &spec.switches {
            let Some(dpid) = &switch.dpid else { continue };
            if let Some(first) = ids.insert(dpid.get(), name) {
                let fault = Fault::new(
                    format!("switch {name}"),
                    format!("has the datapath id of switch {first}, {dpid}"),
                );
                self.note(
                    &format!("/switches/{name}/dpid"),
                    fault.remedy("controllers tell switches apart by it: give each its own"),
                );
            }
        }
        let mut ports: BTreeMap<&Name, usize> = BTreeMap::new();
        self.ends.keys().for_each(|end| *ports.entry(&end.of).or_default() += 1);
        for (name, count) in ports.into_iter().filter(|(_, count)| *count > SWITCH_PORTS_MAX) {
            let fault = Fault::new(
                format!("switch {name}"),
                format!("has {count} ports, and {SWITCH_PORTS_MAX} are the most"),
            );
            self.note(&format!("/switches/{name}"), fault.remedy("divide it"));
        }
    }
}

/// Every fault of a domain by itself.
pub fn domain(spec: &DomainSpec, source: &Source) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut note = |pointer: String, fault: Fault| faults.push(fault.at(source.place(&pointer)));
    let sites = || spec.sites.keys().map(Name::to_string);
    let underlays = || spec.underlays.keys().map(Name::to_string);
    for (name, segment) in &spec.segments {
        let here = format!("/segments/{name}");
        for (n, site) in
            segment.between.iter().enumerate().filter(|(_, site)| !spec.sites.contains_key(*site))
        {
            note(
                format!("{here}/between/{n}"),
                unknown(format!("site {:?} of segment {name}", site.to_string()), site, sites()),
            );
        }
        if segment.between[0] == segment.between[1] {
            let fault = Fault::new(format!("segment {name}"), "joins a site with itself");
            note(
                format!("{here}/between"),
                fault.remedy("nodes of one site reach each other without one"),
            );
        }
        if !spec.underlays.contains_key(&segment.underlay) {
            let thing = format!("underlay {:?} of segment {name}", segment.underlay.to_string());
            note(format!("{here}/underlay"), unknown(thing, &segment.underlay, underlays()));
        }
    }
    let mut addresses = HashMap::new();
    for (name, node) in &spec.nodes {
        let here = format!("/nodes/{name}");
        if !spec.sites.contains_key(&node.site) {
            note(
                format!("{here}/site"),
                unknown(
                    format!("site {:?} of node {name}", node.site.to_string()),
                    &node.site,
                    sites(),
                ),
            );
        }
        for (underlay, attachment) in &node.underlay {
            let at = format!("{here}/underlay/{underlay}");
            let Some(known) = spec.underlays.get(underlay) else {
                note(
                    at,
                    unknown(
                        format!("underlay {:?} of node {name}", underlay.to_string()),
                        underlay,
                        underlays(),
                    ),
                );
                continue;
            };
            if attachment.addresses.is_empty() {
                let fault = Fault::new(
                    format!("node {name}"),
                    format!("has no address on underlay {underlay}"),
                );
                note(at.clone(), fault.remedy("add one to addresses"));
            }
            for address in &attachment.addresses {
                if address.is_ipv4() != (known.family == Family::Ipv4) {
                    let family = Family::WORDS[known.family as usize];
                    let fault = Fault::new(
                        format!("address {address} of node {name}"),
                        format!("is none of {family}, which underlay {underlay} is"),
                    );
                    note(format!("{at}/addresses"), fault.remedy("write one of that family"));
                }
                if let Some(first) = addresses.insert((underlay, address), name) {
                    let fault = Fault::new(
                        format!("node {name}"),
                        format!(
                            "has address {address} on underlay {underlay}, which node {first} has"
                        ),
                    );
                    note(format!("{at}/addresses"), fault.remedy("give each node its own"));
                }
            }
        }
    }
    externals(spec, &mut note);
    faults.sort_by_key(|fault| fault.at.as_ref().map(|at| at.line));
    faults
}

/// Doors: their nodes and tenants are there, nobody else has their frames.
fn externals(spec: &DomainSpec, note: &mut dyn FnMut(String, Fault)) {
    for (name, it) in &spec.externals {
        let (here, thing) = (format!("/externals/{name}"), format!("external {name}"));
        let Some(node) = spec.nodes.get(&it.node) else {
            let what = format!("node {:?} of {thing}", it.node.to_string());
            note(
                format!("{here}/node"),
                unknown(what, &it.node, spec.nodes.keys().map(Name::to_string)),
            );
            continue;
        };
        let carries = |at: &super::domain::Attachment| at.interface.as_ref() == Some(&it.interface);
        if let Some((underlay, _)) = node.underlay.iter().find(|(_, at)| carries(at)) {
            let what = format!(
                "has interface {} of node {}, which carries underlay {underlay}",
                it.interface, it.node
            );
            note(
                format!("{here}/interface"),
                Fault::new(thing.clone(), what).remedy("give it an interface of its own"),
            );
        }
        for (n, tenant) in
            it.tenants.iter().enumerate().filter(|(_, it)| !spec.tenants.contains_key(*it))
        {
            let what = format!("tenant {:?} of {thing}", tenant.to_string());
            note(
                format!("{here}/tenants/{n}"),
                unknown(what, tenant, spec.tenants.keys().map(Name::to_string)),
            );
        }
        let same = |other: &super::domain::External| {
            let place = (&other.node, &other.interface) == (&it.node, &it.interface);
            place && (other.vlan.is_none() || it.vlan.is_none() || other.vlan == it.vlan)
        };
        let mut before = spec.externals.iter().take_while(|(other, _)| *other != name);
        if let Some((other, _)) = before.find(|(_, other)| same(other)) {
            let what =
                format!("has frames of interface {} that external {other} has", it.interface);
            note(format!("{here}/vlan"), Fault::new(thing, what).remedy("give each its own vlan"));
        }
    }
}
