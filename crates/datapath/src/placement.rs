//! Which worker polls a receive queue.
//!
//! The one place that decides it: the placement engine (design.md §5) will answer here.

/// The worker with the fewest receive queues; of equals the first.
pub(crate) fn choose(queues: &[usize]) -> usize {
    let least = queues.iter().enumerate().min_by_key(|&(_, &count)| count);
    least.map_or(0, |(worker, _)| worker)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_spread_evenly() {
        let mut queues = [0; 3];
        (0..7).for_each(|_| queues[choose(&queues)] += 1);
        assert_eq!(queues, [3, 2, 2]);
    }
}
