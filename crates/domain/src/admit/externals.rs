//! Doors to outside networks: the operator allows them, nobody else has them, and they carry what is wanted.

use super::Found;
use super::ways::rate_in_words;
use crate::calendar::Span;
use crate::decision::Door;
use crate::fault::Fault;
use crate::file::check::unknown;
use crate::file::domain::External;
use crate::file::slice::{Named, Outside, SliceSpec};
use crate::wire::wires;
use crate::words::Name;
use crate::world::{Admitted, World};

/// Every external that the slice may not have as it wishes. Those of other tenants are not told.
pub fn check(world: &World, spec: &SliceSpec) -> Vec<Found> {
    let wires = wires(spec);
    let mtu = |pointer: &str| {
        wires.iter().find(|wire| wire.pointer == pointer).map_or(0, |wire| wire.mtu)
    };
    let mut found = Vec::new();
    for (name, it) in &spec.externals {
        let (thing, here) = (format!("external {name}"), format!("/externals/{name}"));
        let mut note =
            |key: &str, fault: Fault| found.push(Found::new(format!("{here}/{key}"), fault));
        let Some(door) = allowed(world, spec, &it.door) else {
            let may =
                world.domain().externals.iter().filter(|(_, it)| it.tenants.contains(&spec.tenant));
            let what = format!("{:?}, which {thing} uses,", it.door.to_string());
            let fault = unknown(what, &it.door, may.map(|(name, _)| name.to_string()));
            note("use", fault);
            continue;
        };
        if let Some(user) = user(world, spec, &it.door) {
            let fault = Fault::new(thing.clone(), format!("uses {}, which {user} has", it.door));
            note("use", fault.remedy("use another one, or wait until it is free"));
        }
        let twice = spec.externals.iter().find(|(other, at)| *other < name && at.door == it.door);
        if let Some((other, _)) = twice {
            let fault =
                Fault::new(thing.clone(), format!("uses {}, which external {other} has", it.door));
            note("use", fault.remedy("join its frames in a switch of your own"));
        }
        let (wanted, most) = (it.rate.map_or(0, |rate| rate.bits().get()), door.rate.bits().get());
        if wanted > most {
            let what = format!(
                "wants {}; the operator allows {}",
                rate_in_words(wanted),
                rate_in_words(most)
            );
            let fault = Fault::new(thing.clone(), what).short_by(rate_in_words(wanted - most));
            note("rate", fault.fits(vec![format!("rate {}", door.rate)]));
        }
        let wanted = mtu(&here);
        if wanted > door.mtu {
            let what = format!(
                "wants MTU {wanted}, as the links of the slice; {} carries {}",
                it.door, door.mtu
            );
            let fault = Fault::new(thing, what).short_by(format!("{} bytes", wanted - door.mtu));
            note("use", fault.fits(vec![format!("defaults: {{link: {{mtu: {}}}}}", door.mtu)]));
        }
    }
    found
}

/// An external that the tenant may use.
fn allowed<'a>(world: &'a World, spec: &SliceSpec, door: &Name) -> Option<&'a External> {
    world.domain().externals.get(door).filter(|it| it.tenants.contains(&spec.tenant))
}

/// Who else has it, as the tenant may be told.
fn user(world: &World, spec: &SliceSpec, door: &Name) -> Option<String> {
    let has = |decision: &crate::Decision| decision.doors.values().any(|it| it.name == *door);
    let key = spec.key();
    let span = Span::of(spec);
    let at_once = |it: &Admitted| Span::of(&it.spec).overlaps(span) && has(&it.decision);
    let (other, _) = world.slices().find(|(other, it)| **other != key && at_once(it))?;
    Some(if other.tenant == key.tenant {
        format!("slice {other}")
    } else {
        "another tenant".into()
    })
}

/// What the operator says of each external of a slice that has been checked.
fn of<'a>(
    world: &'a World,
    spec: &'a SliceSpec,
) -> impl Iterator<Item = (&'a Name, &'a Outside, &'a External)> {
    spec.externals
        .iter()
        .filter_map(|(name, it)| Some((name, it, world.domain().externals.get(&it.door)?)))
}

/// The node of each.
pub fn nodes(world: &World, spec: &SliceSpec) -> Named<Name> {
    of(world, spec).map(|(name, _, door)| (name.clone(), door.node.clone())).collect()
}

/// What each is on its node.
pub fn doors(world: &World, spec: &SliceSpec) -> Named<Door> {
    let door = |(name, it, door): (&Name, &Outside, &External)| {
        let (interface, vlan) = (door.interface.clone(), door.vlan);
        (name.clone(), Door { name: it.door.clone(), interface, vlan })
    };
    of(world, spec).map(door).collect()
}

/// Bit/s of one: what the slice asks for, and at most what the operator allows.
pub fn rate(world: &World, spec: &SliceSpec, wished: u64, name: &Name) -> u64 {
    let door = spec.externals.get(name).and_then(|it| world.domain().externals.get(&it.door));
    door.map_or(wished, |door| wished.min(door.rate.bits().get()))
}
