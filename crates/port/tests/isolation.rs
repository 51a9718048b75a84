//! What a port's interface receives, and the host's own stack.

mod lab;

use api::PortKind;
use lab::{Lab, run, with};
use port::{Drops, Keep, OpenError, OpenPort, RxBatch, open, release, release_others};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

const KINDS: [PortKind; 2] = [PortKind::AfPacket, PortKind::AfXdp];
/// Datagrams of one burst. Chosen.
const BURST: u64 = 5;
/// The host's, on another interface of its own.
const HOST: &str = "192.0.2.1";

/// A guest on a veth, and a host that would take what the guest sends to an address of another of its interfaces.
fn host_and_guest(lab: &Lab) {
    lab.veth("a");
    lab.ip("s", "link set porta up");
    lab.ip("s", &format!("addr add {HOST}/32 dev lo"));
    lab.ip("a", "addr add 10.9.0.1/24 dev eth0");
    lab.ip("a", &format!("route add {HOST} dev eth0"));
    let host = lab.exec("s", "cat /sys/class/net/porta/address");
    lab.ip("a", &format!("neigh replace {HOST} lladdr {} dev eth0", host.trim()));
}

/// Datagrams from the guest to the host.
fn burst(lab: &Lab) {
    std::thread::scope(|scope| {
        let send = || {
            let socket = UdpSocket::bind("10.9.0.1:0").expect("a socket");
            (0..BURST).for_each(|_| assert_eq!(socket.send_to(b"hello", (HOST, 9)).ok(), Some(5)));
        };
        lab.inside(scope, "a", send).join().expect("no panic");
    });
}

/// Packets that the host's stack has seen.
fn seen(lab: &Lab) -> u64 {
    lab.counter("s", "Ip", "InReceives")
}

/// Frames with this burst's payload that the port gets.
fn port_gets_burst(port: &mut OpenPort) -> bool {
    let begin = Instant::now();
    let (mut batch, mut found) = (RxBatch::default(), 0);
    while found < BURST && begin.elapsed() < Duration::from_secs(5) {
        batch.clear();
        let patience = Timespec { tv_sec: 1, tv_nsec: 0 };
        let ready = &mut [PollFd::from_borrowed_fd(port.rx[0].readiness(), PollFlags::IN)];
        poll(ready, Some(&patience)).expect("poll");
        port.rx[0].rx(&mut batch, &mut Drops::default()).expect("the interface is there");
        found +=
            batch.frames().iter().filter(|slot| slot.frame_len() == 14 + 20 + 8 + 5).count() as u64;
    }
    found == BURST
}

fn reaches_host(lab: &Lab) -> bool {
    let before = seen(lab);
    burst(lab);
    let begin = Instant::now();
    while seen(lab) < before + BURST && begin.elapsed() < Duration::from_secs(1) {
        std::thread::sleep(Duration::from_millis(5));
    }
    seen(lab) >= before + BURST
}

fn qdiscs(lab: &Lab) -> String {
    run(&format!("tc -n {} qdisc show dev porta", lab.netns("s")))
}

#[test]
fn the_port_gets_all_and_the_host_nothing_until_the_port_is_removed() {
    for kind in KINDS {
        let Some(lab) = Lab::new(&format!("alone-{}", kind.word())) else { return };
        host_and_guest(&lab);
        assert!(reaches_host(&lab), "the host would take them");
        let mut port = open(&lab.spec(kind, "a"), 1).expect("opens");
        let before = seen(&lab);
        burst(&lab);
        assert!(port_gets_burst(&mut port), "{kind:?}");
        assert_eq!(seen(&lab), before, "{kind:?}");
        drop((std::mem::take(&mut port.rx), std::mem::take(&mut port.tx)));
        port.control.close(Keep::Nothing).expect("closes");
        assert!(reaches_host(&lab), "{kind:?}: it is given back");
        assert!(!qdiscs(&lab).contains("clsact"), "{}", qdiscs(&lab));
    }
}

