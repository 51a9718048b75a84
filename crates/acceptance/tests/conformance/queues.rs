//! Queues of ports (OpenFlow 1.3.5 §5.12, §7.2.2, §7.3.5.8, §7.3.6; 1.0.0 §5.3.4): chosen by entries, told with their rates, counted
//! exactly, and held to their rates. No marker is sent here: it would go by queue 0, past what waits in the others.

use crate::harness::{Answer, Bench, Node, Session, Suite, entry, output, plain_frame};
use crate::v10::bytes::{Ofp10, flow_mod};
use openflow::{
    ALL_QUEUES, Action, Capabilities, ErrorCode, FlowMod, Match, Message, MultipartReply,
    MultipartRequest, OxmField, Part, PortNo, Queue, QueueConfig, QueueProperty, QueueStats,
    Version,
};
use serde_json::{Value, json};
use std::time::Instant;

/// A switch of which these cases configure the queues.
struct Queued<'n> {
    bench: Bench,
    node: &'n Node,
}

impl Queued<'_> {
    fn path(&self, port: u32) -> String {
        format!("/v1/switches/{}/ports/{port}", self.bench.switch)
    }

    fn put(&self, port: u32, queue: u32, limits: &Value) {
        self.node.api("PUT", &format!("{}/queues/{queue}", self.path(port)), limits);
    }

    fn remove(&self, port: u32, queue: u32) {
        self.node.api("DELETE", &format!("{}/queues/{queue}", self.path(port)), &Value::Null);
    }

    fn set_rate(&self, port: u32, rate: &str) {
        self.node.api("PATCH", &self.path(port), &json!({ "rate": rate }));
    }

    /// Frames from port 1 of these lengths by this queue to port 2, awaited there; each is recognised by its length.
    fn pass(&mut self, lengths: &[usize]) {
        for &length in lengths {
            self.bench.inject(1, &frame(length));
        }
        let came: Vec<usize> = self.bench.receive(2, lengths.len()).iter().map(Vec::len).collect();
        assert_eq!(came, lengths);
        // A worker counts after it has sent; the barrier's answer comes after that.
        self.bench.session.barrier();
    }

    fn choose(&mut self, queue: u32) {
        self.bench.add(&entry(1, Match::default(), vec![Action::SetQueue(queue), output(2)]));
    }
}

fn frame(length: usize) -> Vec<u8> {
    let mut frame = plain_frame("queue");
    frame.resize(length, 0x51);
    frame
}

/// Queue, packets, bytes, errors.
type Counted = (u32, u64, u64, u64);

fn ask_stats(session: &mut Session, port: PortNo, queue: u32) -> Vec<QueueStats> {
    let parts = session.ask_parts(&MultipartRequest::Queue { port, queue });
    let stats = |part| match part {
        MultipartReply::Queue(stats) => stats,
        other => panic!("{other:?}"),
    };
    parts.into_iter().flat_map(stats).collect()
}

fn counted(session: &mut Session, port: u32) -> Vec<Counted> {
    let stats = ask_stats(session, PortNo(port), ALL_QUEUES);
    stats.iter().map(|one| (one.queue, one.tx_packets, one.tx_bytes, one.tx_errors)).collect()
}

fn ask_config(session: &mut Session, port: PortNo) -> Vec<Queue> {
    match session.ask(&Message::QueueGetConfigRequest(port)) {
        Message::QueueGetConfigReply(QueueConfig { port: told, queues }) if told == port => queues,
        other => panic!("{other:?}"),
    }
}

fn refuse_stats(session: &mut Session, port: PortNo, queue: u32, code: ErrorCode) {
    let request = MultipartRequest::Queue { port, queue };
    session.refuse(&Message::MultipartRequest(Part::last(request)), code);
}

