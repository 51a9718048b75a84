//! From a flow's hash to a bucket: every bucket gets flows by its weight, and a change of the buckets moves few flows.
//!
//! The table is Maglev's (Eisenbud et al., "Maglev: A Fast and Reliable Software Network Load Balancer", NSDI 2016,
//! §3.4), with turns by weight: each bucket has its own order of all slots and takes, whenever it is its turn, the
//! first one that is still free, until it has its share. A bucket's order follows from its content, not from its place
//! in the group, so those that stay keep nearly all their slots when others come and go.

use super::Bucket;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Most buckets, and slots for them: primes, so that every step visits all slots. A share is right to less than one
/// slot of at least 64 a bucket. A group that outgrows its size moves its flows once.
const SIZES: [(usize, usize); 4] = [(16, 1021), (64, 4093), (256, 16_381), (1024, 65_521)];

/// A slot that nobody has taken yet.
const FREE: u16 = u16::MAX;

/// Virtual time between two turns of a bucket of weight 1; weights are below 2^16, so turns stay distinct.
const ROUND: u64 = 1 << 32;

/// The bucket of each slot.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Slots(Box<[u16]>);

impl Slots {
    /// The bucket for this hash.
    pub fn pick(&self, hash: u64) -> usize {
        let slot = (u128::from(hash) * self.0.len() as u128) >> 64; // as even as a remainder, and cheaper
        usize::from(self.0[slot as usize])
    }

    /// Fills the slots in `O(size × log buckets)`. At least one weight must not be 0.
    pub fn fill(buckets: &[Bucket], weights: &[u16]) -> Self {
        let (_, size) =
            SIZES.into_iter().find(|&(most, _)| buckets.len() <= most).unwrap_or(SIZES[3]);
        let mut takers = takers(buckets, weights, size);
        share(&mut takers, size);
        let turn = |(at, taker): (usize, &Taker)| Reverse((ROUND / u64::from(taker.weight), at));
        let mut turns: BinaryHeap<_> = takers.iter().enumerate().map(turn).collect();
        let mut slots = vec![FREE; size];
        while let Some(Reverse((time, at))) = turns.pop() {
            let taker = &mut takers[at];
            if taker.left > 0 {
                taker.take(&mut slots);
                turns.push(Reverse((time + ROUND / u64::from(taker.weight), at)));
            }
        }
        Self(slots.into())
    }
}

/// A bucket that takes slots: `next`, `next + step`, … modulo the size.
struct Taker {
    bucket: u16,
    weight: u16,
    /// Slots that it still has to take.
    left: usize,
    next: usize,
    step: usize,
}

impl Taker {
    /// Takes the first slot of its order that is free; there must be one.
    fn take(&mut self, slots: &mut [u16]) {
        self.left -= 1;
        while slots[self.next] != FREE {
            self.advance(slots.len());
        }
        slots[self.next] = self.bucket;
        self.advance(slots.len());
    }

    fn advance(&mut self, size: usize) {
        self.next += self.step;
        if self.next >= size {
            self.next -= size;
        }
    }
}

/// Gives each taker the slots that are due to it, rounded down, and those that are left to the largest remainders.
fn share(takers: &mut [Taker], size: usize) {
    let total: u64 = takers.iter().map(|taker| u64::from(taker.weight)).sum();
    let due = |taker: &Taker| size as u64 * u64::from(taker.weight);
    for taker in &mut *takers {
        taker.left = (due(taker) / total) as usize;
    }
    let unshared = size - takers.iter().map(|taker| taker.left).sum::<usize>();
    let mut by_remainder: Vec<&mut Taker> = takers.iter_mut().collect();
    by_remainder.sort_by_key(|taker| Reverse(due(taker) % total));
    for taker in by_remainder.into_iter().take(unshared) {
        taker.left += 1;
    }
}

