//! What a capture sees, and that it changes nothing.

use crate::rig::{Rig, at, controller, from, output, set, udp};
use capture::IdKey;
use datapath::{
    Capture, CaptureError, Captured, Every, Filter, Point, PortAt, Rung, Share, Sides, Wanted,
    What, Whither,
};
use flow::Nanos;
use std::num::NonZeroU32;
use wire::{DropReason, Field, Key};

const SNAP: usize = 1 << 16;
const RING: usize = 1 << 20;

/// A frame that was seen: by which point, what became of it, and its bytes.
pub type Row = (usize, What, Vec<u8>);

pub fn capture(
    rig: &Rig,
    points: &[Point],
    snap: usize,
    ring: usize,
) -> Result<Capture, CaptureError> {
    let filter = Filter::default();
    rig.datapath.capture(&Wanted { points, filter, snap, ring, share: Share::default() })
}

pub fn rows(capture: &mut Capture) -> Vec<Row> {
    let mut rows = Vec::new();
    let row = |seen: Captured<'_>| rows.push((seen.point, seen.what, seen.bytes.to_vec()));
    capture.take(Nanos(u64::MAX), usize::MAX, row);
    rows
}

pub fn of_point(rows: &[Row], wanted: usize, what: What) -> Vec<Vec<u8>> {
    let rows = rows.iter().filter(|row| (row.0, row.1) == (wanted, what));
    rows.map(|row| row.2.clone()).collect()
}

fn both(port: PortAt) -> Point {
    Point::Port(port, Sides::BOTH)
}

fn frames(count: u16, len: usize) -> Vec<Vec<u8>> {
    (0..count).map(|n| udp(n, n as u8, len - 42)).collect()
}

#[test]
fn a_port_shows_what_came_as_it_came_and_what_left_as_it_left_on_every_rung() {
    let (vlan, output) = (set(Field::EthDst, 0x0a0b), output(2));
    let by_flow =
        |port: u128| (20, vec![(Field::EthType, 0x800), (Field::TpSrc, port)], vec![output]);
    let cases = [
        (vec![from(1, vec![output])], Rung::Port),
        (vec![from(1, vec![vlan, output])], Rung::Uniform),
        ((0..100).map(|flow| by_flow(1000 + flow)).collect(), Rung::Uniform),
    ];
    for (rules, rung) in cases {
        for len in [100, 1400] {
            let mut rig = Rig::new(1);
            rig.switch(1, &[1, 2], &rules);
            let points = [both(at(1, 1)), Point::Port(at(1, 2), Sides::TX)];
            let mut capture = capture(&rig, &points, SNAP, RING).unwrap();
            let frames = frames(100, len);
            rig.line(1, 1).pass(frames.clone());
            let left = rig.line(1, 2).take_bytes();
            let rows = rows(&mut capture);
            assert!(of_point(&rows, 0, What::Received) == frames, "{rung}, {len}");
            assert!(of_point(&rows, 1, What::Sent) == left, "{rung}, {len}");
            assert_eq!(rows.len(), 200);
            assert!(rig.datapath.worker_stats()[0].rungs[rung as usize].frames > 0, "{rung}");
        }
    }
}

