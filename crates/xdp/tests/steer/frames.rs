//! Frames as the programs show them to who looks.

use crate::exits::{from_port, play, put};
use crate::lab::{Lab, options, pin, udp};
use place::CoreId;
use place::steering::Unmatched;
use xdp::steer::{Attached, Frames, Options, Side, Steered};

fn steered(lab: &mut Lab) -> (Attached, Frames) {
    let mut attached = lab.attach(&Options { unmatched: Unmatched::Stay, queue: 64, ..options() });
    put(&mut attached, &[from_port(1, 0), from_port(2, 1)]);
    let frames = Frames::open(&lab.root(), "eth0").expect("it is steered");
    (attached, frames)
}

type Seen = (Side, Option<Steered>, Option<CoreId>, u32, usize);

fn taken(frames: &mut Frames) -> Vec<Seen> {
    let seen = |frames: &mut Frames| {
        frames.take(|shown| {
            let to = shown.unit.and_then(|unit| unit.core);
            (shown.side, shown.verdict, to, shown.len, shown.bytes.len())
        })
    };
    std::iter::from_fn(|| seen(frames)).collect()
}

#[test]
fn frames_are_shown_as_they_come_go_on_and_are_dropped_and_only_to_who_looks() {
    let Some(mut lab) = Lab::new("shown") else { return };
    let (attached, mut frames) = steered(&mut lab);
    play(&attached, &[udp(1), udp(9)]);
    assert_eq!(taken(&mut frames), []);
    frames.look(50);
    play(&attached, &[udp(1), udp(9)]);
    let before = (Side::Before, None, None, 60, 50);
    let after = |verdict, core: Option<u16>| (Side::After, Some(verdict), core.map(CoreId), 60, 50);
    let (stayed, missed) = (after(Steered::Stayed, Some(0)), after(Steered::Missed, None));
    assert_eq!(taken(&mut frames), [before, stayed, before, missed]);
    // What is sent to another core is shown there, where a run by hand never comes.
    frames.look(4000);
    play(&attached, &vec![udp(2); 29]);
    let seen = taken(&mut frames);
    let dropped = (Side::Dropped, Some(Steered::QueueFull), Some(CoreId(1)), 60, 60);
    assert_eq!(seen.len(), 30);
    assert_eq!(seen.last(), Some(&dropped));
    frames.look(0);
    play(&attached, &[udp(1)]);
    assert_eq!(taken(&mut frames), []);
    assert!(!frames.is_gone());
    attached.detach(lab.host()).unwrap();
    assert!(frames.is_gone());
}

#[test]
fn what_a_full_ring_loses_is_counted_and_passes_all_the_same() {
    let Some(mut lab) = Lab::new("full") else { return };
    let (attached, mut frames) = steered(&mut lab);
    let run = attached.rehearsal().expect("the kernel obliges");
    frames.look(60);
    let many = 8000;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(0);
            run.run(&udp(1), many).expect("the kernel obliges");
        });
    });
    let seen = taken(&mut frames).len() as u64;
    let lost: u64 = frames.counted().iter().map(|side| side.lost).sum();
    assert!(seen > 0 && lost > 0, "{seen} and {lost}");
    assert_eq!(seen + lost, 2 * u64::from(many));
    assert!(frames.counted()[Side::After as usize].spent_ns > 0);
    let stayed = attached.counts().expect("the kernel obliges");
    let stayed = stayed.iter().find(|(what, _)| *what == Steered::Stayed).expect("it is counted");
    assert_eq!(stayed.1.frames, u64::from(many));
}
