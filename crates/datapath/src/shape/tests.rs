//! A shaper against what is obvious: a fluid that fills glasses, a list that keeps its order, a sum that must come out.

use super::*;
use api::{PortQueues, QueueRates};
use port::Body;
use proptest::prelude::*;
use std::collections::VecDeque;
use wire::Offload;
use wire::build::{Frame, Ipv4, Tcp};

const SECOND: u64 = 1_000_000_000;
/// Far enough from zero for a bucket to be full.
const START: u64 = SECOND;
const MBIT: u64 = 1_000_000;

fn rate(bits: u64) -> Option<BitRate> {
    BitRate::new(bits)
}

fn queue(id: u32, min: u64, max: u64) -> QueueRates {
    QueueRates { id, min: rate(min), max: rate(max) }
}

fn shared(rate_of: u64, queues: &[QueueRates]) -> Arc<PortQueuesShared> {
    let wanted = PortQueues { rate: rate(rate_of), queues: queues.to_vec() };
    wanted.check().unwrap();
    PortQueuesShared::new(&wanted, Nanos(START), 4, (None, &Arc::default()))
}

/// One worker's shaper, and what left it.
struct Bench {
    shaper: Shaper,
    now: u64,
    /// Queue, number and length of each frame that left, in order.
    left: Vec<(u32, u32, usize)>,
    lost: u64,
}

impl Bench {
    fn new(shared: &Arc<PortQueuesShared>) -> Self {
        Self { shaper: Shaper::new(shared, 0), now: START, left: Vec::new(), lost: 0 }
    }

    fn offer(&mut self, id: u32, number: u32, len: usize) -> bool {
        let mut bytes = vec![0; len];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        let head = len.min(60);
        let body = Body::private(&bytes[head..]);
        let frame = TxFrame {
            head: &bytes[..head],
            body,
            offload: Offload::default(),
            tunnel_id: 0,
            tun_dst: 0,
        };
        let lane = self.shaper.lane(id);
        let mut admission = self.shaper.admit(lane, &frame, len as u32, Nanos(self.now));
        if admission == Admission::Full {
            self.depart();
            admission = self.shaper.admit(lane, &frame, len as u32, Nanos(self.now));
        }
        match admission {
            Admission::Go => self.left.push((id, number, len)),
            Admission::Held => {}
            Admission::Full => self.lost += 1,
        }
        admission != Admission::Full
    }

    fn depart(&mut self) {
        while let Some((lane, stored)) = self.shaper.pop(Nanos(self.now)) {
            let (id, frame) = (self.shaper.queue(lane).id, self.shaper.frame(lane, &stored));
            let number = u32::from_be_bytes(frame.head[..4].try_into().unwrap());
            self.left.push((id, number, frame.len()));
        }
    }

    /// Lets time pass, and comes back when the shaper asks for it.
    fn pass(&mut self, until: u64) {
        while !self.shaper.is_idle() {
            let next = self.shaper.next_look(Nanos(self.now)).0;
            if next > until {
                break;
            }
            self.now = next;
            self.depart();
        }
        self.now = until;
        self.depart();
    }

    fn bytes(&self, id: u32) -> u64 {
        self.left.iter().filter(|left| left.0 == id).map(|left| left.2 as u64).sum()
    }

    /// Every queue has always something to send, for so long.
    fn overload(&mut self, ids: &[u32], len: usize, nanos: u64) {
        let end = self.now + nanos;
        while self.now < end {
            for &id in ids {
                while self.offer(id, 0, len) {}
            }
            let now = self.now;
            self.pass(now + 2_000_000);
        }
    }
}