#[test]
fn both_ends_of_a_vlink_show_each_frame_once() {
    let edited = [set(Field::EthDst, 0x0a0b), output(2)];
    let to_each = [output(2), set(Field::EthSrc, 0x0c0d), output(3)];
    for actions in [vec![output(2)], edited.to_vec(), to_each.to_vec()] {
        let mut rig = Rig::new(1);
        rig.switch(1, &[1, 3], &[from(1, actions)]);
        rig.switch(2, &[1], &[from(2, vec![set(Field::EthSrc, 5), output(1)])]);
        rig.vlink(at(1, 2), at(2, 2));
        let points = [both(at(1, 2)), both(at(2, 2)), both(at(2, 1))];
        let mut capture = capture(&rig, &points, SNAP, RING).unwrap();
        rig.line(1, 1).pass(frames(70, 600));
        let left = rig.line(2, 1).take_bytes();
        let rows = rows(&mut capture);
        let crossing = of_point(&rows, 0, What::Sent);
        assert!(crossing == of_point(&rows, 1, What::Received) && crossing.len() == 70);
        assert!(of_point(&rows, 2, What::Sent) == left && left.len() == 70);
        assert_eq!(rows.len(), 210);
        let out_of_the_row = |bytes: &Vec<u8>| bytes[6..12] != [0, 0, 0, 0, 0, 5];
        assert!(crossing.iter().all(out_of_the_row), "behind the vlink they are edited");
    }
}

#[test]
fn drops_show_each_lost_frame_with_its_reason_in_one_switch_or_all() {
    let mut rig = Rig::new(1);
    rig.switch(1, &[1], &[from(1, vec![])]);
    rig.switch(2, &[1], &[]);
    let points = [Point::Drops(None)];
    let mut all = capture(&rig, &points, SNAP, RING).unwrap();
    let mut one = capture(&rig, &[Point::Drops(Some(at(2, 1).switch))], SNAP, RING).unwrap();
    let frames = frames(40, 500);
    rig.line(1, 1).pass(frames.clone());
    rig.line(2, 1).pass(frames.clone());
    let rows_of_all = rows(&mut all);
    assert!(of_point(&rows_of_all, 0, What::Lost(DropReason::ByRule)) == frames);
    assert!(of_point(&rows_of_all, 0, What::Lost(DropReason::NoMatch)) == frames);
    let rows_of_one = rows(&mut one);
    assert!(of_point(&rows_of_one, 0, What::Lost(DropReason::NoMatch)) == frames);
    assert_eq!((rows_of_all.len(), rows_of_one.len()), (80, 40));
}

#[test]
fn what_finds_no_room_is_counted_and_the_frames_pass_all_the_same() {
    let mut rig = Rig::new(1);
    rig.switch(1, &[1, 2], &[from(1, vec![output(2)])]);
    let points = [both(at(1, 1)), both(at(1, 2))];
    let mut capture = capture(&rig, &points, 100, 4096).unwrap();
    let (mut taken, mut told) = ([0; 2], [0; 2]);
    let mut passed = 0;
    for round in 0..20 {
        rig.line(1, 1).pass(frames(50, 600));
        passed += rig.line(1, 2).take_bytes().len();
        if round % 3 == 0 {
            capture.take(Nanos(u64::MAX), usize::MAX, |seen| {
                taken[seen.point] += 1;
                told[seen.point] += u64::from(seen.lost_before);
                assert_eq!((seen.bytes.len(), seen.len), (100, 600));
            });
        }
    }
    rig.datapath.end_capture(&capture);
    capture.take(Nanos(u64::MAX), usize::MAX, |seen| {
        taken[seen.point] += 1;
        told[seen.point] += u64::from(seen.lost_before);
    });
    assert_eq!(passed, 1000);
    for point in [0, 1] {
        let counted = capture.counted(point);
        assert_eq!(counted.matched, 1000);
        assert_eq!(counted.matched, taken[point] + counted.lost, "point {point}");
        assert!(counted.lost > 0 && told[point] <= counted.lost, "point {point}");
    }
}

#[test]
fn a_capture_that_ended_sees_no_more_and_makes_room_for_another() {
    let mut rig = Rig::new(1);
    rig.switch(1, &[1, 2], &[from(1, vec![output(2)])]);
    let point = [both(at(1, 1))];
    let captures: Vec<_> = (0..8).map(|_| capture(&rig, &point, SNAP, 4096).unwrap()).collect();
    assert!(capture(&rig, &point, SNAP, 4096).is_err());
    captures.iter().for_each(|capture| rig.datapath.end_capture(capture));
    rig.line(1, 1).pass(frames(10, 100));
    assert!(captures.iter().all(|capture| capture.counted(0).matched == 0));
    let mut again = capture(&rig, &point, SNAP, 1 << 16).unwrap();
    rig.line(1, 1).pass(frames(10, 100));
    assert_eq!(rows(&mut again).len(), 10);
}

