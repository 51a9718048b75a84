//! Which of a guest's queue pairs a worker's frames go to.
//!
//! A pair has one worker as long as there are pairs enough, so that no two workers meet in a ring; and a flow has one pair of its
//! worker's, so that its frames stay in order.

use wire::{Field, Head, Key, Layers};

/// The pairs of a worker among those that run: every `workers`-th, or one that it shares when there are fewer pairs than workers.
pub(super) fn choose(
    running: impl Iterator<Item = usize> + Clone,
    (worker, workers): (usize, usize),
    ours: &mut Vec<usize>,
) {
    ours.clear();
    ours.extend(running.clone().skip(worker).step_by(workers.max(1)));
    if ours.is_empty() {
        let count = running.clone().count();
        ours.extend(running.clone().nth(worker % count.max(1)));
    }
}

/// The place, below `count`, of the flow that begins with `head`.
pub(super) fn place(head: &[u8], count: usize) -> usize {
    let (mut key, mut layers) = (Key::default(), Layers::default());
    wire::parse_into(&Head::copy_of(head), &mut key, &mut layers);
    ((u64::from((hash(&key) >> 32) as u32) * count as u64) >> 32) as usize
}

/// The same for all frames of a flow, fragments included.
fn hash(key: &Key) -> u64 {
    // Chosen: the odd constant of Fibonacci hashing; neighbouring addresses and ports spread over the high half.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let is_fragment = key.get(Field::IpFrag) != 0;
    let ports = if is_fragment { 0 } else { key.get(Field::TpSrc) << 16 | key.get(Field::TpDst) };
    let parts = [
        key.get(Field::EthSrc) ^ key.get(Field::EthDst) << 16,
        key.get(Field::Ipv4Src) << 32 | key.get(Field::Ipv4Dst),
        key.get(Field::Ipv6Src),
        key.get(Field::Ipv6Dst),
        key.get(Field::IpProto) << 32 | ports,
    ];
    let fold = |part: u128| (part >> 64) as u64 ^ part as u64;
    parts.into_iter().fold(0, |hash, part| (hash ^ fold(part)).wrapping_mul(SPREAD).rotate_left(29))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(running: &[usize], worker: usize, workers: usize) -> Vec<usize> {
        let mut ours = Vec::new();
        choose(running.iter().copied(), (worker, workers), &mut ours);
        ours
    }

    #[test]
    fn workers_share_no_pair_while_there_are_enough() {
        assert_eq!(chosen(&[0, 1, 3, 4], 0, 2), [0, 3]);
        assert_eq!(chosen(&[0, 1, 3, 4], 1, 2), [1, 4]);
    }

    #[test]
    fn with_fewer_pairs_than_workers_every_worker_has_one() {
        assert_eq!(
            (0..4).map(|worker| chosen(&[0, 2], worker, 4)).collect::<Vec<_>>(),
            [[0], [2], [0], [2]]
        );
        assert_eq!(chosen(&[], 3, 4), [0; 0]);
    }

    #[test]
    fn a_flow_keeps_its_place_and_flows_spread() {
        let frame = |port: u8, ttl: u8| {
            let mut frame = [0; 60];
            frame[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 46, ttl, 0, 0, 0, ttl, 17]);
            frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
            (frame[35], frame[37], frame[39]) = (port, 80, 26);
            frame
        };
        assert_eq!(place(&frame(7, 64), 4), place(&frame(7, 9), 4));
        let mut bins = [0; 4];
        (0..=255).for_each(|port| bins[place(&frame(port, 64), 4)] += 1);
        assert!(bins.iter().all(|&count| (40..=88).contains(&count)), "{bins:?}");
    }
}
