//! What rules and ports had counted when the node ended in order, so that their counters go on.
//!
//! ```text
//! rules = stamp (see `stamp`), (digest:8 packets:8 bytes:8)*       of each rule that counted the digest of its key in the store
//! ports = JSON of `PortCount`s
//! ```
//!
//! Taken back once, at the next start: a node that is killed keeps no counts. A rule that was added after the record counts from 0.

use super::stamp::{self, Moment};
use super::uses::digest;
use datapath::PortCounters;
use flow::Counted;
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use wire::DropReason;

/// The record of rules, among the counts of its switch.
pub const RULES: &[u8] = b"rules";
/// That of ports.
pub const PORTS: &[u8] = b"ports";

/// Bytes of a rule.
const LEN: usize = 24;

/// Returns the record of rules, given by key.
pub fn bytes(rules: impl Iterator<Item = (Vec<u8>, Counted)>, now: Moment) -> Vec<u8> {
    let mut out = stamp::bytes(0, now).to_vec();
    for (id, Counted { packets, bytes }) in rules {
        [digest(&id), packets, bytes].iter().for_each(|number| out.extend(number.to_be_bytes()));
    }
    out
}

/// What a switch's rules had counted.
#[derive(Default)]
pub struct Counts {
    by_digest: HashMap<u64, Counted>,
    /// How long ago that was.
    ago_ns: u64,
}

impl Counts {
    /// Reads the record of rules; `None` if it is damaged.
    pub fn read(record: &[u8], now: Moment) -> Option<Self> {
        let (at, rules) = record.split_first_chunk()?;
        let (rules, rest) = rules.as_chunks::<LEN>();
        let number = |bytes: &[u8]| bytes.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
        let counted = |rule: &[u8; LEN]| {
            let (digest, rest) = rule.split_at(8);
            let (packets, bytes) = rest.split_at(8);
            (number(digest), Counted { packets: number(packets), bytes: number(bytes) })
        };
        let by_digest = rules.iter().map(counted).collect();
        rest.is_empty().then(|| Self { by_digest, ago_ns: stamp::age(at, now) })
    }

    /// What the rule of this key had counted, which was added `age_ns` ago.
    pub fn of(&self, id: &[u8], age_ns: u64) -> Counted {
        let known = self.by_digest.get(&digest(id)).filter(|_| self.ago_ns <= age_ns);
        known.copied().unwrap_or_default()
    }
}

/// What a port had counted.
#[derive(Serialize, Deserialize)]
struct PortCount {
    port: u32,
    rx: (u64, u64),
    tx: (u64, u64),
    rx_drops: Vec<(String, u64)>,
    tx_drops: Vec<(String, u64)>,
}

/// Returns the record of ports, by number.
pub fn port_bytes<'a>(ports: impl Iterator<Item = (u32, &'a PortCounters)>) -> Vec<u8> {
    let named = |drops: &[(DropReason, u64)]| {
        drops.iter().map(|(reason, count)| (reason.name().to_owned(), *count)).collect()
    };
    let one = |(port, of): (u32, &PortCounters)| PortCount {
        port,
        rx: (of.rx_frames, of.rx_bytes),
        tx: (of.tx_frames, of.tx_bytes),
        rx_drops: named(&of.rx_drops),
        tx_drops: named(&of.tx_drops),
    };
    let all: Vec<_> = ports.map(one).collect();
    serde_json::to_vec(&all).expect("numbers and names are plain data")
}

/// Reads [`port_bytes`]; a reason that this release does not know is left out.
pub fn read_ports(record: &[u8]) -> Option<Vec<(u32, PortCounters)>> {
    let known = |drops: Vec<(String, u64)>| {
        let find = |name: &str| DropReason::ALL.iter().find(|reason| reason.name() == name);
        drops.into_iter().filter_map(|(name, count)| Some((*find(&name)?, count))).collect()
    };
    let one = |of: PortCount| {
        let counters = PortCounters {
            rx_frames: of.rx.0,
            rx_bytes: of.rx.1,
            tx_frames: of.tx.0,
            tx_bytes: of.tx.1,
            rx_drops: known(of.rx_drops),
            tx_drops: known(of.tx_drops),
        };
        (of.port, counters)
    };
    let all: Vec<PortCount> = serde_json::from_slice(record).ok()?;
    Some(all.into_iter().map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::Nanos;

    fn at(second: u64) -> Moment {
        Moment { boot: 1, monotonic: Nanos(second * 1_000_000_000), wall_ms: 0 }
    }

    #[test]
    fn each_rule_has_its_own_counts_and_one_added_later_none() {
        let counted = |packets| Counted { packets, bytes: packets * 60 };
        let rules = [(b"a".to_vec(), counted(7)), (b"b".to_vec(), counted(u64::MAX / 60))];
        let record = bytes(rules.into_iter(), at(10));
        let counts = Counts::read(&record, at(15)).unwrap();
        let of = |id: &[u8], age_s: u64| counts.of(id, age_s * 1_000_000_000);
        assert_eq!([of(b"a", 60), of(b"b", 60)], [counted(7), counted(u64::MAX / 60)]);
        assert_eq!([of(b"c", 60), of(b"a", 4)], [Counted::default(); 2]);
        assert!(Counts::read(&record[..record.len() - 1], at(15)).is_none());
        assert!(Counts::read(&record[..7], at(15)).is_none());
    }

    #[test]
    fn ports_read_are_the_ports_written() {
        let counters = PortCounters {
            rx_frames: 1,
            rx_bytes: 60,
            tx_frames: 2,
            tx_bytes: 120,
            rx_drops: DropReason::ALL.iter().zip(1..).map(|(reason, n)| (*reason, n)).collect(),
            tx_drops: vec![],
        };
        let record = port_bytes([(7, &counters)].into_iter());
        assert_eq!(read_ports(&record), Some(vec![(7, counters)]));
        assert_eq!(read_ports(&record[1..]), None);
    }
}
