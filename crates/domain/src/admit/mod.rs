//! May a slice be? If so, what goes where; if not, what is short, and what would fit.
//!
//! Order (D4): its time, references into the domain, quotas and budgets, controllers, externals, nodes, ways, ids. All faults of a stage come at once; a stage
//! runs if those before it found none.

mod controllers;
mod externals;
mod fits;
mod network;
mod nodes;
mod quota;
mod references;
mod times;
mod ways;

use crate::calendar::Span;
use crate::decision::Decision;
use crate::fault::Fault;
use crate::file::slice::SliceSpec;
use crate::parse::Slice;
use crate::words::{Name, Uid};
use crate::world::{Ledger, World};
use fits::Quantity;

pub use controllers::inside;
pub use network::PREFIX as CONTROL_PREFIX;
pub use nodes::rooms;
pub use ways::rate_in_words;

/// Decides on a slice. `uid` is the life of its name: the one that the world has if it has the slice already.
///
/// # Errors
/// Every fault of the first stage that finds one.
pub fn admit(world: &World, slice: &Slice, uid: Uid) -> Result<Decision, Vec<Fault>> {
    let uid = world.slice(&slice.spec.key()).map_or(uid, |old| old.decision.uid);
    let ledger = world.peak(Span::of(&slice.spec), Some(&slice.spec.key()));
    decide(world, &slice.spec, uid, &ledger).map_err(|found| {
        let later = times::first_fit(world, slice, uid);
        fits::explain(world, slice, uid, (found, &ledger, later))
    })
}

/// A fault, where it is, and which quantity of the file it is about.
#[derive(Clone, Debug)]
struct Found {
    pointer: String,
    fault: Fault,
    quantity: Option<Quantity>,
}

impl Found {
    fn new(pointer: impl Into<String>, fault: Fault) -> Self {
        Self { pointer: pointer.into(), fault, quantity: None }
    }

    fn of(self, quantity: Quantity) -> Self {
        Self { quantity: Some(quantity), ..self }
    }
}

/// The decision itself, without what would fit.
/// `ledger` is what others are promised within the slice's time.
fn decide(
    world: &World,
    spec: &SliceSpec,
    uid: Uid,
    ledger: &Ledger,
) -> Result<Decision, Vec<Found>> {
    stage(times::check(world, spec))?;
    stage(references::check(world, spec))?;
    stage(quota::check(world, spec, ledger))?;
    stage(controllers::check(world, spec))?;
    stage(externals::check(world, spec))?;
    let doors = externals::doors(world, spec);
    let mut nodes = nodes::choose(world, spec, uid, ledger)?;
    nodes.extend(externals::nodes(world, spec));
    let old = world.slice(&spec.key()).map(|old| &old.decision);
    let control = network::plan(spec, &nodes, old.and_then(|old| old.control.as_ref()));
    let circuits = ways::choose(world, spec, uid, ledger.clone(), (&nodes, control.as_ref()))?;
    stage(quota::check_rates(world, spec, &circuits, ledger))?;
    let ports = ports(spec, old);
    Ok(Decision { uid, nodes, ports, circuits, control, doors })
}

fn stage(found: Vec<Found>) -> Result<(), Vec<Found>> {
    if found.is_empty() { Ok(()) } else { Err(found) }
}

/// Numbers of ports that are known by name: as before, or the lowest that nobody has.
fn ports(spec: &SliceSpec, old: Option<&Decision>) -> std::collections::BTreeMap<String, u16> {
    use crate::words::EndPort;
    use std::collections::{BTreeMap, BTreeSet};
    let ends: Vec<_> = crate::wire::wires(spec).into_iter().flat_map(|wire| wire.ends).collect();
    let of_switches = || ends.iter().filter(|end| spec.switches.contains_key(&end.of));
    let mut taken: BTreeMap<&Name, BTreeSet<u16>> = BTreeMap::new();
    for end in of_switches() {
        if let EndPort::Number(number) = end.port {
            taken.entry(&end.of).or_default().insert(number);
        }
    }
    let named = || of_switches().filter(|end| matches!(end.port, EndPort::Named(_)));
    let mut ports = BTreeMap::new();
    for end in named() {
        let before = old.and_then(|old| old.ports.get(&end.to_string()));
        if let Some(&number) =
            before.filter(|number| taken.entry(&end.of).or_default().insert(**number))
        {
            ports.insert(end.to_string(), number);
        }
    }
    for end in named() {
        let taken = taken.entry(&end.of).or_default();
        ports.entry(end.to_string()).or_insert_with(|| {
            let number = (1..=crate::words::PORT_MAX).find(|number| !taken.contains(number));
            let number = number.expect("a switch has fewer ports than numbers");
            taken.insert(number);
            number
        });
    }
    ports
}
