//! Every way out of the program, and what it counts.

use crate::lab::{Lab, inside, options, pin, two_cores, udp};
use place::steering::{Field, Target, Unmatched, Urgency};
use place::{CoreId, Reason, UnitId, VmId};
use std::collections::HashMap;
use std::time::Duration;
use wire::build::{Arp, Frame, Ipv4};
use xdp::steer::{Attached, ChangeError, Entry, EventKind, Match, Options, Steered, UnitKind};

const XDP_DROP: u32 = 1;
const XDP_PASS: u32 = 2;
const XDP_REDIRECT: u32 = 4;

/// To that core, whatever matches those fields.
fn entry(priority: u32, fields: &[(Field, u128)], target: Target) -> Entry {
    let fields = fields.iter().map(|&(field, value)| (field, value, field.full()));
    let matching = Match::fields(priority, fields);
    Entry { matching, target, is_priority: false, wants_own_core: false, vm: None }
}

pub fn from_port(port: u16, core: u16) -> Entry {
    entry(10, &[(Field::TpSrc, port.into())], Target::Core(CoreId(core)))
}

/// Adds entries of which every frame is to know at once.
pub fn put(attached: &mut Attached, entries: &[Entry]) -> Vec<UnitId> {
    let units = attached.insert(entries).expect("the kernel obliges");
    attached.settle_now().expect("the kernel obliges");
    units
}

/// The actions of a run of frames on core 0, and what they changed of the counters.
pub fn play(attached: &Attached, frames: &[Vec<u8>]) -> (Vec<u32>, HashMap<Steered, u64>) {
    let counts = || -> HashMap<_, _> {
        attached
            .counts()
            .expect("the kernel obliges")
            .into_iter()
            .map(|(what, count)| (what, count.frames))
            .collect()
    };
    let before = counts();
    let run = attached.rehearsal().expect("the kernel obliges");
    let actions = std::thread::scope(|scope| {
        let runner = scope.spawn(|| {
            pin(0);
            frames.iter().map(|frame| run.run(frame, 1).expect("the kernel obliges").0).collect()
        });
        runner.join().expect("the kernel obliges")
    });
    let changed = counts().into_iter().map(|(what, count)| (what, count - before[&what]));
    (actions, changed.filter(|&(_, count)| count > 0).collect())
}

#[test]
fn every_exit_has_its_action_and_its_counter() {
    let Some(mut lab) = Lab::new("exits") else { return };
    let attached = &mut lab.attach(&Options { unmatched: Unmatched::Stay, queue: 64, ..options() });
    let of_us = [(Field::DlType, 0x806, 0xffff), (Field::NwDst, 0x0a000009, u128::MAX)];
    let asked = Entry { matching: Match::fields(1, of_us), ..from_port(1, 0) };
    let entries = [from_port(1, 0), from_port(2, 1), from_port(3, 7), asked];
    put(attached, &entries);
    let one = |frame: Vec<u8>, action: u32, what: Steered| {
        let (actions, counts) = play(attached, &[frame]);
        assert_eq!((actions[0], &counts), (action, &HashMap::from([(what, 1)])));
    };
    one(udp(9), XDP_PASS, Steered::Missed);
    let arp = Arp {
        op: 1,
        sha: [4; 6],
        spa: [10, 0, 0, 1].into(),
        tha: [0; 6],
        tpa: [10, 0, 0, 2].into(),
    };
    one(Frame::ethernet([2; 6], [4; 6]).arp(arp).finish(), XDP_PASS, Steered::NotIp);
    let asked_of_us = Arp { tpa: [10, 0, 0, 9].into(), ..arp };
    one(Frame::ethernet([2; 6], [4; 6]).arp(asked_of_us).finish(), XDP_PASS, Steered::Stayed);
    one(udp(1), XDP_PASS, Steered::Stayed);
    one(udp(2), XDP_REDIRECT, Steered::Sent);
    one(udp(3), XDP_PASS, Steered::NoQueue);
    // The queue of 64 keeps 32 for the kernel's batches and an eighth of the rest for priority flows.
    let (actions, counts) = play(attached, &vec![udp(2); 40]);
    assert_eq!(actions.iter().filter(|&&action| action == XDP_DROP).count(), 40 - 27);
    assert_eq!(counts, HashMap::from([(Steered::Sent, 27), (Steered::QueueFull, 13)]));
    assert_eq!(attached.units().iter().map(|unit| unit.dropped).sum::<u64>(), 13);
    let refused: u64 = attached.core_counts().unwrap().iter().map(|(_, core)| core.refused).sum();
    assert_eq!(refused, 13);
}

