//! The program's choice of a core against `place`, on random core tables.

use crate::lab::{Lab, options, pin, two_cores, udp};
use place::steering::{Field, PolicyKind, Target, Unmatched};
use place::{Core, CoreId, CoreTable, Decision, Facts, Hash, Load, Policy, Role, Stage, VmId, Vse};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use xdp::steer::{Attached, Entry, Match, Options, Rehearsal, Unit};

/// One core.
fn core() -> impl Strategy<Value = (Role, Vec<Option<u16>>, u32, u32)> {
    let role =
        prop_oneof![6 => Just(Role::Allowed), 1 => Just(Role::Reserved), 1 => Just(Role::Excluded)];
    let pinned = prop_oneof![
        3 => Just(vec![]),
        2 => prop::collection::vec(prop::option::weighted(0.9, 1_u16..6), 1..4),
        1 => prop::collection::vec(prop::option::weighted(0.9, 1_u16..60), 14..20),
    ];
    // Few different loads, so that ties and thresholds are met.
    let load = prop_oneof![Just(0_u32), Just(500_000), Just(500_001), 0_u32..1_000_001];
    (role, pinned, load, 0_u32..4)
}

/// A table of up to 128 cores whose numbers leave gaps.
fn table() -> impl Strategy<Value = CoreTable> {
    let len = prop_oneof![4 => 0_usize..6, 1 => 100_usize..129];
    let cores = len.prop_flat_map(|len| prop::collection::vec((core(), 0_u16..3), len));
    let thresholds = (0_u32..1_000_001, 0_u32..1_000_001);
    (cores, prop::option::of(thresholds)).prop_map(|(cores, thresholds)| {
        let mut id = 0;
        let cores = cores.into_iter().map(|((role, pinned, load, placed), gap)| {
            id += gap + 1;
            let mut core = Core::new(CoreId(id - 1));
            core.role = role;
            core.pinned = pinned.into_iter().map(|vm| vm.and_then(VmId::new)).collect();
            core.load[Stage::Packet] = Load::ppm(load);
            core.placed = placed;
            core
        });
        let mut table = CoreTable::new(cores.collect()).expect("rising ids");
        if let Some((ordinary, priority)) = thresholds {
            table.threshold = Load::ppm(ordinary);
            table.priority_threshold = Load::ppm(priority);
        }
        table
    })
}

/// An entry for each kind of fact, told apart by port.
fn entries() -> Vec<Entry> {
    let mut entries = Vec::new();
    for (is_priority, wants_own_core) in
        [(false, false), (true, false), (false, true), (true, true)]
    {
        for vm in [0, 1, 2, 3] {
            let matching = Match::fields(5, [(Field::TpSrc, entries.len() as u128 + 1, 0xffff)]);
            entries.push(Entry {
                matching,
                target: Target::Auto,
                is_priority,
                wants_own_core,
                vm: VmId::new(vm),
            });
        }
    }
    entries
}

/// What the program makes of each unit in turn, and what the policy says of it.
fn compare(attached: &Attached, run: &Rehearsal, table: &CoreTable, policy: &dyn Policy) {
    let mut table = table.clone();
    for (at, (id, _)) in attached.entries().into_iter().enumerate() {
        let before = attached.unit(id).expect("a unit");
        attached.undecide(id);
        run.run(&udp(at as u16 + 1), 1).expect("it runs");
        let unit = attached.unit(id).expect("a unit");
        let facts = Facts {
            hash: unit.hash,
            vm: unit.vm,
            is_priority: unit.is_priority,
            wants_own_core: unit.wants_own_core,
            rx_core: before.core.unwrap_or(CoreId(0)),
        };
        let expected = policy.place(&table, &facts);
        assert_eq!(said(&unit, &facts), expected, "{facts:?} in {table:?}");
        if expected.reason.is_settled() {
            table.core_mut(expected.core).expect("of the table").placed += 1;
        }
    }
}

/// The decision that a unit shows; one that is not settled stays on its core.
fn said(unit: &Unit, facts: &Facts) -> Decision {
    Decision { core: unit.wanted.unwrap_or(facts.rx_core), reason: unit.reason.expect("a reason") }
}

#[test]
fn the_program_places_as_the_policies_do() {
    let Some(mut lab) = Lab::new("placement") else { return };
    let attached =
        &mut lab.attach(&Options { unmatched: Unmatched::Stay, queue: 16384, ..options() });
    attached.insert(&entries()).unwrap();
    attached.settle_now().unwrap();
    let run = attached.rehearsal().unwrap();
    let mut runner = TestRunner::deterministic();
    std::thread::scope(|scope| {
        let (host, attached) = (lab.host(), &mut *attached);
        let worker = scope.spawn(move || {
            pin(0);
            for round in 0..300 {
                let table = table().new_tree(&mut runner).expect("a table").current();
                host.arrivals().expect("an interface is steered");
                attached.set_cores(host, &table).expect("it is written");
                let by_hash = round % 3 == 0;
                attached.set_policy(if by_hash { PolicyKind::Hash } else { PolicyKind::Vse });
                let policy: &dyn Policy = if by_hash { &Hash } else { &Vse { moves: None } };
                compare(attached, &run, &table, policy);
            }
        });
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

/// The agent counts, then writes: whoever comes in between counts by the new table too.
#[test]
fn a_unit_that_comes_while_the_table_is_refreshed_keeps_the_next_one_away() {
    let Some(mut lab) = Lab::new("refresh") else { return };
    let attached = &mut lab.attach(&Options { unmatched: Unmatched::Stay, ..options() });
    attached.insert(&entries()).unwrap();
    attached.settle_now().unwrap();
    attached.set_policy(PolicyKind::Vse);
    let units: Vec<_> = attached.entries().into_iter().map(|(id, _)| id).collect();
    let run = attached.rehearsal().unwrap();
    // Core 1 has a little to do: what is not counted goes to core 0.
    let mut table = two_cores();
    table.core_mut(CoreId(1)).expect("of the table").load.other = Load::percent(3);
    std::thread::scope(|scope| {
        let (host, attached) = (lab.host(), &mut *attached);
        let worker = scope.spawn(move || {
            pin(0);
            attached.set_cores(host, &table).expect("it is written");
            host.arrivals().expect("an interface is steered");
            run.run(&udp(1), 1).expect("it runs");
            attached.set_cores(host, &table).expect("it is written");
            run.run(&udp(2), 1).expect("it runs");
            let went = units[..2].iter().map(|&id| attached.unit(id).expect("a unit").wanted);
            assert_eq!(went.collect::<Vec<_>>(), [Some(CoreId(0)), Some(CoreId(1))]);
        });
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}
