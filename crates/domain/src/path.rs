//! Ways over the underlay: the cheapest one under capacity, delay, MTU and number of hops.
//!
//! Nodes of one site reach each other directly where they share an underlay. Nodes of two sites do by a segment whose underlay both have.

use crate::decision::Hop;
use crate::file::domain::Segment;
use crate::file::slice::Named;
use crate::words::{Name, Uid};
use crate::world::{Ledger, World};
use std::collections::BTreeMap;

/// Most hops of a way (D4). Chosen: more is a detour that somebody should see.
pub const HOPS_MAX: usize = 6;
/// What a hop within a site costs. Chosen: less than any segment.
const LOCAL_COST: u64 = 1;
/// What nodes take of a way's time, in microseconds (D4).
pub const NODES_DELAY_US: u64 = 50;

/// What a way must keep.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Bit/s that every segment must have free.
    pub rate: u64,
    /// Largest frame's payload.
    pub mtu: u16,
    /// Longest time, in microseconds.
    pub delay: u64,
}

/// Why there is no way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoWay {
    /// Nothing joins the two nodes.
    Nothing,
    /// Nothing with that MTU does; the largest.
    Mtu(u16),
    /// Nothing that quick does; the least time.
    Delay(u64),
    /// Nothing with that rate free does; the most that is free.
    Rate(u64),
}

/// Where a way is looked for.
pub struct Map<'a> {
    world: &'a World,
    /// Segments by site.
    at: BTreeMap<&'a Name, Vec<(&'a Name, &'a Segment)>>,
    nodes_at: BTreeMap<&'a Name, Vec<&'a Name>>,
    uid: Uid,
}

/// How a node is reached: by what cost, ties broken, and from where.
#[derive(Clone)]
struct Reached {
    weight: (u64, u64),
    delay: u64,
    rate: u64,
    hops: Vec<Hop>,
}

/// What is made small.
#[derive(Clone, Copy)]
enum By {
    Cost,
    Delay,
}

impl<'a> Map<'a> {
    /// The domain's map; ties are broken by the slice, so that equal ways fill evenly.
    pub fn new(world: &'a World, uid: Uid) -> Self {
        let (mut at, mut nodes_at) = (BTreeMap::new(), BTreeMap::new());
        for (name, segment) in &world.domain().segments {
            for site in &segment.between {
                at.entry(site).or_insert_with(Vec::new).push((name, segment));
            }
        }
        for (name, node) in &world.domain().nodes {
            nodes_at.entry(&node.site).or_insert_with(Vec::new).push(name);
        }
        Self { world, at, nodes_at, uid }
    }

    /// Finds the cheapest way.
    ///
    /// # Errors
    /// There is none; which wish stands against it.
    pub fn way(
        &self,
        ledger: &Ledger,
        [from, to]: [&Name; 2],
        wanted: Wanted,
    ) -> Result<Vec<Hop>, NoWay> {
        if from == to {
            return Ok(Vec::new());
        }
        let search = |wanted: Wanted, by| self.search(ledger, [from, to], wanted, by);
        let cheapest = search(wanted, By::Cost).filter(|way| way.delay <= wanted.delay);
        if let Some(way) =
            cheapest.or_else(|| search(wanted, By::Delay).filter(|way| way.delay <= wanted.delay))
        {
            return Ok(way.hops);
        }
        let any = Wanted { rate: 0, mtu: 0, delay: u64::MAX };
        if search(any, By::Cost).is_none() {
            return Err(NoWay::Nothing);
        }
        let sized = Wanted { mtu: wanted.mtu, ..any };
        let Some(quickest) = search(sized, By::Delay) else {
            let fits = |mtu: &u16| search(Wanted { mtu: *mtu, ..any }, By::Cost).is_some();
            let mut mtus: Vec<u16> =
                self.world.domain().underlays.values().map(|it| it.link_mtu()).collect();
            mtus.sort_unstable_by(|a, b| b.cmp(a));
            return Err(NoWay::Mtu(mtus.into_iter().find(fits).unwrap_or(0)));
        };
        if quickest.delay > wanted.delay {
            return Err(NoWay::Delay(quickest.delay));
        }
        Err(NoWay::Rate(self.widest(ledger, [from, to], wanted)))
    }

    /// Whether a way that has been decided may stay.
    pub fn holds(&self, ledger: &Ledger, from: &Name, hops: &[Hop], wanted: Wanted) -> bool {
        let (mut at, mut delay) = (from, NODES_DELAY_US);
        for hop in hops {
            let Some((_, step)) =
                self.steps(ledger, at).find(|(to, step)| **to == hop.to && step.is(hop))
            else {
                return false;
            };
            if step.rate < wanted.rate || step.mtu < wanted.mtu {
                return false;
            }
            delay += step.delay;
            at = &hop.to;
        }
        delay <= wanted.delay
    }

    /// The most that some way has free which is quick and wide enough: one of the segments' free rates.
    fn widest(&self, ledger: &Ledger, ends: [&Name; 2], wanted: Wanted) -> u64 {
        let mut rates: Vec<u64> =
            self.world.domain().segments.iter().map(|(name, it)| free(it, name, ledger)).collect();
        rates.sort_unstable_by(|a, b| b.cmp(a));
        let fits = |rate: &u64| {
            let wanted = Wanted { rate: *rate, ..wanted };
            self.search(ledger, ends, wanted, By::Delay)
                .is_some_and(|way| way.delay <= wanted.delay)
        };
        rates.into_iter().find(fits).unwrap_or(0)
    }

