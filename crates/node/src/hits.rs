//! # Hits: who hit which bound, and since when
//!
//! **Question answered**: which tenant, caller or guest takes all that it may, so that an operator sees it before a neighbour complains?
//!
//! Whoever refuses, drops or ends something at a bound calls [`Hits::tell`]. What is counted elsewhere (frames, packet-ins, guests) the node looks at
//! once a second and tells likewise. Hits of one bound by one of them are a *row*, as long as less than [`REST`] lies between two.
//!
//! ## Invariants
//!
//! * Whoever hits, the rows take a bounded memory: [`ROWS`] for each bound, of which the one that was hit longest ago makes room.
//! * A row makes one event when it begins and one when it ends, and a bound at most [`ROWS`] of them in [`REST`].
//! * `tell` never waits: its lock is a leaf but for the feed's.
//! * Rows are those of this process. A day after its last hit a row goes.

use crate::feed::Feed;
use api::{Bound, BoundHit, Happening, News, Noun};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Without a hit for so long, a row has ended.
const REST: Duration = Duration::from_secs(60);
/// How long a row is kept after its last hit.
const KEPT: Duration = Duration::from_secs(24 * 3600);
/// Rows of one bound. Chosen: more tenants than a person looks at, some 10 KiB.
const ROWS: usize = 64;

/// Who hit a bound.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Who {
    /// The switch.
    pub switch: Option<String>,
    /// A port of it, a controller, a caller's host, a socket.
    pub name: Option<String>,
}

impl Who {
    /// A switch.
    pub fn switch(name: &str) -> Self {
        Self { switch: Some(name.into()), name: None }
    }

    /// Something of a switch.
    pub fn of(switch: &str, name: &str) -> Self {
        Self { switch: Some(switch.into()), name: Some(name.into()) }
    }

    /// Someone who is no switch's.
    pub fn caller(name: &str) -> Self {
        Self { switch: None, name: Some(name.into()) }
    }
}

/// Who hit which bound. Clones are the same.
#[derive(Clone, Default)]
pub struct Hits(Arc<Shared>);

#[derive(Default)]
struct Shared {
    rows: Mutex<Rows>,
    feed: Feed,
}

impl std::fmt::Debug for Hits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Hits of {} rows", self.rows().0.len())
    }
}

impl Hits {
    /// Nothing was hit; what will be is told to this feed.
    pub fn new(feed: Feed) -> Self {
        Self(Arc::new(Shared { rows: Mutex::default(), feed }))
    }

    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.0.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A bound was hit so many times; `text` says what became of it.
    pub fn tell(&self, bound: Bound, by: Who, times: u64, text: &str) {
        let mut rows = self.rows();
        // Under the lock: that a row begins is told before that it ends.
        if let Some(news) = rows.note(now(), (bound, by), times, text) {
            tracing::warn!("{news}");
            self.0.feed.tell(news);
        }
    }

    /// Ends rows that were not hit for long.
    pub fn settle(&self) {
        let mut rows = self.rows();
        rows.settle(now()).into_iter().for_each(|news| self.0.feed.tell(news));
    }

    /// A switch is gone; one of that name that comes is another.
    pub fn forget(&self, switch: &str) {
        self.rows().0.retain(|(_, who), _| who.switch.as_deref() != Some(switch));
    }

    /// Those that go on, for readers of events that begin.
    pub fn present(&self) -> Vec<News> {
        let rows = self.rows();
        let go_on = rows.0.iter().filter(|(_, row)| row.goes_on);
        go_on.map(|(at, row)| news(at, Happening::Present, &row.text)).collect()
    }

    /// All of them, the last first.
    pub fn show(&self) -> Vec<BoundHit> {
        self.rows().show()
    }
}

/// Since 1970.
fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[derive(Default)]
struct Rows(BTreeMap<(Bound, Who), Row>);

struct Row {
    since: Duration,
    last: Duration,
    times: u64,
    text: String,
    goes_on: bool,
}

impl Rows {
    fn note(&mut self, now: Duration, at: (Bound, Who), times: u64, text: &str) -> Option<News> {
        if let Some(row) = self.0.get_mut(&at).filter(|row| row.goes_on) {
            row.last = now;
            row.times += times;
            if row.text != text {
                row.text = text.into();
            }
            return None;
        }
        let own = || self.0.iter().filter(|((bound, _), _)| *bound == at.0);
        if !self.0.contains_key(&at) && own().count() >= ROWS {
            let oldest = own().min_by_key(|(_, row)| row.last).map(|(at, _)| at.clone());
            oldest.and_then(|oldest| self.0.remove(&oldest));
        }
        let remedy = match at.0.key() {
            Some(key) => format!("; {key} sets the bound"),
            None => String::new(),
        };
        let news = news(&at, Happening::Fault, &format!("{text}{remedy}"));
        let row = Row { since: now, last: now, times, text: text.into(), goes_on: true };
        self.0.insert(at, row);
        Some(news)
    }

