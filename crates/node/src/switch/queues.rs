//! The queues of a switch's ports as OpenFlow shows them: rates (OpenFlow 1.3.5 §7.2.2, §7.3.6) and counters (§7.3.5.8).
//!
//! Controllers read them and choose among them by `set_queue`; making them is the node's matter (§7.2.2: "queue configuration takes
//! place outside the OpenFlow protocol"). What a port that is not open now has counted is gone; its queues are shown all the same.

use crate::switch::port::SwitchPort;
use crate::switch::translate::seconds;
use crate::switch::{Control, Switch};
use datapath::{BitRate, PortQueues, QueueCounters, QueueRates};
use openflow::{ALL_QUEUES, ErrorCode, Fault, PortNo, Queue, QueueProperty, QueueStats};

/// A whole port's rate, in the unit of [`QueueProperty`].
const WHOLE: u64 = 1000;

impl Switch {
    /// A port has these queues from now on. Told before the port itself is, so that nobody sees it without them.
    pub fn set_queues(&self, number: PortNo, queues: PortQueues) {
        self.control().queues.insert(number.0, queues);
    }

    /// The queues of one port, or of all ([`PortNo::ANY`]), by port and number.
    ///
    /// # Errors
    /// `OFPQOFC_BAD_PORT`.
    pub fn queues(&self, number: PortNo) -> Result<Vec<Queue>, Fault> {
        self.plane.refresh();
        let control = self.control();
        let mut found = Vec::new();
        for port in asked(&control, number)? {
            let Some(queues) = control.queues.get(&port.number) else { continue };
            let whole = queues.rate.map(BitRate::get).or_else(|| link_rate(port));
            let first = found.len();
            found.extend(queues.queues.iter().map(|queue| describe(port, queue, whole)));
            found[first..].sort_by_key(|queue: &Queue| queue.id);
        }
        Ok(found)
    }

    /// Counters of one queue, or of all ([`ALL_QUEUES`]), of one port or of all ([`PortNo::ANY`]).
    ///
    /// # Errors
    /// `OFPQOFC_BAD_PORT`, `OFPQOFC_BAD_QUEUE`: none such is there.
    pub fn queue_stats(&self, number: PortNo, queue: u32) -> Result<Vec<QueueStats>, Fault> {
        self.plane.refresh();
        let control = self.control();
        let mut found = Vec::new();
        for port in asked(&control, number)? {
            let Some(queues) = control.queues.get(&port.number) else { continue };
            let mut ids: Vec<u32> = queues.queues.iter().map(|queue| queue.id).collect();
            ids.retain(|&id| queue == ALL_QUEUES || queue == id);
            if ids.is_empty() {
                continue;
            }
            ids.sort_unstable();
            let counters = self.plane.queue_counters(port.number);
            let of = |id: u32| counters.iter().find(|counters| counters.id == id);
            found.extend(ids.into_iter().map(|id| stats(port, id, of(id))));
        }
        if found.is_empty() && queue != ALL_QUEUES {
            return Err(Fault::new(ErrorCode::QueueOpFailedBadQueue, "no queue of that number"));
        }
        Ok(found)
    }
}

fn asked(control: &Control, number: PortNo) -> Result<Vec<&SwitchPort>, Fault> {
    if number == PortNo::ANY {
        return Ok(control.ports.values().collect());
    }
    let missing =
        || Fault::new(ErrorCode::QueueOpFailedBadPort, "the switch has no port of that number");
    control.ports.get(&number.0).map(|port| vec![port]).ok_or_else(missing)
}

fn link_rate(port: &SwitchPort) -> Option<u64> {
    (port.speed_mbps > 0).then_some(u64::from(port.speed_mbps) * 1_000_000)
}

fn describe(port: &SwitchPort, queue: &QueueRates, whole: Option<u64>) -> Queue {
    let part = |rate: Option<BitRate>| Some(tenths(rate?.get(), whole?));
    let min = part(queue.min).map(QueueProperty::MinRate);
    let max = part(queue.max).map(QueueProperty::MaxRate);
    let properties = min.into_iter().chain(max).collect();
    Queue { id: queue.id, port: PortNo(port.number), properties }
}

/// `rate` in tenths of a percent of `whole`, to the nearest. 0 would say that nothing passes, and more than the whole never does.
fn tenths(rate: u64, whole: u64) -> u16 {
    let part = (rate * WHOLE + whole / 2) / whole;
    part.clamp(1, WHOLE) as u16
}