    /// Layer by layer of hops: at most [`HOPS_MAX`] of them, each node's best way kept.
    fn search(
        &self,
        ledger: &Ledger,
        [from, to]: [&'a Name; 2],
        wanted: Wanted,
        by: By,
    ) -> Option<Reached>
where {
        let start =
            Reached { weight: (0, 0), delay: NODES_DELAY_US, rate: u64::MAX, hops: Vec::new() };
        let mut best: BTreeMap<&Name, Reached> = BTreeMap::from([(from, start.clone())]);
        let mut layer: BTreeMap<&Name, Reached> = BTreeMap::from([(from, start)]);
        for _ in 0..HOPS_MAX {
            let mut next: BTreeMap<&Name, Reached> = BTreeMap::new();
            for (at, reached) in &layer {
                for (node, step) in self.steps(ledger, at) {
                    if step.rate < wanted.rate
                        || step.mtu < wanted.mtu
                        || !(node == to || self.carries(node))
                    {
                        continue;
                    }
                    let delay = reached.delay + step.delay;
                    let cost = match by {
                        By::Cost => reached.weight.0 + step.cost,
                        By::Delay => delay,
                    };
                    let weight = (cost, reached.weight.1.wrapping_add(self.uid.hash(node) >> 8));
                    let known = best.get(node).into_iter().chain(next.get(node));
                    if known.map(|known| known.weight).min().is_some_and(|known| known <= weight) {
                        continue;
                    }
                    let mut hops = reached.hops.clone();
                    hops.push(step.hop(node));
                    next.insert(
                        node,
                        Reached { weight, delay, rate: reached.rate.min(step.rate), hops },
                    );
                }
            }
            for (node, reached) in &next {
                best.insert(node, reached.clone());
            }
            layer = next;
        }
        best.remove(to)
    }

    /// Whether a node may carry what is not its own: it is there.
    fn carries(&self, node: &Name) -> bool {
        self.world.facts(node).is_some_and(|facts| facts.alive)
    }

    /// Every single hop from a node.
    fn steps<'s>(
        &'s self,
        ledger: &'s Ledger,
        from: &Name,
    ) -> impl Iterator<Item = (&'a Name, Step<'a>)> + 's {
        let domain = self.world.domain();
        let node = domain.nodes.get(from);
        let local = node.into_iter().flat_map(move |node| {
            node.underlay.keys().map(move |underlay| (&node.site, underlay, None))
        });
        let far = node.into_iter().flat_map(move |node| {
            let segments = self.at.get(&node.site).into_iter().flatten();
            let usable =
                segments.filter(move |(_, segment)| node.underlay.contains_key(&segment.underlay));
            usable.map(move |(name, segment)| {
                let [a, b] = &segment.between;
                let other = if *a == node.site { b } else { a };
                (other, &segment.underlay, Some((*name, *segment)))
            })
        });
        let from = node.map(|_| from.clone());
        local.chain(far).flat_map(move |(site, underlay, segment)| {
            let from = from.clone();
            let nodes = self.nodes_at.get(site).into_iter().flatten().copied();
            let joined = nodes.filter(move |to| {
                Some(*to) != from.as_ref() && domain.nodes[*to].underlay.contains_key(underlay)
            });
            let mtu = domain.underlays[underlay].link_mtu();
            let step = match segment {
                None => Step {
                    underlay,
                    segment: None,
                    cost: LOCAL_COST,
                    delay: 0,
                    rate: u64::MAX,
                    mtu,
                },
                Some((name, it)) => Step {
                    underlay,
                    segment: Some(name),
                    cost: it.cost.into(),
                    delay: it.delay.0,
                    rate: free(it, name, ledger),
                    mtu,
                },
            };
            joined.map(move |to| (to, step))
        })
    }
}

/// One hop that could be made.
#[derive(Clone, Copy)]
struct Step<'a> {
    underlay: &'a Name,
    segment: Option<&'a Name>,
    cost: u64,
    delay: u64,
    rate: u64,
    mtu: u16,
}

impl Step<'_> {
    fn hop(&self, to: &Name) -> Hop {
        Hop { to: to.clone(), underlay: self.underlay.clone(), segment: self.segment.cloned() }
    }

    fn is(&self, hop: &Hop) -> bool {
        *self.underlay == hop.underlay && self.segment == hop.segment.as_ref()
    }
}

/// What of a segment can be reserved: 95 of 100 (D4).
pub fn most(segment: &Segment) -> u64 {
    segment.capacity.bits().get() / 100 * 95
}

/// What of a segment can still be reserved.
pub fn free(segment: &Segment, name: &Name, ledger: &Ledger) -> u64 {
    most(segment).saturating_sub(ledger.segments.get(name).copied().unwrap_or(0))
}

/// Reserves a way.
pub fn reserve(ledger: &mut Ledger, segments: &Named<Segment>, hops: &[Hop], rate: u64) {
    for segment in hops.iter().filter_map(|hop| hop.segment.as_ref()) {
        if segments.contains_key(segment) {
            *ledger.segments.entry(segment.clone()).or_default() += rate;
        }
    }
}