/// What each of these queues gets when all want everything: its guarantee, and the rest poured evenly until it reaches `max`.
fn poured(port: f64, queues: &[QueueRates]) -> Vec<f64> {
    let get = |rate: Option<BitRate>, none: f64| rate.map_or(none, |rate| rate.get() as f64);
    let at = |level: f64| -> Vec<f64> {
        queues.iter().map(|q| (get(q.min, 0.0) + level).min(get(q.max, f64::MAX))).collect()
    };
    let (mut low, mut high) = (0.0, port);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if at(middle).iter().sum::<f64>() > port { high = middle } else { low = middle }
    }
    at(low)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn under_overload_every_queue_gets_its_guarantee_and_an_equal_part_of_the_rest(
        port in 20u64..200,
        parts in prop::collection::vec((0u64..30, prop::option::of(1u64..150)), 1..6),
        len in 200usize..1500,
    ) {
        let queues: Vec<QueueRates> = parts
            .iter()
            .enumerate()
            .map(|(id, &(min, max))| {
                let min = min * port * MBIT / 180;
                queue(id as u32, min, max.map_or(0, |max| (max * MBIT).max(min)))
            })
            .collect();
        let mut bench = Bench::new(&shared(port * MBIT, &queues));
        let ids: Vec<u32> = queues.iter().map(|queue| queue.id).collect();
        bench.overload(&ids, len, 2 * SECOND);
        for (queue, poured) in queues.iter().zip(poured((port * MBIT) as f64, &queues)) {
            let got = bench.bytes(queue.id) as f64 * 8.0 / 2.0;
            // What was saved up before the start comes on top: 10 ms of each rate, of two seconds.
            let slack = 0.01 * (port * MBIT) as f64 + 0.01 * poured;
            prop_assert!((got - poured).abs() < slack, "{queue:?}: {got} and not {poured}");
        }
    }

    #[test]
    fn what_comes_below_the_rate_is_never_lost_nor_late(
        rate_of in 1u64..1000, gaps in prop::collection::vec((60usize..1500, 0u64..3000), 1..400),
    ) {
        let mut bench = Bench::new(&shared(0, &[queue(7, 0, rate_of * MBIT)]));
        for (number, &(len, gap)) in gaps.iter().enumerate() {
            bench.offer(7, number as u32, len);
            let now = bench.now;
            bench.pass(now + (len as u64 * 8000).div_ceil(rate_of) + gap);
            prop_assert!(bench.shaper.is_idle(), "frame {number} waits");
        }
        prop_assert_eq!((bench.lost, bench.left.len()), (0, gaps.len()));
    }

    #[test]
    fn frames_of_a_queue_keep_their_order_and_none_vanishes(
        steps in prop::collection::vec((0u32..5, 60usize..9000, 0u64..400_000), 1..600),
    ) {
        let queues = [queue(1, 2 * MBIT, 5 * MBIT), queue(2, 3 * MBIT, 0), queue(3, 0, MBIT)];
        let mut bench = Bench::new(&shared(12 * MBIT, &queues));
        let mut oracle: Vec<VecDeque<u32>> = vec![VecDeque::new(); 5];
        for (number, &(id, len, gap)) in steps.iter().enumerate() {
            if bench.offer(id, number as u32, len) {
                oracle[id as usize].push_back(number as u32);
            }
            let now = bench.now;
            bench.pass(now + gap);
        }
        let held: usize = bench.shaper.lanes.iter().map(|lane| lane.ring.len()).sum();
        prop_assert_eq!(bench.left.len() + held + bench.lost as usize, steps.len());
        let now = bench.now;
        bench.pass(now + 60 * SECOND);
        prop_assert!(bench.shaper.is_idle());
        // Queue 4 is not there: its frames take queue 0's place, and are told apart by their number.
        let mut all: Vec<u32> = oracle[0].iter().chain(&oracle[4]).copied().collect();
        all.sort_unstable();
        oracle[0] = all.into();
        oracle[4].clear();
        let mut seen: Vec<VecDeque<u32>> = vec![VecDeque::new(); 5];
        for &(id, number, _) in &bench.left {
            seen[if id == 4 { 0 } else { id as usize }].push_back(number);
        }
        prop_assert_eq!(seen, oracle);
    }
}

#[test]
fn a_burst_is_admitted_held_and_dropped_by_number() {
    // 8 Mbit/s: 10 ms are 10 000 bytes, and the least memory of a queue is 128 KiB.
    let mut bench = Bench::new(&shared(0, &[queue(1, 0, 8 * MBIT)]));
    let fits = (0..1000).filter(|&number| bench.offer(1, number, 1000)).count();
    let held = (128 << 10) / 1000;
    assert_eq!((bench.left.len(), fits), (10, 10 + held));
    bench.pass(START + 10_000_000);
    assert_eq!(bench.left.len(), 20, "10 ms later as much again");
    bench.pass(START + SECOND);
    assert_eq!(bench.left.len(), fits);
}

