//! The control network: which guests and nodes are on it, with which numbers. It is there if a guest wants it.

use super::controllers::inside;
use crate::decision::Control;
use crate::file::slice::{Named, SliceSpec};
use crate::words::Name;
use std::collections::BTreeSet;

/// What the control network's circuits are called: `_ctl.NODE`. No name of a user's begins so.
pub const PREFIX: &str = "_ctl.";
/// Bit/s that each of its circuits has (D8.6).
pub const RATE: u64 = 10_000_000;

/// Members and numbers; who was a member keeps its number, and the hub stays while it is one.
pub fn plan(spec: &SliceSpec, nodes: &Named<Name>, old: Option<&Control>) -> Option<Control> {
    let guests: BTreeSet<&Name> =
        spec.guests.iter().filter(|(_, guest)| guest.control).map(|(name, _)| name).collect();
    let first: &Name = guests.first().copied()?;
    let calls_inside = |name: &&Name| {
        let controllers = spec.switch(&spec.switches[*name]).controllers.unwrap_or_default();
        controllers.iter().any(|controller| inside(spec, controller).is_some())
    };
    let switches = spec.switches.keys().filter(calls_inside);
    let at: BTreeSet<&Name> =
        guests.iter().copied().chain(switches).map(|name| &nodes[name]).collect();
    let mut numbers = Numbers::new(old);
    let guests = numbers.of(guests, old.map(|old| &old.guests));
    let with_number = numbers.of(at.clone(), old.map(|old| &old.nodes));
    let hub = old.map(|old| &old.hub).filter(|hub| at.contains(hub)).unwrap_or(&nodes[first]);
    Some(Control { hub: hub.clone(), guests, nodes: with_number })
}

struct Numbers {
    taken: BTreeSet<u16>,
}

impl Numbers {
    fn new(old: Option<&Control>) -> Self {
        let old = old.into_iter().flat_map(|old| old.guests.values().chain(old.nodes.values()));
        Self { taken: old.copied().collect() }
    }

    fn of(&mut self, members: BTreeSet<&Name>, old: Option<&Named<u16>>) -> Named<u16> {
        let mut number = |name: &Name| {
            if let Some(&number) = old.and_then(|old| old.get(name)) {
                return number;
            }
            let free = (1..u16::MAX).find(|number| !self.taken.contains(number));
            let free = free.expect("a slice has fewer members than numbers");
            self.taken.insert(free);
            free
        };
        members.into_iter().map(|name| (name.clone(), number(name))).collect()
    }
}