/// A case on a switch of its own.
fn case(suite: &mut Suite, name: &str, test: impl FnOnce(&mut Queued<'_>) + Send + 'static) {
    suite.on_node(format!("queues::{name}"), |node| {
        let mut queued = Queued { bench: Bench::make(node), node };
        test(&mut queued);
        queued.bench.remove(node);
    });
}

/// The cases.
pub fn cases(suite: &mut Suite) {
    choice(suite);
    told(suite);
    v10(suite);
    limits(suite);
}

fn choice(suite: &mut Suite) {
    case(suite, "set_queue_sends_by_that_queue_which_counts_each_frame_and_byte", |queued| {
        queued.put(2, 1, &json!({}));
        queued.put(2, 7, &json!({ "max_rate": "1G" }));
        queued.choose(7);
        queued.pass(&[60, 61, 1000]);
        queued.choose(1);
        queued.pass(&[1514]);
        let wanted = [(1, 1, 1514, 0), (7, 3, 1121, 0)];
        assert_eq!(counted(&mut queued.bench.session, 2), wanted);
    });
    case(suite, "a_queue_that_the_port_does_not_have_is_queue_0", |queued| {
        queued.put(2, 0, &json!({}));
        queued.put(2, 1, &json!({}));
        queued.choose(4242);
        queued.pass(&[100, 200]);
        assert_eq!(counted(&mut queued.bench.session, 2), [(0, 2, 300, 0), (1, 0, 0, 0)]);
    });
    case(
        suite,
        "without_set_queue_a_frame_goes_by_queue_0_which_need_not_be_configured",
        |queued| {
            queued.put(2, 1, &json!({}));
            queued.bench.add(&entry(1, Match::default(), vec![output(2)]));
            queued.pass(&[100, 200]);
            assert_eq!(counted(&mut queued.bench.session, 2), [(1, 0, 0, 0)]);
        },
    );
    case(suite, "a_queue_is_each_ports_own_and_chosen_for_the_outputs_after_it", |queued| {
        for port in [2, 3] {
            queued.put(port, 5, &json!({}));
            queued.put(port, 0, &json!({}));
        }
        let actions = vec![output(3), Action::SetQueue(5), output(2), output(3)];
        queued.bench.add(&entry(1, Match::default(), actions));
        queued.pass(&[99]);
        assert_eq!(queued.bench.receive(3, 2).len(), 2);
        queued.bench.session.barrier();
        assert_eq!(counted(&mut queued.bench.session, 2), [(0, 0, 0, 0), (5, 1, 99, 0)]);
        assert_eq!(counted(&mut queued.bench.session, 3), [(0, 1, 99, 0), (5, 1, 99, 0)]);
    });
    case(
        suite,
        "a_queue_that_changes_goes_on_counting_and_one_that_is_made_anew_does_not",
        |queued| {
            queued.put(2, 1, &json!({}));
            queued.choose(1);
            queued.pass(&[100]);
            queued.put(2, 1, &json!({ "max_rate": "1G" }));
            queued.pass(&[100]);
            assert_eq!(counted(&mut queued.bench.session, 2), [(1, 2, 200, 0)]);
            queued.remove(2, 1);
            assert_eq!(counted(&mut queued.bench.session, 2), []);
            queued.pass(&[100]);
            queued.put(2, 1, &json!({}));
            assert_eq!(counted(&mut queued.bench.session, 2), [(1, 0, 0, 0)]);
        },
    );
}

fn told(suite: &mut Suite) {
    use QueueProperty::{MaxRate, MinRate};
    case(suite, "configurations_tell_rates_in_tenths_of_a_percent_of_the_ports", |queued| {
        queued.set_rate(2, "200M");
        queued.put(2, 3, &json!({ "min_rate": "50M", "max_rate": "100M" }));
        queued.put(2, 1, &json!({ "max_rate": 300_000 }));
        queued.put(4, 9, &json!({ "max_rate": "1M" }));
        let of = |port, id, properties| Queue { id, port: PortNo(port), properties };
        let second = [of(2, 1, vec![MaxRate(2)]), of(2, 3, vec![MinRate(250), MaxRate(500)])];
        // A TAP has no speed, so there is nothing that the rate could be a part of.
        let fourth = of(4, 9, vec![]);
        let session = &mut queued.bench.session;
        assert_eq!(ask_config(session, PortNo(2)), second);
        assert_eq!(ask_config(session, PortNo(4)), std::slice::from_ref(&fourth));
        assert_eq!(ask_config(session, PortNo(1)), []);
        assert_eq!(ask_config(session, PortNo::ANY), [&second[..], &[fourth]].concat());
        let absent = Message::QueueGetConfigRequest(PortNo(77));
        session.refuse(&absent, ErrorCode::QueueOpFailedBadPort);
    });
    case(suite, "statistics_are_of_one_queue_or_port_or_of_all", |queued| {
        for (port, queue) in [(2, 1), (2, 3), (3, 3)] {
            queued.put(port, queue, &json!({}));
        }
        let session = &mut queued.bench.session;
        for (port, queue, wanted) in [
            (PortNo::ANY, ALL_QUEUES, &[(2, 1), (2, 3), (3, 3)][..]),
            (PortNo::ANY, 3, &[(2, 3), (3, 3)]),
            (PortNo(2), ALL_QUEUES, &[(2, 1), (2, 3)]),
            (PortNo(2), 3, &[(2, 3)]),
            (PortNo(1), ALL_QUEUES, &[]),
        ] {
            let stats = ask_stats(session, port, queue);
            let found: Vec<_> = stats.iter().map(|one| (one.port.0, one.queue)).collect();
            assert_eq!(found, wanted, "{port:?} {queue}");
            assert!(stats.iter().all(|one| (one.duration_s, one.duration_ns) > (0, 0)));
        }
        refuse_stats(session, PortNo(77), ALL_QUEUES, ErrorCode::QueueOpFailedBadPort);
        refuse_stats(session, PortNo(2), 0, ErrorCode::QueueOpFailedBadQueue);
        refuse_stats(session, PortNo(1), 3, ErrorCode::QueueOpFailedBadQueue);
        refuse_stats(session, PortNo::ANY, 2, ErrorCode::QueueOpFailedBadQueue);
    });
    case(suite, "features_say_that_queues_are_counted", |queued| {
        let answer = queued.bench.session.ask(&Message::FeaturesRequest);
        let Message::FeaturesReply(features) = answer else { panic!("{answer:?}") };
        assert!(features.capabilities.contains(Capabilities::QUEUE_STATS));
    });
}

fn v10(suite: &mut Suite) {
    case(suite, "v10_enqueues_reads_rates_and_counts", |queued| {
        let mut old = Session::open(&queued.node.socket(&queued.bench.switch), Version::V1_0);
        queued.set_rate(2, "1G");
        queued.put(2, 8, &json!({ "min_rate": "250M", "max_rate": "500M" }));
        let change = flow_mod(&[], &Ofp10::enqueue(2, 8));
        assert_eq!(old.try_bytes(change), Answer::Done);
        queued.pass(&[64, 128]);
        assert_eq!(counted(&mut old, 2), [(8, 2, 192, 0)]);
        assert_eq!(ask_stats(&mut old, PortNo::ANY, 8).len(), 1);
        // 1.0 has no property for a highest rate, nor a way to ask for all ports.
        let properties = vec![QueueProperty::MinRate(250)];
        assert_eq!(ask_config(&mut old, PortNo(2)), [Queue { id: 8, port: PortNo(2), properties }]);
        for port in [PortNo::ANY, PortNo(77)] {
            let request = Message::QueueGetConfigRequest(port);
            old.refuse(&request, ErrorCode::QueueOpFailedBadPort);
        }
        refuse_stats(&mut old, PortNo(2), 9, ErrorCode::QueueOpFailedBadQueue);
        refuse_stats(&mut old, PortNo(77), 8, ErrorCode::QueueOpFailedBadPort);
    });
}

/// 250 bytes a millisecond.
const RATE: u64 = 2_000_000;
/// Frames of the overload, in rounds that the TAP's own queue (1000 frames) holds: none is lost before the switch has it.
const ROUNDS: usize = 20;
const ROUND: usize = 200;
const LENGTH: usize = 1000;
/// What a queue of that rate holds: the least, 128 KiB.
const HELD: u64 = 128 << 10;

fn limits(suite: &mut Suite) {
    case(
        suite,
        "a_queue_sends_no_more_than_its_max_rate_and_drops_and_counts_the_rest",
        |queued| {
            queued.put(2, 1, &json!({ "max_rate": RATE }));
            queued.choose(1);
            // Comes out at once, when all frames before it are in their queue or dropped.
            let tick = plain_frame("tick");
            let ticks = Match::default().with(OxmField::EthDst, 0x0200_0000_00ee);
            queued.bench.add(&FlowMod { cookie: 9, ..entry(2, ticks, vec![output(3)]) });
            let mut load = frame(LENGTH);
            load[5] = 0xaa;
            let mut came = 0;
            let start = Instant::now();
            for _ in 0..ROUNDS {
                (0..ROUND).for_each(|_| queued.bench.inject(1, &load));
                queued.bench.inject(1, &tick);
                assert_eq!(queued.bench.receive(3, 1), std::slice::from_ref(&tick));
                came += queued.bench.receive_waiting(2).len();
            }
            queued.bench.session.barrier();
            let loaded_ms = start.elapsed().as_millis() as u64 + 1;
            let [(1, _, _, dropped)] = counted(&mut queued.bench.session, 2)[..] else { panic!() };
            let kept = ROUNDS * ROUND - dropped as usize;
            // The rate for so long, with the 10 ms and the millisecond that it saves up and leases, and one frame.
            let most = RATE / 8 * (loaded_ms + 11) / 1000 + HELD + LENGTH as u64;
            assert!((kept * LENGTH) as u64 <= most, "{kept} frames kept in {loaded_ms} ms");
            assert!(
                dropped > 0 && kept >= HELD as usize / LENGTH,
                "{kept} kept, {dropped} dropped"
            );
            let rest = queued.bench.receive(2, kept - came);
            assert!(rest.iter().all(|frame| frame == &load));
            queued.bench.session.barrier();
            let sent = (kept * LENGTH) as u64;
            assert_eq!(counted(&mut queued.bench.session, 2), [(1, kept as u64, sent, dropped)]);
            assert_eq!(queued.bench.receive_waiting(2).len(), 0);
        },
    );
    case(suite, "a_guaranteed_queue_is_served_while_another_is_overloaded", |queued| {
        // 12.5 bytes a millisecond: what the other queue holds waits ten seconds, far longer than this case takes.
        queued.set_rate(2, "100k");
        queued.put(2, 1, &json!({}));
        queued.put(2, 2, &json!({ "min_rate": "50k" }));
        for (destination, queue) in [(0xaa, 1), (0xbb, 2)] {
            let to = Match::default().with(OxmField::EthDst, 0x0200_0000_0000 | destination);
            queued.bench.add(&entry(1, to, vec![Action::SetQueue(queue), output(2), output(3)]));
        }
        let [load, precious] = [0xaa, 0xbb].map(|destination| {
            let mut frame = frame(LENGTH);
            frame[5] = destination;
            frame
        });
        (0..ROUND).for_each(|_| queued.bench.inject(1, &load));
        queued.bench.receive(3, ROUND);
        queued.bench.inject(1, &precious);
        let mut before = 0;
        while queued.bench.receive(2, 1)[0] != precious {
            before += 1;
        }
        let [(1, sent, _, dropped), (2, ..)] = counted(&mut queued.bench.session, 2)[..] else {
            panic!()
        };
        assert!(sent + dropped < ROUND as u64, "{before} came before, {dropped} were dropped");
        assert_eq!(queued.bench.receive(2, 1), [load], "the others still come");
    });
}
