//! Frames from switch to switch in one pass.

use crate::rig::{Rig, at, from, output, set, udp};
use crate::time::Manual;
use datapath::{Config, Rung};
use flow::{Action, Output};
use wire::{DropReason, Field};

/// Switches 1..=n in a row, joined by ports 1 (left) and 2 (right); port 10 of each is a line.
fn row(rig: &mut Rig, switches: u32, actions: impl Fn(u32) -> Vec<Action>) {
    for switch in 1..=switches {
        rig.switch(switch, &[10], &[(1, vec![], actions(switch))]);
    }
    for switch in 1..switches {
        rig.vlink(at(switch, 2), at(switch + 1, 1));
    }
}

/// Waits until so many frames went on from a pass to the next.
fn went_on(rig: &Rig, frames: u64) {
    let begin = std::time::Instant::now();
    while rig.datapath.worker_stats()[0].went_on < frames {
        let so_far = rig.datapath.worker_stats()[0].went_on;
        assert!(begin.elapsed().as_secs() < 20, "{so_far} of {frames} went on");
        std::thread::yield_now();
    }
}

#[test]
fn a_frame_crosses_sixteen_vlinks_in_a_pass_and_goes_on_in_the_next() {
    // The first pass crosses 16 vlinks; each further one begins behind the seventeenth and crosses 16 more.
    for (switches, passes) in [(17, 0), (18, 1), (34, 1), (35, 2), (300, 17)] {
        let mut rig = Rig::new(1);
        row(&mut rig, switches, |switch| vec![output(if switch == switches { 10 } else { 2 })]);
        let frames: Vec<_> = (0..50).map(|i| udp(i, i as u8, 600)).collect();
        rig.line(1, 10).pass(frames.clone());
        went_on(&rig, passes * 50);
        assert!(rig.line(switches, 10).take_bytes() == frames, "{switches} switches");
        for end in [2, switches] {
            assert_eq!((rig.traffic(end - 1, 2), rig.traffic(end, 1)), ((0, 50), (50, 0)));
        }
        let stats = &rig.datapath.worker_stats()[0];
        assert_eq!(stats.went_on, passes * 50);
        let rung = if passes == 0 { Rung::Port } else { Rung::Pass };
        assert_eq!(stats.rungs[rung as usize].frames, 50, "as batches");
    }
}

#[test]
fn a_frame_in_a_ring_of_switches_ends_and_frames_of_others_pass_meanwhile() {
    let mut rig = Rig::new(1);
    row(&mut rig, 3, |_| vec![output(2)]);
    rig.vlink(at(3, 2), at(1, 1));
    rig.switch(9, &[10, 11], &[(1, vec![], vec![output(11)])]);
    rig.line(1, 10).pass((0..32).map(|i| udp(i, 0, 0)));
    let frames: Vec<_> = (0..100).map(|i| udp(i, 0, 0)).collect();
    rig.line(9, 10).pass(frames.clone());
    assert!(rig.line(9, 11).take_bytes() == frames);
    went_on(&rig, 32 * 64);
    let dropped: u64 = (1..=3).map(|switch| rig.drops(switch, DropReason::VlinkLoop)).sum();
    assert_eq!(dropped, 32, "each after 65 passes of 16 vlinks");
}

#[test]
fn a_flooded_row_reaches_every_switch_with_its_own_edits() {
    let mut rig = Rig::new(1);
    row(&mut rig, 12, |switch| {
        vec![
            set(Field::EthSrc, switch.into()),
            output(10),
            set(Field::EthDst, switch.into()),
            output(2),
        ]
    });
    let frames: Vec<_> = (0..64).map(|i| udp(i, i as u8, 300)).collect();
    rig.line(1, 10).pass(frames.clone());
    for switch in 2..=12u8 {
        let expected = frames
            .iter()
            .map(|f| [&[0, 0, 0, 0, 0, switch - 1, 0, 0, 0, 0, 0, switch], &f[12..]].concat());
        assert_eq!(
            rig.line(switch.into(), 10).take_bytes(),
            expected.collect::<Vec<_>>(),
            "switch {switch}"
        );
    }
}

#[test]
fn in_port_is_the_far_end_and_metadata_stays_behind() {
    let mut rig = Rig::new(1);
    rig.switch(1, &[10], &[from(10, vec![set(Field::TunnelId, 77), output(2)])]);
    rig.switch(
        2,
        &[10, 11],
        &[
            (20, vec![(Field::InPort, 1), (Field::TunnelId, 0)], vec![output(10)]),
            (10, vec![], vec![output(11)]),
        ],
    );
    rig.vlink(at(1, 2), at(2, 1));
    rig.line(1, 10).pass([udp(0, 0, 0)]);
    assert_eq!((rig.line(2, 10).take().len(), rig.line(2, 11).take().len()), (1, 0));
}

/// Two flooding switches that four vlinks join, and how many frames crossed those.
fn flooding_loop() -> (Rig, impl Fn(&Rig) -> u64) {
    let mut rig = Rig::new(1);
    for switch in [1, 2] {
        rig.switch(switch, &[10], &[(1, vec![], vec![Action::Output(Output::Flood)])]);
    }
    for port in 1..=4 {
        rig.vlink(at(1, port), at(2, port));
    }
    let ends = || [1, 2].into_iter().flat_map(|switch| (1..=4).map(move |port| (switch, port)));
    (rig, move |rig| ends().map(|(switch, port)| rig.traffic(switch, port).0).sum())
}

#[test]
fn a_loop_of_flooding_switches_ends() {
    let (rig, crossed) = flooding_loop();
    rig.line(1, 10).pass((0..8).map(|i| udp(i, 0, 0)));
    let dropped = |reason| rig.drops(1, reason) + rig.drops(2, reason);
    assert!(dropped(DropReason::TooManyCopies) > 0, "each frame may cause 512 deliveries");
    assert_eq!(crossed(&rig), 8 * 512);
}

