//! When slices are: spans of time, and what is promised at most at any moment of one.
//!
//! A slice is promised its things from `from` to `until`, and no moment longer. Each bound (a node's memory, a segment's rate, a tenant's quota) is
//! of one quantity, so a slice fits if each quantity's *own* highest sum over the span leaves room; those sums need not be of one moment.

use crate::file::slice::SliceSpec;
use crate::words::{Moment, SliceKey};
use crate::world::{Admitted, Ledger, World};
use api::CalendarEntry;

/// From a moment to before another, in seconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// The first second.
    pub from: i64,
    /// The first second that is not of it any more.
    pub until: i64,
}

impl Span {
    /// When a slice is to be; what its file leaves out has always been, or never ends.
    pub fn of(spec: &SliceSpec) -> Self {
        let seconds = |moment: &Option<Moment>| moment.as_ref().map(Moment::unix_s);
        Self {
            from: seconds(&spec.from).unwrap_or(i64::MIN),
            until: seconds(&spec.until).unwrap_or(i64::MAX),
        }
    }

    /// Whether some moment is of both.
    pub fn overlaps(self, other: Self) -> bool {
        self.from < other.until && other.from < self.until
    }

    fn covers(self, other: Self) -> bool {
        self.from <= other.from && other.until <= self.until
    }
}

impl World {
    /// What is promised to all slices at a moment.
    pub fn ledger_at(&self, moment: i64) -> Ledger {
        self.peak(Span { from: moment, until: moment.saturating_add(1) }, None)
    }

    /// The most of each quantity that is promised to others than that slice at any moment of the span.
    pub(crate) fn peak(&self, span: Span, without: Option<&SliceKey>) -> Ledger {
        // Mostly nobody has a time of its own.
        if self.slices().all(|(_, it)| Span::of(&it.spec).covers(span)) {
            let mut all = self.ledger().clone();
            let own = without.and_then(|key| self.slice(key));
            own.iter().for_each(|own| all.add(own, -1));
            return all;
        }
        let others = self.slices().filter(|(key, _)| Some(*key) != without);
        let of_span = others.map(|(_, it)| (Span::of(&it.spec), it));
        let of_span = of_span.filter(|(its, _)| its.overlaps(span));
        let (whole, part): (Vec<_>, Vec<_>) = of_span.partition(|(its, _)| its.covers(span));
        let mut now = Ledger::default();
        whole.iter().for_each(|(_, it)| now.add(it, 1));
        let mut peak = now.clone();
        // What ends at a moment makes room for what begins then.
        let mut turns: Vec<(i64, i64, &Admitted)> = Vec::new();
        for (its, it) in part {
            turns.push((its.from.max(span.from), 1, it));
            turns.push((its.until, -1, it));
        }
        turns.sort_by_key(|(at, sign, _)| (*at, *sign));
        for (_, sign, it) in turns {
            now.add(it, sign);
            if sign > 0 {
                peak.raise(&now);
            }
        }
        peak
    }
}

/// What of the domain's time is promised, in the order of its beginning; `names` says whose slices are told by name.
pub fn calendar(world: &World, names: impl Fn(&SliceKey) -> bool) -> Vec<CalendarEntry> {
    let entry = |(key, it): (&SliceKey, &Admitted)| {
        let mut ledger = Ledger::default();
        ledger.add(it, 1);
        let tenant = ledger.tenants.get(&it.spec.tenant).copied().unwrap_or_default();
        CalendarEntry {
            slice: names(key).then(|| key.to_string()),
            from: it.spec.from.as_ref().map(ToString::to_string),
            until: it.spec.until.as_ref().map(ToString::to_string),
            from_s: it.spec.from.as_ref().map(Moment::unix_s),
            until_s: it.spec.until.as_ref().map(Moment::unix_s),
            cpu_milli: tenant.cpu,
            memory: tenant.memory,
            rate: tenant.rate,
        }
    };
    let mut entries: Vec<_> = world.slices().map(entry).collect();
    entries.sort_by_key(|entry| (entry.from_s, entry.until_s.unwrap_or(i64::MAX)));
    entries
}
