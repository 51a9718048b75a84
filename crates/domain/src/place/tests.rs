//! Placement against brute force, on up to six things and three nodes.

use super::*;
use proptest::prelude::*;

/// A problem in a few numbers.
#[derive(Clone, Debug)]
struct Small {
    /// Shares of cores and memory, in hundredths of the largest node; 0: a switch.
    things: Vec<(u64, u64)>,
    /// Sizes, and what is taken of them.
    rooms: Vec<([u64; 2], [u64; 2])>,
    old: Vec<Option<usize>>,
    wires: Vec<(usize, usize)>,
    apart: Vec<(usize, usize)>,
}

fn smalls() -> impl Strategy<Value = Small> {
    let things = prop::collection::vec((0..60_u64, 0..60_u64), 1..=6);
    let room = ([40..100_u64, 40..100], [0..40_u64, 0..40]);
    let rooms = prop::collection::vec(room, 1..=3);
    let old = prop::collection::vec(prop::option::weighted(0.3, 0..3_usize), 6);
    let pairs = || prop::collection::vec((0..6_usize, 0..6_usize), 0..5);
    let apart = prop::collection::vec((0..6_usize, 0..6_usize), 0..2);
    (things, rooms, old, pairs(), apart).prop_map(|(things, rooms, old, wires, apart)| Small {
        things,
        rooms,
        old,
        wires,
        apart,
    })
}

fn name(kind: &str, n: usize) -> Name {
    format!("{kind}{n}").parse().unwrap()
}

/// Every assignment, the obvious way.
fn brute_force(small: &Small, things: &[Thing], rooms: &[Room]) -> Option<Score> {
    let uid = Uid(1);
    let problem = Problem::new(things, rooms, uid);
    let count = rooms.len().pow(things.len() as u32);
    let assignment = |mut n: usize| -> Vec<usize> {
        let digit = |_| {
            let room = n % rooms.len();
            n /= rooms.len();
            room
        };
        (0..things.len()).map(digit).collect()
    };
    let fits = |assigned: &Vec<usize>| {
        let mut free: Vec<[u64; 2]> = rooms.iter().map(|room| room.free).collect();
        assigned.iter().enumerate().all(|(thing, &room)| {
            let (cpu, memory) = (things[thing].cpu, things[thing].memory);
            let enough = cpu <= free[room][0] && memory <= free[room][1];
            if enough {
                free[room] = [free[room][0] - cpu, free[room][1] - memory];
            }
            enough
        }) && small.apart.iter().all(|&(a, b)| {
            let both = a != b && a < things.len() && b < things.len();
            !both || assigned[a] != assigned[b]
        })
    };
    (0..count).map(assignment).filter(fits).map(|assigned| problem.score(&assigned)).min()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn few_things_are_placed_as_well_as_brute_force_does(small in smalls()) {
        let names: Vec<Name> = (0..small.things.len()).map(|n| name("g", n)).collect();
        let nodes: Vec<Name> = (0..small.rooms.len()).map(|n| name("n", n)).collect();
        let wishes: Vec<Wish> = (0..names.len()).map(|n| Wish {
            apart_from: small.apart.iter().filter(|(a, b)| *a == n && a != b && *b < names.len()).map(|(_, b)| names[*b].clone()).collect(),
            ..Wish::default()
        }).collect();
        let refs: Vec<&Name> = names.iter().collect();
        let known = small.wires.iter().filter(|(a, b)| *a < names.len() && *b < names.len());
        let joined = joined(&refs, known.map(|(a, b)| [names[*a].clone(), names[*b].clone()]));
        let things: Vec<Thing> = names.iter().enumerate().map(|(n, name)| Thing {
            name,
            cpu: small.things[n].0,
            memory: small.things[n].1,
            kind: None,
            wish: &wishes[n],
            old: small.old[n].and_then(|old| nodes.get(old)),
            joined: joined[n].clone(),
        }).collect();
        let rooms: Vec<Room> = nodes.iter().zip(&small.rooms).map(|(name, (size, taken))| Room {
            name,
            size: *size,
            free: [size[0] - taken[0].min(size[0]), size[1] - taken[1].min(size[1])],
            kinds: &[],
            open: true,
        }).collect();
        let best = brute_force(&small, &things, &rooms);
        match place(&things, &rooms, Uid(1)) {
            Ok(assigned) => prop_assert_eq!(Some(Problem::new(&things, &rooms, Uid(1)).score(&assigned)), best),
            Err(homeless) => {
                prop_assert_eq!(best, None, "{:?}", homeless);
                prop_assert!(!homeless.is_empty(), "somebody is told what is short");
            }
        }
    }
}

#[test]
fn a_long_chain_stays_together_and_a_crowd_spreads() {
    let names: Vec<Name> = (0..100).map(|n| name("s", n)).collect();
    let (refs, wish) = (names.iter().collect::<Vec<_>>(), Wish::default());
    let chain = joined(&refs, names.windows(2).map(|pair| [pair[0].clone(), pair[1].clone()]));
    let nodes: Vec<Name> = (0..3).map(|n| name("n", n)).collect();
    let rooms: Vec<Room> = nodes
        .iter()
        .map(|name| Room { name, size: [4000, 64], free: [4000, 64], kinds: &[], open: true })
        .collect();
    let thing = |n: usize, memory, joined| Thing {
        name: &names[n],
        cpu: 0,
        memory,
        kind: None,
        wish: &wish,
        old: None,
        joined,
    };
    let linked: Vec<Thing> =
        chain.iter().enumerate().map(|(n, it)| thing(n, 0, it.clone())).collect();
    let assigned = place(&linked, &rooms, Uid(3)).unwrap();
    assert!(assigned.iter().all(|room| *room == assigned[0]), "one node: every link is a vlink");
    let crowd: Vec<Thing> = (0..30).map(|n| thing(n, 4, Vec::new())).collect();
    let assigned = place(&crowd, &rooms, Uid(3)).unwrap();
    let on = |room| assigned.iter().filter(|at| **at == room).count();
    assert_eq!([on(0), on(1), on(2)], [10, 10, 10]);
    let many: Vec<Thing> = (0..49).map(|n| thing(n, 4, Vec::new())).collect();
    let homeless = place(&many, &rooms, Uid(3)).unwrap_err();
    assert_eq!(homeless.len(), 1, "48 fit");
    assert!(matches!(homeless[0].why, Why::Memory(0, Some(_))));
}
