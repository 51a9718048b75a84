//! The cache's lines: two places per key, replaced within quotas.

use super::Trace;
use super::validity::Verdict;
use wire::WORDS;

/// A key packed by its switch's union mask, zeros behind.
pub(super) type Packed = [u64; WORDS];

/// Whom a line belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Owner {
    pub switch: u32,
    /// The version of which bits are looked at and how; 0 for a line that was never used.
    pub layout: u64,
}

#[derive(Clone, Default)]
struct Line {
    hash: u64,
    owner: Owner,
    /// The snapshot whose trace it is.
    made: u64,
    trace: Trace,
}

/// What a look for a key gave.
pub(super) enum Found<'l> {
    /// Its trace.
    Hit(&'l Trace),
    /// Its trace, after so many changes were compared.
    Renewed(&'l Trace, u32),
    /// A trace that may have changed since, found out by so many comparisons.
    Stale(u32),
    /// Nothing.
    Absent,
}

/// How many lines a switch holds, and which are its current ones.
#[derive(Clone, Copy, Default)]
struct Share {
    lines: u32,
    layout: u64,
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

    /// The trace kept for a key, if `judge` finds that it still holds; `serial` is the snapshot that asks.
    pub fn find(
        &mut self,
        owner: Owner,
        hash: u64,
        key: &Packed,
        serial: u64,
        mut judge: impl FnMut(&Trace, u64) -> Verdict,
    ) -> Found<'_> {
        let mut found = Found::Absent;
        for at in self.places(owner, hash) {
            let line = &mut self.lines[at];
            let is_its = line.hash == hash
                && (line.owner.switch, line.owner.layout != 0) == (owner.switch, true)
                && self.keys[at] == *key;
            if !is_its {
                continue;
            }
            if line.owner.layout != owner.layout {
                found = Found::Stale(0);
                continue;
            }
            match judge(&line.trace, line.made) {
                Verdict::Good => return Found::Hit(&self.lines[at].trace),
                Verdict::Renewed(compared) => {
                    line.made = serial;
                    return Found::Renewed(&self.lines[at].trace, compared);
                }
                Verdict::Stale(compared) => found = Found::Stale(compared),
            }
        }
        found
    }

    /// Keeps a trace, if the owner's quota has room for it.
    pub fn insert(&mut self, owner: Owner, hash: u64, key: &Packed, (trace, made): (&Trace, u64)) {
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
        if victim.switch != owner.switch || victim.layout == 0 {
            if !self.is_stale(victim) && self.share(owner.switch).lines >= self.quota() {
                return;
            }
            self.give(victim, -1);
            self.give(owner, 1);
        }
        self.share(owner.switch).layout = owner.layout;
        self.lines[at] = Line { hash, owner, made, trace: *trace };
        self.keys[at] = *key;
    }

    /// Lines one switch may take from others: an even share.
    fn quota(&self) -> u32 {
        self.lines.len() as u32 / self.holders.max(1)
    }

    fn is_stale(&self, owner: Owner) -> bool {
        owner.layout == 0
            || self
                .shares
                .get(owner.switch as usize)
                .is_some_and(|share| share.layout != owner.layout)
    }

    fn give(&mut self, owner: Owner, lines: i32) {
        if owner.layout == 0 {
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

    fn holds(lines: &mut Lines, owner: Owner, n: u64) -> bool {
        let found = lines.find(owner, scatter(n), &key(n), 1, |_, _| Verdict::Good);
        matches!(found, Found::Hit(_))
    }

    fn held(lines: &mut Lines, owner: Owner, keys: std::ops::Range<u64>) -> usize {
        keys.filter(|&n| holds(lines, owner, n)).count()
    }

    #[test]
    fn a_flood_of_one_switch_leaves_the_other_its_share() {
        let mut lines = Lines::new(1024);
        let (calm, wild) = (Owner { switch: 1, layout: 5 }, Owner { switch: 2, layout: 9 });
        (0..256).for_each(|n| lines.insert(calm, scatter(n), &key(n), (&Trace::default(), 1)));
        let before = held(&mut lines, calm, 0..256);
        (1000..101_000)
            .for_each(|n| lines.insert(wild, scatter(n), &key(n), (&Trace::default(), 1)));
        // The wild one may fill what is free and take from the calm one only up to half of all lines.
        assert!(
            before > 200 && held(&mut lines, calm, 0..256) > before / 4,
            "{before} {}",
            held(&mut lines, calm, 0..256)
        );
    }

    #[test]
    fn what_was_kept_of_another_layout_is_not_found() {
        let mut lines = Lines::new(16);
        let (old, new) = (Owner { switch: 0, layout: 1 }, Owner { switch: 0, layout: 2 });
        let found = |lines: &mut Lines, owner| match lines
            .find(owner, 7, &key(7), 1, |_, _| Verdict::Good)
        {
            Found::Hit(_) | Found::Renewed(..) => "trace",
            Found::Stale(_) => "stale",
            Found::Absent => "absent",
        };
        assert_eq!(found(&mut lines, old), "absent");
        lines.insert(old, 7, &key(7), (&Trace::default(), 1));
        assert_eq!((found(&mut lines, old), found(&mut lines, new)), ("trace", "stale"));
        lines.insert(new, 7, &key(7), (&Trace::default(), 1));
        assert_eq!((found(&mut lines, old), found(&mut lines, new)), ("stale", "trace"));
    }

    #[test]
    fn a_line_is_renewed_once_for_a_snapshot() {
        let mut lines = Lines::new(16);
        let owner = Owner { switch: 0, layout: 1 };
        lines.insert(owner, 7, &key(7), (&Trace::default(), 3));
        let judge = |_: &Trace, made| if made < 5 { Verdict::Renewed(2) } else { Verdict::Good };
        assert!(matches!(lines.find(owner, 7, &key(7), 5, judge), Found::Renewed(_, 2)));
        assert!(matches!(lines.find(owner, 7, &key(7), 5, judge), Found::Hit(_)));
    }
}
