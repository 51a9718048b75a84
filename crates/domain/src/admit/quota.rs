//! A tenant's quotas over all its slices, and a slice's own budget.

use super::Found;
use crate::decision::Circuit;
use crate::fault::Fault;
use crate::file::slice::SliceSpec;
use crate::words::{Cpu, Size};
use crate::world::{Ledger, World};
use std::collections::BTreeMap;

/// One sum and its bound.
struct Sum<'a> {
    pointer: &'a str,
    what: &'a str,
    bound: Option<u64>,
    others: u64,
    own: u64,
    shown: fn(u64) -> String,
}

fn cores(milli: u64) -> String {
    Cpu(u32::try_from(milli).unwrap_or(u32::MAX)).in_words()
}

fn memory(bytes: u64) -> String {
    Size(bytes).in_words()
}

fn count(count: u64) -> String {
    count.to_string()
}

/// Every quota and budget that is exceeded before anything is placed.
pub fn check(world: &World, spec: &SliceSpec, ledger: &Ledger) -> Vec<Found> {
    let cpu = spec.guests.values().map(|guest| u64::from(spec.cpu(guest).0)).sum();
    let bytes = spec.guests.values().map(|guest| spec.memory(guest).0).sum();
    let pids = spec.guests.values().map(|guest| u64::from(spec.pids(guest))).sum();
    let quota = &world.domain().tenants[&spec.tenant].quota;
    let others = ledger.tenants.get(&spec.tenant).copied().unwrap_or_default();
    let sum = |what, bound, others, own, shown| Sum {
        pointer: "/tenant",
        what,
        bound,
        others,
        own,
        shown,
    };
    let of_tenant = [
        sum("", quota.guests.cpu.map(|it| it.0.into()), others.cpu, cpu, cores),
        sum("of memory", quota.guests.memory.map(|it| it.0), others.memory, bytes, memory),
        sum("slices", quota.slices.map(u64::from), others.slices, 1, count),
        sum(
            "switches",
            quota.switches.map(u64::from),
            others.switches,
            spec.switches.len() as u64,
            count,
        ),
        sum("links", quota.links.map(u64::from), others.links, spec.links.len() as u64, count),
    ];
    let budget = &spec.budget.guests;
    let own =
        |pointer, what, bound, own, shown| Sum { pointer, what, bound, others: 0, own, shown };
    let of_slice = [
        own("/budget/guests/cpu", "", budget.cpu.map(|it| it.0.into()), cpu, cores),
        own("/budget/guests/memory", "of memory", budget.memory.map(|it| it.0), bytes, memory),
        own("/budget/guests/pids", "processes", budget.pids.map(u64::from), pids, count),
    ];
    let tenant = format!("tenant {}", spec.tenant);
    let of_tenant = of_tenant.iter().filter_map(|sum| sum.check(&tenant, "quota"));
    of_tenant.chain(of_slice.iter().filter_map(|sum| sum.check("slice", "budget"))).collect()
}

/// The same of rates, which are known when ways are.
pub fn check_rates(
    world: &World,
    spec: &SliceSpec,
    circuits: &BTreeMap<String, Circuit>,
    ledger: &Ledger,
) -> Vec<Found> {
    let far = circuits.iter().filter(|(_, circuit)| !circuit.hops.is_empty());
    // The control network is the domain's own, and no user's budget pays for it.
    let own = far.filter(|(name, _)| !name.starts_with('_')).map(|(_, circuit)| circuit.rate).sum();
    let others = ledger.tenants.get(&spec.tenant).copied().unwrap_or_default();
    let quota = world.domain().tenants[&spec.tenant].quota.rate.map(|rate| rate.bits().get());
    let budget = spec.budget.rate.map(|rate| rate.bits().get());
    let what = "between nodes";
    let quota = Sum {
        pointer: "/tenant",
        what,
        bound: quota,
        others: others.rate,
        own,
        shown: super::ways::rate_in_words,
    };
    let budget = Sum { pointer: "/budget/rate", bound: budget, others: 0, ..quota };
    let tenant = format!("tenant {}", spec.tenant);
    quota.check(&tenant, "quota").into_iter().chain(budget.check("slice", "budget")).collect()
}

impl Sum<'_> {
    fn check(&self, thing: &str, bound_by: &str) -> Option<Found> {
        let (bound, all) = (self.bound?, self.others + self.own);
        if all <= bound {
            return None;
        }
        let shown = |sum| format!("{} {}", (self.shown)(sum), self.what).trim_end().to_owned();
        let sentence = format!("would have {}, and its {bound_by} is {}", shown(all), shown(bound));
        let free = shown(bound.saturating_sub(self.others));
        let fault = Fault::new(thing, sentence).short_by(shown(all - bound));
        Some(Found::new(self.pointer, fault.fits(vec![format!("{free} in this slice")])))
    }
}
