//! Queues as `ovs-ofctl` reads them, in 1.3 and in 1.0; and what their rates do to guests' traffic on ports of every kind.

use acceptance::{Kind, Lab, Ofctl, inside, privileged, received, send_datagrams, until};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

#[test]
fn ovs_ofctl_reads_queues_and_sends_by_them_in_both_versions() {
    if !privileged() {
        return;
    }
    let lab = Lab::running(&["g1", "g2"]);
    lab.suiro(&["switch", "add", "sw0", "--fail-mode", "secure"]);
    for guest in ["g1", "g2"] {
        lab.connect("sw0", guest, Kind::Tap);
    }
    lab.suiro(&["port", "mod", "sw0", "g2", "--rate", "1G"]);
    lab.suiro(&["queue", "add", "sw0", "g2", "3", "--min-rate", "250M", "--max-rate", "500M"]);
    lab.suiro(&["queue", "add", "sw0", "g1", "3"]);
    let (new, old) =
        (Ofctl::management(&lab, "sw0"), Ofctl::management(&lab, "sw0").speaking_1_0());
    new.run("add-flow", &["arp,actions=NORMAL"]);
    new.run("add-flow", &["icmp,in_port=2,actions=output:1"]);
    let mut sent = 0;
    for (ofctl, actions) in [(&new, "set_queue:3,output:2"), (&old, "enqueue:2:3")] {
        ofctl.run("add-flow", &[&format!("icmp,in_port=1,actions={actions}")]);
        sent += lab.exchange("g1", "g2", 3);
        let stats = ofctl.run("queue-stats", &["2", "3"]);
        assert!(stats.contains(&format!("pkts={sent}")), "{sent} sent: {stats}");
        let all = ofctl.run("queue-stats", &[]);
        assert!(all.contains("2 queues"), "{all}");
        let config = ofctl.run("queue-get-config", &["2"]);
        assert!(config.contains("queue 3") && config.contains("min_rate:25.0%"), "{config}");
        let absent = ofctl.says("queue-stats", &["2", "9"]);
        assert!(absent.out.contains("OFPQOFC_BAD_QUEUE"), "{}{}", absent.out, absent.err);
    }
    assert_eq!(sent, 6);
    let config = new.run("queue-get-config", &[]);
    assert!(
        config.contains("max_rate:50.0%") && config.matches("queue 3").count() == 2,
        "{config}"
    );
}

/// Bytes of a frame with a datagram, and of the datagram in it.
const FRAME: u64 = 1000;
const DATAGRAM: usize = FRAME as usize - 14 - 20 - 8;
/// 250 bytes a millisecond.
const RATE: u64 = 2_000_000;
/// What a queue of a low rate holds.
const HELD: u64 = 128 << 10;
/// A rate saves up 10 ms, a worker leases a millisecond at most.
const SAVED_MS: u64 = 11;

/// What `bits_per_s` lets out in so many milliseconds at the most, and one frame.
fn most(bits_per_s: u64, ms: u64, frame: u64) -> u64 {
    bits_per_s / 8 * (ms + SAVED_MS) / 1000 + frame
}

/// A switch with g1 and g2 on ports of a kind, who know each other; nothing passes yet.
fn two_guests(kind: Kind) -> Lab {
    let lab = Lab::running(&["g1", "g2"]);
    lab.suiro(&["switch", "add", "sw0", "--fail-mode", "secure"]);
    for (guest, other) in [("g1", "g2"), ("g2", "g1")] {
        lab.connect("sw0", guest, kind);
        lab.introduce(guest, other);
    }
    lab
}

/// A queue of g2's port: frames sent, waiting and dropped.
fn counted(lab: &Lab, queue: &str) -> [u64; 3] {
    let queue = lab.json(&["queue", "show", "sw0", "g2", queue]);
    ["tx_frames", "waiting", "tx_errors"].map(|key| queue[key].as_u64().unwrap())
}

