//! For how long rules had gone unused, so that idle timeouts go on over a restart.
//!
//! ```text
//! record = stamp (see `stamp`), (digest:8 idle:4)*      of each rule the digest of its key in the store, and milliseconds
//! ```
//!
//! One record for all rules of a class of idle timeouts: a million of them are one write of 12 MB, not a million writes. A rule that
//! was added after the record counts as just used. Two rules of one digest (once in 10⁷ switches of a million) share the later use.

use super::stamp::{self, Moment};
use hashbrown::HashMap;

const NANOS_PER_MS: u64 = 1_000_000;
/// Bytes of a rule.
const LEN: usize = 12;

/// Returns a record's rules, given as key and nanoseconds, in whatever order.
pub fn bytes(rules: impl Iterator<Item = (Vec<u8>, u64)>) -> Vec<u8> {
    let mut uses: Vec<(u64, u32)> = rules
        .map(|(id, idle_ns)| {
            (digest(&id), u32::try_from(idle_ns / NANOS_PER_MS).unwrap_or(u32::MAX))
        })
        .collect();
    uses.sort_unstable();
    let mut out = Vec::with_capacity(uses.len() * LEN);
    for (digest, idle_ms) in uses {
        out.extend(digest.to_be_bytes());
        out.extend(idle_ms.to_be_bytes());
    }
    out
}

/// FNV-1a, for it stays what it is from release to release.
pub fn digest(bytes: &[u8]) -> u64 {
    let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// What a switch's records say.
#[derive(Default)]
pub struct Uses(HashMap<u64, Use>);

#[derive(Clone, Copy)]
struct Use {
    idle_ns: u64,
    /// How long ago it was noted.
    ago_ns: u64,
}

impl Uses {
    /// Takes a record; `None` if it is damaged.
    pub fn read(&mut self, record: &[u8], now: Moment) -> Option<()> {
        let (at, rules) = record.split_first_chunk()?;
        let (rules, rest) = rules.as_chunks::<LEN>();
        let ago_ns = stamp::age(at, now);
        for rule in rules {
            let [a, b, c, d, e, f, g, h, ms @ ..] = *rule;
            let idle_ns = u64::from(u32::from_be_bytes(ms)) * NANOS_PER_MS;
            let noted = self.0.entry(u64::from_be_bytes([a, b, c, d, e, f, g, h]));
            let known = noted.or_insert(Use { idle_ns, ago_ns });
            if idle_ns < known.idle_ns {
                *known = Use { idle_ns, ago_ns };
            }
        }
        rest.is_empty().then_some(())
    }

    /// For how long the rule of this key had gone unused, which was added `age_ns` ago. Not counted is the time since it was noted.
    pub fn idle_ns(&self, id: &[u8], age_ns: u64) -> u64 {
        let noted = self.0.get(&digest(id)).filter(|noted| noted.ago_ns <= age_ns);
        noted.map_or(0, |noted| noted.idle_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::Nanos;

    fn at(second: u64) -> Moment {
        Moment { boot: 1, monotonic: Nanos(second * 1_000_000_000), wall_ms: 0 }
    }

    fn record(second: u64, rules: &[(&str, u64)]) -> Vec<u8> {
        let rules = rules.iter().map(|(id, ms)| (id.as_bytes().to_vec(), ms * NANOS_PER_MS));
        [&stamp::bytes(0, at(second))[..], &bytes(rules)].concat()
    }

    #[test]
    fn each_rule_has_its_own_and_one_added_later_was_just_used() {
        let mut uses = Uses::default();
        uses.read(&record(10, &[("a", 7000), ("b", 0), ("c", 4)]), at(15)).unwrap();
        let of = |id: &str, age_s: u64| uses.idle_ns(id.as_bytes(), age_s * 1_000_000_000);
        assert_eq!([of("a", 60), of("b", 60), of("c", 60)], [7_000_000_000, 0, 4_000_000]);
        assert_eq!(of("unknown", 60), 0);
        assert_eq!(of("a", 4), 0, "added anew after the record");
    }

    #[test]
    fn the_order_of_the_rules_is_no_difference_and_a_torn_record_is_none() {
        let both = [record(1, &[("a", 1), ("b", 2)]), record(1, &[("b", 2), ("a", 1)])];
        assert_eq!(both[0], both[1]);
        let mut uses = Uses::default();
        assert!(uses.read(&both[0][..both[0].len() - 1], at(1)).is_none());
        assert!(uses.read(&both[0][..7], at(1)).is_none());
    }
}
