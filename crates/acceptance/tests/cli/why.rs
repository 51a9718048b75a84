//! What people ask in public when packets are dropped, each answered by one `suiro why`.

use acceptance::{Place, Said, privileged, sh, until};
use serde_json::Value;
use std::process::{Child, Command, Stdio};

/// A node with a secure switch: guests `vm1` and `vm2`, and `off`, whose interface is down.
fn place() -> Place {
    let mut place = Place::new(&["vm1", "vm2", "off"]);
    place.start();
    place.suiro(&["switch", "add", "sw0", "--fail-mode", "secure"]);
    for guest in ["vm1", "vm2", "off"] {
        let netns = place.guest(guest);
        place.suiro(&["port", "add", "sw0", guest, "--type", "tap", "--netns", &netns]);
    }
    place.suiro(&["port", "mod", "sw0", "off", "--down"]);
    let off = |place: &Place| why(place, "in_port=off,arp", &[]).out.contains("port_down");
    until("the port is down", || off(&place));
    place
}

/// Each rule lies in a table that a packet comes to by its port of destination.
fn rules(place: &Place) {
    place.suiro(&["meter", "add", "sw0", "meter=1,kbps,burst,band=type=drop,rate=1,burst_size=1"]);
    place.suiro(&["group", "add", "sw0", "group_id=1,type=ff,bucket=watch_port:off,output:off"]);
    let rules = [
        "priority=100,dl_vlan=301,actions=output:vm2",
        "priority=100,arp,dl_src=02:00:00:00:00:01,actions=output:vm2",
        "priority=90,tcp,tp_dst=1,actions=goto_table:1",
        "table=1,priority=9,arp,actions=output:vm2",
        "priority=90,tcp,tp_dst=2,actions=meter:1,output:vm2",
        "priority=90,tcp,tp_dst=3,actions=group:1",
        "priority=90,tcp,tp_dst=4,actions=output:vm1",
        "priority=90,tcp,tp_dst=5,actions=dec_ttl,output:vm2",
        "priority=90,tcp,tp_dst=6,actions=output:off",
        "priority=90,tcp,tp_dst=7,actions=output:77",
        "priority=90,tcp,tp_dst=8,actions=NORMAL",
        "priority=80,icmp,actions=meter:1,output:vm2",
        "priority=70,udp,tp_dst=53,actions=output:vm2",
        "priority=60,udp,actions=drop",
    ];
    place.suiro(&[&["flow", "add", "sw0"][..], &rules].concat());
}

fn why(place: &Place, flow: &str, more: &[&str]) -> Said {
    place.says(&[&["why", "sw0", flow][..], more].concat())
}

/// The command's exit code, and that its answer has these words.
fn answers(place: &Place, flow: &str, more: &[&str], code: i32, words: &[&str]) {
    let said = why(place, flow, more);
    let text = format!("{}{}", said.out, said.err);
    assert_eq!(said.code, code, "{flow}: {text}");
    for word in words {
        assert!(text.contains(word), "{flow}: no {word:?} in\n{text}");
    }
}

#[test]
fn what_people_ask_is_answered_by_one_command_each() {
    if !privileged() {
        return;
    }
    let place = place();
    rules(&place);
    let tcp = |port: u16| format!("in_port=vm1,tcp,tp_dst={port}");
    let lost = |port: u16, words: &[&str]| answers(&place, &tcp(port), &[], 4, words);
    answers(
        &place,
        "in_port=vm1,dl_vlan=302,tcp,tp_dst=99",
        &[],
        4,
        &["DROPPED no_match at sw0 table 0", "but dl_vlan is 302, the rule wants 301"],
    );
    answers(
        &place,
        "in_port=vm1,arp,dl_src=02:00:00:00:00:02",
        &[],
        4,
        &[
            "but dl_src is 02:00:00:00:00:02, the rule wants 02:00:00:00:00:01",
            "fail mode secure, no controller is connected",
        ],
    );
    lost(1, &["DROPPED no_match at sw0 table 1", "but dl_type is ip, the rule wants arp"]);
    lost(3, &["DROPPED no_bucket at sw0 table 0", "group 1", "has no bucket for it"]);
    lost(4, &["DROPPED no_destination", "by the port that it came in by"]);
    lost(6, &["DROPPED port_down", "the port is down"]);
    lost(7, &["DROPPED no_port", "a port that the switch does not have"]);
    answers(
        &place,
        "in_port=vm1,udp,tp_dst=54",
        &[],
        4,
        &["DROPPED by_rule", "but tp_dst is 54, the rule wants 53"],
    );
    answers(&place, "in_port=vm1,tcp,tp_dst=5,nw_ttl=1", &[], 0, &["its TTL ran out"]);
    answers(&place, &tcp(5), &["--len", "1600"], 4, &["DROPPED too_big at sw0 vm2 tx"]);
    answers(&place, "in_port=vm1,tcp,tp_dst=5", &["--len", "1500"], 0, &["LEAVES by sw0:vm2"]);
    let unknown = "in_port=vm1,tcp,tp_dst=8,dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:09";
    answers(&place, unknown, &[], 0, &["learning bridge", "LEAVES by sw0:vm2"]);
    let link_local = "in_port=vm1,tcp,tp_dst=8,dl_src=02:00:00:00:00:01,dl_dst=01:80:c2:00:00:0e";
    answers(&place, link_local, &[], 4, &["DROPPED reserved_address"]);
    answers(&place, "in_port=vm1,tcp,ct_state=+trk", &[], 1, &["not a match field"]);
    answers(&place, "in_port=vm1,tcp", &[], 1, &["depends on tp_dst", "add tp_dst=80"]);
    answers(&place, "tcp,tp_dst=1", &[], 1, &["say in_port=PORT"]);
    let wire = "ffffffffffff 020000000001 0806 0001 0800 0604 0001";
    answers(&place, "in_port=vm1", &["--packet", wire], 0, &["LEAVES by sw0:vm2", "arp"]);
}