fn counters(lab: &Lab, port: &str) -> Value {
    lab.json(&["port", "show", "sw0", port])["counters"].clone()
}

/// Sends so many datagrams from g1 to a UDP port of g2, in rounds that no ring on the way in is too short for.
fn send(lab: &Lab, udp_port: u16, datagrams: u64) {
    const ROUND: u64 = 200;
    let mut came = counters(lab, "g1")["rx_frames"].as_u64().unwrap();
    for round in (0..datagrams).step_by(ROUND as usize) {
        let count = ROUND.min(datagrams - round);
        let to = format!("{}:{udp_port}", Lab::ip("g2"));
        send_datagrams(lab, "g1", &to, (count as usize, DATAGRAM));
        came += count;
        until("the switch has them all", || counters(lab, "g1")["rx_frames"] == came);
    }
}

#[test]
fn a_queue_lets_out_its_max_rate_and_counts_all_that_it_drops_on_every_kind_of_port() {
    const OFFERED: u64 = 4000;
    if !privileged() {
        return;
    }
    for kind in Kind::ALL {
        let lab = two_guests(kind);
        lab.suiro(&["queue", "add", "sw0", "g2", "1", "--max-rate", &RATE.to_string()]);
        lab.suiro(&["flow", "add", "sw0", "udp,in_port=1,actions=set_queue:1,output:2"]);
        let start = Instant::now();
        send(&lab, 9, OFFERED);
        until("each is counted", || counted(&lab, "1").iter().sum::<u64>() == OFFERED);
        let loaded_ms = start.elapsed().as_millis() as u64 + 1;
        let [_, _, dropped] = counted(&lab, "1");
        let kept = OFFERED - dropped;
        let limit = most(RATE, loaded_ms, FRAME) + HELD;
        assert!(kept * FRAME <= limit, "{kind:?}: {kept} frames kept in {loaded_ms} ms");
        assert!(dropped > 0 && kept >= HELD / FRAME, "{kind:?}: {kept} kept, {dropped} dropped");
        until("what waits has left", || counted(&lab, "1") == [kept, 0, dropped]);
        let all_ms = start.elapsed().as_millis() as u64 + 1;
        assert!(kept * FRAME <= most(RATE, all_ms, FRAME), "{kind:?}: {kept} sent in {all_ms} ms");
        let port = counters(&lab, "g2");
        assert_eq!((&port["tx_frames"], received(&lab, "g2")), (&kept.into(), kept), "{kind:?}");
        let lost = serde_json::json!([{ "reason": "queue_full", "frames": dropped }]);
        assert_eq!(port["tx_drops"], lost, "{kind:?}");
    }
}

#[test]
fn a_guaranteed_queue_is_served_while_another_is_overloaded_on_every_kind_of_port() {
    const LOAD: u64 = 100;
    if !privileged() {
        return;
    }
    for kind in Kind::ALL {
        let lab = two_guests(kind);
        // 1.25 bytes a millisecond: the load waits longer than a minute, far longer than this test takes.
        lab.suiro(&["port", "mod", "sw0", "g2", "--rate", "10k"]);
        lab.suiro(&["queue", "add", "sw0", "g2", "1"]);
        lab.suiro(&["queue", "add", "sw0", "g2", "2", "--min-rate", "5k"]);
        for queue in ["1", "2"] {
            let entry = format!("udp,tp_dst={queue},actions=set_queue:{queue},output:2");
            lab.suiro(&["flow", "add", "sw0", &entry]);
        }
        send(&lab, 1, LOAD);
        until("the load waits", || counted(&lab, "1").iter().sum::<u64>() == LOAD);
        send(&lab, 2, 1);
        until("the guaranteed one has left", || counted(&lab, "2") == [1, 0, 0]);
        let [sent, waiting, dropped] = counted(&lab, "1");
        assert!(waiting > LOAD / 2 && dropped == 0, "{kind:?}: {sent} sent, {waiting} waiting");
        lab.suiro(&["queue", "add", "sw0", "g2", "2"]);
        lab.suiro(&["port", "mod", "sw0", "g2", "--rate", "none"]);
        until("without a rate nothing waits", || counted(&lab, "1") == [LOAD, 0, 0]);
        until("all have come", || received(&lab, "g2") == LOAD + 1);
    }
}

