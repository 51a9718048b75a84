//! Queues with rates as their user sees them: made and changed while the port carries on, kept over a crash, read again from the file.

use crate::capture::begin;
use acceptance::{Kind, Lab, Place, inside, privileged, tshark, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::UdpSocket;

/// Rates of a port and its queues, without counters.
fn queues(place: &Place, port: &str) -> Value {
    let shown = place.json(&["port", "show", "sw0", port]);
    let of = |queue: &Value| json!([queue["id"], queue["min_rate"], queue["max_rate"]]);
    let queues: Vec<Value> = shown["queue"].as_array().unwrap().iter().map(of).collect();
    json!([shown["rate"], queues])
}

/// How often a port was opened.
fn openings(place: &Place) -> usize {
    place.log().matches("port g1 of switch sw0: open, ").count()
}

#[test]
fn queues_change_while_the_port_carries_on_and_outlive_kill_9() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&["g1"]);
    place.start();
    place.suiro(&["switch", "add", "sw0"]);
    let tap = ["--type", "tap", "--netns", &place.guest("g1"), "--rate", "1G"];
    place.suiro(&[&["port", "add", "sw0", "g1"][..], &tap].concat());
    let add = |queue: &str, rates: &[&str]| {
        place.suiro(&[&["queue", "add", "sw0", "g1", queue][..], rates].concat())
    };
    let said = add("2", &["--min-rate", "200M", "--max-rate", "2.5G"]);
    assert_eq!(
        said,
        "port g1 of switch sw0 has queue 2, at least 200M bit/s, at most 2500M bit/s\n"
    );
    add("1", &["--max-rate", "64000"]);
    add("1", &["--max-rate", "10M"]);
    add("7", &[]);
    place.suiro(&["queue", "del", "sw0", "g1", "7"]);
    place.suiro(&["port", "mod", "sw0", "g1", "--rate", "900M"]);
    let wanted = json!(["900M", [[1, null, "10M"], [2, "200M", "2500M"]]]);
    assert_eq!(queues(&place, "g1"), wanted);
    assert_eq!(openings(&place), 1);
    let listed = place.suiro(&["queue", "list"]);
    assert_eq!(listed.lines().count(), 3, "{listed}");
    assert!(place.suiro(&["port", "show", "sw0", "g1"]).contains("at most 10M bit/s; 0 frames"));
    assert!(place.suiro(&["queue", "show", "sw0", "g1", "2"]).contains("min rate    200M"));
    place.end(Signal::KILL);
    place.start();
    assert_eq!(queues(&place, "g1"), wanted);
    place.suiro(&["queue", "del", "sw0", "g1", "1", "2"]);
    place.suiro(&["port", "mod", "sw0", "g1", "--rate", "none"]);
    assert_eq!(queues(&place, "g1"), json!([null, []]));
}

#[test]
fn what_a_port_cannot_have_is_refused_with_its_remedy_and_changes_nothing() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&["g1"]);
    place.start();
    for switch in ["sw0", "sw1"] {
        place.suiro(&["switch", "add", switch]);
    }
    place.suiro(&["port", "add", "sw0", "g1", "--type", "tap", "--netns", &place.guest("g1")]);
    place.suiro(&["port", "add", "sw0", "v", "--type", "vlink", "--peer", "sw1:w"]);
    place.suiro(&["queue", "add", "sw0", "g1", "1", "--max-rate", "5M"]);
    let before = queues(&place, "g1");
    let all = u32::MAX.to_string();
    let table: &[(&[&str], &[&str])] = &[
        (&["queue", "add", "sw0", "v", "1"], &["port v of switch sw0", "a vlink has no queues"]),
        (&["port", "mod", "sw0", "v", "--rate", "1G"], &["a vlink has no queues"]),
        (
            &["queue", "add", "sw0", "g1", "2", "--min-rate", "1M"],
            &["the port has no rate", "give the port a rate"],
        ),
        (
            &["queue", "add", "sw0", "g1", "2", "--min-rate", "2M", "--max-rate", "1M"],
            &["min_rate is above max_rate", "remedy: "],
        ),
        (&["queue", "add", "sw0", "g1", &all], &["stands for all queues", "choose an id"]),
        (&["queue", "add", "sw0", "nope", "1"], &["port nope of switch sw0"]),
        (&["queue", "del", "sw0", "g1", "4"], &["queue 4 of port g1", "suiro queue list sw0 g1"]),
        (&["queue", "show", "sw0", "g1", "4"], &["queue 4 of port g1", "suiro queue list sw0 g1"]),
    ];
    for (words, parts) in table {
        let said = place.says(words);
        assert_eq!(said.code, 1, "{words:?}: {}", said.err);
        for part in *parts {
            assert!(said.err.contains(part), "{words:?}: {part}: {}", said.err);
        }
    }
    let usage: &[(&[&str], &str)] = &[
        (&["queue", "add", "sw0", "g1", "2", "--max-rate", "10m"], "tip: write bits per second"),
        (&["switch", "add", "sw2", "--protocols", "1.4"], "tip: write 1.0 or 1.3"),
        (&["switch", "mod", "sw0", "--tls-pin", "sha256:1"], "tip: write sha256: and 64 hexa"),
        (&["queue", "add", "sw0", "g1", "one"], "tip: write a whole number"),
        (&["switch", "mod", "sw0"], "nothing to change"),
    ];
    for (words, part) in usage {
        let said = place.says(words);
        assert!(said.code == 2 && said.err.contains(part), "{words:?}: {}", said.err);
    }
    assert_eq!(queues(&place, "g1"), before);
}