#[test]
fn the_rate_is_kept_within_one_percent_from_kilobits_to_a_hundred_gigabits() {
    for (bits, len, nanos) in [
        (64_000, 200, 100 * SECOND),
        (10 * MBIT, 1500, 10 * SECOND),
        (1000 * MBIT, 64, 2 * SECOND),
        (100_000 * MBIT, 9000, SECOND / 2),
    ] {
        let mut bench = Bench::new(&shared(0, &[queue(1, 0, bits)]));
        bench.overload(&[1], len, SECOND / 50);
        let before = bench.bytes(1);
        bench.overload(&[1], len, nanos);
        let got = (bench.bytes(1) - before) as f64 * 8.0 * 1e9 / nanos as f64;
        assert!((got / bits as f64 - 1.0).abs() < 0.01, "{bits}: {got}");
    }
}

#[test]
fn a_guarantee_holds_against_another_worker_that_takes_all_it_can() {
    let shared = shared(10 * MBIT, &[queue(1, 8 * MBIT, 0)]);
    let (mut hog, mut prior) = (Bench::new(&shared), Bench::new(&shared));
    for ms in 0..2000 {
        while hog.offer(0, 0, 1000) {}
        while prior.offer(1, 0, 1000) {}
        hog.pass(START + (ms + 1) * 1_000_000);
        prior.pass(START + (ms + 1) * 1_000_000);
    }
    let (hog, prior) = (hog.bytes(0) * 4, prior.bytes(1) * 4);
    assert!(prior > 7_920_000, "{prior} bit/s");
    assert!((9_900_000..10_150_000).contains(&(hog + prior)), "{hog} + {prior} bit/s");
}

#[test]
fn a_large_segment_costs_what_its_segments_have_on_the_wire() {
    let bytes = Frame::ethernet([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1])
        .ipv4(Ipv4::default())
        .tcp(Tcp::default())
        .payload(&[0; 14_600])
        .finish();
    let head = Head::copy_of(&bytes[..100]);
    let offload = Offload { gso: Gso::TcpV4, gso_size: 1460, ..Offload::default() };
    let frame = TxFrame {
        head: head.bytes(),
        body: Body::private(&bytes[100..]),
        offload,
        tunnel_id: 0,
        tun_dst: 0,
    };
    assert_eq!(wire_len(&head, &frame), 10 * (54 + 1460));
    assert_eq!(wire_len(&head, &TxFrame { offload: Offload::default(), ..frame }), 54 + 14_600);
}

#[test]
fn what_waits_moves_to_the_queues_that_follow() {
    let before = shared(0, &[queue(1, 0, MBIT), queue(2, 0, MBIT)]);
    let mut bench = Bench::new(&before);
    for number in 0..40 {
        bench.offer(1 + number % 2, number, 1000);
    }
    let left = bench.left.len();
    let wanted = PortQueues { rate: None, queues: vec![queue(0, 0, MBIT), queue(2, 0, 2 * MBIT)] };
    let held = |shared: &PortQueuesShared| shared.held.load(Relaxed);
    assert_eq!(held(&before), 36, "whoever goes past the worker waits for them");
    let after = PortQueuesShared::new(&wanted, Nanos(START), 4, (Some(&before), &before.held));
    let mut next = Shaper::new(&after, 0);
    let waiting = |shared: &PortQueuesShared| -> Vec<_> {
        shared.counters(Nanos(START)).iter().map(|queue| queue.waiting).collect()
    };
    assert_eq!(waiting(&before), [18, 18]);
    let mut drops = Drops::default();
    next.inherit(&mut bench.shaper, &mut drops);
    assert!(drops.is_empty());
    assert_eq!((waiting(&after), held(&after)), (vec![18, 18], 36));
    bench.shaper = next;
    bench.pass(START + SECOND);
    assert_eq!(held(&after), 0);
    let of = |id: u32| bench.left[left..].iter().filter(|left| left.0 == id).count();
    // 1 Mbit/s lets 10 ms leave at once: the credit opens for a second frame, and that is all.
    assert_eq!((left, of(0), of(2), bench.left.len()), (4, 18, 18, 40), "queue 0 has queue 1's");
}
