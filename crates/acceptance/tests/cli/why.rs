//! What people ask in public when packets are dropped, each answered by one `suiro why`.

use acceptance::{Place, Said, privileged, sh, until};

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
