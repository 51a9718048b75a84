//! Idle timeouts over restarts: what is kept of when entries were last used, and how often it is.
//!
//! Packets cost nothing here. Each so often, for the entries of one *class*, it is kept for how long they have gone unused; what is the
//! same as before is not written again. Classes are powers of two of the idle timeout: those of 8 to 15 s are class 3.
//!
//! **Bounds.** The time in which no node runs counts for no idle timeout, since nothing could use the entry. An end in order keeps
//! everything to the millisecond. After a kill an entry may live longer by a quarter of its timeout, or two seconds: an eighth, or one,
//! passes between two looks, and what is kept is rounded down to as much. None goes early that is used at least twice in its timeout.

use super::{Switch, translate};
use crate::journal::{Change, FlowId};
use crate::switch::entries::flow_id;
use flow::{Counted, FlowStats};
use openflow::FlowStatsRequest;
use std::collections::BTreeMap;
use std::ops::Range;

/// How many classes there are: timeouts are of 16 bits.
const CLASSES: u8 = 16;
/// Entries read under one lock. Chosen: some 50 µs.
const PORTION: usize = 256;
const NANOS_PER_S: u64 = 1_000_000_000;

fn class_of(idle_timeout_s: u16) -> Option<u8> {
    idle_timeout_s.checked_ilog2().map(|class| class as u8)
}

/// Seconds between two looks at a class.
fn period_s(class: u8) -> u64 {
    u64::max((1 << class) / 8, 1)
}

impl Switch {
    /// Keeps the uses of the classes that came due in these seconds of the node's life.
    pub fn keep_uses_due(&self, seconds: Range<u64>) {
        let due = |class| seconds.start / period_s(class) != seconds.end / period_s(class);
        self.keep_uses(due, |class| period_s(class) * NANOS_PER_S);
    }

    /// Keeps all uses as they are at the end.
    pub fn keep_last_uses(&self) {
        self.keep_uses(|_| true, |_| 1);
    }

    /// Keeps what entries have counted.
    pub fn keep_counts(&self) {
        let everything = translate::filter(&FlowStatsRequest::default(), &self.ends);
        let now = self.now();
        let control = self.control();
        let counted = control.pipeline.flows(&everything, now).filter(|entry| entry.packets > 0);
        let counts = |entry: FlowStats| {
            let counted = Counted { packets: entry.packets, bytes: entry.bytes };
            (flow_id(&entry), counted)
        };
        let all: Vec<_> = counted.map(counts).collect();
        drop(control);
        self.journal.record(Change::Counted(all));
    }

    fn keep_uses(&self, due: impl Fn(u8) -> bool, unit_ns: impl Fn(u8) -> u64) {
        let mut found: BTreeMap<u8, Vec<(FlowId, u64)>> =
            (0..CLASSES).filter(|&class| due(class)).map(|class| (class, Vec::new())).collect();
        let is_due = |timeout_s| class_of(timeout_s).is_some_and(&due);
        let names = self.control().pipeline.idle_entry_ids(is_due);
        for portion in names.chunks(PORTION) {
            let now = self.now();
            let control = self.control();
            for entry in portion.iter().filter_map(|&name| control.pipeline.entry(name, now)) {
                let Some(class) = class_of(entry.idle_timeout_s) else { continue };
                let unit = unit_ns(class);
                let uses = found.entry(class).or_default();
                uses.push((flow_id(&entry), entry.idle_ns / unit * unit));
            }
        }
        for (class, idle_ns) in found {
            self.journal.record(Change::Used { class, idle_ns });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_comes_at_least_eight_times_in_a_timeout_or_each_second() {
        for timeout_s in 1..=u16::MAX {
            let class = class_of(timeout_s).unwrap();
            assert!(class < CLASSES);
            let period_s = period_s(class);
            assert!(period_s == 1 || period_s * 8 <= timeout_s.into(), "{timeout_s}");
        }
        assert_eq!(class_of(0), None);
    }
}