#[test]
fn a_frame_without_room_for_its_number_passes() {
    let Some(mut lab) = Lab::new("meta") else { return };
    let attached = &mut lab.attach(&Options { unmatched: Unmatched::Stay, ..options() });
    put(attached, &[from_port(2, 1)]);
    // The kernel keeps what a repeated run has put in front of the frame: there is room for some 200 bytes of that.
    let run = attached.rehearsal().unwrap();
    let (action, _) = std::thread::scope(|scope| {
        let runner = scope.spawn(|| {
            pin(0);
            run.run(&udp(2), 32).unwrap()
        });
        runner.join().unwrap()
    });
    assert_eq!(action, XDP_PASS);
    let counts: HashMap<_, _> = attached.counts().unwrap().into_iter().collect();
    let (sent, passed) = (counts[&Steered::Sent].frames, counts[&Steered::NoMeta].frames);
    assert!(sent > 0 && passed > 0 && sent + passed == 32, "{sent} and {passed}");
}

#[test]
fn the_highest_priority_decides_and_an_exact_flow_before_all() {
    let Some(mut lab) = Lab::new("priority") else { return };
    let attached = &mut lab.attach(&Options { unmatched: Unmatched::Stay, ..options() });
    let dissector = xdp::steer::Dissector::new().unwrap();
    let flow = Match::Flow(dissector.dissect(&udp(5)).unwrap().key.flow());
    let entries = [
        entry(1, &[(Field::NwProto, 17)], Target::Core(CoreId(1))),
        entry(7, &[(Field::TpDst, 9)], Target::Core(CoreId(0))),
        entry(9, &[(Field::TpSrc, 4)], Target::Core(CoreId(1))),
        Entry { matching: flow, ..from_port(5, 1) },
    ];
    let units = put(attached, &entries);
    let (actions, _) = play(attached, &[udp(3), udp(4), udp(5)]);
    assert_eq!(actions, [XDP_PASS, XDP_REDIRECT, XDP_REDIRECT]);
    // What was removed is not found any more, and the next best is.
    attached.remove(&units[1..2]).unwrap();
    attached.settle_now().unwrap();
    let (actions, _) = play(attached, &[udp(3)]);
    assert_eq!(actions, [XDP_REDIRECT]);
    assert_eq!(attached.entries().len(), 3);
}

#[test]
fn changes_that_cannot_be_made_change_nothing() {
    let Some(mut lab) = Lab::new("changes") else { return };
    let attached =
        &mut lab.attach(&Options { unmatched: Unmatched::Stay, entries: 40, ..options() });
    let first = put(attached, &[from_port(1, 0)]);
    let taken = attached.insert(&[from_port(2, 0), from_port(1, 1)]);
    assert!(matches!(taken, Err(ChangeError::Taken { unit }) if unit == first[0]), "{taken:?}");
    assert_eq!(attached.entries(), [(first[0], from_port(1, 0))]);
    // A frame may have seen what was taken back.
    attached.settle_now().unwrap();
    let masks: Vec<_> = (0..32)
        .map(|bit| Entry {
            matching: Match::fields(1, [(Field::NwSrc, 0, 1 << bit)]),
            ..from_port(0, 0)
        })
        .collect();
    assert!(
        matches!(attached.insert(&masks), Err(ChangeError::Masks)),
        "one mask is taken, 31 are free"
    );
    attached.settle_now().unwrap();
    assert_eq!(put(attached, &masks[..31]).len(), 31);
    let many: Vec<_> = (100..109).map(|port| from_port(port, 0)).collect();
    assert!(matches!(attached.insert(&many), Err(ChangeError::Full)));
    attached.settle_now().unwrap();
    assert_eq!(put(attached, &many[..8]).len(), 8);
    assert!(matches!(attached.remove(&[UnitId(5)]), Err(ChangeError::Missing { .. })));
}