#[test]
fn the_host_gets_nothing_after_a_kill_either_and_a_release_gives_it_back() {
    for kind in KINDS {
        let Some(lab) = Lab::new(&format!("killed-{}", kind.word())) else { return };
        host_and_guest(&lab);
        let spec = lab.spec(kind, "a");
        // Nothing is closed in order.
        drop(open(&spec, 1).expect("opens"));
        assert!(!reaches_host(&lab), "{kind:?}");
        let again = open(&spec, 1).expect("opens again");
        let OpenPort { rx, tx, control, .. } = again;
        drop((rx, tx));
        control.close(Keep::Interface).expect("closes");
        assert!(!reaches_host(&lab), "{kind:?}: the node stops, the port stays");
        assert!(release(&spec).expect("given back"));
        assert!(reaches_host(&lab), "{kind:?}");
        assert!(!release(&spec).expect("nothing to do"));
    }
}

#[test]
fn only_the_owners_interfaces_without_a_port_are_given_back() {
    let Some(lab) = Lab::new("owners") else { return };
    host_and_guest(&lab);
    let opener = port::Opener::new(1).with_owner(7);
    drop(opener.open(&lab.spec(PortKind::AfPacket, "a")).expect("opens"));
    let netns = lab.at("s");
    let given =
        |owner, wanted: bool| release_others(Some(&netns), owner, |_| wanted).expect("looks");
    assert_eq!(given(8, false), [""; 0], "another node's");
    assert_eq!(given(7, true), [""; 0], "a port that is wanted");
    assert!(!reaches_host(&lab));
    assert_eq!(given(7, false), ["porta"]);
    assert!(reaches_host(&lab));
}

#[test]
fn filters_of_others_are_refused_by_name_and_their_qdisc_outlives_the_port() {
    let Some(lab) = Lab::new("filters") else { return };
    host_and_guest(&lab);
    let tc = |arguments: &str| run(&format!("tc -n {} {arguments}", lab.netns("s")));
    tc("qdisc add dev porta clsact");
    tc("filter add dev porta ingress prio 5 protocol all u32 match u32 0 0 flowid 1:1");
    for kind in KINDS {
        let error = open(&lab.spec(kind, "a"), 1).err().expect("refused");
        assert!(error.to_string().contains("tc filter u32 of priority 5"), "{error}");
        assert!(error.remedy().contains("tc filter del dev porta ingress prio 5"));
    }
    tc("filter del dev porta ingress prio 5");
    let OpenPort { rx, tx, control, .. } =
        open(&lab.spec(PortKind::AfPacket, "a"), 1).expect("opens");
    drop((rx, tx));
    control.close(Keep::Nothing).expect("closes");
    assert!(qdiscs(&lab).contains("clsact"), "{}", qdiscs(&lab));
    assert!(reaches_host(&lab));
}

#[test]
fn an_interface_that_the_host_is_reached_by_is_refused_unless_it_is_shared() {
    let Some(lab) = Lab::new("shared") else { return };
    host_and_guest(&lab);
    lab.ip("s", "addr add 10.9.0.2/24 dev porta");
    let spec = lab.spec(PortKind::AfPacket, "a");
    let error = open(&spec, 1).err().expect("refused");
    assert!(matches!(error, OpenError::HostUse { .. }), "{error}");
    assert!(error.to_string().contains("10.9.0.2") && error.remedy().contains("--host"), "{error}");
    assert!(reaches_host(&lab), "nothing was changed");
    let taken = open(&with(&spec, json!({"take_over": true})), 1).expect("opens");
    assert!(taken.facts.notes.iter().any(|note| note.starts_with("taken over")));
    assert!(!reaches_host(&lab));
    drop(taken);
    let mut port = open(&with(&spec, json!({"host": true})), 1).expect("opens");
    assert!(port.facts.notes.iter().any(|note| note.starts_with("host: ")));
    assert!(reaches_host(&lab));
    assert!(port_gets_burst(&mut port));
}

#[test]
fn a_port_that_does_not_open_leaves_the_host_its_interface() {
    let Some(lab) = Lab::new("unopened") else { return };
    host_and_guest(&lab);
    let many = with(&lab.spec(PortKind::AfXdp, "a"), json!({"queues": 9}));
    assert!(matches!(open(&many, 1).err(), Some(OpenError::Queues { .. })));
    assert!(reaches_host(&lab));
    assert!(!qdiscs(&lab).contains("clsact"));
}
