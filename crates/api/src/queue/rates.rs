//! Queues and rates as the workers hold them, and what contradicts itself.

use crate::BitRate;

/// Most queues of one port. Chosen: OpenFlow asks for no number; a worker looks at each of them for every frame that had to wait.
pub const QUEUES_MAX: usize = 64;

/// `OFPQ_ALL`: names all queues, so it can name none.
const ALL_QUEUES: u32 = 0xffff_ffff;

/// One queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueRates {
    /// Its number, which `set_queue` names. 0 is the queue of packets for which no queue was chosen.
    pub id: u32,
    /// What it gets of the port's rate whatever the other queues want.
    pub min: Option<BitRate>,
    /// More than this it never gets.
    pub max: Option<BitRate>,
}

/// The queues of a port, and the rate that they share.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PortQueues {
    /// What leaves by the port in all; without it the port takes what it can, and nothing can be guaranteed.
    pub rate: Option<BitRate>,
    /// The queues, in any order.
    pub queues: Vec<QueueRates>,
}

/// Why a port cannot have these queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadQueues {
    /// More than [`QUEUES_MAX`].
    #[error("{0} queues, and {QUEUES_MAX} is the most that a port can have")]
    TooMany(usize),
    /// Two of one number.
    #[error("queue {0} is there twice")]
    Twice(u32),
    /// The number stands for all queues.
    #[error("queue {ALL_QUEUES} stands for all queues")]
    Reserved,
    /// The least rate is above the highest.
    #[error("queue {0}: min_rate is above max_rate")]
    MinAboveMax(u32),
    /// There is nothing to guarantee a part of.
    #[error("queue {0} has a min_rate and the port has no rate that it could be a part of")]
    NoRate(u32),
    /// More is guaranteed than there is.
    #[error("the queues' min_rates are {sum} bit/s in all, and the port's rate is {rate}")]
    TooMuch {
        /// Guaranteed in all.
        sum: u64,
        /// The port's.
        rate: BitRate,
    },
}

impl PortQueues {
    /// Whether there is nothing to enforce.
    pub fn is_empty(&self) -> bool {
        self.rate.is_none() && self.queues.is_empty()
    }

    /// Whether a port can have them.
    ///
    /// # Errors
    /// [`BadQueues`]: the first thing that is wrong.
    pub fn check(&self) -> Result<(), BadQueues> {
        if self.queues.len() > QUEUES_MAX {
            return Err(BadQueues::TooMany(self.queues.len()));
        }
        for (at, queue) in self.queues.iter().enumerate() {
            if queue.id == ALL_QUEUES {
                return Err(BadQueues::Reserved);
            }
            if self.queues[..at].iter().any(|other| other.id == queue.id) {
                return Err(BadQueues::Twice(queue.id));
            }
            if queue.max.is_some_and(|max| queue.min.is_some_and(|min| min > max)) {
                return Err(BadQueues::MinAboveMax(queue.id));
            }
        }
        self.check_guarantees()
    }

    fn check_guarantees(&self) -> Result<(), BadQueues> {
        let guaranteed = || self.queues.iter().filter_map(|queue| Some((queue.id, queue.min?)));
        let Some(rate) = self.rate else {
            return guaranteed().next().map_or(Ok(()), |(id, _)| Err(BadQueues::NoRate(id)));
        };
        let sum: u64 = guaranteed().map(|(_, min)| min.get()).sum();
        if sum > rate.get() { Err(BadQueues::TooMuch { sum, rate }) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(bits: u64) -> Option<BitRate> {
        BitRate::new(bits)
    }

    fn queue(id: u32, min: u64, max: u64) -> QueueRates {
        QueueRates { id, min: rate(min), max: rate(max) }
    }

    fn check(rate: Option<BitRate>, queues: &[QueueRates]) -> Result<(), BadQueues> {
        PortQueues { rate, queues: queues.to_vec() }.check()
    }

    #[test]
    fn guarantees_need_a_rate_that_holds_them() {
        let two = [queue(1, 40_000, 0), queue(2, 60_000, 90_000)];
        assert_eq!(check(rate(100_000), &two), Ok(()));
        assert_eq!(check(None, &two), Err(BadQueues::NoRate(1)));
        let wrong = BadQueues::TooMuch { sum: 100_000, rate: BitRate::new(99_999).unwrap() };
        assert_eq!(check(rate(99_999), &two), Err(wrong));
    }

    #[test]
    fn queues_have_numbers_of_their_own_and_ordered_rates() {
        assert_eq!(check(None, &[queue(3, 0, 0), queue(3, 0, 0)]), Err(BadQueues::Twice(3)));
        assert_eq!(check(None, &[queue(ALL_QUEUES, 0, 0)]), Err(BadQueues::Reserved));
        assert_eq!(check(rate(1 << 20), &[queue(1, 3000, 2000)]), Err(BadQueues::MinAboveMax(1)));
        let many: Vec<_> = (0..65).map(|id| queue(id, 0, 0)).collect();
        assert_eq!(check(None, &many), Err(BadQueues::TooMany(65)));
        assert_eq!(check(None, &many[..64]), Ok(()));
    }
}
