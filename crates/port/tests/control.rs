//! Facts, control, events and errors of real ports.

mod lab;

use api::{PortKind, PortSpec};
use lab::{Lab, bytes, with};
use port::{
    Body, ControlError, Drops, Keep, LinkEvent, LinkMonitor, OpenError, OpenPort, RxBatch, RxQueue,
    TxFrame, open,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;
use std::os::fd::AsFd;
use wire::{DropReason, Offload};

const KINDS: [PortKind; 3] = [PortKind::Tap, PortKind::AfPacket, PortKind::AfXdp];

fn refused(spec: &PortSpec) -> OpenError {
    let error = open(spec, 1).err().expect("must be refused");
    assert!(!error.remedy().is_empty() && !error.step().is_empty());
    assert!(error.to_string().contains(&*spec.interface().expect("it has one")), "{error}");
    error
}

/// A port to guest a, and what lets the guest's side be looked at.
fn opened(lab: &Lab, kind: PortKind) -> OpenPort {
    lab.guest(&lab.spec(kind, "a"), "a", 1)
}

fn send(port: &mut OpenPort, head: &[u8]) -> (u64, Vec<(DropReason, u64)>) {
    let mut drops = Drops::default();
    let frame = TxFrame {
        head,
        body: Body::default(),
        offload: Offload::default(),
        tunnel_id: 0,
        tun_dst: 0,
    };
    let sent = port.tx[0].tx(&[frame], &mut drops);
    (sent.frames, drops.iter().collect())
}

/// Waits for frames, at most some seconds.
fn received(rx: &mut dyn RxQueue, batch: &mut RxBatch) -> usize {
    let patience = Timespec { tv_sec: 5, tv_nsec: 0 };
    poll(&mut [PollFd::from_borrowed_fd(rx.readiness(), PollFlags::IN)], Some(&patience))
        .expect("poll");
    rx.rx(batch, &mut Drops::default()).expect("the interface is there")
}

/// All news until one fits.
fn wait_for(monitor: &mut LinkMonitor, mut fits: impl FnMut(&LinkEvent) -> bool) {
    let patience = Timespec { tv_sec: 5, tv_nsec: 0 };
    loop {
        let ready =
            poll(&mut [PollFd::from_borrowed_fd(monitor.as_fd(), PollFlags::IN)], Some(&patience));
        assert_ne!(ready.expect("poll"), 0, "no such news");
        if monitor.events().expect("the socket works").iter().any(&mut fits) {
            return;
        }
    }
}

/// Ends a TAP port that is up as kill -9 does: nothing is closed in order. A child of another test may hold its files until it has
/// become another program, so that they are closed only when the interface says so.
fn killed(lab: &Lab, port: OpenPort) {
    let mut monitor = port::monitor(Some(&lab.at("a"))).expect("listens");
    drop(port);
    wait_for(
        &mut monitor,
        |news| matches!(news, LinkEvent::Changed(link) if link.name == "eth0" && !link.carrier),
    );
}

#[test]
fn a_tap_has_the_address_asked_for() {
    let Some(lab) = Lab::new("mac") else { return };
    let spec = with(&lab.spec(PortKind::Tap, "a"), json!({"mac": "02:00:00:00:00:09"}));
    assert_eq!(lab.guest(&spec, "a", 1).facts.mac, [2, 0, 0, 0, 0, 9]);
}

#[test]
fn facts_follow_what_control_sets() {
    for kind in KINDS {
        let Some(lab) = Lab::new(&format!("facts-{}", kind.word())) else { return };
        let spec = with(&lab.spec(kind, "a"), json!({"mtu": 1400}));
        let port = lab.guest(&spec, "a", 1);
        let facts = &port.facts;
        assert_eq!((facts.mtu, facts.up, facts.carrier), (1400, true, true), "{kind:?}");
        assert!(facts.mode.starts_with(kind.word()), "{}", facts.mode);
        // What a veth claims; a TAP's is unknown.
        assert_eq!(facts.speed_mbps, if kind == PortKind::Tap { 0 } else { 10_000 }, "{kind:?}");
        port.control.set_mtu(1450).expect("a small MTU");
        port.control.set_admin(false).expect("down");
        let facts = port.control.facts().expect("it is there");
        assert_eq!((facts.mtu, facts.up, facts.carrier), (1450, false, false), "{kind:?}");
        assert!(matches!(port.control.set_mtu(100_000), Err(ControlError::Mtu { .. })), "{kind:?}");
    }
}

#[test]
fn a_frame_to_a_port_that_is_down_is_dropped_as_port_down() {
    let Some(lab) = Lab::new("down") else { return };
    for kind in KINDS {
        let mut port = opened(&lab, kind);
        port.control.set_admin(false).expect("down");
        assert_eq!(send(&mut port, &[0xff; 60]), (0, vec![(DropReason::PortDown, 1)]), "{kind:?}");
        port.control.set_admin(true).expect("up");
        assert_eq!(send(&mut port, &[0xff; 60]), (1, vec![]), "{kind:?}");
        port.rx.clear();
        port.control.close(Keep::Nothing).expect("closes");
        drop(port.tx);
        if kind != PortKind::Tap {
            lab.ip("s", "link del porta");
        }
    }
}

#[test]
fn tags_cross_packet_sockets_unchanged() {
    let Some(lab) = Lab::new("vlan") else { return };
    lab.veth("a");
    let mut here = open(&lab.spec(PortKind::AfPacket, "a"), 1).expect("opens");
    let there = lab.on(PortKind::AfPacket, "eth0", "a");
    let mut there = open(&there, 1).expect("opens");
    let tag = |tpid: [u8; 2], vlan: u8| [tpid[0], tpid[1], 0x60, vlan];
    let single = tag([0x81, 0], 7).to_vec();
    let double = [tag([0x88, 0xa8], 5), tag([0x81, 0], 7)].concat();
    let mut batch = RxBatch::default();
    for tags in [single, double] {
        let frame = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2][..], &tags, &[0x88, 0xb5], &[0x5a; 600]]
            .concat();
        assert_eq!(send(&mut there, &frame), (1, vec![]));
        let mut found = false;
        while !found {
            // Other frames (neighbour discovery) may be there too.
            batch.clear();
            assert_ne!(received(here.rx[0].as_mut(), &mut batch), 0, "the tagged frame never came");
            found = batch.frames().iter().any(|slot| bytes(slot, here.rx[0].as_ref()) == frame);
        }
    }
}

