//! Names on a node: from a slice's uid and words, within what kernel and OpenFlow allow; nobody has to remember them.

use crate::words::{Name, SliceKey, Uid};
use api::{IfName, Mac, Netns, PartName, PortName, SocketPath, SwitchName};

/// The node's own switch, which carries circuits.
pub const K: &str = "K";
/// K's port to the node's prober.
pub const PROBE: &str = "probe";
/// The interface of that port.
pub const PROBE_INTERFACE: &str = "su-probe";
/// The interface that a member of the control network has there.
pub const CONTROL_INTERFACE: &str = "ctl0";
/// A slice's hidden switch of the control network. No name of a user's begins so.
pub const CONTROL_SWITCH: &str = "_ctl";

fn parse<T: std::str::FromStr>(text: &str, what: &str) -> T
where
    T::Err: std::fmt::Display,
{
    text.parse().unwrap_or_else(|error| panic!("{what} is built to fit: {error}"))
}

/// Names of one slice.
pub struct Names<'a> {
    key: &'a SliceKey,
    uid: Uid,
}

impl<'a> Names<'a> {
    /// Of that slice in that life.
    pub fn new(key: &'a SliceKey, uid: Uid) -> Self {
        Self { key, uid }
    }

    /// A switch: `red.demo.s1`, with the uid's digits where that is too long.
    pub fn switch(&self, name: &str) -> SwitchName {
        const MOST: usize = 32;
        let plain = format!("{}.{}.{name}", self.key.tenant, self.key.slice);
        let short = format!("{}.{name}", self.uid.short());
        let hashed = || format!("{}.{:016x}", self.uid.short(), self.uid.hash(name));
        let fits = [plain, short].into_iter().find(|text| text.len() <= MOST);
        parse(&fits.unwrap_or_else(hashed), "a switch's name")
    }

    /// A guest's namespace.
    pub fn netns(&self, guest: &Name) -> Netns {
        parse(&format!("su-{}-{guest}", self.uid.short()), "a namespace's name")
    }

    /// The namespace that a node's sessions begin in. Nodes of one host have each their own; no guest's has a dot.
    pub fn control(&self, node: &Name) -> Netns {
        parse(&format!("su-{}.{node}", self.uid.short()), "a namespace's name")
    }

    /// The port of `K` that a wire's end is.
    pub fn k_port(&self, wire: &str, end: usize) -> PortName {
        let hash = self.uid.hash(&format!("{wire}#{end}"));
        parse(&format!("c{:012x}", hash >> 16), "a port's name")
    }

    /// The interface on the node of a port that somebody brings a machine for.
    pub fn interface(&self, guest: &Name, port: &Name) -> IfName {
        let hash = self.uid.hash(&format!("{guest}.{port}"));
        parse(&format!("su{:012x}", hash >> 16), "an interface's name")
    }

    /// The socket of such a port.
    pub fn socket(&self, name: &str) -> SocketPath {
        // A socket's path has 107 bytes at most; a file's name of the grammar 64.
        parse(&format!("/run/suiro/{}/{name}", self.uid.short()), "a socket's path")
    }

    /// A guest's address that nobody asked for: locally administered.
    pub fn mac(&self, guest: &Name, port: &Name) -> Mac {
        let [_, _, _, a, b, c, d, e] = self.uid.hash(&format!("mac/{guest}.{port}")).to_be_bytes();
        Mac::new([2, a, b, c, d, e]).expect("2 is no group's and not zero")
    }

    /// The slice's part on each node that has one.
    pub fn part(&self) -> PartName {
        parse(&self.uid.to_string(), "a part's name")
    }
}

/// A switch's port, by its number: no number in OpenFlow's words, and the same length everywhere.
pub fn port(number: u16) -> PortName {
    parse(&format!("p{number}"), "a port's name")
}

/// The port of `K` that leads to a node over an underlay.
pub fn tunnel(underlay: &Name, node: &Name) -> PortName {
    let plain = format!("{underlay}.{node}");
    let hashed = || format!("t{:012x}", Uid(0).hash(&plain) >> 16);
    let text = if plain.len() <= 15 { plain.clone() } else { hashed() };
    parse(&text, "a port's name")
}

/// The port of `K` on an interface that leads outside.
pub fn door(interface: &IfName) -> PortName {
    let hash = Uid(0).hash(&format!("door/{interface}"));
    parse(&format!("x{:012x}", hash >> 16), "a port's name")
}

/// The switch `K`.
pub fn k() -> SwitchName {
    parse(K, "K")
}