#[test]
fn queues_of_the_file_change_on_sighup_while_the_port_carries_on() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&["g1"]);
    let netns = place.guest("g1");
    let with = |queues: &str| {
        format!(
            "[[switch]]\nname = 'sw0'\n[[switch.port]]\nname = 'g1'\ntype = 'tap'\nnetns = '{netns}'\n{queues}"
        )
    };
    place.configure(&with("rate = '1G'\n[[switch.port.queue]]\nid = 1\nmin_rate = '10M'\n"));
    place.start();
    assert_eq!(queues(&place, "g1"), json!(["1G", [[1, "10M", null]]]));
    place.configure(&with(
        "[[switch.port.queue]]\nid = 1\nmax_rate = 5000000\n[[switch.port.queue]]\nid = 0\n",
    ));
    place.signal(Signal::HUP);
    let wanted = json!([null, [[0, null, null], [1, null, "5M"]]]);
    until("the queues are the file's", || queues(&place, "g1") == wanted);
    let refused = place.says(&["queue", "del", "sw0", "g1", "1"]);
    assert!(refused.err.contains("declared in the configuration file"), "{}", refused.err);
    place.configure(&with(""));
    place.signal(Signal::HUP);
    until("there are none", || queues(&place, "g1") == json!([null, []]));
    assert_eq!(openings(&place), 1);
}

#[test]
fn a_capture_of_a_queue_shows_what_waits_leaves_and_is_dropped_with_one_id() {
    if !privileged() {
        return;
    }
    const SENT: usize = 200;
    let lab = Lab::running(&["g1", "g2"]);
    lab.suiro(&["switch", "add", "sw0", "--fail-mode", "secure"]);
    for guest in ["g1", "g2"] {
        lab.connect("sw0", guest, Kind::Tap);
    }
    lab.suiro(&["queue", "add", "sw0", "g2", "5", "--max-rate", "1M"]);
    let rules =
        ["priority=1,actions=NORMAL", "priority=9,udp,in_port=g1,actions=set_queue:5,output:g2"];
    lab.suiro(&[&["flow", "add", "sw0"][..], &rules].concat());
    until("the guests talk", || lab.talk("g1", "g2"));
    let file = lab.path("queue.pcapng");
    let name = file.display().to_string();
    let capture = begin(&lab, &["queue:sw0:g2:5", "-w", &name, "--budget", "100%"]);
    inside(&lab.guest("g1"), || {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        for number in 0..SENT {
            socket.send_to(&[number as u8; 1400], (Lab::ip("g2"), 7)).unwrap();
        }
    });
    let counted = |field: &str| {
        let queues = lab.json(&["queue", "list", "sw0", "g2"]);
        queues[0]["queue"][0][field].as_u64().unwrap_or(0) as usize
    };
    until("all have come", || {
        counted("tx_frames") + counted("tx_errors") + counted("waiting") == SENT
    });
    let said = capture.end(Signal::INT);
    assert!(said.contains(" 0 lost for want of room"), "{said}");

    let fields = [
        "frame.packet_id",
        "frame.packet_flags_direction",
        "frame.comment",
        "frame.interface_queue",
    ];
    let mut ways = BTreeMap::<String, Vec<String>>::new();
    for row in tshark(&file, "udp.dstport == 7", &fields) {
        assert!(row[2].contains("switch=sw0 port=g2 queue=5 core="), "{row:?}");
        assert_eq!(row[3], "5");
        let is_lost = row[2].starts_with("drop=queue_full ");
        let what = if is_lost { "lost".to_owned() } else { row[1].clone() };
        ways.entry(row[0].clone()).or_default().push(what);
    }
    assert_eq!(ways.len(), SENT, "as many ids as datagrams");
    let (into, out) = ("0x00000001", "0x00000002");
    let many = |wanted: &[&str]| ways.values().filter(|way| *way == wanted).count();
    let (left, lost, wait) = (many(&[into, out]), many(&[into, "lost"]), many(&[into]));
    assert!(left > 0 && lost > 0, "{left} left, {lost} lost, {wait} wait");
    assert_eq!(left + lost + wait, SENT);
    let refused = lab.says(&["capture", "queue:sw0:g1:5", "-w", "-"]);
    assert!(refused.err.contains("the port has no such queue"), "{}", refused.err);
}
