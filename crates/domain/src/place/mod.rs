//! Which node of its site each switch and guest goes to.
//!
//! Keep what runs ≫ obey wishes ≫ put what is joined on one node ≫ make the greatest share of any node small (D4). Sites do not depend on
//! each other, so each is a problem of its own. Few things are searched exactly; many by several greedy starts.
//! The same problem has the same answer: ties are broken by the slice's uid.

use crate::file::slice::{GuestKind, Named, Wish};
use crate::words::{Name, Uid};

/// Up to so many things are searched exactly. Chosen: with [`STEPS_MAX`] the search ends in milliseconds.
const EXACT_MAX: usize = 12;
/// Most nodes of the search tree that are looked at.
const STEPS_MAX: usize = 20_000;

/// A switch or guest that wants a node.
#[derive(Clone, Debug)]
pub struct Thing<'a> {
    /// Its name.
    pub name: &'a Name,
    /// Thousandths of a core.
    pub cpu: u64,
    /// Bytes.
    pub memory: u64,
    /// Of a guest, what it is.
    pub kind: Option<GuestKind>,
    /// What its owner wishes.
    pub wish: &'a Wish,
    /// Where it is already.
    pub old: Option<&'a Name>,
    /// Things that it is joined with, by their place in the list, once for each wire.
    pub joined: Vec<usize>,
}

/// A node of the site.
#[derive(Clone, Debug)]
pub struct Room<'a> {
    /// Its name.
    pub name: &'a Name,
    /// All that it can give, in thousandths of a core and bytes.
    pub size: [u64; 2],
    /// What of that is free.
    pub free: [u64; 2],
    /// Kinds of guest that it may have.
    pub kinds: &'a [GuestKind],
    /// Whether it takes anything new.
    pub open: bool,
}

/// A thing that found no node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Homeless {
    /// Which, by its place in the list.
    pub thing: usize,
    /// Why.
    pub why: Why,
}

/// Why a thing found no node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Why {
    /// No node takes such guests, or none is there.
    Kind,
    /// Its wishes leave none.
    Wishes,
    /// No node has that much of a core free; the most that one has, and which.
    Cpu(u64, Option<usize>),
    /// No node has that much memory free; the most that one has, and which.
    Memory(u64, Option<usize>),
}

/// How good an assignment is; less is better.
type Score = (usize, usize, u64);

/// Finds a node for each thing.
///
/// # Errors
/// Things that found none when the others had theirs.
pub fn place(things: &[Thing], rooms: &[Room], uid: Uid) -> Result<Vec<usize>, Vec<Homeless>> {
    let problem = Problem::new(things, rooms, uid);
    let starts = (0..rooms.len().max(1)).map(|start| problem.greedy(start));
    let (mut whole, mut failed): (Vec<_>, Vec<_>) = (Vec::new(), Vec::new());
    for start in starts {
        match start {
            Ok(assigned) => whole.push((problem.score(&assigned), assigned)),
            Err(homeless) => failed.push(homeless),
        }
    }
    // The first of equals counts.
    let best = whole.into_iter().reduce(|best, other| if other.0 < best.0 { other } else { best });
    let best = match things.len() {
        0..=EXACT_MAX => problem.exact(best),
        _ => best.map(|(_, assigned)| assigned),
    };
    let fewest = || failed.into_iter().min_by_key(Vec::len).unwrap_or_default();
    best.ok_or_else(fewest)
}

struct Problem<'a> {
    things: &'a [Thing<'a>],
    rooms: &'a [Room<'a>],
    /// Things in the order in which they choose: those that run, then along wires, large ones first.
    order: Vec<usize>,
    /// Rooms in the order in which equal ones are chosen.
    turn: Vec<usize>,
}

/// What is assigned so far.
#[derive(Clone)]
struct Partial {
    room: Vec<Option<usize>>,
    free: Vec<[u64; 2]>,
}