#[test]
fn a_port_that_comes_back_is_seen_again() {
    let mut rig = Rig::new(1);
    rig.switch(1, &[1], &[from(1, vec![output(2)]), from(2, vec![output(1)])]);
    let point = [Point::Port(at(1, 2), Sides::RX)];
    let mut capture = capture(&rig, &point, SNAP, RING).unwrap();
    let line = crate::line::Line::new();
    rig.datapath.attach(at(1, 2), line.queues(1)).unwrap();
    rig.ports(1, &[2]);
    line.pass(frames(3, 100));
    assert_eq!(of_point(&rows(&mut capture), 0, What::Received).len(), 3);
}

#[test]
fn a_filter_takes_what_a_rule_of_its_match_would_and_counts_nothing_else() {
    let mut rig = Rig::new(1);
    rig.switch(
        1,
        &[1, 2],
        &[
            (20, vec![(Field::EthType, 0x800), (Field::TpSrc, 1003)], vec![]),
            from(1, vec![output(2)]),
        ],
    );
    let (mut key, mut mask) = (Key::default(), Key::default());
    for (field, value) in [(Field::EthType, 0x800), (Field::IpProto, 17), (Field::TpSrc, 1003)] {
        key.set(field, value);
        mask.set(field, field.full());
    }
    let points = [both(at(1, 1)), Point::Drops(None), both(at(1, 2))];
    let filter = Filter::of(&key, &mask);
    let wanted =
        Wanted { points: &points, filter, snap: SNAP, ring: RING, share: Share::default() };
    let mut capture = rig.datapath.capture(&wanted).unwrap();
    let frames = frames(64, 400);
    rig.line(1, 1).pass(frames.clone());
    let rows = rows(&mut capture);
    let wanted = vec![
        (0, What::Received, frames[3].clone()),
        (1, What::Lost(DropReason::ByRule), frames[3].clone()),
    ];
    assert_eq!(rows, wanted);
    assert_eq!([0, 1, 2].map(|point| capture.counted(point).matched), [1, 1, 0]);
}

#[test]
fn a_frame_that_comes_in_says_what_rules_do_with_it_and_which_rung_takes_it() {
    let drop = |port: u128| (20, vec![(Field::EthType, 0x800), (Field::TpSrc, port)], vec![]);
    for (rules, rung) in [
        (vec![from(1, vec![output(2)])], Rung::Port),
        (vec![drop(1003), from(1, vec![output(2)])], Rung::Pass),
        (vec![drop(1003), drop(1004)], Rung::Pass),
    ] {
        let has_way_out = rules.len() != 2 || rules[1].0 != 20;
        let mut rig = Rig::new(1);
        rig.switch(1, &[1, 2], &rules);
        let points = [Point::Port(at(1, 1), Sides::RX), Point::Drops(None)];
        let mut capture = capture(&rig, &points, SNAP, RING).unwrap();
        rig.line(1, 1).pass(frames(32, 400));
        let (mut verdicts, mut lost) = (Vec::new(), Vec::new());
        capture.take(Nanos(u64::MAX), usize::MAX, |seen| match seen.what {
            What::Received => {
                verdicts.push((seen.bytes.to_vec(), seen.verdict.unwrap(), seen.rung))
            }
            What::Lost(reason) => lost.push((seen.bytes.to_vec(), reason)),
            _ => unreachable!("nothing else is asked for"),
        });
        assert_eq!(verdicts.len(), 32);
        for (bytes, verdict, taken) in &verdicts {
            let reason = lost.iter().find(|(lost, _)| lost == bytes).map(|(_, reason)| *reason);
            let to = reason.map_or(Whither::Port(2), Whither::Nowhere);
            let is_hit = reason != Some(DropReason::NoMatch);
            assert_eq!((verdict.table, verdict.to, verdict.cookie.is_some()), (0, to, is_hit));
            assert_eq!(*taken, Some(rung));
        }
        assert_eq!(lost.iter().any(|(_, reason)| *reason == DropReason::NoMatch), !has_way_out);
    }
}