#[test]
fn the_reply_is_followed_from_where_the_packet_left() {
    if !privileged() {
        return;
    }
    let place = place();
    let rules = [
        "priority=9,tcp,in_port=vm1,tp_dst=80,actions=mod_nw_dst:10.0.1.8,output:vm2",
        "priority=9,tcp,in_port=vm2,nw_src=10.0.1.8,tp_src=80,actions=mod_nw_src:10.0.0.9,output:vm1",
        "priority=8,tcp,in_port=vm1,tp_dst=81,actions=output:vm2",
        "priority=7,tcp,in_port=vm1,tp_dst=82,actions=output:vm2",
        "priority=7,tcp,in_port=vm2,tp_src=82,tp_dst=4000,actions=output:vm1",
    ];
    place.suiro(&[&["flow", "add", "sw0"][..], &rules].concat());
    let ask = |port: u16| format!("in_port=vm1,tcp,nw_src=10.0.0.5,nw_dst=10.0.0.9,tp_dst={port}");
    let back = ["BACK from sw0:vm2", "tcp,in_port=vm2,nw_src=10.0.1.8,nw_dst=10.0.0.5,tp_src=80"];
    let leaves = ["LEAVES by sw0:vm1 as tcp,nw_src=10.0.0.9,nw_dst=10.0.0.5,tp_src=80"];
    answers(&place, &ask(80), &["--back"], 0, &[&back[..], &leaves].concat());
    let lost = ["in_port=vm2,nw_src=10.0.0.9,nw_dst=10.0.0.5,tp_src=81", "DROPPED no_match"];
    answers(&place, &ask(81), &["--back"], 4, &[&["BACK from sw0:vm2"][..], &lost].concat());
    answers(&place, &ask(82), &["--back"], 0, &["its way depends on tp_dst"]);
    answers(&place, &ask(83), &["--back"], 4, &["BACK nothing: no copy leaves"]);
    let said = why(&place, &ask(80), &["--back", "--json"]);
    let told: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(told["back"][0]["from"], "sw0:vm2");
    assert_eq!(told["back"][0]["why"]["exits"][0]["port"], "vm1");
}

#[test]
fn a_meter_that_is_over_its_rate_is_named_and_asking_takes_nothing_from_it() {
    if !privileged() {
        return;
    }
    let place = place();
    rules(&place);
    for _ in 0..20 {
        answers(
            &place,
            "in_port=vm1,tcp,tp_dst=2",
            &["--len", "1500"],
            0,
            &["has room for it now"],
        );
    }
    place.address("vm1", "vm1", "10.0.0.1/24");
    let netns = place.guest("vm1");
    sh(&[
        "ip",
        "-n",
        &netns,
        "neigh",
        "add",
        "10.0.0.2",
        "lladdr",
        "02:00:00:00:00:02",
        "dev",
        "vm1",
    ]);
    // One takes what the meter gives in ten seconds.
    let ping = "ping -c 1 -W 0.1 -s 1400 10.0.0.2 || true";
    sh(&["ip", "netns", "exec", &netns, "sh", "-c", ping]);
    answers(&place, "in_port=vm1,tcp,tp_dst=2", &[], 4, &["DROPPED meter", "is over its rate now"]);
    let hits = place.json(&["flow", "list", "sw0", "tcp"]);
    let flows = hits.as_array().unwrap().iter();
    let counted = flows.map(|flow| flow["packets"].as_u64().unwrap());
    assert_eq!(counted.sum::<u64>(), 0, "asking counts nothing");
}