impl<'a> Problem<'a> {
    fn new(things: &'a [Thing<'a>], rooms: &'a [Room<'a>], uid: Uid) -> Self {
        let mut turn: Vec<usize> = (0..rooms.len()).collect();
        turn.sort_by_key(|&room| {
            (share(&rooms[room], rooms[room].free), uid.hash(rooms[room].name))
        });
        Self { things, rooms, order: order(things), turn }
    }

    fn empty(&self) -> Partial {
        let free = self.rooms.iter().map(|room| room.free).collect();
        Partial { room: vec![None; self.things.len()], free }
    }

    /// Each thing takes the best node that is left; the first new thing begins at the `start`th node.
    fn greedy(&self, start: usize) -> Result<Vec<usize>, Vec<Homeless>> {
        let (mut partial, mut homeless, mut first) = (self.empty(), Vec::new(), true);
        for &thing in &self.order {
            let mut rooms = self.choices(&partial, thing);
            if first && self.things[thing].old.is_none() && !self.turn.is_empty() {
                first = false;
                let wanted = self.turn[start % self.turn.len()];
                rooms.sort_by_key(|&room| room != wanted);
            }
            match rooms.first() {
                Some(&room) => self.assign(&mut partial, thing, room),
                None => homeless.push(Homeless { thing, why: self.why(&partial, thing) }),
            }
        }
        homeless.sort_by_key(|homeless| homeless.thing);
        let whole: Option<Vec<usize>> = partial.room.into_iter().collect();
        whole.filter(|_| homeless.is_empty()).ok_or(homeless)
    }

    /// The best assignment, or the best that [`STEPS_MAX`] looks find.
    fn exact(&self, known: Option<(Score, Vec<usize>)>) -> Option<Vec<usize>> {
        let mut search = Search { problem: self, best: known, steps: 0 };
        search.descend(&mut self.empty(), 0);
        search.best.map(|(_, assigned)| assigned)
    }

    fn assign(&self, partial: &mut Partial, thing: usize, room: usize) {
        partial.room[thing] = Some(room);
        let it = &self.things[thing];
        partial.free[room][0] -= it.cpu;
        partial.free[room][1] -= it.memory;
    }

    fn take_back(&self, partial: &mut Partial, thing: usize, room: usize) {
        partial.room[thing] = None;
        let it = &self.things[thing];
        partial.free[room][0] += it.cpu;
        partial.free[room][1] += it.memory;
    }

    /// Nodes that a thing may have, best first.
    fn choices(&self, partial: &Partial, thing: usize) -> Vec<usize> {
        let allowed = |room: &usize| {
            self.takes(partial, thing, *room) && self.has_room(partial, thing, *room)
        };
        let mut rooms: Vec<usize> = self.turn.iter().copied().filter(allowed).collect();
        rooms.sort_by_key(|&room| self.cost(partial, thing, room));
        rooms
    }

    fn cost(&self, partial: &Partial, thing: usize, room: usize) -> Score {
        let it = &self.things[thing];
        let moved = it.old.is_some_and(|old| old != self.rooms[room].name);
        let joined = it.joined.iter().filter_map(|&other| partial.room[other]);
        let apart = joined.filter(|other| *other != room).count();
        let [cpu, memory] = partial.free[room];
        let left = [cpu.saturating_sub(it.cpu), memory.saturating_sub(it.memory)];
        (usize::from(moved), apart, share(&self.rooms[room], left))
    }

    /// Whether kind and wishes allow it.
    fn takes(&self, partial: &Partial, thing: usize, room: usize) -> bool {
        self.suits(thing, room) && self.keeps_wishes(partial, thing, room)
    }

    fn suits(&self, thing: usize, room: usize) -> bool {
        let (it, room) = (&self.things[thing], &self.rooms[room]);
        let stays = it.old == Some(room.name);
        (stays || room.open) && it.kind.is_none_or(|kind| stays || room.kinds.contains(&kind))
    }

    fn keeps_wishes(&self, partial: &Partial, thing: usize, room: usize) -> bool {
        let name_of = |index: usize| self.things[index].name;
        let wish = self.things[thing].wish;
        let others =
            partial.room.iter().enumerate().filter_map(|(other, at)| Some((other, (*at)?)));
        wish.node.as_ref().is_none_or(|node| node == self.rooms[room].name)
            && others.into_iter().all(|(other, at)| {
                let theirs = self.things[other].wish;
                let me = name_of(thing);
                let with =
                    wish.with.as_ref() == Some(name_of(other)) || theirs.with.as_ref() == Some(me);
                let apart =
                    wish.apart_from.contains(name_of(other)) || theirs.apart_from.contains(me);
                if at == room { !apart } else { !with }
            })
    }

    fn has_room(&self, partial: &Partial, thing: usize, room: usize) -> bool {
        let it = &self.things[thing];
        it.cpu <= partial.free[room][0] && it.memory <= partial.free[room][1]
    }

    fn why(&self, partial: &Partial, thing: usize) -> Why {
        let all = || 0..self.rooms.len();
        if !all().any(|room| self.suits(thing, room)) {
            return Why::Kind;
        }
        let allowed: Vec<usize> = all().filter(|&room| self.takes(partial, thing, room)).collect();
        if allowed.is_empty() {
            return Why::Wishes;
        }
        let it = &self.things[thing];
        let most = |which: usize| {
            let room = allowed.iter().copied().max_by_key(|&room| partial.free[room][which]);
            (room.map_or(0, |room| partial.free[room][which]), room)
        };
        let (memory, roomy) = most(1);
        if it.memory > memory {
            return Why::Memory(memory, roomy);
        }
        let enough = allowed.iter().copied().filter(|&room| partial.free[room][1] >= it.memory);
        let quick = enough.max_by_key(|&room| partial.free[room][0]);
        Why::Cpu(quick.map_or(0, |room| partial.free[room][0]), quick)
    }

    /// Moves, wires between nodes, and the greatest share of any node, in millionths.
    fn score(&self, assigned: &[usize]) -> Score {
        let moved = |(thing, room): (&Thing, &usize)| {
            usize::from(thing.old.is_some_and(|old| old != self.rooms[*room].name))
        };
        let moves = self.things.iter().zip(assigned).map(moved).sum();
        let apart = self.things.iter().enumerate().flat_map(|(thing, it)| {
            it.joined
                .iter()
                .filter(move |&&other| other < thing && assigned[other] != assigned[thing])
        });
        let mut free: Vec<[u64; 2]> = self.rooms.iter().map(|room| room.free).collect();
        for (thing, &room) in assigned.iter().enumerate() {
            free[room][0] -= self.things[thing].cpu;
            free[room][1] -= self.things[thing].memory;
        }
        let shares = self.rooms.iter().zip(&free).map(|(room, free)| share(room, *free));
        (moves, apart.count(), shares.max().unwrap_or(0))
    }
}

