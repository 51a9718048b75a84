//! The last changes of one table: which keys find something else than before.

use std::sync::Arc;
use wire::Key;

/// Changes that a log holds. Chosen: more than a busy controller makes between two packets of a flow that pays to be cached.
const ROOM: usize = 64;

/// Packets with this key under this mask may find another entry from snapshot `serial` on.
#[derive(Debug)]
struct Change {
    serial: u64,
    key: Key,
    mask: Key,
}

/// The last changes, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    changes: Vec<Arc<Change>>,
    /// Changes up to this serial may be missing.
    forgotten: u64,
}

/// Changes since the last snapshot.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    changes: Vec<(Key, Key)>,
    /// There were more.
    overflowed: bool,
}

impl Pending {
    /// Notes a change of an entry; `entry` tells its key and mask.
    pub fn note(&mut self, entry: impl FnOnce() -> (Key, Key)) {
        if self.overflowed {
            return;
        }
        let entry = entry();
        if self.changes.last() != Some(&entry) {
            self.overflowed = self.changes.len() == ROOM;
            self.changes.push(entry);
        }
    }

    /// Whether there was none.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

impl Log {
    /// The log with what changed up to snapshot `serial`.
    pub fn with(&self, pending: Pending, serial: u64) -> Self {
        if pending.overflowed {
            return Self { changes: Vec::new(), forgotten: serial };
        }
        let new = pending.changes.into_iter();
        let mut changes = self.changes.clone();
        changes.extend(new.map(|(key, mask)| Arc::new(Change { serial, key, mask })));
        let gone = changes.len().saturating_sub(ROOM);
        let forgotten = changes[..gone].last().map_or(self.forgotten, |change| change.serial);
        changes.drain(..gone);
        Self { changes, forgotten }
    }

    /// Whether packets of this key find what they found by snapshot `made`, as far as the log goes back; and how many comparisons that took.
    /// Bits of `ignored` may have been others: they never tell a change apart from the key.
    pub fn spares(&self, key: &Key, ignored: &Key, made: u64) -> (bool, u32) {
        if made < self.forgotten {
            return (false, 0);
        }
        let mut compared = 0;
        let later = self.changes.iter().rev().take_while(|change| change.serial > made);
        let spared = !later.inspect(|_| compared += 1).any(|change| change.concerns(key, ignored));
        (spared, compared)
    }
}

impl Change {
    fn concerns(&self, key: &Key, ignored: &Key) -> bool {
        let words = key.0.iter().zip(&ignored.0).zip(self.key.0.iter().zip(&self.mask.0));
        words.fold(0, |differ, ((word, ignored), (value, mask))| {
            differ | (word ^ value) & mask & !ignored
        }) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Field;

    fn to(port: u128) -> (Key, Key) {
        let (mut key, mut mask) = (Key::default(), Key::default());
        key.set(Field::TpDst, port);
        mask.set(Field::TpDst, 0xffff);
        (key, mask)
    }

    fn pending(ports: std::ops::Range<u128>) -> Pending {
        let mut pending = Pending::default();
        ports.for_each(|port| pending.note(|| to(port)));
        pending
    }

    #[test]
    fn only_changes_since_then_with_the_keys_bits_count() {
        let log = Log::default().with(pending(1..3), 5).with(pending(7..8), 9);
        let none = Key::default();
        let spares = |port, made| log.spares(&to(port).0, &none, made);
        assert_eq!(spares(1, 4), (false, 3));
        assert_eq!(spares(1, 5), (true, 1));
        assert_eq!(spares(7, 8), (false, 1));
        assert_eq!(spares(7, 9), (true, 0));
        assert_eq!(spares(4, 0), (true, 3));
        assert_eq!(log.spares(&to(4).0, &to(4).1, 8), (false, 1), "a bit that may be any");
    }

    #[test]
    fn what_a_log_forgot_is_never_spared() {
        let none = Key::default();
        let log = Log::default().with(pending(0..60), 2).with(pending(60..70), 3);
        assert!(!log.spares(&to(100).0, &none, 1).0, "six of that snapshot's changes are gone");
        assert_eq!(log.spares(&to(100).0, &none, 2), (true, 10));
        let log = log.with(pending(0..65), 4);
        assert_eq!(log.spares(&to(100).0, &none, 3), (false, 0), "too many at once");
        assert_eq!(log.spares(&to(100).0, &none, 4), (true, 0));
    }
}
