//! Which of unboundedly many series have lines of their own: the first come, for as long as the node runs.

use std::collections::BTreeSet;

/// Series of drops by reason. Chosen: an ordinary switch has five reasons; 100 switches have theirs.
const DROPS_MAX: usize = 500;
/// Series of queues. Chosen: beyond it, ask for one switch (`?switch=`).
const QUEUES_MAX: usize = 50;

/// The series that have lines of their own.
#[derive(Clone, Debug)]
pub struct Seen {
    pub(crate) drops: First,
    pub(crate) queues: First,
}

impl Default for Seen {
    fn default() -> Self {
        let first = |most| First { most, keys: BTreeSet::new() };
        Self { drops: first(DROPS_MAX), queues: first(QUEUES_MAX) }
    }
}

impl Seen {
    /// For a page that is of one switch alone, and asked for by hand.
    pub fn all() -> Self {
        let all = || First { most: usize::MAX, keys: BTreeSet::new() };
        Self { drops: all(), queues: all() }
    }
}

/// The first keys that came, up to so many.
#[derive(Clone, Debug)]
pub(crate) struct First {
    most: usize,
    keys: BTreeSet<String>,
}

impl First {
    /// Whether that key has a line: it had one, or there is room.
    pub(crate) fn has(&mut self, key: String) -> bool {
        if self.keys.contains(&key) {
            return true;
        }
        let is_room = self.keys.len() < self.most;
        if is_room {
            self.keys.insert(key);
        }
        is_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_came_first_stays_and_nobody_else_comes_when_it_is_full() {
        let mut first = First { most: 2, keys: BTreeSet::new() };
        assert!(first.has("a".into()) && first.has("b".into()));
        assert!(!first.has("c".into()));
        assert!(first.has("a".into()) && !first.has("c".into()));
    }
}
