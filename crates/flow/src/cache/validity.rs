//! Whether a trace that was found out by an older snapshot is still this one's.
//!
//! A trace holds entries by their records, which stay while their table does not change, and nothing of groups, meters and ports: those
//! are asked when it is run. So it rests on the tables that were searched for it, and on the bits of the key that they look at. Where such
//! a table has changed, the changes are compared with the key: most are about other packets.

use super::Trace;
use crate::snapshot::Snapshot;
use wire::{Field, Key};

/// What is to be done with a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// It holds.
    Good,
    /// It holds, as if made by this snapshot; so many changes were compared.
    Renewed(u32),
    /// It may not hold; so many changes were compared.
    Stale(u32),
}

/// Whether the trace of a packet of this key, found out by snapshot `made`, is `snapshot`'s, too.
#[inline]
pub(super) fn judge(snapshot: &Snapshot, key: &Key, trace: &Trace, made: u64) -> Verdict {
    if snapshot.versions.newest_table <= made && made <= snapshot.serial {
        return Verdict::Good;
    }
    compare(snapshot, key, trace, made)
}

fn compare(snapshot: &Snapshot, key: &Key, trace: &Trace, made: u64) -> Verdict {
    if made > snapshot.serial {
        return Verdict::Stale(0);
    }
    let mut compared = 0;
    for (number, _) in trace.searched() {
        let Some(version) = snapshot.versions.table_version(number) else { continue };
        if version.since > made {
            let (spared, changes) = version.log.spares(key, &written_before(number), made);
            compared += changes;
            if !spared {
                return Verdict::Stale(compared);
            }
        }
    }
    Verdict::Renewed(compared)
}

/// Bits that entries of earlier tables may have written.
fn written_before(table: u8) -> Key {
    let mut bits = Key::default();
    if table > 0 {
        bits.set(Field::Metadata, Field::Metadata.full());
    }
    bits
}
