//! Rungs of the ladder: which one takes a batch, and that it counts it.

use crate::rig::{Rig, at, from, output, set, udp};
use datapath::{Rung, Rungs};
use flow::Action;
use wire::Field;

const FRAMES: u64 = 200;
const LEN: usize = 80;

/// Frames and bytes by rung, summed over the workers.
fn taken(rig: &Rig) -> [(u64, u64); 5] {
    rig.datapath.worker_stats().iter().fold([(0, 0); 5], |mut sum, worker| {
        for (sum, rung) in sum.iter_mut().zip(worker.rungs) {
            *sum = (sum.0 + rung.frames, sum.1 + rung.bytes);
        }
        sum
    })
}

#[test]
fn a_rung_that_is_off_hands_its_frames_to_the_next_and_each_counts_what_it_takes() {
    let mut rig = Rig::new(1);
    rig.switch(1, &[1, 2], &[from(1, vec![output(2)])]);
    // A runt reaches no rung.
    rig.line(1, 1).pass(vec![vec![0; 13]]);
    let mut rungs = Rungs::ALL;
    for rung in Rung::ALL {
        rig.datapath.set_rungs(rungs);
        rig.datapath.barrier();
        let before = taken(&rig);
        let frames: Vec<_> = (0..FRAMES).map(|n| udp(1, n as u8, LEN - 42)).collect();
        rig.line(1, 1).pass(frames.clone());
        assert_eq!(rig.line(1, 2).take_bytes(), frames, "{rung}");
        let mut wanted = before;
        wanted[rung as usize].0 += FRAMES;
        wanted[rung as usize].1 += FRAMES * LEN as u64;
        assert_eq!(taken(&rig), wanted, "{rung}");
        rungs = rungs.without(rung);
    }
    assert_eq!(rungs, Rungs::PASS);
    let all: u64 = taken(&rig).iter().map(|rung| rung.0).sum();
    assert_eq!(all, 5 * FRAMES, "each frame counts at one rung");
}

#[test]
fn a_batch_over_a_vlink_counts_once_at_the_lowest_rung_on_its_way() {
    let (by_port, edited) = (vec![], vec![set(Field::EthSrc, 5)]);
    let by_type = vec![(Field::EthType, 0x0800)];
    for (first, second, rung) in [
        ((by_port.clone(), vec![]), (by_type.clone(), vec![]), Rung::Pattern),
        ((by_type.clone(), vec![]), (by_port.clone(), vec![]), Rung::Pattern),
        ((by_type.clone(), vec![]), (by_port.clone(), edited.clone()), Rung::Uniform),
        ((by_port.clone(), edited), (by_port, vec![]), Rung::Uniform),
    ] {
        let mut rig = Rig::new(1);
        let to = |mut edits: Vec<Action>, port| {
            edits.push(output(port));
            edits
        };
        rig.switch(1, &[1], &[(1, first.0, to(first.1, 2))]);
        rig.switch(2, &[3], &[(1, second.0, to(second.1, 3))]);
        rig.vlink(at(1, 2), at(2, 1));
        rig.line(1, 1).pass((0..64).map(|n| udp(1, n, LEN - 42)));
        assert_eq!(rig.line(2, 3).take().len(), 64);
        let mut wanted = [(0, 0); 5];
        wanted[rung as usize] = (64, 64 * LEN as u64);
        assert_eq!(taken(&rig), wanted, "{rung}");
    }
}
