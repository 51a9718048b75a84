//! A large host, made of numbers: 64 cores of two NUMA nodes, 10,000 units, one thread, no kernel.

use super::double::World;
use super::{Agent, MS, Surroundings};
use api::steer::InterfaceSpec;
use place::steering::UnitStatus;
use place::{Core, CoreId, NumaNode, Reason, UnitId};

const CORES: u16 = 64;
const UNITS: u32 = 10_000;
/// Units that are heavy: four on each of the first four cores.
const HEAVY: u32 = 16;

/// Microseconds of a core that a unit wants in a millisecond: light ones 250 a core together, a heavy one 300.
fn wants(unit: u32) -> f64 {
    if unit < HEAVY { 300.0 } else { 250.0 * f64::from(CORES) / f64::from(UNITS - HEAVY) }
}

fn unit(id: u32) -> UnitStatus {
    let core = if id < HEAVY { id % 4 } else { id % u32::from(CORES) };
    UnitStatus {
        unit: UnitId(id),
        core: Some(CoreId(core as u16)),
        wanted: None,
        reason: Some(Reason::Hash),
        decided_at_ns: 1,
        frames: 0,
        bytes: 0,
        moves: 0,
        vm: None,
        is_priority: false,
        is_fixed: false,
    }
}

/// What all units of each core want.
fn wanted(units: &[UnitStatus]) -> Vec<f64> {
    let mut wanted = vec![0.0; usize::from(CORES)];
    for unit in units {
        wanted[usize::from(unit.core.unwrap().0)] += wants(unit.unit.0);
    }
    wanted
}

#[test]
fn four_overloaded_cores_of_64_shed_their_heavy_units_of_10_000_in_few_moves() {
    let world = World::with(&["eth0"]);
    let core = |id| {
        let mut core = Core::new(CoreId(id));
        core.numa = NumaNode(id / 32);
        core
    };
    let host = Surroundings { cores: (0..CORES).map(core).collect(), ..Surroundings::default() };
    let mut agent = Agent::new(world.opener(), host);
    agent.attach("eth0", InterfaceSpec::default()).unwrap();
    let mut units: Vec<UnitStatus> = (0..UNITS).map(unit).collect();
    let mut worked = vec![0; usize::from(CORES)];
    let (mut frames, mut made) = (0, 0);
    for ms in 1..=100 {
        let wanted = wanted(&units);
        for (core, worked) in (0..CORES).zip(&mut worked) {
            *worked += (wanted[usize::from(core)].min(1000.0) * 1000.0) as u64;
            world.set_times(core, *worked, ms * MS);
        }
        for unit in &mut units {
            let share = (1000.0 / wanted[usize::from(unit.core.unwrap().0)]).min(1.0);
            let some = (wants(unit.unit.0) * share * 10.0) as u64;
            unit.frames += some;
            unit.bytes += 100 * some;
            frames += some;
        }
        world.set_units("eth0", units.clone());
        world.set_frames("eth0", frames);
        agent.tick(ms * MS);
        let moves = world.moves("eth0");
        for (id, to) in &moves[made..] {
            assert!(to.0 < CORES && units[id.0 as usize].core != Some(*to), "{id} to {to}");
            units[id.0 as usize].core = Some(*to);
            units[id.0 as usize].decided_at_ns = ms * MS;
        }
        made = moves.len();
    }
    let fullest = wanted(&units).into_iter().fold(0.0, f64::max);
    assert!(fullest <= 900.0, "a core is wanted for {fullest} us of a millisecond");
    assert!((8..200).contains(&made), "{made} moves");
}
