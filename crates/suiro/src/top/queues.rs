//! What the queues of ports do per second.

use super::rates::{PortRates, pairs, per_second};
use crate::table::{Table, dash, short, time};
use api::{PortQueueView, Rate};
use serde::Serialize;

/// A queue that packets wait in which leave by a port.
#[derive(Serialize)]
pub struct QueueLoad {
    /// Its number.
    pub id: u32,
    /// Bit/s that it gets whatever the other queues want.
    pub min_rate: Option<Rate>,
    /// Bit/s that it never exceeds.
    pub max_rate: Option<Rate>,
    /// Frames sent a second.
    pub tx_frames_per_s: f64,
    /// Megabits sent a second.
    pub tx_mbps: f64,
    /// Frames that wait now.
    pub waiting: u64,
    /// How long the middle one of the frames waited that left meanwhile and had to wait, in nanoseconds; `null` without such frames.
    pub wait_p50_ns: Option<u64>,
    /// And the longest but one in a hundred.
    pub wait_p99_ns: Option<u64>,
    /// Drops a second: too many, or the port dropped them.
    pub drops_per_s: f64,
}

/// The queues of a port between two looks at it.
pub fn between(before: &[PortQueueView], now: &[PortQueueView], seconds: f64) -> Vec<QueueLoad> {
    let pairs = pairs(before, now, |queue| queue.id);
    pairs.map(|(before, now)| load(before, now, seconds)).collect()
}

fn load(before: &PortQueueView, now: &PortQueueView, seconds: f64) -> QueueLoad {
    let rate = |of: fn(&PortQueueView) -> u64| per_second(of(before), of(now), seconds);
    let waited = now.wait.since(&before.wait);
    QueueLoad {
        id: now.id,
        min_rate: now.min_rate,
        max_rate: now.max_rate,
        tx_frames_per_s: rate(|queue| queue.tx_frames),
        tx_mbps: rate(|queue| queue.tx_bytes) * 8.0 / 1e6,
        waiting: now.waiting,
        wait_p50_ns: waited.quantile_ns(0.5),
        wait_p99_ns: waited.quantile_ns(0.99),
        drops_per_s: rate(|queue| queue.tx_errors),
    }
}

/// The queues of these ports; nothing if they have none.
pub fn table(ports: &[&PortRates]) -> String {
    let mut table = Table::new(&[
        "QUEUES OF",
        ">RATE",
        ">QUEUE",
        ">MIN",
        ">MAX",
        ">TX/S",
        ">TX MBIT/S",
        ">WAITING",
        ">WAIT P50",
        ">P99",
        ">DROPS/S",
    ]);
    let queues: Vec<_> =
        ports.iter().flat_map(|port| port.queue.iter().map(move |queue| (port, queue))).collect();
    for &(port, queue) in &queues {
        table.row(vec![
            format!("{}:{}", port.switch, port.name),
            dash(port.rate),
            queue.id.to_string(),
            dash(queue.min_rate),
            dash(queue.max_rate),
            short(queue.tx_frames_per_s),
            format!("{:.1}", queue.tx_mbps),
            queue.waiting.to_string(),
            dash(queue.wait_p50_ns.map(time)),
            dash(queue.wait_p99_ns.map(time)),
            short(queue.drops_per_s),
        ]);
    }
    if queues.is_empty() { String::new() } else { table.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::Latency;

    fn queue(id: u32, [tx_frames, tx_bytes, tx_errors, waiting]: [u64; 4]) -> PortQueueView {
        let (min_rate, max_rate, age_ns) = (None, None, 0);
        let wait = Latency::default();
        PortQueueView {
            id,
            min_rate,
            max_rate,
            tx_frames,
            tx_bytes,
            tx_errors,
            waiting,
            wait,
            age_ns,
        }
    }

    #[test]
    fn what_was_sent_and_dropped_is_told_a_second_and_what_waits_as_it_is() {
        let before = [queue(3, [100, 50_000, 7, 900])];
        let now = [queue(1, [8, 800, 1, 2]), queue(3, [300, 550_000, 17, 12])];
        let loads = between(&before, &now, 2.0);
        let numbers = |load: &QueueLoad| {
            (load.id, load.tx_frames_per_s, load.tx_mbps, load.drops_per_s, load.waiting)
        };
        let found: Vec<_> = loads.iter().map(numbers).collect();
        assert_eq!(found, [(1, 0.0, 0.0, 0.0, 2), (3, 100.0, 2.0, 5.0, 12)], "1 is new");
    }
}