/// One taker for each bucket with a weight, in an order that follows from their content too.
fn takers(buckets: &[Bucket], weights: &[u16], size: usize) -> Vec<Taker> {
    let with_weight =
        (0..).zip(weights.iter().zip(names(buckets))).filter(|&(_, (&weight, _))| weight > 0);
    let mut takers: Vec<(u64, Taker)> = with_weight
        .map(|(bucket, (&weight, name))| {
            let next = (name >> 32) as usize % size;
            let step = (name & 0xffff_ffff) as usize % (size - 1) + 1;
            (name, Taker { bucket, weight, left: 0, next, step })
        })
        .collect();
    takers.sort_unstable_by_key(|&(name, _)| name);
    takers.into_iter().map(|(_, taker)| taker).collect()
}

/// A number for each bucket that follows from what it does, and from how many before it do the same.
fn names(buckets: &[Bucket]) -> Vec<u64> {
    let mut twins = HashMap::new();
    let content =
        buckets.iter().map(|bucket| (&bucket.actions, bucket.watch_port, bucket.watch_group));
    let name = |content| {
        let twin = twins.entry(content).or_insert(0u32);
        *twin += 1;
        let mut hasher = DefaultHasher::new(); // fixed keys: the same group spreads the same way after a restart
        (content, *twin).hash(&mut hasher);
        hasher.finish()
    };
    content.map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::{Action, Output};
    use proptest::prelude::*;

    fn bucket(port: u32, weight: u16) -> Bucket {
        Bucket { weight, actions: vec![Action::Output(Output::Port(port))], ..Bucket::default() }
    }

    fn filled(buckets: &[Bucket]) -> Slots {
        Slots::fill(buckets, &buckets.iter().map(|bucket| bucket.weight).collect::<Vec<_>>())
    }

    /// The port of each slot.
    fn ports(buckets: &[Bucket]) -> Vec<Action> {
        filled(buckets).0.iter().map(|&at| buckets[usize::from(at)].actions[0]).collect()
    }

    fn share_moved(before: &[Bucket], after: &[Bucket]) -> f64 {
        let (before, after) = (ports(before), ports(after));
        let moved = before.iter().zip(&after).filter(|(before, after)| before != after).count();
        moved as f64 / before.len() as f64
    }

    #[test]
    fn a_bucket_that_goes_moves_little_more_than_its_own_flows() {
        let eight: Vec<Bucket> = (1..=8).map(|port| bucket(port, 10)).collect();
        for gone in 0..8 {
            let mut seven = eight.clone();
            seven.remove(gone);
            let moved = share_moved(&eight, &seven);
            assert!((0.12..0.20).contains(&moved), "{moved} moved, 0.125 had to");
        }
    }

    #[test]
    fn the_order_of_the_buckets_moves_nothing() {
        let mut buckets: Vec<Bucket> = (1..=5).map(|port| bucket(port, 3)).collect();
        let before = ports(&buckets);
        buckets.reverse();
        assert_eq!(ports(&buckets), before);
    }

    #[test]
    fn equal_buckets_share_equally() {
        let twins = vec![bucket(1, 5), bucket(1, 5)];
        let first = filled(&twins).0.iter().filter(|&&at| at == 0).count();
        assert!((510..=511).contains(&first), "{first}");
    }

    proptest! {
        #[test]
        fn every_bucket_has_its_share_to_less_than_a_slot(weights in proptest::collection::vec(1u16.., 2..40)) {
            let buckets: Vec<Bucket> = (1..).zip(&weights).map(|(port, &weight)| bucket(port, weight)).collect();
            let slots = filled(&buckets);
            let total: f64 = weights.iter().map(|&weight| f64::from(weight)).sum();
            let mut counts = vec![0.0; buckets.len()];
            slots.0.iter().for_each(|&at| counts[usize::from(at)] += 1.0);
            for (&weight, count) in weights.iter().zip(counts) {
                let due = f64::from(weight) / total * slots.0.len() as f64;
                prop_assert!((count - due).abs() < 1.0, "{count} slots, {due} due");
            }
        }
    }
}