#[test]
fn later_fragments_go_with_their_first_one() {
    let Some(mut lab) = Lab::new("fragments") else { return };
    let attached = &mut lab.attach(&Options { unmatched: Unmatched::Stay, ..options() });
    put(attached, &[from_port(2, 1)]);
    let piece = |fragment, id| {
        let header = Ipv4 { fragment, id, ..Ipv4::default() };
        Frame::ethernet([2; 6], [4; 6]).ipv4(header).udp(2, 9).payload(&[0; 40]).finish()
    };
    let (actions, counts) =
        play(attached, &[piece(0x2005, 7), piece(0x2000, 7), piece(0x2005, 7), piece(0x000a, 7)]);
    // The first came too late for the first of these.
    assert_eq!(actions, [XDP_PASS, XDP_REDIRECT, XDP_REDIRECT, XDP_REDIRECT]);
    assert_eq!((counts[&Steered::FragmentOrphan], counts[&Steered::FragmentFollowed]), (1, 2));
    // So do the pieces of a tunnel's packet, whose own headers only the first piece has.
    let inner = entry(20, &[(Field::NwSrc, 0x0b00_0001)], Target::Core(CoreId(1)));
    put(attached, &[inner]);
    let outer = |fragment| Ipv4 { fragment, id: 8, ..Ipv4::default() };
    let header = Ipv4 { src: [11, 0, 0, 1].into(), ..Ipv4::default() };
    let first = Frame::ethernet([2; 6], [4; 6]).ipv4(outer(0x2000)).udp(5, 4789).vxlan(3);
    let first = first.inner_ethernet([6; 6], [8; 6]).ipv4(header).udp(1, 2).finish();
    let later =
        Frame::ethernet([2; 6], [4; 6]).ipv4(outer(0x0009)).udp(0, 0).payload(&[0; 40]).finish();
    let (actions, _) = play(attached, &[first, later]);
    assert_eq!(actions, [XDP_REDIRECT, XDP_REDIRECT]);
}

/// A datagram is admitted with its first piece, has some room more for the others, and is dropped whole from the first loss on.
#[test]
fn what_is_left_of_a_datagram_is_dropped_with_the_piece_that_found_no_room() {
    let Some(mut lab) = Lab::new("pieces") else { return };
    let attached = &mut lab.attach(&Options { unmatched: Unmatched::Stay, queue: 64, ..options() });
    put(attached, &[from_port(2, 1)]);
    let piece = |fragment, id| {
        let header = Ipv4 { fragment, id, ..Ipv4::default() };
        Frame::ethernet([2; 6], [4; 6]).ipv4(header).udp(2, 9).payload(&[0; 40]).finish()
    };
    let (first, later) = (|id| piece(0x2000, id), |id| piece(0x2005, id));
    // Room for 28 ordinary frames, 30 if they are later pieces.
    let filled =
        [vec![udp(2); 27], vec![first(7), first(8), later(7), later(7), later(7)]].concat();
    let (actions, counts) = play(attached, &filled);
    assert_eq!(actions[27..], [XDP_REDIRECT, XDP_DROP, XDP_REDIRECT, XDP_REDIRECT, XDP_DROP]);
    assert_eq!((counts[&Steered::Sent], counts[&Steered::QueueFull]), (30, 2));
    // Both datagrams have lost a piece now.
    let (actions, counts) = play(attached, &[later(7), later(8), piece(0x000a, 8)]);
    assert_eq!(actions, [XDP_DROP; 3]);
    assert_eq!(counts[&Steered::Piece], 3);
    assert_eq!(attached.units().iter().map(|unit| unit.dropped).sum::<u64>(), 5);
    // A new datagram with an old one's number begins anew.
    let (_, counts) = play(attached, &[first(8)]);
    assert_eq!(counts, HashMap::from([(Steered::QueueFull, 1)]));
}

