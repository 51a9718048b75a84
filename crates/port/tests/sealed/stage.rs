//! Sealing on a core of its own: who sealed what, in which order, and what happens when there is too much or the choice changes.

use super::{Hosts, facts, received, send, sent, udp};
use port::{Body, Chosen, Drops, OpenPort, Opener, PortControl, SealOn, Sealing, TxFrame};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Release};
use std::thread;
use wire::build::{Frame, Ipv4};
use wire::{DropReason, Offload};

fn on(core: usize) -> SealOn {
    SealOn { core: Some(core), why: "asked for".into() }
}

/// Has a tunnel's packets sealed there from now on.
fn seal(hosts: &Hosts, control: &dyn PortControl, seal_on: SealOn) {
    let chosen = Chosen { seal_on, ..Chosen::default() };
    control.change("seal_core", &hosts.spec("s", 0), &chosen).expect("a thread");
}

fn sealing(control: &dyn PortControl) -> Sealing {
    control.details().expect("a tunnel").read().sealing.expect("it is encrypted")
}

/// Packets that the port's stage sealed, and all that were sealed.
fn sealed(port: &OpenPort) -> (u64, u64) {
    let stage = sealing(&*port.control).packets;
    (stage, facts(port)[0].packets)
}

#[test]
fn packets_are_sealed_by_who_was_told_and_in_order_while_that_changes() {
    let Some(hosts) = Hosts::new("seal") else { return };
    hosts.keys(&[(1, "")]);
    let (mut near, mut far) = (hosts.end("s"), hosts.end("b"));
    assert_eq!(sealed(&near), (0, 0));
    let mut expected = Vec::new();
    // One flow: its frames tell their number by their length.
    for (at, core) in [None, Some(0), Some(1), None, Some(1), None].into_iter().enumerate() {
        let seal_on = core.map_or_else(SealOn::default, on);
        seal(&hosts, &*near.control, seal_on.clone());
        assert_eq!(sealing(&*near.control).on, seal_on);
        for number in 0..100 {
            let frame = udp(1, 100 * at + number);
            sent(&mut near, &frame);
            expected.push(frame);
        }
    }
    assert_eq!(received(&mut far, 600), (expected, vec![]));
    assert_eq!(sealed(&near), (300, 600), "the half of them by the stage");
}

#[test]
fn a_frame_that_is_too_long_is_refused_where_its_sender_is_told() {
    let Some(hosts) = Hosts::new("sealbig") else { return };
    hosts.keys(&[(1, "")]);
    let (mut near, mut far) = (hosts.end("s"), hosts.end("b"));
    seal(&hosts, &*near.control, on(1));
    let (fits, longer) = (udp(1, 1408 - 28), udp(1, 1408 - 27));
    sent(&mut near, &fits);
    assert_eq!(received(&mut far, 1).0, [&fits[..]], "it does not wait for its core any more");
    assert_eq!(send(&mut near, &longer, Offload::default()), [(DropReason::TooBig, 1)]);
    // A path that carries less is known at once or from the first packet that it did not take.
    hosts.lab.ip("s", "link set portb mtu 1400");
    if send(&mut near, &fits, Offload::default()).is_empty() {
        while sealing(&*near.control).lost.iter().next() != Some((DropReason::TooBig, 1)) {
            thread::yield_now();
        }
    }
    assert_eq!(send(&mut near, &fits, Offload::default()), [(DropReason::TooBig, 1)]);
}

/// A frame of the one flow that tells its number.
fn numbered(number: u32) -> Vec<u8> {
    let frame = Frame::ethernet([2; 6], [4; 6]).ipv4(Ipv4::default()).udp(1, 2);
    frame.payload(&number.to_be_bytes()).finish()
}

#[test]
fn a_flow_that_moves_between_workers_stays_in_order_while_sealing_moves_between_cores() {
    const TURNS: u32 = 400;
    const EACH: u32 = 16;
    let Some(hosts) = Hosts::new("sealmv") else { return };
    hosts.keys(&[(1, "")]);
    let opener = Opener::new(2).with_ledger(hosts.path("ledger-s"));
    let OpenPort { tx, control, .. } = opener.open(&hosts.spec("s", 0)).expect("a tunnel");
    let mut far = hosts.end("b");
    let control = Mutex::new(control);
    // The workers take turns, as a flow does that is moved: each begins when the other's pass is over.
    let turn = AtomicU32::new(0);
    thread::scope(|scope| {
        for (worker, mut tx) in tx.into_iter().enumerate() {
            let (turn, control, hosts) = (&turn, &control, &hosts);
            scope.spawn(move || {
                for own in (0..TURNS).filter(|own| *own as usize % 2 == worker) {
                    while turn.load(Acquire) != own {
                        thread::yield_now();
                    }
                    let mut drops = Drops::default();
                    for number in own * EACH..(own + 1) * EACH {
                        let head = numbered(number);
                        let (body, offload) = (Body::default(), Offload::default());
                        tx.tx(
                            &[TxFrame { head: &head, body, offload, tunnel_id: 0, tun_dst: 0 }],
                            &mut drops,
                        );
                    }
                    assert!(drops.is_empty(), "{drops:?}");
                    turn.store(own + 1, Release);
                    if own % 16 == 0 {
                        let choice =
                            [SealOn::default(), on(0), on(1)][own as usize / 16 % 3].clone();
                        seal(hosts, &**control.lock().expect("no panic"), choice);
                    }
                }
            });
        }
    });
    let count = (TURNS * EACH) as usize;
    let (frames, drops) = received(&mut far, count);
    assert_eq!((frames.len(), drops), (count, vec![]));
    assert!(frames.iter().zip(0..).all(|(frame, number)| *frame == numbered(number)), "in order");
    let detail = control.lock().expect("no panic").details().expect("a tunnel").read();
    let (stage, all) = (detail.sealing.expect("encrypted").packets, detail.sas[0].packets);
    assert_eq!(all, count as u64);
    assert!((1..all).contains(&stage), "{stage} of {all} by the stage");
}