#[test]
fn what_goes_on_in_a_later_pass_is_seen_at_both_ends_of_the_vlink() {
    let mut rig = Rig::new(1);
    for switch in 1..=18 {
        let to = if switch == 18 { 10 } else { 2 };
        rig.switch(switch, &[10], &[(1, vec![], vec![output(to)])]);
    }
    for switch in 1..18 {
        rig.vlink(at(switch, 2), at(switch + 1, 1));
    }
    let points: Vec<_> =
        (1..18).flat_map(|switch| [both(at(switch, 2)), both(at(switch + 1, 1))]).collect();
    let mut capture = capture(&rig, &points, SNAP, RING).unwrap();
    let frames = frames(20, 600);
    rig.line(1, 10).pass(frames.clone());
    rig.quiet();
    let rows = rows(&mut capture);
    for vlink in 0..17 {
        assert!(of_point(&rows, 2 * vlink, What::Sent) == frames, "vlink {vlink}");
        assert!(of_point(&rows, 2 * vlink + 1, What::Received) == frames, "vlink {vlink}");
    }
}

#[test]
fn what_switch_and_controller_send_each_other_is_seen_as_it_is_then() {
    let mut rig = Rig::new(1);
    let actions = vec![set(Field::EthDst, 1), controller(100), set(Field::EthDst, 2), output(2)];
    rig.switch(1, &[1, 2], &[from(1, actions)]);
    let points = [Point::Controller(at(1, 1).switch)];
    let mut capture = capture(&rig, &points, SNAP, RING).unwrap();
    let frame = udp(0, 9, 700);
    rig.line(1, 1).pass([frame.clone()]);
    let mut seen = Vec::new();
    capture.take(Nanos(u64::MAX), usize::MAX, |record| {
        let verdict = record.verdict.unwrap();
        seen.push((record.what, record.port, verdict.to, verdict.table, record.bytes.to_vec()));
    });
    let readdressed = [&[0, 0, 0, 0, 0, 1], &frame[6..]].concat();
    assert_eq!(seen, [(What::Sent, at(1, 1), Whither::Controller, 0, readdressed)]);
}

#[test]
fn one_passed_frame_in_32_is_remembered_with_what_rules_did_until_they_change() {
    let mut rig = Rig::new(1);
    let (there, lost) = (from(1, vec![output(2)]), from(2, vec![]));
    rig.switch(1, &[1, 2, 3], &[there, lost]);
    rig.line(1, 1).pass(frames(64, 400));
    rig.line(1, 2).pass(frames(64, 400));
    let remembered = |rig: &Rig, points: &[Point]| {
        let filter = Filter::default();
        let wanted = Wanted { points, filter, snap: SNAP, ring: RING, share: Share::default() };
        let mut seen = Vec::new();
        rig.datapath.flight(&wanted, Nanos(0), |one| {
            seen.push((one.what, one.port, one.verdict.map(|verdict| verdict.to), one.rung));
        });
        seen
    };
    let (passed, all) = (Point::Passed(None), [Point::Drops(None), Point::Passed(None)]);
    let kept = remembered(&rig, &[passed]);
    let noted = |port, to| (What::Received, at(1, port), Some(to));
    let ways: Vec<_> = kept.iter().map(|&(what, port, to, _)| (what, port, to)).collect();
    let (one, other) = (noted(1, Whither::Port(2)), noted(2, Whither::Nowhere(DropReason::ByRule)));
    assert_eq!(ways, [one, one, other, other].map(|(what, port, to)| (what, port, to)));
    assert!(kept.iter().all(|(.., rung)| rung.is_some()));
    assert_eq!(remembered(&rig, &all).len(), 4 + 64, "and every loss");
    assert_eq!(remembered(&rig, &[both(at(1, 1))]).len(), 2, "those of a port");
    assert_eq!(remembered(&rig, &[Point::Passed(Some(at(2, 1).switch))]).len(), 0);
    rig.rules(1, &[from(3, vec![output(1)])]);
    let kept = remembered(&rig, &[passed]);
    assert!(kept.iter().all(|(_, _, to, _)| to.is_none()), "nobody knows what the table was");
}

