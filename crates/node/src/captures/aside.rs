//! What a capture sees elsewhere than at workers: messages of OpenFlow sessions, frames at programs in the kernel.
//!
//! Whoever sees something puts it here, and never waits for the capture's thread, which takes it. A full queue loses what comes, and counts it.
//!
//! Lock: one mutex a capture, held to put or take.

use ::capture::{Direction, PacketId};
use datapath::Counted;
use flow::Nanos;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Something seen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// When, by the workers' clock.
    pub at: Nanos,
    /// At which of the capture's points.
    pub point: usize,
    /// Its way.
    pub direction: Option<Direction>,
    /// Its first bytes.
    pub bytes: Vec<u8>,
    /// How many it has.
    pub original: u32,
    /// What is known of it, as `key=value`.
    pub comment: String,
    /// Its number at every point.
    pub id: Option<PacketId>,
    /// How many of this point are missing since the one before.
    pub lost_before: u64,
}

/// What was seen and not yet taken.
pub struct Aside {
    /// Number of its first point.
    first: usize,
    /// Bytes that may wait.
    room: usize,
    waiting: Mutex<Waiting>,
}

struct Waiting {
    /// In the order of time.
    notes: VecDeque<Note>,
    bytes: usize,
    /// By point.
    counted: Vec<Counted>,
    /// Lost since the last one that was not, by point.
    unsaid: Vec<u64>,
}

impl Aside {
    /// For so many points, numbered from `first` on.
    pub fn new(first: usize, points: usize, room: usize) -> Self {
        let waiting = Waiting {
            notes: VecDeque::new(),
            bytes: 0,
            counted: vec![Counted::default(); points],
            unsaid: vec![0; points],
        };
        Self { first, room, waiting: Mutex::new(waiting) }
    }

    /// Something was seen.
    pub fn put(&self, mut note: Note) {
        let mut waiting = self.lock();
        let point = note.point - self.first;
        waiting.counted[point].matched += 1;
        if waiting.bytes + weight(&note) > self.room {
            waiting.counted[point].lost += 1;
            waiting.unsaid[point] += 1;
            return;
        }
        note.lost_before += std::mem::take(&mut waiting.unsaid[point]);
        waiting.bytes += weight(&note);
        // Several see at a time: one that is late goes where it belongs.
        let place = waiting.notes.iter().rposition(|before| before.at <= note.at);
        waiting.notes.insert(place.map_or(0, |place| place + 1), note);
    }

    /// There was no time in the budget for one.
    pub fn refuse(&self, point: usize) {
        let mut waiting = self.lock();
        let counted = &mut waiting.counted[point - self.first];
        counted.matched += 1;
        counted.over_budget += 1;
    }

    /// So much time was spent at a point.
    pub fn charge(&self, point: usize, ns: u64) {
        self.lock().counted[point - self.first].spent_ns += ns;
    }

    /// So many were lost at a point before they came here.
    pub fn lose(&self, point: usize, many: u64) {
        let mut waiting = self.lock();
        let point = point - self.first;
        waiting.counted[point].matched += many;
        waiting.counted[point].lost += many;
        waiting.unsaid[point] += many;
    }

    /// Takes what was seen until then.
    pub fn take_until(&self, until: Nanos) -> Vec<Note> {
        let mut waiting = self.lock();
        let many = waiting.notes.partition_point(|note| note.at <= until);
        let taken: Vec<Note> = waiting.notes.drain(..many).collect();
        waiting.bytes -= taken.iter().map(weight).sum::<usize>();
        taken
    }

    /// What was counted at each of its points.
    pub fn counted(&self) -> Vec<Counted> {
        self.lock().counted.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Memory that a note takes.
fn weight(note: &Note) -> usize {
    size_of::<Note>() + note.bytes.len() + note.comment.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(at: u64, point: usize) -> Note {
        Note {
            at: Nanos(at),
            point,
            direction: None,
            bytes: vec![0; 100],
            original: 100,
            comment: String::new(),
            id: None,
            lost_before: 0,
        }
    }

    #[test]
    fn what_comes_late_is_taken_in_the_order_of_time() {
        let aside = Aside::new(0, 1, 1 << 20);
        [5, 9, 7, 1, 9].into_iter().for_each(|at| aside.put(note(at, 0)));
        let times = |until| -> Vec<u64> {
            aside.take_until(Nanos(until)).iter().map(|note| note.at.0).collect()
        };
        assert_eq!([times(7), times(8), times(9)], [vec![1, 5, 7], vec![], vec![9, 9]]);
    }

    #[test]
    fn a_full_queue_loses_what_comes_and_counts_it_at_its_point() {
        let aside = Aside::new(3, 2, 2 * weight(&note(0, 3)));
        for at in 0..5 {
            aside.put(note(at, 4));
        }
        assert_eq!(aside.take_until(Nanos(9)).len(), 2);
        aside.put(note(9, 4));
        aside.lose(3, 7);
        assert_eq!(aside.take_until(Nanos(9))[0].lost_before, 3);
        let counts = aside.counted().iter().map(|at| (at.matched, at.lost)).collect::<Vec<_>>();
        assert_eq!(counts, [(7, 7), (6, 3)]);
    }
}