#[test]
fn a_stream_by_a_slow_queue_comes_whole_and_no_faster_than_its_rate_on_every_kind_of_port() {
    const RATE: u64 = 40_000_000;
    const BYTES: usize = 4 << 20;
    /// Longest frame: a segmented one.
    const LONGEST: u64 = 64 << 10;
    if !privileged() {
        return;
    }
    for kind in Kind::ALL {
        let lab = two_guests(kind);
        lab.suiro(&["queue", "add", "sw0", "g2", "1", "--max-rate", &RATE.to_string()]);
        lab.suiro(&["flow", "add", "sw0", "in_port=1,actions=set_queue:1,output:2"]);
        lab.suiro(&["flow", "add", "sw0", "in_port=2,actions=output:1"]);
        let sent: Vec<u8> = (0..BYTES as u32 / 4).flat_map(u32::to_be_bytes).collect();
        let listener =
            inside(&lab.guest("g2"), || TcpListener::bind((Lab::ip("g2"), 5001)).unwrap());
        let (came, took_ms) = std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut came = Vec::with_capacity(BYTES);
                listener.accept().unwrap().0.read_to_end(&mut came).unwrap();
                came
            });
            let start = Instant::now();
            let stream = inside(&lab.guest("g1"), || TcpStream::connect((Lab::ip("g2"), 5001)));
            stream.unwrap().write_all(&sent).unwrap();
            (reader.join().unwrap(), start.elapsed().as_millis() as u64 + 1)
        });
        assert!(came == sent, "{kind:?}: {} bytes came", came.len());
        let limit = most(RATE, took_ms, LONGEST);
        assert!(BYTES as u64 <= limit, "{kind:?}: {BYTES} bytes in {took_ms} ms");
        let queue = lab.json(&["queue", "show", "sw0", "g2", "1"]);
        assert!(queue["tx_bytes"].as_u64().unwrap() >= BYTES as u64, "{kind:?}: {queue}");
    }
}

#[test]
fn top_shows_each_queue_of_each_port_and_what_waits_there() {
    const LOAD: u64 = 100;
    if !privileged() {
        return;
    }
    let lab = two_guests(Kind::Tap);
    lab.suiro(&["queue", "add", "sw0", "g2", "1", "--max-rate", "10k"]);
    lab.suiro(&["queue", "add", "sw0", "g2", "4"]);
    lab.suiro(&["flow", "add", "sw0", "udp,actions=set_queue:1,output:2"]);
    send(&lab, 9, LOAD);
    let shown = lab.json(&["top", "--once"]);
    let ports = shown["ports"].as_array().unwrap();
    assert_eq!(ports[0]["queue"], serde_json::json!([]), "g1 has none");
    let queues = ports[1]["queue"].as_array().unwrap();
    let of = |key: &str| queues.iter().map(|queue| queue[key].clone()).collect::<Vec<_>>();
    assert_eq!(of("id"), [1, 4]);
    assert_eq!(of("max_rate"), [Value::from("10k"), Value::Null]);
    assert!((LOAD / 2..LOAD).contains(&of("waiting")[0].as_u64().unwrap()), "{queues:?}");
    assert_eq!((&of("waiting")[1], &of("drops_per_s")[0]), (&0.into(), &0.0.into()));
    let text = lab.suiro(&["top", "--once"]);
    let (_, table) = text.split_once("QUEUES OF").expect("a table of queues");
    let rows: Vec<Vec<_>> =
        table.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        rows.iter().map(|row| row[..5].to_vec()).collect::<Vec<_>>(),
        [["sw0:g2", "-", "1", "-", "10k"], ["sw0:g2", "-", "4", "-", "-"],]
    );
}