struct Search<'p, 'a> {
    problem: &'p Problem<'a>,
    best: Option<(Score, Vec<usize>)>,
    steps: usize,
}

impl Search<'_, '_> {
    fn descend(&mut self, partial: &mut Partial, depth: usize) {
        let Some(&thing) = self.problem.order.get(depth) else {
            let assigned: Vec<usize> = partial.room.iter().copied().flatten().collect();
            let score = self.problem.score(&assigned);
            if self.best.as_ref().is_none_or(|(best, _)| score < *best) {
                self.best = Some((score, assigned));
            }
            return;
        };
        for room in self.problem.choices(partial, thing) {
            self.steps += 1;
            if self.steps > STEPS_MAX {
                return;
            }
            self.problem.assign(partial, thing, room);
            if self.best.as_ref().is_none_or(|(best, _)| self.least(partial) < *best) {
                self.descend(partial, depth + 1);
            }
            self.problem.take_back(partial, thing, room);
        }
    }

    /// What the score is at least, whatever comes.
    fn least(&self, partial: &Partial) -> Score {
        let Problem { things, rooms, .. } = self.problem;
        let (mut moves, mut apart) = (0, 0);
        for (thing, it) in things.iter().enumerate() {
            let Some(room) = partial.room[thing] else { continue };
            moves += usize::from(it.old.is_some_and(|old| old != rooms[room].name));
            let joined = it.joined.iter().filter(|&&other| other < thing);
            apart +=
                joined.filter(|&&other| partial.room[other].is_some_and(|at| at != room)).count();
        }
        let shares = rooms.iter().zip(&partial.free).map(|(room, free)| share(room, *free));
        (moves, apart, shares.max().unwrap_or(0))
    }
}

/// The greatest share of a node's resources that is taken, in millionths.
fn share(room: &Room, free: [u64; 2]) -> u64 {
    let of = |which: usize| {
        let taken = u128::from(room.size[which].saturating_sub(free[which]));
        let all = u128::from(room.size[which].max(1));
        u64::try_from(taken * 1_000_000 / all).unwrap_or(u64::MAX)
    };
    of(0).max(of(1))
}

/// Things that run first; then each thing followed by what it is joined with, large ones first.
fn order(things: &[Thing]) -> Vec<usize> {
    let mut roots: Vec<usize> = (0..things.len()).collect();
    let large = |thing: &Thing| std::cmp::Reverse((thing.memory, thing.cpu));
    roots.sort_by_key(|&thing| (things[thing].old.is_none(), large(&things[thing]), thing));
    let (mut order, mut seen) = (Vec::new(), vec![false; things.len()]);
    for root in roots {
        let mut queue = std::collections::VecDeque::from([root]);
        while let Some(thing) = queue.pop_front() {
            if std::mem::replace(&mut seen[thing], true) {
                continue;
            }
            order.push(thing);
            queue.extend(things[thing].joined.iter().copied().filter(|&other| !seen[other]));
        }
    }
    let (runs, new): (Vec<usize>, Vec<usize>) =
        order.into_iter().partition(|&thing| things[thing].old.is_some());
    [runs, new].concat()
}

/// What a site's things are joined by: for each thing the others, once for each wire.
pub fn joined(names: &[&Name], wires: impl Iterator<Item = [Name; 2]>) -> Vec<Vec<usize>> {
    let index: Named<usize> =
        names.iter().enumerate().map(|(n, name)| ((*name).clone(), n)).collect();
    let mut joined = vec![Vec::new(); names.len()];
    for [a, b] in wires {
        let here = [a, b].map(|name| index.get(&name).copied());
        if let [Some(a), Some(b)] = here
            && a != b
        {
            joined[a].push(b);
            joined[b].push(a);
        }
    }
    joined
}

#[cfg(test)]
mod tests;
