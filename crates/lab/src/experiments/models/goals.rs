//! What is promised of a model, from the counts alone.

use super::super::findings::{ByCore, Goal, REORDERED};
use super::super::trial::{Lab, key};
use super::contender::Contender;
use super::{COUNTED, WATCHED, stage_key};
use place::Stage;

/// Of all models, for datagrams of one size: every stage of the watched flow on its core, datagrams in order, and a guest that has a core for itself alone there.
pub fn goals(lab: &Lab<'_>, contenders: &[Contender], size: usize) -> Vec<Goal> {
    let placed = contenders.iter().filter(|contender| contender.stages.is_some());
    placed.filter_map(|contender| goals_of(lab, contender, size)).flatten().collect()
}

fn goals_of(lab: &Lab<'_>, contender: &Contender, size: usize) -> Option<Vec<Goal>> {
    let Contender { case, steering, .. } = *contender;
    let frames = key(case, steering, "frames", None, size);
    let line = |(_, name)| lab.sheet.counts(&stage_key(&frames, name).case, steering.name(), size);
    let lines = COUNTED.iter().map(|&stage| line(stage)).collect::<Option<Vec<_>>>()?;
    let by_stage = || COUNTED.iter().map(|&(stage, _)| stage).zip(lines.iter().copied());
    let there = by_stage().map(|(stage, line)| percent_there(line, contender.core(stage)));
    let late = lab.sheet.largest(&key(case, steering, REORDERED, None, size))?;
    let claim = |text: &str| format!("{size} B, {case}: {text}");
    let mut goals = vec![
        Goal::at_least(
            claim("frames of the watched flow on the stage's core, %, worst stage"),
            there.fold(100.0, f64::min),
            100.0,
        ),
        Goal::at_most(claim("datagrams out of order, worst round"), late, 0.0),
    ];
    if let Some(core) = contender.guests_own() {
        let others: u64 = by_stage().map(|(stage, line)| foreign(stage, line, core)).sum();
        let text = "frames that other stages, or another guest, processed on the guest's core";
        goals.push(Goal::at_most(claim(text), others as f64, 0.0));
    }
    Some(goals.into_iter().map(Goal::counted).collect())
}

/// Percent of the watched flow's frames that one core processed; 0 if there were no frames, or there is no such core.
fn percent_there(line: &ByCore, core: Option<usize>) -> f64 {
    let frames = line.frames_of_vm.get(&WATCHED).map_or(&[][..], Vec::as_slice);
    let there = core.and_then(|core| frames.get(core)).copied().unwrap_or(0);
    there as f64 * 100.0 / frames.iter().sum::<u64>().max(1) as f64
}

/// Frames on a core that are not the watched guest's.
fn foreign(stage: Stage, line: &ByCore, core: usize) -> u64 {
    let own = line.frames_of_vm.get(&WATCHED).map_or(0, |frames| frames[core]);
    line.frames[core] - if stage == Stage::Guest { own } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::super::NEIGHBOUR;
    use super::*;

    fn line(watched: &[u64], neighbour: &[u64]) -> ByCore {
        let frames = watched.iter().zip(neighbour).map(|(one, other)| one + other).collect();
        ByCore {
            case: String::new(),
            steering: String::new(),
            size: 64,
            frames,
            frames_of_vm: [(WATCHED, watched.to_vec()), (NEIGHBOUR, neighbour.to_vec())].into(),
            paper: None,
        }
    }

    #[test]
    fn a_single_frame_elsewhere_shows_and_no_frames_at_all_are_no_success() {
        assert_eq!(percent_there(&line(&[0, 9], &[7, 0]), Some(1)), 100.0);
        assert!(percent_there(&line(&[1, 999], &[0, 0]), Some(1)) < 100.0);
        assert_eq!(percent_there(&line(&[0, 0], &[5, 5]), Some(1)), 0.0);
        assert_eq!(percent_there(&line(&[0, 9], &[0, 0]), None), 0.0);
    }

    #[test]
    fn on_the_guests_core_only_its_own_guest_stage_is_at_home() {
        let line = line(&[4, 0], &[3, 0]);
        assert_eq!(foreign(Stage::Guest, &line, 0), 3);
        assert_eq!(foreign(Stage::Vhost, &line, 0), 7);
        assert_eq!(foreign(Stage::Guest, &line, 1), 0);
    }
}
