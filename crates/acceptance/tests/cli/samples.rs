//! Samples as collectors have them: Debian's nfcapd and sfcapd store what a node sends, and tshark reads it from the wire.

use crate::offload::{self, TC, are_up, end, leaves_nothing, pings, start_as, wired};
use acceptance::{Background, Kind, Lab, Place, Said, privileged, sh, until};
use rustix::process::Signal;
use std::path::Path;
use std::process::Command;

/// Pings of a burst, and bursts.
const BURST: u32 = 50;
const BURSTS: u32 = 12;
/// Frames that one sample stands for.
const EVERY: u64 = 32;
/// By its number, for nfdump writes plain ones.
const ICMP: &str = "1";
/// RFC 5612: an enterprise number for examples.
const EXAMPLE: &str = "32473";

/// A program beside the node, in its namespace.
fn beside(netns: &str, words: &[&str]) -> Background {
    Background::start(Command::new("ip").args(["netns", "exec", netns]).args(words))
}

/// A collector that listens, and writes what it got into a directory when it ends.
fn collector(netns: &str, program: &str, port: &str, directory: &Path) -> Background {
    std::fs::create_dir(directory).unwrap();
    let words = [program, "-p", port, "-w", directory.to_str().unwrap()];
    let running = beside(netns, &words);
    until(&format!("{program} listens: run scripts/setup test if it is missing"), || {
        sockets(netns).iter().any(|(of, _)| of == port)
    });
    running
}

/// UDP sockets in the node's namespace: port, and bytes that wait in it (`/proc/net/udp`).
fn sockets(netns: &str) -> Vec<(String, u64)> {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", netns, "cat", "/proc/net/udp", "/proc/net/udp6"]);
    let text = Said::of(command.output().unwrap()).out;
    let socket = |line: &str| {
        let mut words = line.split_whitespace();
        let (_, port) = words.nth(1)?.rsplit_once(':')?;
        let (_, waiting) = words.nth(2)?.split_once(':')?;
        let port = u16::from_str_radix(port, 16).ok()?;
        Some((port.to_string(), u64::from_str_radix(waiting, 16).ok()?))
    };
    text.lines().filter_map(socket).collect()
}

/// ICMP frames from an address by what a collector stored.
fn stored(directory: &Path, from: &str) -> u64 {
    let mut command = Command::new("nfdump");
    command.arg("-R").arg(directory).args(["-q", "-N", "-o", "fmt:%pr %sa %pkt"]);
    let said = Said::of(command.output().unwrap());
    let flow = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_it = words.get(..2) == Some(&[ICMP, from]);
        is_it.then(|| words[2].parse::<u64>().unwrap())
    };
    said.out.lines().filter_map(flow).sum()
}

