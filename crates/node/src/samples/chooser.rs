//! Which of a worker's notes go out, and how many frames each of them stands for.

/// A worker's. It knows how many frames came, and how many of these are not represented yet.
#[derive(Debug)]
pub struct Chooser {
    /// Frames that one sample shall stand for.
    every: u64,
    /// Frames that the worker had counted at the last look.
    counted: Option<u64>,
    /// Frames that no sample stands for yet.
    waiting: u64,
}

/// A note that goes out: which of those of this look, and how many frames it stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chosen {
    pub note: usize,
    pub weight: u32,
}

impl Chooser {
    pub fn new(every: u32) -> Self {
        Self { every: every.into(), counted: None, waiting: 0 }
    }

    /// Chooses among so many notes when the worker has counted so many frames: evenly, and so that all weights together are the frames that came. A first
    /// look chooses none, for what came before it is nobody's.
    pub fn choose(&mut self, frames: u64, notes: usize) -> Vec<Chosen> {
        let before = self.counted.replace(frames).unwrap_or(frames);
        // A worker that begins anew counts from 0.
        self.waiting += frames.checked_sub(before).unwrap_or(frames);
        let most = u64::from(u32::MAX);
        let count = (self.waiting / self.every).min(notes as u64);
        let Some(each) = self.waiting.checked_div(count) else { return Vec::new() };
        let more = self.waiting % count;
        self.waiting = 0;
        let chosen = |number: u64| Chosen {
            note: (number * notes as u64 / count) as usize,
            weight: (each + u64::from(number < more)).min(most) as u32,
        };
        (0..count).map(chosen).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_note_goes_out_for_so_many_frames() {
        let mut chooser = Chooser::new(100);
        assert_eq!(chooser.choose(1_000_000, 5), [], "what was before is nobody's");
        assert_eq!(chooser.choose(1_000_099, 3), []);
        assert_eq!(chooser.choose(1_000_100, 0), [], "there is none");
        assert_eq!(chooser.choose(1_000_105, 3), [Chosen { note: 0, weight: 105 }]);
        let four = chooser.choose(1_000_506, 8);
        assert_eq!(four.iter().map(|chosen| chosen.note).collect::<Vec<_>>(), [0, 2, 4, 6]);
        assert_eq!(
            four.iter().map(|chosen| chosen.weight).collect::<Vec<_>>(),
            [101, 100, 100, 100]
        );
    }

    #[test]
    fn where_few_are_noted_each_stands_for_more() {
        let mut chooser = Chooser::new(32);
        chooser.choose(0, 0);
        let weights: Vec<_> =
            chooser.choose(14_000_000, 2).iter().map(|chosen| chosen.weight).collect();
        assert_eq!(weights, [7_000_000; 2]);
    }

    proptest! {
        #[test]
        fn all_weights_are_all_frames_but_those_that_wait(
            every in 1..5000_u32,
            looks in prop::collection::vec((0..100_000_u64, 0..300_usize), 1..50),
        ) {
            let mut chooser = Chooser::new(every);
            chooser.choose(7, 3);
            let (mut frames, mut weights) = (7, 0);
            for (more, notes) in looks {
                frames += more;
                let chosen = chooser.choose(frames, notes);
                prop_assert!(chosen.is_sorted_by(|a, b| a.note < b.note));
                prop_assert!(chosen.iter().all(|chosen| chosen.note < notes && chosen.weight >= every));
                weights += chosen.iter().map(|chosen| u64::from(chosen.weight)).sum::<u64>();
            }
            prop_assert_eq!(weights + chooser.waiting, frames - 7);
        }
    }
}
