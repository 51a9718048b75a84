//! Groups and meters, programmed by `ovs-ofctl`, under datagrams that are counted where they arrive.

use crate::ofctl::{lab, over_both, reached, set_link};
use acceptance::{Lab, Ofctl, privileged, send_datagrams, until};
use std::time::Instant;

/// An address that nobody has: what is sent there goes where the rules say.
const NOBODY: &str = "n99";
const DATAGRAMS: u64 = 60;
const ALL: (u64, u64) = (DATAGRAMS, DATAGRAMS);

/// Sends datagrams and waits until the switch's rule for them has counted all.
fn send(lab: &Lab, count: u64) {
    let counted = || {
        let flows = lab.json(&["flow", "list", "sw0", "udp"]);
        flows[0]["packets"].as_u64().expect("there is a rule for datagrams")
    };
    let before = counted();
    send_datagrams(lab, "g1", &format!("{}:9", Lab::ip(NOBODY)), (count as usize, 100));
    until("the switch has seen every datagram", || counted() == before + count);
}

fn lab_with_nobody() -> Lab {
    let lab = lab();
    lab.introduce("g1", NOBODY);
    lab
}

#[test]
fn groups_copy_spread_and_fail_over() {
    if !privileged() {
        return;
    }
    let lab = lab_with_nobody();
    over_both(&lab, |lab, ofctl| {
        all_copies(lab, ofctl);
        select_spreads(lab, ofctl);
        fast_failover_follows_the_links(lab, ofctl);
    });
}

fn with_group(ofctl: &Ofctl<'_>, group: &str, check: impl FnOnce()) {
    ofctl.run("add-group", &[group]);
    ofctl.run("add-flow", &["priority=100,udp,in_port=1,actions=group:1"]);
    check();
    ofctl.run("del-groups", &["group_id=1"]);
    let left = ofctl.run("dump-flows", &["udp"]);
    assert!(!left.contains("actions="), "a group takes its entries along:\n{left}");
}

fn all_copies(lab: &Lab, ofctl: &Ofctl<'_>) {
    with_group(ofctl, "group_id=1,type=all,bucket=output:2,bucket=output:3", || {
        assert_eq!(reached(lab, || send(lab, DATAGRAMS)), ALL);
        let stats = ofctl.run("dump-group-stats", &["group_id=1"]);
        assert!(stats.contains("packet_count=60,"), "{stats}");
    });
}

fn select_spreads(lab: &Lab, ofctl: &Ofctl<'_>) {
    let group = "group_id=1,type=select,bucket=weight:1,output:2,bucket=weight:1,output:3";
    with_group(ofctl, group, || {
        let (g2, g3) = reached(lab, || send(lab, DATAGRAMS));
        assert_eq!(g2 + g3, DATAGRAMS, "each datagram goes one way");
        // Sixty coins: fewer than ten of one side happen once in a hundred million times.
        assert!(g2.min(g3) >= 10, "{g2} to g2, {g3} to g3");
    });
}

fn fast_failover_follows_the_links(lab: &Lab, ofctl: &Ofctl<'_>) {
    let group = "group_id=1,type=ff,bucket=watch_port:2,output:2,bucket=watch_port:3,output:3";
    with_group(ofctl, group, || {
        assert_eq!(reached(lab, || send(lab, DATAGRAMS)), (DATAGRAMS, 0));
        set_link(lab, "g2", "down");
        until("the switch sees the link down", || {
            lab.json(&["port", "show", "sw0", "g2"])["carrier"] == false
        });
        assert_eq!(reached(lab, || send(lab, DATAGRAMS)), (0, DATAGRAMS));
        set_link(lab, "g2", "up");
        until("the switch sees the link up", || {
            lab.json(&["port", "show", "sw0", "g2"])["carrier"] == true
        });
        assert_eq!(reached(lab, || send(lab, DATAGRAMS)), (DATAGRAMS, 0));
    });
}

#[test]
fn a_meter_lets_pass_its_burst_and_its_rate_and_counts_the_rest() {
    if !privileged() {
        return;
    }
    let lab = lab_with_nobody();
    over_both(&lab, |lab, ofctl| {
        let (rate, burst, offered) = (50, 20, 300);
        let bands = format!("band=type=drop,rate={rate},burst_size={burst}");
        ofctl.run("add-meter", &[&format!("meter=1,pktps,burst,stats,{bands}")]);
        ofctl.run("add-flow", &["priority=100,udp,in_port=1,actions=meter:1,output:2"]);
        let start = Instant::now();
        let (passed, strayed) = reached(lab, || send(lab, offered));
        // One more for the packet that may overdraw the bucket, one for the frame it began with.
        let most = burst + rate * start.elapsed().as_millis() as u64 / 1000 + 2;
        assert!((burst..=most).contains(&passed), "{passed} passed, at most {most} may");
        assert_eq!(strayed, 0);
        let stats = ofctl.run("meter-stats", &["meter=1"]);
        assert!(stats.contains(&format!("packet_in_count:{offered} ")), "{stats}");
        let dropped = format!("0: packet_count:{} ", offered - passed);
        assert!(stats.contains(&dropped), "{passed} passed of {offered}:\n{stats}");
        let flows = ofctl.run("dump-flows", &["udp"]);
        assert!(flows.contains(&format!("n_packets={offered},")), "{flows}");
        ofctl.run("del-meters", &[]);
        assert!(!ofctl.run("dump-flows", &["udp"]).contains("meter:1"), "its entries go with it");
    });
}
