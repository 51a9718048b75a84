//! The node of each switch and guest: one problem for each site.

use super::Found;
use super::controllers::inside;
use super::fits::Quantity;
use crate::fault::Fault;
use crate::file::slice::{GuestKind, Named, SliceSpec};
use crate::place::{Homeless, Room, Thing, Why, joined, place};
use crate::wire::wires;
use crate::words::{Cpu, Name, Size, Uid};
use crate::world::{Ledger, NodeUse, World};
use std::collections::BTreeSet;

/// Chooses a node for each thing.
pub fn choose(
    world: &World,
    spec: &SliceSpec,
    uid: Uid,
    ledger: &Ledger,
) -> Result<Named<Name>, Vec<Found>> {
    let sites: BTreeSet<&Name> = spec
        .switches
        .values()
        .map(|it| &it.site)
        .chain(spec.guests.values().map(|it| &it.site))
        .collect();
    let (mut nodes, mut found) = (Named::new(), Vec::new());
    for site in sites {
        let (things, rooms) = (things(world, spec, site), rooms(world, site, ledger));
        match place(&things, &rooms, uid) {
            Ok(chosen) => nodes.extend(
                things
                    .iter()
                    .zip(chosen)
                    .map(|(thing, room)| (thing.name.clone(), rooms[room].name.clone())),
            ),
            Err(homeless) => {
                found.extend(homeless.iter().map(|it| fault(spec, site, &things, &rooms, it)))
            }
        }
    }
    if found.is_empty() { Ok(nodes) } else { Err(found) }
}

fn things<'a>(world: &'a World, spec: &'a SliceSpec, site: &Name) -> Vec<Thing<'a>> {
    let old = world.slice(&spec.key()).map(|old| &old.decision.nodes);
    let thing = |name: &'a Name, wish, kind, [cpu, memory]: [u64; 2]| {
        let old = old
            .and_then(|old| old.get(name))
            .filter(|node| world.domain().nodes.contains_key(*node));
        Thing { name, cpu, memory, kind, wish, old, joined: Vec::new() }
    };
    let switches = spec.switches.iter().filter(|(_, it)| it.site == *site);
    let switches = switches.map(|(name, it)| thing(name, &it.place, None, [0, 0]));
    let guests = spec.guests.iter().filter(|(_, it)| it.site == *site).map(|(name, it)| {
        thing(name, &it.place, Some(it.kind), [spec.cpu(it).0.into(), spec.memory(it).0])
    });
    let mut things: Vec<Thing> = switches.chain(guests).collect();
    let names: Vec<&Name> = things.iter().map(|thing| thing.name).collect();
    let wires = wires(spec).into_iter().map(|wire| wire.ends.map(|end| end.of));
    let joined = joined(&names, wires.chain(sessions(spec)));
    things.iter_mut().zip(joined).for_each(|(thing, joined)| thing.joined = joined);
    things
}

/// Switches and the guests that control them: near each other if they can be.
fn sessions(spec: &SliceSpec) -> impl Iterator<Item = [Name; 2]> {
    spec.switches.iter().flat_map(|(name, it)| {
        let controllers = spec.switch(it).controllers.unwrap_or_default();
        controllers.into_iter().filter_map(|it| Some([name.clone(), inside(spec, &it)?.clone()]))
    })
}

/// The nodes of a site, and what is left of each.
pub fn rooms<'a>(world: &'a World, site: &'a Name, ledger: &Ledger) -> Vec<Room<'a>> {
    const NONE: &[GuestKind] = &[];
    let room = |(name, node): (&'a Name, &'a crate::file::domain::Node)| {
        let facts = world.facts(name);
        let size = facts.map_or([0, 0], |facts| {
            [
                u64::from(facts.cpu.0).saturating_sub(node.reserve.cpu.0.into()),
                facts.memory.0.saturating_sub(node.reserve.memory.0),
            ]
        });
        let NodeUse { cpu, memory } = ledger.nodes.get(name).copied().unwrap_or_default();
        let free = [size[0].saturating_sub(cpu), size[1].saturating_sub(memory)];
        let proved = facts.map_or(NONE, |facts| &facts.kinds);
        // What the operator allows counts only if the node proved it.
        let kinds =
            node.kinds.as_deref().filter(|kinds| kinds.iter().all(|kind| proved.contains(kind)));
        Room {
            name,
            size,
            free,
            kinds: kinds.unwrap_or(proved),
            open: facts.is_some_and(|facts| facts.alive),
        }
    };
    world.domain().nodes_at(site).map(room).collect()
}

fn fault(
    spec: &SliceSpec,
    site: &Name,
    things: &[Thing],
    rooms: &[Room],
    homeless: &Homeless,
) -> Found {
    let thing = &things[homeless.thing];
    let (kind, table) = match thing.kind {
        Some(_) => ("guest", "guests"),
        None => ("switch", "switches"),
    };
    let (named, here) = (format!("{kind} {}", thing.name), format!("/{table}/{}", thing.name));
    let on = |room: &Option<usize>| {
        room.map_or_else(String::new, |room| format!(" ({})", rooms[room].name))
    };
    match &homeless.why {
        Why::Kind if !rooms.iter().any(|room| room.open) => {
            let fault =
                Fault::new(named, format!("wants a node at {site}, where none is there now"));
            Found::new(
                format!("{here}/site"),
                fault.remedy("start one there by `suiro node --join`, or choose another site"),
            )
            .of(Quantity::Site(thing.name.clone()))
        }
        Why::Kind => {
            let kind = thing.kind.map_or("", GuestKind::word);
            let fault = Fault::new(
                named,
                format!("is a {kind}, and no node at {site} has proved that it can have one"),
            );
            Found::new(format!("{here}/kind"), fault).of(Quantity::Site(thing.name.clone()))
        }
        Why::Wishes => {
            let fault = Fault::new(
                named,
                format!("has wishes that no node at {site} keeps, with the others where they are"),
            );
            Found::new(
                format!("{here}/place"),
                fault.remedy("loosen `place` of it or of what it names"),
            )
        }
        Why::Memory(most, room) => {
            let wants = spec.memory(&spec.guests[thing.name]);
            let (wanted, free) = (wants.in_words(), Size(*most).in_words());
            let what = format!(
                "wants {wanted} of memory at {site}; the most that one node has free is {free}{}",
                on(room)
            );
            let fault =
                Fault::new(named, what).short_by(Size(wants.0.saturating_sub(*most)).in_words());
            Found::new(format!("{here}/memory"), fault).of(Quantity::Memory(thing.name.clone()))
        }
        Why::Cpu(most, room) => {
            let wants = spec.cpu(&spec.guests[thing.name]);
            let free = Cpu(u32::try_from(*most).unwrap_or(u32::MAX));
            let what = format!(
                "wants {wants} cores at {site}; the most that one node has free is {free}{}",
                on(room)
            );
            let fault =
                Fault::new(named, what).short_by(Cpu(wants.0.saturating_sub(free.0)).in_words());
            Found::new(format!("{here}/cpu"), fault).of(Quantity::Cpu(thing.name.clone()))
        }
    }
}
