//! Who hits which bound of a node, as a table.

use crate::table::{Table, dash, short};
use api::BoundHit;
use std::time::{SystemTime, UNIX_EPOCH};

/// Rows that are printed. Chosen: half a screen.
const ROWS: usize = 12;

/// A row for each, as they come; `now_ns` since 1970. Nothing if there are none.
pub fn table(hits: &[BoundHit], now_ns: u64) -> String {
    let mut table =
        Table::new(&["BOUND HIT", "SWITCH", "WHO", ">TIMES", "SINCE", "LAST", "WHAT HAPPENED"]);
    for hit in hits.iter().take(ROWS) {
        let text = match &hit.key {
            Some(key) => format!("{} ({key})", hit.text),
            None => hit.text.clone(),
        };
        table.row(vec![
            hit.bound.word().into(),
            dash(hit.switch.as_ref()),
            dash(hit.who.as_ref()),
            short(hit.times as f64),
            ago(now_ns, hit.since_ns),
            ago(now_ns, hit.last_ns),
            text,
        ]);
    }
    let more = match hits.len().saturating_sub(ROWS) {
        0 => String::new(),
        more => format!("and {more} more: suiro status --json\n"),
    };
    if hits.is_empty() { String::new() } else { format!("{table}{more}") }
}

/// By the wall clock.
pub fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

/// `now`, `12 s ago`, `3 min ago`, `5 h ago`.
fn ago(now_ns: u64, then_ns: u64) -> String {
    match now_ns.saturating_sub(then_ns) / 1_000_000_000 {
        0..=1 => "now".into(),
        seconds @ 2..=119 => format!("{seconds} s ago"),
        seconds @ 120..=7199 => format!("{} min ago", seconds / 60),
        seconds => format!("{} h ago", seconds / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::Bound;

    fn hit(switch: &str) -> BoundHit {
        BoundHit {
            bound: Bound::FloodCopies,
            switch: Some(switch.into()),
            who: Some("p1".into()),
            text: "frames were not flooded".into(),
            key: Some("max_flood_copies_per_s".into()),
            since_ns: 0,
            last_ns: 299_000_000_000,
            times: 53_211,
            goes_on: true,
        }
    }

    #[test]
    fn a_hit_is_a_row_and_none_are_nothing() {
        assert_eq!(
            table(&[hit("s1")], 300_000_000_000),
            "BOUND HIT     SWITCH  WHO  TIMES  SINCE      LAST  WHAT HAPPENED\n\
             flood_copies  s1      p1   53.2k  5 min ago  now   frames were not flooded (max_flood_copies_per_s)\n"
        );
        assert_eq!(table(&[], 0), "");
    }

    #[test]
    fn many_leave_room_for_the_rest_of_the_page() {
        let many: Vec<_> = (0..20).map(|n| hit(&format!("s{n}"))).collect();
        let text = table(&many, 0);
        assert_eq!(text.lines().count(), 1 + ROWS + 1);
        assert!(text.ends_with("and 8 more: suiro status --json\n"));
    }

    #[test]
    fn times_are_short() {
        let said = [0, 5, 130, 7300].map(|seconds| ago(seconds * 1_000_000_000, 0));
        assert_eq!(said, ["now", "5 s ago", "2 min ago", "2 h ago"]);
    }
}