#[test]
fn a_tap_outlives_its_port_and_is_taken_over_with_its_addresses() {
    let Some(lab) = Lab::new("keep") else { return };
    let port = opened(&lab, PortKind::Tap);
    let index = port.facts.index;
    killed(&lab, port);
    let port = open(&lab.spec(PortKind::Tap, "a"), 1).expect("taken over");
    assert_eq!(port.facts.index, index);
    assert!(lab.ip("a", "addr show dev eth0").contains("10.9.0.1/24"));
    let OpenPort { rx, tx, control, .. } = port;
    drop((rx, tx));
    control.close(Keep::Nothing).expect("removed");
    assert!(!lab.ip("a", "link show").contains("eth0"));
}

#[test]
fn several_queues_open_on_every_kind() {
    let Some(lab) = Lab::new("queues") else { return };
    let spec = with(&lab.spec(PortKind::Tap, "a"), json!({"queues": 3}));
    let port = open(&spec, 2).expect("a multi-queue TAP");
    assert_eq!((port.rx.len(), port.tx.len()), (3, 2));
    killed(&lab, port);
    // A multi-queue TAP serves a single queue after a restart, too.
    let port = open(&lab.spec(PortKind::Tap, "a"), 1).expect("taken over");
    assert_eq!(port.rx.len(), 1);
    lab.ip(
        "s",
        &format!(
            "link add portb numrxqueues 2 numtxqueues 2 type veth peer name eth0 netns {}",
            lab.netns("b")
        ),
    );
    let spec = with(&lab.spec(PortKind::AfPacket, "b"), json!({"queues": 2}));
    assert_eq!(open(&spec, 1).expect("a fanout").rx.len(), 2);
    lab.exec("s", "ethtool -L portb rx 2 tx 2");
    let spec = lab.spec(PortKind::AfXdp, "b");
    let mut port = open(&spec, 3).expect("all rx queues");
    assert_eq!((port.rx.len(), port.tx.len()), (2, 3));
    assert!(
        port.facts.notes.iter().any(|note| note.contains("packet sockets")),
        "{:?}",
        port.facts.notes
    );
    lab.ip("b", "link set eth0 up");
    for tx in &mut port.tx {
        let mut drops = Drops::default();
        let frame = TxFrame {
            head: &[0xff; 60],
            body: Body::default(),
            offload: Offload::default(),
            tunnel_id: 0,
            tun_dst: 0,
        };
        assert_eq!(tx.tx(&[frame], &mut drops).frames, 1, "{:?}", drops.iter().collect::<Vec<_>>());
    }
}