/// A tunnel that goes out by a TAP of a second switch, `wan`, whose card leads to a next hop.
fn with_tunnel(place: &Place) {
    let [host, far] = ["vm2", "off"].map(|guest| place.guest(guest));
    place.suiro(&["switch", "add", "wan", "--fail-mode", "secure"]);
    let tap = ["--type", "tap", "--interface", "host0", "--netns", &host];
    place.suiro(&[&["port", "add", "wan", "host"][..], &tap].concat());
    place.suiro(&["port", "add", "wan", "card", "--type", "tap", "--netns", &far]);
    place.address("off", "card", "192.0.2.9/24");
    place.address("vm2", "host0", "192.0.2.1/24");
    let neighbour = ["192.0.2.2", "lladdr", "02:00:00:00:00:99", "dev", "host0"];
    sh(&[&["ip", "-n", &host, "neigh", "add"][..], &neighbour].concat());
    let tunnel = ["--type", "vxlan", "--remote", "192.0.2.2", "--key", "7", "--netns", &host];
    place.suiro(&[&["port", "add", "sw0", "tun0"][..], &tunnel].concat());
    place.suiro(&["flow", "add", "sw0", "priority=99,sctp,actions=output:tun0"]);
    place.suiro(&["flow", "add", "wan", "priority=9,ip,actions=output:card"]);
}

#[test]
fn a_tunnels_packet_is_followed_through_the_switch_that_carries_it() {
    if !privileged() {
        return;
    }
    let place = place();
    with_tunnel(&place);
    let flow = "in_port=vm1,sctp,nw_dst=10.0.0.1";
    let outside = [
        "sw0 tun0 outside  vxlan 7 to 192.0.2.2, UDP port 4789 from 192.0.2.1, by interface host0",
        "wan host rx       comes in",
        "leaves with 96 bytes",
        "LEAVES by wan:card as udp,",
        "nw_src=192.0.2.1,nw_dst=192.0.2.2,tp_dst=4789",
    ];
    answers(&place, flow, &[], 0, &outside);
    let longest = "the path takes frames of 1464 bytes; who sends it is told";
    answers(&place, flow, &["--len", "1465"], 4, &["DROPPED too_big at sw0 tun0 tx", longest]);
    answers(&place, flow, &["--len", "1464"], 0, &["leaves with 1514 bytes"]);
    place.suiro(&["flow", "add", "wan", "priority=10,udp,tp_dst=4789,actions=drop"]);
    answers(&place, flow, &[], 4, &["DROPPED by_rule at wan table 0"]);
    place.suiro(&["flow", "add", "wan", "priority=11,udp,tp_src=5,actions=drop"]);
    answers(&place, flow, &[], 4, &["flows differ outside: it depends on tp_src"]);
    let forget = ["192.0.2.2", "dev", "host0"];
    sh(&[&["ip", "-n", &place.guest("vm2"), "neigh", "del"][..], &forget].concat());
    answers(&place, flow, &[], 0, &["192.0.2.2 on host0 has not answered", "LEAVES by sw0:tun0"]);
}

#[test]
fn queues_at_the_exit_and_who_processes_a_packet_are_told() {
    if !privileged() {
        return;
    }
    let place = place();
    place.suiro(&["port", "mod", "sw0", "vm2", "--rate", "100M"]);
    place.suiro(&["queue", "add", "sw0", "vm2", "1", "--max-rate", "10M"]);
    place.suiro(&["flow", "add", "sw0", "priority=9,tcp,actions=set_queue:1,output:vm2"]);
    let flow = "in_port=vm1,tcp,nw_src=10.0.0.1,nw_dst=10.0.0.2,tp_src=1,tp_dst=2";
    let queue = [
        "LEAVES by sw0:vm2 queue 1 as tcp,",
        "queue    the port's rate 100M, at most 10M, 0 frames wait",
        "PROCESSED on core 0",
        "rung     worker: offload is off",
        "remedy   let flows leave: suiro offload on",
    ];
    answers(&place, flow, &[], 0, &queue);
    place.suiro(&["offload", "on"]);
    let open = ["rung     worker: ", "a port of kind tap has no rung past the worker"];
    answers(&place, flow, &[], 0, &open);
}

#[test]
fn a_steered_switch_says_which_flow_group_a_packet_is_of() {
    if !privileged() {
        return;
    }
    let mut place = Place::new(&["vm1"]);
    place.start_as(&["--cores", "0,1"]);
    place.suiro(&["switch", "add", "sw0"]);
    let netns = place.guest("vm1");
    place.suiro(&["port", "add", "sw0", "vm1", "--type", "tap", "--netns", &netns]);
    place.suiro(&["steer", "attach", "switch:sw0"]);
    let macs = "dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02";
    let flow = format!("in_port=vm1,udp,{macs},nw_src=10.0.0.1,nw_dst=10.0.0.2,tp_dst=9");
    let [open, whole] = ["", ",tp_src=5"].map(|more| why(&place, &(flow.clone() + more), &[]).out);
    assert!(open.contains("steering its core depends on tp_src"), "{open}");
    assert!(whole.contains(" of 256: none of its frames came yet"), "{whole}");
}