#[test]
fn a_storm_in_a_loop_has_what_its_frames_earn_and_no_more() {
    let (rig, crossed) = flooding_loop();
    for _ in 0..100 {
        rig.line(1, 10).pass((0..32).map(|i| udp(i, 0, 0)));
    }
    // Four of each frame leave its own switch; three more copies make four that go on.
    let (frames, saved) = (3200, 16_384);
    let most = 4 * frames + (saved + 64 * frames) * 4 / 3;
    let crossed = crossed(&rig);
    assert!((most / 4..=most).contains(&crossed), "{crossed} of {most}");
    assert!(crossed < frames * 512 / 4, "without that bound it would be four times as many");
}

#[test]
fn copies_of_a_frame_in_switches_behind_each_other_do_not_multiply() {
    let mut rig = Rig::new(1);
    rig.switch(1, &[10], &[from(10, vec![output(2); 512])]);
    rig.switch(2, &[10], &[(1, vec![], vec![output(10); 512])]);
    rig.vlink(at(1, 2), at(2, 1));
    rig.line(1, 10).pass([udp(0, 0, 0)]);
    assert_eq!(rig.traffic(2, 10).1, 4096);
    // The batch in which the bound was met was taken through the switch, and what came behind it was not.
    assert_eq!(rig.drops(2, DropReason::TooManyCopies), 64 * 512 - 4096 + (512 - 64));
}

#[test]
fn copies_over_vlinks_are_paid_by_the_switch_where_their_frame_came_in() {
    let mut rig = Rig::with_clock(Config::default(), Manual::default());
    rig.switch(1, &[10, 11], &[from(10, vec![output(2); 512]), from(11, vec![output(2)])]);
    rig.switch(2, &[10], &[(1, vec![], vec![output(10); 8])]);
    rig.vlink(at(1, 2), at(2, 1));
    (0..100).for_each(|_| rig.line(1, 10).pass((0..32).map(|i| udp(i, 0, 0))));
    let frames = 3200;
    let (crossed, left) = (rig.traffic(1, 2).1, rig.traffic(2, 10).1);
    // Each frame earns 64 copies, over the vlink and behind it.
    assert!(crossed < frames * (64 + 2) + 16_384, "{crossed}");
    assert!(left < crossed + frames * 64 + 2 * 16_384, "{left}");
    assert!(crossed >= frames, "the frame itself always crosses: {crossed}, {left}");
    rig.line(1, 11).pass([udp(0, 0, 0)]);
    assert_eq!(rig.traffic(1, 2).1, crossed + 1, "and so does one that is not multiplied");
}

#[test]
fn copies_of_a_switch_of_its_own_are_bounded_on_average() {
    let clock = Manual::default();
    let mut rig = Rig::with_clock(Config::default(), clock.clone());
    rig.switch(1, &[10, 11], &[from(10, vec![output(11); 512])]);
    let pass = |rig: &Rig, times| {
        (0..times).for_each(|_| rig.line(1, 10).pass((0..32).map(|i| udp(i, 0, 0))));
    };
    pass(&rig, 1);
    assert_eq!(rig.traffic(1, 11).1, 32 * 512, "a burst passes whole");
    pass(&rig, 99);
    // 64 each, and two for each of two ports.
    let (free, sent) = (3200 * 68, rig.traffic(1, 11).1);
    assert!(sent > free && sent <= free + 16_384, "{sent}");
    clock.pass(1_000_000_000);
    pass(&rig, 1);
    assert_eq!(rig.traffic(1, 11).1, sent + 32 * 512, "and so it does when time has passed");
}

#[test]
fn a_flood_through_a_hub_of_vlinks_reaches_every_leaf() {
    let (leaves, frames) = (200, 64);
    let mut rig = Rig::new(1);
    rig.switch(1000, &[1], &[(1, vec![], vec![Action::Output(Output::Flood)])]);
    for leaf in 1..=leaves {
        rig.switch(leaf, &[10], &[from(1, vec![set(Field::EthDst, leaf.into()), output(10)])]);
        rig.vlink(at(1000, 1 + leaf), at(leaf, 1));
    }
    let sent: Vec<_> = (0..frames).map(|i| udp(i, i as u8, 500)).collect();
    rig.line(1000, 1).pass(sent.clone());
    for leaf in 1..=leaves {
        let expected = sent.iter().map(|f| [&[0, 0, 0, 0, 0, leaf as u8], &f[6..]].concat());
        assert_eq!(rig.line(leaf, 10).take_bytes(), expected.collect::<Vec<_>>(), "leaf {leaf}");
    }
}

#[test]
fn both_ends_go_together() {
    let mut rig = Rig::new(1);
    row(&mut rig, 2, |switch| vec![output(if switch == 2 { 10 } else { 2 })]);
    assert!(rig.datapath.detach(at(2, 1)));
    assert!(!rig.datapath.detach(at(1, 2)));
    rig.line(1, 10).pass([udp(0, 0, 0)]);
    assert_eq!((rig.line(2, 10).take().len(), rig.drops(1, DropReason::NoPort)), (0, 1));
}

#[test]
fn a_vlink_that_is_shut_at_one_end_lets_nothing_through() {
    let mut rig = Rig::new(1);
    row(&mut rig, 2, |switch| vec![output(if switch == 2 { 10 } else { 2 })]);
    rig.datapath.set_up(at(2, 1), false);
    rig.line(1, 10).pass([udp(0, 0, 0)]);
    assert_eq!((rig.line(2, 10).take().len(), rig.drops(1, DropReason::PortDown)), (0, 1));
}