#[test]
fn the_sample_of_passed_frames_can_be_captured_as_it_comes() {
    let mut rig = Rig::new(1);
    rig.switch(1, &[1, 2], &[from(1, vec![output(2)])]);
    let mut capture = capture(&rig, &[Point::Passed(None)], SNAP, RING).unwrap();
    rig.line(1, 1).pass(frames(96, 100));
    let rows = rows(&mut capture);
    let wanted: Vec<_> = frames(96, 100).into_iter().step_by(32).collect();
    assert!(of_point(&rows, 0, What::Received) == wanted);
}

#[test]
fn who_has_spent_the_budget_loses_records_and_counts_each_and_no_frame_is_lost() {
    let mut rig = Rig::new(1);
    rig.switch(1, &[1, 2], &[from(1, vec![output(2)])]);
    let points = [Point::Port(at(1, 1), Sides::RX)];
    let share = Share { budget: Some(0), ..Share::default() };
    let filter = Filter::default();
    let wanted = Wanted { points: &points, filter, snap: SNAP, ring: RING, share };
    let mut capture = rig.datapath.capture(&wanted).unwrap();
    rig.line(1, 1).pass(frames(200, 100));
    assert_eq!(rig.line(1, 2).take_bytes().len(), 200);
    let counted = capture.counted(0);
    assert_eq!(rows(&mut capture).len(), 0);
    assert_eq!((counted.matched, counted.lost), (counted.over_budget, 0));
    assert_eq!(counted.matched + counted.not_looked, 200);
}

#[test]
fn each_point_chooses_the_same_packets_and_shows_the_first_of_each_flow() {
    let mut rig = Rig::new(1);
    let rewrites = vec![set(Field::EthDst, 0x0a0b), output(2)];
    rig.switch(1, &[1, 2], &[from(1, rewrites)]);
    let points = [Point::Port(at(1, 1), Sides::RX), Point::Port(at(1, 2), Sides::TX)];
    let shown = |share: Share| {
        let filter = Filter::default();
        let wanted = Wanted { points: &points, filter, snap: SNAP, ring: RING, share };
        let mut capture = rig.datapath.capture(&wanted).unwrap();
        rig.line(1, 1).pass(frames(200, 400));
        rig.line(1, 1).pass(frames(200, 400));
        let rows = rows(&mut capture);
        rig.datapath.end_capture(&capture);
        let payloads = |point, what| {
            let all = of_point(&rows, point, what).into_iter();
            all.map(|bytes| bytes[42..].to_vec()).collect::<Vec<_>>()
        };
        (payloads(0, What::Received), payloads(1, What::Sent))
    };
    let packets = NonZeroU32::new(5).unwrap();
    let every = Some(Every { packets, key: IdKey([3, 4]) });
    let (came, left) = shown(Share { every, ..Share::default() });
    assert!(came == left && (30..150).contains(&came.len()), "{}", came.len());
    let (came, left) = shown(Share { first: NonZeroU32::new(1), ..Share::default() });
    // Some of 400 flows may share a place.
    for shown in [came, left] {
        assert!((180..=200).contains(&shown.len()), "{}", shown.len());
    }
}
