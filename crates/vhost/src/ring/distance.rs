//! How far the core of a ring's driver is from ours, judged by what its lines cost.
//!
//! Where a guest's processor shares our last-level cache, its lines are 2 to 20 cycles each to write (Zen 4; Zen 3 3 to 9), and it reads what we wrote from that cache. Where it does not they are 30 to 70 (15 to 50), and that for a
//! way which its next read does not shorten: from memory it has the frame as soon ([`Past`](crate::sys::Past)). Nobody tells a switch where a guest's processors are, and a host moves them. So
//! a ring looks: now and then it writes a batch of long frames as to a near one, and takes the time. Figures: docs/decisions/0023.

use crate::sys::Bounds;

/// Cycles of a line that no line takes: the thread was kept from its core meanwhile.
const ABSURD: u64 = 400;

/// Batches between looks: at a near driver's they cost nothing but two readings of the counter, at a far one's a batch is two to three times as dear as the others, 2 to 3 % in all.
const BETWEEN_NEAR: u8 = 16;
const BETWEEN_FAR: u8 = 64;

/// Lines of a batch from which on its way matters. Fewer are soon there, and their reader, who waits for them, has them sooner from a cache.
const LINES_MIN: usize = 64;

/// The lines of a batch, if its way matters.
#[inline]
pub(super) fn worth(lines: usize) -> Option<usize> {
    (lines >= LINES_MIN).then_some(lines)
}

/// Where the driver is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Distance {
    /// As of the last looks; taken for near before the first.
    found: Option<Reach>,
    /// The last look found it otherwise. Believed if the next batch does too: of a thousand looks at a near driver two or three are disturbed.
    is_doubted: bool,
    /// Batches until the next look.
    left: u8,
}

/// Whether a driver's core shares a cache with ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// It does.
    Near,
    /// It does not: what is long goes to it through memory.
    Far,
}

/// How a batch is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Course {
    Near,
    /// The same, and timed.
    Look,
    Far,
}

impl Distance {
    /// Far, until the next look.
    pub(super) fn far() -> Self {
        Self { found: Some(Reach::Far), is_doubted: false, left: BETWEEN_FAR }
    }

    /// Where the driver was when last looked at; nothing before the first look.
    pub(super) fn reach(self) -> Option<Reach> {
        self.found
    }

    /// How the next batch of long frames is written.
    #[inline]
    pub(super) fn next(self) -> Course {
        match self {
            Self { left: 0, .. } => Course::Look,
            Self { found: Some(Reach::Far), .. } => Course::Far,
            Self { found: Some(Reach::Near) | None, .. } => Course::Near,
        }
    }

    /// It was written so.
    #[inline]
    pub(super) fn went(&mut self) {
        self.left = self.left.saturating_sub(1);
    }

    /// It was a look, at so many lines.
    pub(super) fn saw(&mut self, cycles: u64, lines: usize, bounds: Bounds) {
        let lines = lines as u64;
        let far = match self.found {
            Some(Reach::Far) => bounds.of_far,
            Some(Reach::Near) | None => bounds.of_near,
        };
        let seen = match cycles {
            _ if cycles >= ABSURD * lines => None,
            _ if cycles >= far * lines => Some(Reach::Far),
            _ => Some(Reach::Near),
        };
        let is_other = seen.is_some_and(|seen| seen != self.found.unwrap_or(Reach::Near));
        if !is_other || self.is_doubted {
            self.found = seen.or(self.found);
        }
        self.is_doubted = is_other && !self.is_doubted;
        self.left = match self {
            Self { is_doubted: true, .. } => 0,
            Self { found: Some(Reach::Far), .. } => BETWEEN_FAR,
            Self { found: Some(Reach::Near) | None, .. } => BETWEEN_NEAR,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAR: Bounds = Bounds::one(26);

    /// Batches up to the next look, and their course.
    fn courses(distance: &mut Distance) -> Vec<Course> {
        let mut courses = Vec::new();
        while distance.next() != Course::Look {
            courses.push(distance.next());
            distance.went();
        }
        courses
    }

    /// Two looks, the second right after the first if that was a surprise.
    fn look_twice(distance: &mut Distance, cost: u64) {
        distance.saw(100 * cost, 100, FAR);
        if distance.next() == Course::Look {
            distance.saw(100 * cost, 100, FAR);
        }
    }

    #[test]
    fn a_driver_is_where_two_looks_found_it() {
        let mut distance = Distance::default();
        assert_eq!((distance.next(), distance.reach()), (Course::Look, None));
        let costs = [(11, Course::Near), (45, Course::Far), (45, Course::Far), (5, Course::Near)];
        for (cost, course) in costs {
            look_twice(&mut distance, cost);
            let courses = courses(&mut distance);
            assert!(courses.len() >= 16 && courses.iter().all(|&went| went == course), "{cost}");
            let reach = if course == Course::Far { Reach::Far } else { Reach::Near };
            assert_eq!(distance.reach(), Some(reach), "also when the next look is due");
        }
    }

    #[test]
    fn one_look_that_was_disturbed_changes_nothing() {
        for (usual, other, course) in [(11, 45, Course::Near), (45, 11, Course::Far)] {
            let mut distance = Distance::default();
            look_twice(&mut distance, usual);
            courses(&mut distance);
            distance.saw(100 * other, 100, FAR);
            assert_eq!(distance.next(), Course::Look, "at once");
            distance.saw(100 * usual, 100, FAR);
            assert!(courses(&mut distance).iter().all(|&went| went == course), "{other}");
            distance.saw(100 * other, 100, FAR);
            assert_eq!(distance.next(), Course::Look, "the look before is forgotten");
            let reach = if course == Course::Far { Reach::Far } else { Reach::Near };
            assert_eq!(distance.reach(), Some(reach));
        }
    }

    /// Once a ring's frames went past the caches, the next ones come from cold memory: that alone must not keep it far.
    #[test]
    fn a_driver_that_was_far_may_have_a_bound_of_its_own() {
        let bounds = Bounds { of_near: 40, of_far: 52 };
        let mut distance = Distance::default();
        let mut look_twice = |cost: u64| {
            distance.saw(100 * cost, 100, bounds);
            distance.saw(100 * cost, 100, bounds);
            distance.reach()
        };
        let costs = [38, 45, 45, 60, 52, 50];
        let found = [Reach::Near, Reach::Far, Reach::Near, Reach::Far, Reach::Far, Reach::Near];
        assert_eq!(costs.map(&mut look_twice), found.map(Some));
    }

    #[test]
    fn a_look_that_was_interrupted_tells_nothing() {
        for (cost, course) in [(11, Course::Near), (45, Course::Far)] {
            let mut distance = Distance::default();
            look_twice(&mut distance, cost);
            courses(&mut distance);
            distance.saw(1_000_000, 100, FAR);
            let courses = courses(&mut distance);
            assert!(courses.len() >= 16 && courses.iter().all(|&went| went == course), "{cost}");
        }
        let mut distance = Distance::default();
        distance.saw(1_000_000, 100, FAR);
        assert_eq!(distance.reach(), None);
    }
}
