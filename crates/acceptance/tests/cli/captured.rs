//! Captures of flows past the worker: they come back to be seen, and leave again.

use crate::offload::{
    TC, Under, XDP, are_up, end, flows, leaves_nothing, packets, pings, place, program_on,
};
use acceptance::{Background, Place, privileged, suiro, tshark, until};
use rustix::process::Signal;
use serde_json::Value;
use std::process::Command;

/// A capture of a point into a file, which runs beside the test and has begun.
fn begin(place: &Place, words: &[&str], file: &str) -> Background {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", &place.netns]).arg(suiro());
    command.arg("--api").arg(place.socket()).arg("capture").args(words);
    let capture = Background::start(command.args(["-w", file]));
    until("the capture runs", || place.http("GET", "/v1/captures", "").1 != "[]");
    capture
}

/// Which echo messages of a type a file has, by their numbers.
fn numbers(file: &std::path::Path, kind: u8) -> Vec<u16> {
    let rows = tshark(file, &format!("icmp.type == {kind}"), &["icmp.seq"]);
    rows.iter().map(|row| row[0].parse().unwrap()).collect()
}

#[test]
fn captured_flows_come_back_are_seen_whole_and_leave_again() {
    captured(TC);
}

#[test]
fn captured_flows_come_back_from_xdp_are_seen_whole_and_leave_again() {
    captured(XDP);
}

fn captured(under: Under) {
    if !privileged() {
        return;
    }
    let mut place = place(under);
    assert!(place.reaches("g1", "10.0.0.2"));
    place.suiro(&["offload", "policy", "add", "all", "--match", "icmp", "--when", "first"]);
    place.suiro(&["offload", "on"]);
    let pings = pings(&place);
    until("both directions leave the worker", || are_up(&place, under));

    let other = place.path("other.pcapng");
    let capture = begin(&place, &["sw0:g1", "--match", "tcp"], &other.display().to_string());
    assert!(are_up(&place, under), "it would show nothing of them: {:?}", flows(&place));
    capture.end(Signal::INT);

    let file = place.path("seen.pcapng");
    let capture = begin(&place, &["sw0:g1", "--match", "icmp"], &file.display().to_string());
    let is_back = |flow: &Value| flow["rung"] == "worker" && flow["why"] == "it is being captured";
    assert!(flows(&place).iter().all(is_back), "the capture has begun: {:?}", flows(&place));
    let why = place.suiro(&["offload", "why", "sw0", "in_port=g1,icmp,icmp_type=8"]);
    assert!(why.contains("it is being captured") && why.contains("End the capture"), "{why}");
    let rules = packets(&place, "in_port=g1");
    until("the worker has them", || packets(&place, "in_port=g1") > rules + 200);
    capture.end(Signal::INT);
    until("both directions leave again", || are_up(&place, under));

    for kind in [8, 0] {
        let seen = numbers(&file, kind);
        let all = seen.windows(2).all(|pair| pair[1] == pair[0].wrapping_add(1));
        assert!(seen.len() > 200 && all, "of type {kind}: {seen:?}");
    }
    end(pings);
    place.suiro(&["offload", "off"]);
    place.end(Signal::TERM);
    assert_eq!(program_on(&place, "g1"), "", "the interface is as it was");
    leaves_nothing(&place);
}

#[test]
fn what_a_meter_would_drop_past_the_worker_is_seen_by_a_capture_of_drops() {
    if !privileged() {
        return;
    }
    let mut place = place(TC);
    assert!(place.reaches("g1", "10.0.0.2"));
    let meter = "meter=1,pktps,burst,band=type=drop,rate=100,burst_size=5";
    place.suiro(&["meter", "add", "sw0", meter]);
    let metered = "priority=50000,icmp,in_port=g1,actions=meter:1,output:g2";
    place.suiro(&["flow", "add", "sw0", metered]);
    place.suiro(&["offload", "policy", "add", "all", "--match", "icmp", "--when", "first"]);
    place.suiro(&["offload", "on"]);
    let pings = pings(&place);
    until("both directions leave the worker", || are_up(&place, TC));

    let file = place.path("drops.pcapng");
    let capture = begin(&place, &["drops"], &file.display().to_string());
    let rung = |request: bool| {
        let of = flows(&place).into_iter().find(|flow| (flow["in_port"] == "g1") == request);
        of.unwrap()["rung"].as_str().unwrap().to_owned()
    };
    assert_eq!([true, false].map(rung), ["worker", "tc"], "the meter's flow alone comes back");
    let rules = packets(&place, "icmp,in_port=g1");
    until("the meter drops", || packets(&place, "icmp,in_port=g1") > rules + 200);
    capture.end(Signal::INT);
    let comments = tshark(&file, "icmp.type == 8", &["frame.comment"]);
    let are_meters = comments.iter().all(|row| row[0].contains("drop=meter"));
    assert!(comments.len() > 50 && are_meters, "{comments:?}");
    until("it leaves again", || are_up(&place, TC));
    let _ = pings.end(Signal::INT);
    place.suiro(&["offload", "off"]);
    place.end(Signal::TERM);
    leaves_nothing(&place);
}