#[test]
fn an_interface_that_vanishes_is_told_and_comes_back() {
    let Some(lab) = Lab::new("vanish") else { return };
    for kind in [PortKind::AfPacket, PortKind::AfXdp] {
        let port = opened(&lab, kind);
        let mut monitor = port::monitor(Some(&lab.at("s"))).expect("listens");
        lab.ip("s", "link set porta down");
        wait_for(
            &mut monitor,
            |news| matches!(news, LinkEvent::Changed(link) if link.name == "porta" && !link.up),
        );
        lab.ip("s", "link del porta");
        wait_for(
            &mut monitor,
            |news| matches!(news, LinkEvent::Gone { name, .. } if name == "porta"),
        );
        assert!(matches!(port.control.facts(), Err(ControlError::Gone { .. })));
        assert!(matches!(port.control.set_admin(true), Err(ControlError::Gone { .. })));
        let mut rx = port.rx;
        let (mut batch, mut drops) = (RxBatch::default(), Drops::default());
        // The drop counters, and with them the socket's health, are looked at every few thousand rounds.
        let broken = (0..10_000).any(|_| {
            batch.clear();
            rx[0].rx(&mut batch, &mut drops).is_err()
        });
        assert!(broken, "{kind:?} never said that its interface is gone");
        lab.veth("a");
        wait_for(
            &mut monitor,
            |news| matches!(news, LinkEvent::Changed(link) if link.name == "porta"),
        );
        let spec = lab.spec(kind, "a");
        assert!(open(&spec, 1).expect("opens again").facts.up);
        lab.ip("s", "link del porta");
    }
}

#[test]
fn what_belongs_to_another_program_is_refused() {
    let Some(lab) = Lab::new("busy") else { return };
    let spec = lab.spec(PortKind::Tap, "a");
    let _port = open(&spec, 1).expect("opens");
    assert!(matches!(refused(&spec), OpenError::Busy { .. }));
    let multi = with(&spec, json!({"queues": 2}));
    assert!(matches!(refused(&multi), OpenError::Busy { .. }), "also with several queues");
    lab.veth("b");
    let spec = lab.spec(PortKind::AfXdp, "b");
    let _other = open(&spec, 1).expect("opens");
    let OpenError::Busy { holder, remedy, .. } = refused(&spec) else { panic!("busy") };
    assert!(holder.contains("another af_xdp port"), "{holder}");
    assert!(remedy.contains("ss --xdp"), "{remedy}");
    let wrong = lab.on(PortKind::Tap, "portb", "s");
    assert!(matches!(refused(&wrong), OpenError::WrongInterface { .. }));
}

#[test]
fn what_cannot_be_is_refused_with_its_reason() {
    let Some(lab) = Lab::new("refuse") else { return };
    lab.veth("a");
    for kind in [PortKind::AfPacket, PortKind::AfXdp] {
        let missing = lab.on(kind, "nothere", "s");
        assert!(matches!(refused(&missing), OpenError::Missing { .. }));
        let tiny = PortSpec { mtu: Some(10), ..lab.spec(kind, "a") };
        assert!(matches!(refused(&tiny), OpenError::Mtu { .. }));
    }
    for kind in KINDS {
        let nowhere = with(&lab.spec(kind, "a"), json!({"netns": "su-no-such-namespace"}));
        assert!(matches!(refused(&nowhere), OpenError::Netns { .. }));
    }
    let jumbo = PortSpec { mtu: Some(9000), ..lab.spec(PortKind::AfXdp, "a") };
    assert!(matches!(refused(&jumbo), OpenError::Mtu { .. }));
    let many = with(&lab.spec(PortKind::AfXdp, "a"), json!({"queues": 9}));
    assert!(matches!(refused(&many), OpenError::Queues { asked: 9, available: 1, .. }));
    let direct = with(&lab.spec(PortKind::AfXdp, "a"), json!({"xdp_mode": "zero-copy"}));
    let OpenError::Xdp { refused, .. } = refused(&direct) else { panic!("no zero-copy on veth") };
    assert_eq!(refused, ["zero-copy: the driver has no zero-copy"]);
    assert!(open(&lab.spec(PortKind::AfXdp, "a"), 1).is_ok(), "nothing was left behind");
}

#[test]
fn a_larger_mtu_takes_larger_buffers() {
    let Some(lab) = Lab::new("mtu") else { return };
    lab.veth("a");
    let spec = PortSpec { mtu: Some(3000), ..lab.spec(PortKind::AfXdp, "a") };
    let mut port = open(&spec, 1).expect("opens");
    assert_eq!(port.facts.mtu, 3000);
    lab.ip("a", "link set eth0 mtu 3000");
    assert_eq!(send(&mut port, &[0xff; 200]).0, 1);
    let body = [0x5a; 2814];
    let frame = TxFrame {
        head: &[0xff; 200],
        body: Body::private(&body),
        offload: Offload::default(),
        tunnel_id: 0,
        tun_dst: 0,
    };
    assert_eq!(port.tx[0].tx(&[frame], &mut Drops::default()).bytes, 3014);
}

#[test]
fn a_veth_runs_xdp_in_its_driver_and_takes_no_rules() {
    let Some(lab) = Lab::new("abilities") else { return };
    lab.veth("a");
    let found = std::thread::scope(|scope| {
        lab.inside(scope, "s", || port::abilities("porta")).join().expect("no panic")
    });
    let found = found.expect("the interface is there");
    // A kernel before 6.3 does not tell.
    assert_ne!(found.has_xdp, Some(false));
    assert!(found.rx_queues >= 1);
    assert!(!found.has_ntuple && !found.has_rss_table, "{found:?}");
}