#[test]
fn frames_with_a_flow_control_field_go_by_it() {
    let Some(mut lab) = Lab::new("fcf") else { return };
    let attached =
        &mut lab.attach(&Options { is_fcf: true, unmatched: Unmatched::Stay, ..options() });
    attached.set_cores(lab.host(), &two_cores()).unwrap();
    let with_tos = |tos| {
        let header = Ipv4 { tos, ..Ipv4::default() };
        Frame::ethernet([2; 6], [4; 6]).ipv4(header).udp(2, 9).finish()
    };
    let (_, counts) = play(attached, &[with_tos(5 << 1 | 1), with_tos(5 << 1), with_tos(1)]);
    assert_eq!(counts[&Steered::Missed], 1, "id 0 is no guest");
    let kinds: Vec<_> = attached.units().iter().map(|unit| (unit.kind, unit.reason)).collect();
    let vm = VmId::new(5).unwrap();
    assert_eq!(
        kinds,
        [
            (UnitKind::Fcf { vm, is_priority: false }, Some(Reason::LeastLoaded)),
            (UnitKind::Fcf { vm, is_priority: true }, Some(Reason::Priority)),
        ]
    );
}

#[test]
fn an_urgent_move_drops_then_gives_up_and_another_waits() {
    let Some(mut lab) = Lab::new("urgent") else { return };
    let options =
        Options { drain: Duration::ZERO, give_up: Duration::from_millis(100), ..options() };
    let attached = &mut lab.attach(&Options { unmatched: Unmatched::Stay, ..options });
    let unit = put(attached, &[from_port(2, 1)])[0];
    let mut events = attached.events().unwrap();
    // What was sent by hand never arrives, so the old core never finishes.
    let (actions, _) = play(attached, &[udp(2)]);
    assert_eq!(actions, [XDP_REDIRECT]);
    attached.want(unit, CoreId(0), Reason::Overload, Urgency::WhenDrained);
    let (actions, _) = play(attached, &[udp(2)]);
    assert_eq!(actions, [XDP_REDIRECT], "still to the old core");
    attached.want(unit, CoreId(0), Reason::Overload, Urgency::DropToDrain);
    let (actions, counts) = play(attached, &[udp(2)]);
    assert_eq!((actions, counts), (vec![XDP_DROP], HashMap::from([(Steered::Draining, 1)])));
    let given_up = inside(&lab.netns("near"), || {
        loop {
            let (actions, _) = play(attached, &[udp(2)]);
            if actions == [XDP_REDIRECT] {
                break events.next();
            }
        }
    });
    let event = given_up.expect("an event");
    assert_eq!((event.kind, event.unit, event.to), (EventKind::GivenUp, unit, CoreId(0)));
    assert!(event.waited >= Duration::from_millis(100));
    assert_eq!(attached.unit(unit).unwrap().wanted, Some(CoreId(1)));
}

#[test]
fn an_urgent_move_from_a_core_that_is_behind_empties_its_queue_first() {
    let Some(mut lab) = Lab::new("hush") else { return };
    let (drain, give_up) = (Duration::from_millis(50), Duration::from_millis(100));
    let options = Options { drain, give_up, unmatched: Unmatched::Stay, ..options() };
    let attached = &mut lab.attach(&options);
    let unit = put(attached, &[from_port(2, 1), from_port(3, 1)])[0];
    // What was sent by hand never arrives: the queue is as long as what was sent.
    let (actions, _) = play(attached, &vec![udp(2); 20]);
    assert_eq!(actions, [XDP_REDIRECT; 20]);
    attached.want(unit, CoreId(0), Reason::Overload, Urgency::DropToDrain);
    let (actions, counts) = play(attached, &[udp(2), udp(3)]);
    assert_eq!(actions, [XDP_DROP; 2], "without waiting, and the other unit's too");
    assert_eq!(counts, HashMap::from([(Steered::Draining, 2)]));
    let begun = std::time::Instant::now();
    while play(attached, &[udp(3)]).0 == [XDP_DROP] {
        assert!(begun.elapsed() < Duration::from_secs(5), "others are kept out for ever");
    }
    assert!(begun.elapsed() > Duration::from_millis(50), "{:?}", begun.elapsed());
}
