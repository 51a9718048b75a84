//! What happens on a node is told once and in order, whoever goes away, is slow or comes too late.

use acceptance::{Place, Speaker, privileged, until};
use openflow::{Message, PortConfig, PortFeatures, PortMod, PortNo};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Changes that one reader must hear of.
const CHANGES: usize = 10_000;

/// Reads events after a revision until `enough`; then it hangs up, in the middle of whatever comes. HTTP/1.0 has no chunks.
fn read(place: &Place, since: &str, mut enough: impl FnMut(&Value) -> bool) -> Vec<Value> {
    let mut stream = UnixStream::connect(place.socket()).unwrap();
    // Longer than anything here takes: who waits in vain fails.
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let request = format!("GET /v1/events?since={since}&follow=true HTTP/1.0\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut found = Vec::new();
    for line in BufReader::new(stream).lines() {
        let line = line.unwrap();
        let Some(data) = line.strip_prefix("data: ") else { continue };
        found.push(serde_json::from_str(data).unwrap());
        if enough(&found[found.len() - 1]) {
            break;
        }
    }
    found
}

fn revision(event: &Value) -> u64 {
    event["revision"].as_u64().unwrap_or_else(|| panic!("{event}"))
}

/// Ten thousand changes of a port, which a controller makes as fast as it can.
fn change_a_port(place: &Place) {
    let shown = place.json(&["port", "show", "sw0", "p"]);
    let (number, mac) = (&shown["number"], shown["mac"].as_str().unwrap());
    let mut pairs = mac.split(':').map(|pair| u8::from_str_radix(pair, 16).unwrap());
    let hw_addr = openflow::Mac(std::array::from_fn(|_| pairs.next().unwrap()));
    let number = PortNo(number.as_u64().unwrap() as u32);
    let (mask, advertise) = (PortConfig::NO_FWD, PortFeatures::empty());
    let stream = UnixStream::connect(place.path("run/sw0.mgmt")).unwrap();
    let mut speaker = Speaker::greet(stream);
    for round in 0..CHANGES {
        let config = if round % 2 == 0 { mask } else { PortConfig::empty() };
        speaker.send(&Message::PortMod(PortMod { number, hw_addr, config, mask, advertise }));
    }
    speaker.ask(&Message::BarrierRequest);
}

#[test]
fn a_reader_that_reconnects_misses_none_of_ten_thousand_changes_and_repeats_none() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&[]);
    place.start();
    for (switch, port, peer) in [("sw0", "p", "sw1:q"), ("sw1", "q", "sw0:p")] {
        place.suiro(&["switch", "add", switch]);
        place.suiro(&["port", "add", switch, port, "--type", "vlink", "--peer", peer]);
    }
    let newest = place.suiro(&["--json", "events"]);
    let last: Value = serde_json::from_str(newest.lines().last().unwrap()).unwrap();
    let (mut at, mut heard, mut visits) = (revision(&last), 0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| change_a_port(&place));
        while heard < CHANGES {
            visits += 1;
            let mut left = 1 + visits * 37 % 400;
            let events = read(&place, &at.to_string(), |event| {
                left -= 1;
                heard += usize::from(event["kind"] == "port" && event["change"] == "state");
                left == 0 || heard == CHANGES
            });
            for event in &events {
                at += 1;
                assert_eq!(revision(event), at, "{event}");
            }
        }
    });
    assert!(visits > 20, "{visits} visits");
    assert_eq!(heard, CHANGES);
}

#[test]
fn a_reader_that_is_too_far_behind_or_of_an_earlier_life_is_told_and_gets_what_is_there() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&[]);
    place.start();
    place.suiro(&["switch", "add", "sw0", "--dpid", "1"]);
    let before = place.suiro(&["events"]);
    let line = before.lines().next().unwrap();
    assert!(line.contains("added switch sw0: datapath id 0000000000000001 (by api)"), "{before}");
    let cursor = line.split_whitespace().next().unwrap().to_owned();
    place.end(Signal::KILL);
    place.start();
    let told = place.suiro(&["events", "--since", &cursor]);
    assert!(told.contains("are not kept any more"), "{told}");
    assert!(told.contains("present switch sw0: datapath id 0000000000000001 (by api)"), "{told}");
    assert!(told.contains("present rules sw0: 0 flows, 0 groups, 0 meters"), "{told}");
    let events = read(&place, &cursor, |data| data.get("since").is_some());
    assert_eq!(events[0]["since"].to_string(), cursor, "{events:?}");
    let refused = place.says(&["events", "--since", "yesterday"]);
    assert!(refused.code == 1 && refused.err.contains("neither a revision"), "{}", refused.err);
}

#[test]
fn rules_controllers_links_and_faults_are_told_and_a_node_that_ends_lets_its_readers_go() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&["g1"]);
    place.start();
    let log = std::fs::File::create(place.path("events")).unwrap();
    let mut words = Command::new(acceptance::suiro());
    let words = words.args(["events", "-f", "--since", "oldest"]).env("SUIRO_API", place.socket());
    let mut reader = words.stdout(log).stderr(Stdio::null()).spawn().unwrap();
    let told = |text: &str| {
        until(text, || std::fs::read_to_string(place.path("events")).unwrap().contains(text));
    };
    place.suiro(&["switch", "add", "sw0", "--controller", "tcp:127.0.0.1:1"]);
    told("fault controller sw0 tcp:127.0.0.1:1: no connection");
    let guest = place.guest("g1");
    place.suiro(&["port", "add", "sw0", "g1", "--type", "tap", "--netns", &guest]);
    told("added port sw0 g1: link");
    place.suiro(&["port", "mod", "sw0", "g1", "--rate", "1G"]);
    told("changed port sw0 g1: rate none → 1G (by api)");
    place.suiro(&["port", "mod", "sw0", "g1", "--down"]);
    told("state port sw0 g1: set down");
    place.suiro(&["flow", "add", "sw0", "priority=1,arp,actions=drop"]);
    told("changed rules sw0: 1 flows, 0 groups, 0 meters");
    place.suiro(&["switch", "del", "sw0"]);
    told("removed switch sw0 (by api)");
    place.end(Signal::TERM);
    until("the reader has ended", || reader.try_wait().unwrap().is_some());
    assert!(reader.wait().unwrap().success());
}