fn stats(port: &SwitchPort, id: u32, counters: Option<&QueueCounters>) -> QueueStats {
    let nothing = QueueStats { port: PortNo(port.number), queue: id, ..QueueStats::default() };
    let Some(counters) = counters else { return nothing };
    let (duration_s, duration_ns) = seconds(counters.age_ns);
    QueueStats {
        tx_bytes: counters.tx_bytes,
        tx_packets: counters.tx_frames,
        tx_errors: counters.tx_errors,
        duration_s,
        duration_ns,
        ..nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::tests::{TestPlane, switch};
    use openflow::PortConfig;
    use port::PortFacts;
    use std::sync::Arc;

    fn queue(id: u32, min: u64, max: u64) -> QueueRates {
        QueueRates { id, min: BitRate::new(min), max: BitRate::new(max) }
    }

    /// Ports 1, without a speed, 2 of 10 Gbit/s, and 3; queues on the first two.
    fn three_ports() -> (Arc<Switch>, Arc<TestPlane>) {
        let (switch, plane) = switch();
        let queues = vec![queue(7, 400_000, 0), queue(0, 0, 1_000_000)];
        let rate = BitRate::new(1_000_000);
        switch.set_queues(PortNo(1), PortQueues { rate, queues });
        let queues = vec![queue(7, 0, 25_000_000), queue(8, 0, 1000)];
        switch.set_queues(PortNo(2), PortQueues { rate: None, queues });
        for (number, speed_mbps) in [(1, 0), (2, 10_000), (3, 10_000)] {
            let facts = PortFacts { speed_mbps, ..PortFacts::default() };
            switch.add_port(PortNo(number), "eth", &facts, PortConfig::empty());
        }
        (switch, plane)
    }

    fn ids(found: &[QueueStats]) -> Vec<(u32, u32)> {
        found.iter().map(|stats| (stats.port.0, stats.queue)).collect()
    }

    #[test]
    fn rates_are_parts_of_the_ports_rate_or_else_of_its_link() {
        use QueueProperty::{MaxRate, MinRate};
        let (switch, _) = three_ports();
        let all = switch.queues(PortNo::ANY).unwrap();
        let told: Vec<_> =
            all.iter().map(|queue| (queue.port.0, queue.id, &queue.properties[..])).collect();
        let (one, two) = ([MaxRate(1000)], [MinRate(400)]);
        let (three, four) = ([MaxRate(3)], [MaxRate(1)]);
        let wanted: [(u32, u32, &[QueueProperty]); 4] =
            [(1, 0, &one), (1, 7, &two), (2, 7, &three), (2, 8, &four)];
        assert_eq!(told, wanted);
        assert_eq!(switch.queues(PortNo(3)), Ok(Vec::new()));
        let fault = switch.queues(PortNo(9)).unwrap_err();
        assert_eq!(fault.code, ErrorCode::QueueOpFailedBadPort);
    }

    #[test]
    fn a_rate_of_a_port_whose_own_is_unknown_is_not_told() {
        let (switch, _) = switch();
        switch.set_queues(PortNo(1), PortQueues { rate: None, queues: vec![queue(1, 0, 9000)] });
        switch.add_port(PortNo(1), "eth", &PortFacts::default(), PortConfig::empty());
        let queues = switch.queues(PortNo(1)).unwrap();
        assert_eq!((queues.len(), queues[0].properties.len()), (1, 0));
    }

    #[test]
    fn counters_are_of_the_queues_asked_for_and_of_no_other() {
        let (switch, plane) = three_ports();
        let age_ns = 3_000_000_007;
        let counted = QueueCounters {
            id: 7,
            tx_frames: 5,
            tx_bytes: 600,
            tx_errors: 2,
            waiting: 0,
            wait: Default::default(),
            age_ns,
        };
        plane.queues.lock().unwrap().push(counted);
        let all = switch.queue_stats(PortNo::ANY, ALL_QUEUES).unwrap();
        assert_eq!(ids(&all), [(1, 0), (1, 7), (2, 7), (2, 8)]);
        assert_eq!(ids(&switch.queue_stats(PortNo::ANY, 7).unwrap()), [(1, 7), (2, 7)]);
        assert_eq!(ids(&switch.queue_stats(PortNo(3), ALL_QUEUES).unwrap()), []);
        let one = switch.queue_stats(PortNo(2), 7).unwrap();
        let wanted = QueueStats {
            port: PortNo(2),
            queue: 7,
            tx_bytes: 600,
            tx_packets: 5,
            tx_errors: 2,
            duration_s: 3,
            duration_ns: 7,
        };
        assert_eq!(one, [wanted]);
    }

    #[test]
    fn what_is_not_there_is_a_bad_port_or_a_bad_queue() {
        let (switch, _) = three_ports();
        let code = |port, queue| switch.queue_stats(port, queue).unwrap_err().code;
        assert_eq!(code(PortNo(9), ALL_QUEUES), ErrorCode::QueueOpFailedBadPort);
        assert_eq!(code(PortNo(2), 0), ErrorCode::QueueOpFailedBadQueue);
        assert_eq!(code(PortNo(3), 7), ErrorCode::QueueOpFailedBadQueue);
        assert_eq!(code(PortNo::ANY, 9), ErrorCode::QueueOpFailedBadQueue);
        switch.remove_port(PortNo(2));
        assert_eq!(code(PortNo::ANY, 8), ErrorCode::QueueOpFailedBadQueue);
    }
}