    fn settle(&mut self, now: Duration) -> Vec<News> {
        self.0.retain(|_, row| row.goes_on || now.saturating_sub(row.last) < KEPT);
        let ends = self
            .0
            .iter_mut()
            .filter(|(_, row)| row.goes_on && now.saturating_sub(row.last) >= REST);
        ends.map(|(at, row)| {
            row.goes_on = false;
            let for_s = row.last.saturating_sub(row.since).as_secs();
            let text = format!("not hit any more: {} times within {for_s} s", row.times);
            news(at, Happening::State, &text)
        })
        .collect()
    }

    fn show(&self) -> Vec<BoundHit> {
        let view = |((bound, who), row): (&(Bound, Who), &Row)| BoundHit {
            bound: *bound,
            switch: who.switch.clone(),
            who: who.name.clone(),
            text: row.text.clone(),
            key: bound.key().map(Into::into),
            since_ns: row.since.as_nanos() as u64,
            last_ns: row.last.as_nanos() as u64,
            times: row.times,
            goes_on: row.goes_on,
        };
        let mut all: Vec<_> = self.0.iter().map(view).collect();
        all.sort_by_key(|hit| std::cmp::Reverse(hit.last_ns));
        all
    }
}

fn news((bound, who): &(Bound, Who), change: Happening, text: &str) -> News {
    let text = match &who.name {
        Some(name) => format!("{name}: {text}"),
        None => text.to_owned(),
    };
    let (switch, name) = (who.switch.clone(), Some(bound.word().to_owned()));
    News { kind: Noun::Bound, switch, name, change, by: None, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn rules(switch: &str) -> (Bound, Who) {
        (Bound::Rules, Who::switch(switch))
    }

    #[test]
    fn hits_are_one_row_until_a_minute_passes_without_any() {
        let mut rows = Rows::default();
        let begin = 1000 * SECOND;
        let begun = rows.note(begin, rules("s1"), 3, "full").expect("it begins");
        assert_eq!(begun.to_string(), "fault bound s1 rules: full");
        for second in 1..600 {
            assert!(rows.note(begin + second * SECOND, rules("s1"), 2, "full").is_none());
            assert!(rows.settle(begin + second * SECOND).is_empty());
        }
        let [hit] = rows.show().try_into().unwrap();
        assert_eq!((hit.times, hit.goes_on), (3 + 2 * 599, true));
        assert_eq!(hit.last_ns - hit.since_ns, 599_000_000_000);
        let ended = rows.settle(begin + 659 * SECOND);
        assert_eq!(
            ended[0].to_string(),
            "state bound s1 rules: not hit any more: 1201 times within 599 s"
        );
        assert!(rows.settle(begin + 660 * SECOND).is_empty(), "told once");
        assert!(rows.note(begin + 700 * SECOND, rules("s1"), 1, "full").is_some(), "begins anew");
        assert_eq!(rows.show()[0].times, 1);
    }

    #[test]
    fn a_row_is_shown_for_a_day_and_the_last_comes_first() {
        let mut rows = Rows::default();
        rows.note(SECOND, rules("s1"), 1, "");
        rows.note(2 * SECOND, (Bound::Copies, Who::of("s2", "p1")), 1, "");
        let shown: Vec<_> = rows.show().into_iter().map(|hit| hit.switch.unwrap()).collect();
        assert_eq!(shown, ["s2", "s1"]);
        rows.settle(61 * SECOND);
        rows.settle(SECOND + KEPT);
        assert_eq!(rows.show().len(), 1);
    }

    #[test]
    fn callers_from_everywhere_take_a_bounded_memory_and_leave_others_their_rows() {
        let mut rows = Rows::default();
        rows.note(SECOND, rules("s1"), 1, "");
        for caller in 0..10_000_u32 {
            let who = Who::of("s1", &format!("host {caller}"));
            rows.note((2 + caller) * SECOND, (Bound::Connections, who), 1, "");
        }
        assert_eq!(rows.0.len(), 1 + ROWS);
        assert_eq!(rows.show()[0].who.as_deref(), Some("host 9999"));
        assert_eq!(rows.show().pop().unwrap().bound, Bound::Rules);
    }

    #[test]
    fn a_clock_that_is_set_back_ends_nothing_early() {
        let mut rows = Rows::default();
        rows.note(1000 * SECOND, rules("s1"), 1, "");
        assert!(rows.settle(10 * SECOND).is_empty());
        assert_eq!(rows.show().len(), 1);
    }

    #[test]
    fn what_a_switch_hit_goes_with_it() {
        let hits = Hits::default();
        hits.tell(Bound::Rules, Who::switch("s1"), 1, "full");
        hits.tell(Bound::Rules, Who::switch("s2"), 1, "full");
        hits.forget("s1");
        assert_eq!(hits.show().len(), 1);
    }
}
