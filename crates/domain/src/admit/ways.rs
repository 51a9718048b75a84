//! The way of each wire that goes by `K`, and its id.

use super::Found;
use super::fits::Quantity;
use super::network::{PREFIX, RATE};
use crate::decision::{Circuit, Control, Hop};
use crate::fault::Fault;
use crate::file::slice::{LINK_MTU, Named, SliceSpec};
use crate::path::{Map, NoWay, Wanted, reserve};
use crate::wire::wires;
use crate::words::{Delay, Name, Uid};
use crate::world::{Ledger, World};
use std::collections::BTreeMap;

/// A circuit that is wanted.
struct Wish<'a> {
    name: String,
    ends: [&'a Name; 2],
    rate: u64,
    mtu: u16,
    max_delay: Option<Delay>,
    pointer: String,
    thing: String,
    /// The link whose keys would change it.
    link: Option<Name>,
}

/// Chooses a way for each wire that goes by `K`. Those that have one keep it and are served first.
pub fn choose(
    world: &World,
    spec: &SliceSpec,
    uid: Uid,
    mut ledger: Ledger,
    (nodes, control): (&Named<Name>, Option<&Control>),
) -> Result<BTreeMap<String, Circuit>, Vec<Found>> {
    let map = Map::new(world, uid);
    let old = world.slice(&spec.key()).map(|old| &old.decision.circuits);
    let wishes = wishes(world, spec, nodes, control);
    let segments = &world.domain().segments;
    let (mut circuits, mut found) = (BTreeMap::new(), Vec::new());
    let mut ways: Vec<Option<(Vec<Hop>, Option<u32>)>> = vec![None; wishes.len()];
    for (wish, way) in wishes.iter().zip(&mut ways) {
        let before = old
            .and_then(|old| old.get(&wish.name))
            .filter(|old| wish.ends == [&old.from, old.to()]);
        if let Some(old) =
            before.filter(|old| map.holds(&ledger, &old.from, &old.hops, wish.wanted()))
        {
            reserve(&mut ledger, segments, &old.hops, wish.rate);
            *way = Some((old.hops.clone(), Some(old.id)));
        }
    }
    for (wish, way) in wishes.iter().zip(&mut ways).filter(|(_, way)| way.is_none()) {
        match map.way(&ledger, wish.ends, wish.wanted()) {
            Ok(hops) => {
                reserve(&mut ledger, segments, &hops, wish.rate);
                *way = Some((hops, None));
            }
            Err(why) => found.push(wish.fault(world, &why)),
        }
    }
    let mut free = world.free_ids();
    for (wish, way) in wishes.into_iter().zip(ways) {
        let Some((hops, id)) = way else { continue };
        let Some(id) = id.or_else(|| free.next()) else {
            let fault = Fault::new(wish.thing, "wants a tunnel id, and none is free");
            found.push(Found::new(
                wish.pointer,
                fault.remedy("ids of nodes that are away come back by `forget`"),
            ));
            continue;
        };
        let circuit =
            Circuit { id, rate: wish.rate, mtu: wish.mtu, from: wish.ends[0].clone(), hops };
        circuits.insert(wish.name, circuit);
    }
    if found.is_empty() { Ok(circuits) } else { Err(found) }
}

fn wishes<'a>(
    world: &World,
    spec: &SliceSpec,
    nodes: &'a Named<Name>,
    control: Option<&'a Control>,
) -> Vec<Wish<'a>> {
    let of_users =
        wires(spec).into_iter().filter(|wire| wire.is_circuit(spec, nodes)).map(|wire| Wish {
            ends: wire.nodes(nodes),
            link: wire.name.parse().ok().filter(|name| spec.links.contains_key::<Name>(name)),
            rate: super::externals::rate(world, spec, wire.rate, &wire.ends[0].of),
            name: wire.name,
            mtu: wire.mtu,
            max_delay: wire.max_delay,
            pointer: wire.pointer,
            thing: wire.thing,
        });
    let of_control = control.into_iter().flat_map(|control| {
        let others = control.nodes.keys().filter(|node| **node != control.hub);
        others.map(|node| Wish {
            name: format!("{PREFIX}{node}"),
            ends: [&control.hub, node],
            rate: RATE,
            mtu: LINK_MTU,
            max_delay: None,
            pointer: "/switches".into(),
            thing: "control network".into(),
            link: None,
        })
    });
    of_users.chain(of_control).collect()
}

impl Wish<'_> {
    fn wanted(&self) -> Wanted {
        Wanted {
            rate: self.rate,
            mtu: self.mtu,
            delay: self.max_delay.map_or(u64::MAX, |delay| delay.0),
        }
    }

    fn fault(&self, world: &World, why: &NoWay) -> Found {
        let sites = self.ends.map(|node| world.domain().nodes[node].site.to_string());
        let between = if sites[0] == sites[1] {
            format!("within {}", sites[0])
        } else {
            format!("between {} and {}", sites[0], sites[1])
        };
        let fault = |what: String| Fault::new(self.thing.clone(), what);
        let at = |key: &str| format!("{}/{key}", self.pointer);
        let with = |found: Found, quantity: fn(Name) -> Quantity| match &self.link {
            Some(link) => found.of(quantity(link.clone())),
            None => found,
        };
        match *why {
            NoWay::Nothing => {
                let fault = fault(format!(
                    "wants a way {between}, and nothing joins {} with {}",
                    self.ends[0], self.ends[1]
                ));
                Found::new(
                    self.pointer.clone(),
                    fault.remedy(
                        "the operator declares underlays of nodes and segments between sites",
                    ),
                )
            }
            NoWay::Mtu(most) => {
                let fault =
                    fault(format!("wants MTU {}; what is {between} carries {most}", self.mtu));
                with(
                    Found::new(at("mtu"), fault.short_by(format!("{} bytes", self.mtu - most))),
                    Quantity::Mtu,
                )
            }
            NoWay::Delay(least) => {
                let wanted = self.max_delay.unwrap_or_default();
                let fault = fault(format!(
                    "wants {wanted} at most; the shortest way takes {}",
                    Delay(least)
                ));
                let short = Delay(least - wanted.0);
                with(
                    Found::new(at("max_delay"), fault.short_by(short.to_string())),
                    Quantity::Delay,
                )
            }
            NoWay::Rate(most) => {
                let (wants, free) = (rate_in_words(self.rate), rate_in_words(most));
                let fault = fault(format!(
                    "wants {wants} {between}; the most that one way has free is {free}"
                ));
                with(
                    Found::new(at("rate"), fault.short_by(rate_in_words(self.rate - most))),
                    Quantity::Rate,
                )
            }
        }
    }
}

/// A rate as sentences say it: `1.5 Gbit/s`.
pub fn rate_in_words(bits: u64) -> String {
    let units = [("G", 1_000_000_000), ("M", 1_000_000), ("k", 1000)];
    let unit = units.into_iter().find(|(_, scale)| bits >= *scale);
    let Some((unit, scale)) = unit else { return format!("{bits} bit/s") };
    let (whole, rest) = (bits / scale, bits % scale * 1000 / scale);
    let text = format!("{whole}.{rest:03}");
    format!("{} {unit}bit/s", text.trim_end_matches('0').trim_end_matches('.'))
}