/// Pings that go on until they are dropped.
struct Pinging(Child);

impl Drop for Pinging {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `vm1` pings an address whose owner is `vm2`, whether or not it answers.
fn pinging(place: &Place, to: &str) -> Pinging {
    let netns = place.guest("vm1");
    let neighbour = [to, "lladdr", "02:00:00:00:00:02", "dev", "vm1"];
    sh(&[&["ip", "-n", &netns, "neigh", "replace"][..], &neighbour].concat());
    let words = ["netns", "exec", &netns, "ping", "-q", "-i", "0.01", to];
    Pinging(Command::new("ip").args(words).stdout(Stdio::null()).spawn().unwrap())
}

#[test]
fn a_packet_of_a_capture_is_asked_about_by_its_number() {
    if !privileged() {
        return;
    }
    let place = place();
    let rewrite = "mod_nw_dst:10.0.0.7,output:vm2";
    let rules = [
        format!("priority=9,icmp,nw_dst=10.0.0.2,actions={rewrite}"),
        "priority=8,icmp,nw_dst=10.0.0.3,actions=drop".to_owned(),
    ];
    place.suiro(&["flow", "add", "sw0", &rules[0], &rules[1]]);
    place.address("vm1", "vm1", "10.0.0.1/24");
    let file = place.path("way.pcapng").display().to_string();
    let take = |point: &str| {
        let words = ["capture", point, "--match", "icmp", "-c", "2", "-w", &file];
        assert_eq!(place.says(&words).code, 0);
        place.says(&["why", "--from-capture", &format!("{file}:2")])
    };
    let pings = pinging(&place, "10.0.0.2");
    let said = take("sw0:vm1:rx");
    let wanted = "LEAVES by sw0:vm2 as icmp,";
    assert!(said.code == 0 && said.out.contains(wanted), "{}{}", said.out, said.err);
    assert!(said.out.contains("nw_dst=10.0.0.7"), "{}", said.out);
    let said = take("sw0:vm2:tx");
    assert!(said.err.contains("it was not seen coming in by a port"), "{}", said.err);
    drop(pings);
    let _pings = pinging(&place, "10.0.0.3");
    let said = take("drops");
    assert!(said.code == 4 && said.out.contains("DROPPED by_rule at sw0"), "{}", said.out);
    let said = place.says(&["why", "--from-capture", &format!("{file}:9")]);
    assert!(said.err.contains("find packet 9: it has 2 packets"), "{}", said.err);
}

#[test]
fn the_real_packets_of_a_flow_are_seen_where_they_were_foretold_or_elsewhere() {
    if !privileged() {
        return;
    }
    let place = place();
    let rewrite = "priority=9,icmp,nw_dst=10.0.0.2,actions=mod_nw_src:10.0.0.9,output:vm2";
    place.suiro(&["flow", "add", "sw0", rewrite]);
    place.address("vm1", "vm1", "10.0.0.1/24");
    let _pings = pinging(&place, "10.0.0.2");
    let live = |flow: &str| {
        let said = place.says(&["why", "sw0", flow, "--live", "500ms", "--json"]);
        serde_json::from_str::<Value>(&said.out).unwrap()
    };
    let said = live("in_port=vm1,icmp,nw_src=10.0.0.1,nw_dst=10.0.0.2");
    let came = said["live"]["came"].as_u64().unwrap();
    let seen = said["live"]["seen"].as_array().unwrap();
    let at = |seen: &Value| (seen["at"].as_str().unwrap().to_owned(), seen["foretold"] == true);
    let places: Vec<_> = seen.iter().map(at).collect();
    assert_eq!(places, [("sw0:vm1 rx".into(), true), ("sw0:vm2 tx".into(), true)], "{said}");
    assert!(came > 0 && seen[0]["packets"] == came, "{said}");
    // What matters is not said, and real ones of the other kind come: their way is another.
    place.suiro(&["flow", "add", "sw0", "priority=10,icmp,icmp_type=8,actions=drop"]);
    let said = live("in_port=vm1,icmp,icmp_type=0,nw_dst=10.0.0.2,nw_src=10.0.0.1");
    assert_eq!(said["live"]["came"], 0, "{said}");
    let said = place.says(&["why", "sw0", "in_port=vm1,icmp,icmp_type=8", "--live", "500ms"]);
    assert!(said.out.contains("  sw0 drop=by_rule\n"), "{}", said.out);
    assert!(said.code == 4 && !said.out.contains("not foretold"), "{}", said.out);
}
