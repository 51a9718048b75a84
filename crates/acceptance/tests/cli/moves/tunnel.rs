//! The same, of flows that leave by a tunnel: the rung puts the tunnel's headers around their frames, and sends them by the underlay's port.

use super::super::offload::leaves_nothing;
use super::{FLOWS, PAIRS, PATIENCE, Talk, introduce, is_whole, mac};
use acceptance::{Place, privileged, sh, until_within};
use rustix::process::Signal;
use serde_json::Value;
use std::sync::atomic::Ordering::SeqCst;

/// Rules of one run.
const CHANGES: u64 = 6;

/// Two hosts, each with a switch for its guest's veth, and one that has the card `u` and the host's own address; both on one node.
fn hosts() -> Place {
    let mut place = Place::new(&["h1", "h2", "g1", "g2"]).with_hosts_mounts();
    for netns in ["h1", "h2", "g1", "g2"] {
        let quiet = "echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6";
        sh(&["ip", "netns", "exec", &place.guest(netns), "sh", "-c", quiet]);
    }
    let [h1, h2] = ["h1", "h2"].map(|host| place.guest(host));
    sh(&["ip", "-n", &h1, "link", "add", "u", "type", "veth", "peer", "name", "u", "netns", &h2]);
    for host in ["1", "2"] {
        let [netns, guest] = ["h", "g"].map(|kind| place.guest(&format!("{kind}{host}")));
        let veth = ["link", "add", "vm", "type", "veth", "peer", "name", "eth0", "netns", &guest];
        sh(&[&["ip", "-n", &netns][..], &veth].concat());
        for (netns, interface) in [(&netns, "u"), (&netns, "vm"), (&guest, "eth0")] {
            sh(&["ip", "-n", netns, "link", "set", interface, "up"]);
        }
        place.address(&format!("g{host}"), "eth0", &format!("10.0.0.{host}/24"));
    }
    place.start();
    for host in ["1", "2"] {
        let (netns, remote) =
            (place.guest(&format!("h{host}")), if host == "1" { "2" } else { "1" });
        let [wan, inside] = ["wan", "sw"].map(|name| format!("{name}{host}"));
        let remote = format!("192.0.2.{remote}");
        place.suiro(&["switch", "add", &wan]);
        place.suiro(&["switch", "add", &inside]);
        let port = |switch: &str, name: &str, kind: &str, options: &[&str]| {
            let add = ["port", "add", switch, name, "--type", kind, "--netns", &netns];
            place.suiro(&[&add[..], options].concat());
        };
        port(&wan, "card", "af_xdp", &["--interface", "u"]);
        port(&wan, "host", "tap", &["--interface", "host0"]);
        port(&inside, "vm", "af_xdp", &[]);
        place.address(&format!("h{host}"), "host0", &format!("192.0.2.{host}/24"));
        let sum = if host == "1" { "on" } else { "off" };
        let own = ["--forwarding", "own", "--outer-checksum", sum];
        port(&inside, "tun0", "vxlan", &[&["--remote", &remote, "--key", "7"][..], &own].concat());
    }
    place
}

fn flows(place: &Place, switch: &str) -> Vec<Value> {
    let (status, body) =
        place.http("GET", &format!("/v1/switches/{switch}/offload/flows?filter=udp"), "");
    assert_eq!(status, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

/// How many flows of both guests are past the worker.
fn up(place: &Place) -> usize {
    let both = ["sw1", "sw2"].map(|switch| flows(place, switch));
    both.iter().flatten().filter(|flow| flow["rung"] == "xdp").count()
}

/// Puts a generation's rules in force: a DSCP inside, both ways, and another one outside, of which guests see nothing.
fn change(place: &Place, talk: &Talk, generation: u64) {
    for switch in ["sw1", "sw2"] {
        let rule = format!(
            "priority=50000,udp,in_port=vm,actions=set_field:{generation}->ip_dscp,output:tun0"
        );
        place.suiro(&["flow", "add", switch, &rule]);
    }
    let outside = format!(
        "priority=50000,udp,in_port=host,actions=set_field:{}->ip_dscp,normal",
        generation + 8
    );
    place.suiro(&["flow", "add", "wan1", &outside]);
    talk.generation.store(generation, SeqCst);
}

fn counted(place: &Place, switch: &str, port: &str, counter: &str) -> u64 {
    place.json(&["port", "show", switch, port])["counters"][counter].as_u64().unwrap()
}

#[test]
fn flows_leave_by_a_tunnel_past_the_worker_and_none_of_their_frames_is_lost_late_or_twice() {
    if !privileged() {
        return;
    }
    let mut place = hosts();
    for (guest, other, address) in [("g1", "g2", "10.0.0.2"), ("g2", "g1", "10.0.0.1")] {
        introduce(&place, guest, &mac(&place, other), address);
    }
    assert!(place.reaches("g1", "10.0.0.2"));
    place.suiro(&["offload", "policy", "add", "all", "--match", "udp", "--when", "first"]);
    place.suiro(&["offload", "on"]);
    let talk = Talk::of(PAIRS);
    change(&place, &talk, 0);
    let before = counted(&place, "sw1", "tun0", "tx_frames");
    let seen = std::thread::scope(|scope| {
        let under_way = talk.begin(scope, &place);
        for generation in 1..=CHANGES {
            until_within(PATIENCE, "half of the flows have left", || up(&place) >= FLOWS / 2);
            change(&place, &talk, generation);
        }
        until_within(PATIENCE, "nearly all have left", || up(&place) >= FLOWS - 4);
        under_way.end()
    });
    let listed = ["sw1", "sw2"].map(|switch| flows(&place, switch)).concat();
    let sum = |key: &str| listed.iter().map(|flow| flow[key].as_u64().unwrap()).sum::<u64>();
    println!("{} past the worker, {} times up: {seen:?}", sum("offloaded_packets"), sum("moves"));
    seen.iter().for_each(is_whole);
    assert!(sum("moves") >= CHANGES * FLOWS as u64 / 2 && sum("offloaded_packets") > 0);
    // Both switches count every packet: the tunnel's port, and the card.
    let left = counted(&place, "sw1", "tun0", "tx_frames") - before;
    assert!((seen[0].sent..seen[0].sent + 10).contains(&left), "{left} left, {seen:?}");
    let own = &place.json(&["port", "show", "sw1", "tun0"])["forwarding"];
    assert!(own["past"].as_u64().unwrap() >= seen[0].sent, "{own}");

    place.suiro(&["offload", "off"]);
    assert_eq!(up(&place), 0);
    place.end(Signal::TERM);
    leaves_nothing(&place);
}