#[test]
fn collectors_of_sflow_and_ipfix_account_for_the_traffic_and_hear_of_rung_and_core() {
    if !privileged() {
        return;
    }
    let mut lab = Lab::new(&["g1", "g2"]);
    lab.configure(&format!(
        "samples = {{ sflow = \"127.0.0.1:6343\", ipfix = \"127.0.0.1:4739\", every = {EVERY}, interval_s = 1, enterprise = {EXAMPLE} }}\n"
    ));
    let (flows, frames, wire) = (lab.path("flows"), lab.path("frames"), lab.path("wire.pcap"));
    let collectors = [("nfcapd", "4739", &flows), ("sfcapd", "6343", &frames)]
        .map(|(program, port, into)| collector(&lab.netns, program, port, into));
    let mut watch = beside(
        &lab.netns,
        &["tcpdump", "-i", "lo", "--immediate-mode", "-U", "-w", wire.to_str().unwrap(), "udp"],
    );
    until("tcpdump watches", || !watch.runs() || watch.output().contains("listening on"));
    lab.start();
    lab.suiro(&["switch", "add", "sw0", "--dpid", "2a"]);
    for guest in ["g1", "g2"] {
        lab.connect("sw0", guest, Kind::Tap);
    }
    until("the guests talk", || lab.talk("g1", "g2"));
    let sent: u32 = (0..BURSTS).map(|_| lab.exchange("g1", "g2", BURST)).sum();
    assert_eq!(sent, BURST * BURSTS);
    // It tells what it has not told yet.
    lab.end(Signal::TERM);
    until("the collectors have read all", || {
        sockets(&lab.netns).iter().all(|&(_, waiting)| waiting == 0)
    });
    for collector in collectors {
        collector.end(Signal::TERM);
    }
    watch.end(Signal::INT);

    let all = u64::from(sent);
    for (what, directory) in [("IPFIX", &flows), ("sFlow", &frames)] {
        let [there, back] = ["g1", "g2"].map(|guest| stored(directory, &Lab::ip(guest)));
        // Some frames are not represented yet, and others than pings were.
        let (least, most) = (2 * all - 4 * EVERY, 2 * all + 2 * EVERY);
        assert!(
            (least..=most).contains(&(there + back)),
            "{what}: {there} and {back} of {all} each"
        );
        assert!(there.min(back) > all / 4, "{what}: {there} and {back}");
    }
    told_on_the_wire(&wire);
}

#[test]
fn what_goes_past_the_worker_is_told_as_it_was_counted() {
    if !privileged() {
        return;
    }
    let mut place = wired();
    place.configure("samples = { ipfix = \"127.0.0.1:4739\", interval_s = 1 }\n");
    sh(&["ip", "-n", &place.netns, "link", "set", "lo", "up"]);
    let flows = place.path("flows");
    let collector = collector(&place.netns, "nfcapd", "4739", &flows);
    start_as(&mut place, TC, &[]);
    assert!(place.reaches("g1", "10.0.0.2"));
    place.suiro(&["offload", "policy", "add", "all", "--match", "icmp", "--when", "first"]);
    place.suiro(&["offload", "on"]);
    let pings = pings(&place);
    until("both directions leave the worker", || are_up(&place, TC));
    let past = |place: &Place| {
        let flows = offload::flows(place);
        let packets = flows.iter().map(|flow| flow["offloaded_packets"].as_u64().unwrap());
        packets.sum::<u64>()
    };
    until("most of them go past the worker", || past(&place) > 4000);
    let sent = end(pings);
    let past = past(&place);
    place.end(Signal::TERM);
    until("the collector has read all", || {
        sockets(&place.netns).iter().all(|&(_, waiting)| waiting == 0)
    });
    collector.end(Signal::TERM);
    let told = ["10.0.0.1", "10.0.0.2"].map(|address| stored(&flows, address));
    // Those on the worker are a sample: one of them stands for 1024.
    let is_told = |told: &u64| (past / 2..=sent + 1024).contains(told);
    assert!(told.iter().all(is_told), "{told:?} of {sent} each, {past} past the worker");
    leaves_nothing(&place);
}

/// What other collectors may ask for: switch, port, rung, core, counters.
fn told_on_the_wire(wire: &Path) {
    let output = Command::new("tshark").args(["-V", "-r"]).arg(wire).output();
    let said = Said::of(output.expect("tshark is missing: run `make setup` as root"));
    let text = said.out;
    assert!(!text.contains("Malformed"), "{text}");
    // The switch by its datapath id, in both; the core 0, and a rung: "pass".
    for told in [
        "Observation Domain Id: 42",
        "Sub-agent ID: 42",
        "Enterprise Private entry: (Example Enterprise Number for Documentation Use) Type 1: Value (hex bytes): 00 00 00 00",
        "Enterprise Private entry: (Example Enterprise Number for Documentation Use) Type 2: Value (hex bytes): 70 61 73 73",
        "Interface index: 2",
    ] {
        assert!(text.contains(told), "no {told:?} in {text}");
    }
}
