//! Frames as steering's programs see them, in a capture.

use crate::{Host, privileged, until};
use acceptance::{Background, sh, suiro, tshark};
use rustix::process::Signal;
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

/// Datagrams that arrive, and datagrams for which there is no room.
const SENT: usize = 20;
const DROPPED: usize = 5;

/// A host whose datagrams to port 5001 go to core 1.
fn host() -> Host {
    let host = Host::new();
    host.suiro(&["steer", "attach", "g1"]);
    host.suiro(&["steer", "flow", "add", "udp,tp_dst=5001,actions=place(core=1)"]);
    host
}

/// A capture of the steered interface that has begun.
fn begin(host: &Host, file: &str) -> Background {
    let net = format!("--net=/run/netns/{}", host.lab.netns);
    let mut command = Command::new("nsenter");
    command.args([net.as_str(), suiro(), "capture", "steer:g1", "-m", "udp,tp_dst=5001"]);
    let capture = Background::start(command.args(["-w", file]).env("SUIRO_API", host.lab.socket()));
    until("the capture runs", || host.lab.http("GET", "/v1/captures", "").1.contains("steer:g1"));
    capture
}

/// Whether the programs show any bytes of a frame now.
fn is_looked_at(host: &Host) -> bool {
    let map = host.pins("g1").join("look");
    let words = ["-j", "map", "lookup", "pinned", map.to_str().unwrap(), "key", "0", "0", "0", "0"];
    let output = Command::new("bpftool").args(words).output().expect("bpftool runs: `make setup`");
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    let bytes = value["value"].as_array().unwrap();
    bytes[..4].iter().any(|byte| byte != "0x00")
}

/// Has this thread run on core 0, where its datagrams come in then.
fn stay_on_core_0() {
    let mut cores = CpuSet::new();
    cores.set(0);
    sched_setaffinity(None, &cores).unwrap();
}

/// The queue of core 1 counts as full: many were sent, and none has left it.
fn fill_queue(host: &Host) {
    let map = host.pins("g1").join("rings");
    let key = ["key", "1", "0", "0", "0"];
    let mut value = ["0"; 128];
    value[4] = "1";
    let update = ["bpftool", "map", "update", "pinned", map.to_str().unwrap()];
    sh(&[&update[..], &key, &["value"], &value].concat());
}

#[test]
fn a_packet_has_one_id_before_and_after_steering_and_where_it_is_dropped() {
    if !privileged() {
        return;
    }
    let host = host();
    assert!(!is_looked_at(&host));
    let file = host.lab.path("steer.pcapng");
    let capture = begin(&host, file.to_str().unwrap());
    stay_on_core_0();
    assert_eq!(host.cores_of(5001, SENT), [1; SENT]);
    fill_queue(&host);
    let sender = host.sender(5001);
    for number in 0..DROPPED {
        sender.send(&[b'd', number as u8]).unwrap();
    }
    let dropped = || host.interface()["frames"]["queue-full"].as_u64().unwrap_or(0);
    until("they are dropped", || dropped() == DROPPED as u64);
    let said = capture.end(Signal::INT);
    let all = 2 * (SENT + DROPPED);
    assert!(said.contains(&format!("{all} frames matched, {all} written, 0 lost")), "{said}");
    assert!(!is_looked_at(&host));

    let fields = ["frame.packet_id", "frame.interface_name", "frame.comment"];
    let mut ways = BTreeMap::<String, Vec<(String, String)>>::new();
    for row in tshark(&file, "udp.dstport == 5001", &fields) {
        ways.entry(row[0].clone()).or_default().push((row[1].clone(), row[2].clone()));
    }
    assert_eq!(ways.len(), SENT + DROPPED, "as many ids as datagrams");
    let mut ends = BTreeMap::<&str, usize>::new();
    for (id, way) in &ways {
        let [(before, came), (last, said)] = &way[..] else { panic!("{id}: {way:?}") };
        assert_eq!(before, "steer:g1:before");
        assert!(came.starts_with("interface=g1 core=") && came.contains(" queue="), "{came}");
        let (beginning, unit) = match &**last {
            "steer:g1:after" => ("verdict=sent interface=g1 core=1 ", "unit=rule/"),
            _ => ("drop=queue-full interface=g1 core=", "unit=rule/"),
        };
        assert!(said.starts_with(beginning) && said.contains(unit), "{said}");
        assert!(said.ends_with("class=ordinary to=core1 why=fixed"), "{said}");
        *ends.entry(last).or_default() += 1;
    }
    let wanted = [("steer:g1:after", SENT), ("steer:g1:dropped", DROPPED)];
    assert_eq!(ends, BTreeMap::from(wanted));

    let refused = host.says(&["capture", "steer:g9", "-w", "-"]);
    assert!(refused.err.contains("it is not steered"), "{}", refused.err);
    let refused = host.says(&["capture", "steer:g1:beside", "-w", "-"]);
    assert!(refused.err.contains("there is no such point"), "{}", refused.err);
}

#[test]
fn after_a_kill_of_the_node_the_next_one_has_the_programs_show_nothing() {
    if !privileged() {
        return;
    }
    let host = host();
    let file = host.lab.path("killed.pcapng");
    let capture = begin(&host, file.to_str().unwrap());
    until("somebody looks", || is_looked_at(&host));
    host.kill_node();
    drop(capture);
    assert!(is_looked_at(&host), "nobody told the programs");
    host.suiro(&["steer", "attach", "g1"]);
    assert!(!is_looked_at(&host));
    assert_eq!(host.cores_of(5001, 5), [1; 5]);
}
