//! The cache's lines: two places per key, replaced within quotas.

use super::Trace;
use wire::WORDS;

/// A key packed by its switch's union mask, zeros behind.
pub(super) type Packed = [u64; WORDS];

/// Whom a line belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Owner {
    pub switch: u32,
    /// 0 for a line that was never used.
    pub epoch: u64,
}

#[derive(Clone, Default)]
struct Line {
    hash: u64,
    owner: Owner,
    trace: Trace,
}

/// What a look for a key gave.
pub(super) enum Found<'l> {
    /// Its trace.
    Hit(&'l Trace),
    /// A trace from before the tables changed.
    Stale,
    /// Nothing.
    Absent,
}

/// How many lines a switch holds, and which are its current ones.
#[derive(Clone, Copy, Default)]
struct Share {
    lines: u32,
    epoch: u64,
}

/// All lines.
pub(super) struct Lines {
    lines: Vec<Line>,
    keys: Vec<Packed>,
    shares: Vec<Share>,
    /// Switches that hold lines.
    holders: u32,
}

impl Lines {
    /// `entries` lines, rounded up to a power of two; none for 0.
    pub fn new(entries: usize) -> Self {
        let count = if entries == 0 { 0 } else { entries.next_power_of_two().max(2) };
        Self {
            lines: vec![Line::default(); count],
            keys: vec![[0; WORDS]; count],
            shares: Vec::new(),
            holders: 0,
        }
    }

    /// Whether there are any.
    pub fn exist(&self) -> bool {
        !self.lines.is_empty()
    }

    /// The two places of a hash.
    fn places(&self, owner: Owner, hash: u64) -> [usize; 2] {
        let hash = hash ^ u64::from(owner.switch).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let first = hash as usize & (self.lines.len() - 1);
        [first, first ^ 1]
    }

    /// The trace kept for a key.
    pub fn find(&self, owner: Owner, hash: u64, key: &Packed) -> Found<'_> {
        let mut found = Found::Absent;
        for at in self.places(owner, hash) {
            let line = &self.lines[at];
            if line.hash != hash || line.owner.switch != owner.switch || self.keys[at] != *key {
                continue;
            }
            match line.owner.epoch {
                epoch if epoch == owner.epoch => return Found::Hit(&line.trace),
                0 => {}
                _ => found = Found::Stale,
            }
        }
        found
    }

    /// Keeps a trace, if the owner's quota has room for it.
    pub fn insert(&mut self, owner: Owner, hash: u64, key: &Packed, trace: &Trace) {
        let places = self.places(owner, hash);
        let same = |&at: &usize| {
            self.lines[at].hash == hash
                && self.lines[at].owner.switch == owner.switch
                && self.keys[at] == *key
        };
        let free = |&at: &usize| self.is_stale(self.lines[at].owner);
        // Without a stale one, a bit of the hash chooses, so that two hot keys do not drive each other out for ever.
        let chosen = places.into_iter().find(same).or_else(|| places.into_iter().find(free));
        let at = chosen.unwrap_or(places[(hash >> 63) as usize]);
        let victim = self.lines[at].owner;
        if victim.switch != owner.switch || victim.epoch == 0 {
            if !self.is_stale(victim) && self.share(owner.switch).lines >= self.quota() {
                return;
            }
            self.give(victim, -1);
            self.give(owner, 1);
        }
        self.share(owner.switch).epoch = owner.epoch;
        self.lines[at] = Line { hash, owner, trace: *trace };
        self.keys[at] = *key;
    }

    /// Lines one switch may take from others: an even share.
    fn quota(&self) -> u32 {
        self.lines.len() as u32 / self.holders.max(1)
    }

    fn is_stale(&self, owner: Owner) -> bool {
        owner.epoch == 0
            || self
                .shares
                .get(owner.switch as usize)
                .is_some_and(|share| share.epoch != owner.epoch)
    }

    fn give(&mut self, owner: Owner, lines: i32) {
        if owner.epoch == 0 {
            return;
        }
        let share = self.share(owner.switch);
        let before = share.lines;
        share.lines = before.wrapping_add_signed(lines);
        let after = share.lines;
        self.holders = self.holders + u32::from(before == 0) - u32::from(after == 0);
    }

    fn share(&mut self, switch: u32) -> &mut Share {
        let at = switch as usize;
        if self.shares.len() <= at {
            self.shares.resize(at + 1, Share::default());
        }
        &mut self.shares[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u64) -> Packed {
        let mut key = [0; WORDS];
        key[0] = n;
        key
    }

    fn scatter(n: u64) -> u64 {
        n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    }

    fn holds(lines: &Lines, owner: Owner, n: u64) -> bool {
        matches!(lines.find(owner, scatter(n), &key(n)), Found::Hit(_))
    }

    fn held(lines: &Lines, owner: Owner, keys: std::ops::Range<u64>) -> usize {
        keys.filter(|&n| holds(lines, owner, n)).count()
    }

    #[test]
    fn a_flood_of_one_switch_leaves_the_other_its_share() {
        let mut lines = Lines::new(1024);
        let (calm, wild) = (Owner { switch: 1, epoch: 5 }, Owner { switch: 2, epoch: 9 });
        (0..256).for_each(|n| lines.insert(calm, scatter(n), &key(n), &Trace::default()));
        let before = held(&lines, calm, 0..256);
        (1000..101_000).for_each(|n| lines.insert(wild, scatter(n), &key(n), &Trace::default()));
        // The wild one may fill what is free and take from the calm one only up to half of all lines.
        assert!(
            before > 200 && held(&lines, calm, 0..256) > before / 4,
            "{before} {}",
            held(&lines, calm, 0..256)
        );
    }

    #[test]
    fn a_new_epoch_finds_nothing_of_the_old_one() {
        let mut lines = Lines::new(16);
        let (old, new) = (Owner { switch: 0, epoch: 1 }, Owner { switch: 0, epoch: 2 });
        let found = |lines: &Lines, owner| match lines.find(owner, 7, &key(7)) {
            Found::Hit(_) => "trace",
            Found::Stale => "stale",
            Found::Absent => "absent",
        };
        assert_eq!(found(&lines, old), "absent");
        lines.insert(old, 7, &key(7), &Trace::default());
        assert_eq!((found(&lines, old), found(&lines, new)), ("trace", "stale"));
        lines.insert(new, 7, &key(7), &Trace::default());
        assert_eq!((found(&lines, old), found(&lines, new)), ("stale", "trace"));
    }
}
