//! Numbered UDP datagrams from the senders' namespace to the VMs, and what became of each.
//!
//! * [`Flow`]: what is sent. An open loop: datagrams are due at a steady rate whatever becomes of them.
//! * [`generator`]: sends all flows on one core; [`receiver`]: a VM that takes them and works for each byte.
//! * [`Tally`]: received, lost, late, when; [`Outcome`]: both ends of a flow side by side.

pub mod generator;
pub mod receiver;
mod stamp;
mod tally;
mod work;

pub use stamp::now_ns;
pub use tally::{SLOT, Tally};
pub use work::Work;

/// A flow to a VM.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Flow {
    /// The VM that it goes to, from 1.
    pub vm: u8,
    /// Its source port, by which hashes tell flows apart.
    pub port: u16,
    /// Bytes of a datagram.
    pub size: usize,
    /// Datagrams a second.
    pub rate: f64,
    /// The type of service of its packets, which the tunnel copies to the outer header.
    pub tos: u8,
}

/// What became of a flow.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The flow.
    pub flow: Flow,
    /// Datagrams that were due in the counted time, and of these those that the senders' core had no time for.
    pub due: u64,
    /// See `due`.
    pub unsent: u64,
    /// What the VM saw.
    pub tally: Tally,
    /// Seconds that were counted.
    pub seconds: f64,
}

impl Outcome {
    /// Mbit/s of payload that was due in the counted time and arrived: what waits in a queue when the time is over counts, as what waited there when it began
    /// does not.
    pub fn throughput(&self) -> f64 {
        self.tally.received as f64 * self.flow.size as f64 * 8.0 / 1e6 / self.seconds
    }

    /// Percent of the datagrams due that never arrived.
    pub fn loss(&self) -> f64 {
        if self.due == 0 {
            return 0.0;
        }
        self.due.saturating_sub(self.tally.received) as f64 / self.due as f64 * 100.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_due_and_did_not_come_is_lost_and_what_came_is_throughput() {
        let flow = Flow { vm: 1, port: 1, size: 1000, rate: 100.0, tos: 0 };
        let mut tally = Tally::new(0, 0, 2_000_000_000);
        (0..150).for_each(|number| tally.take(number, 0, number * 10_000_000));
        let outcome = Outcome { flow, due: 200, unsent: 3, tally, seconds: 2.0 };
        assert_eq!(outcome.loss(), 25.0);
        assert_eq!(outcome.throughput(), 150.0 * 8000.0 / 1e6 / 2.0);
    }
}
