//! What rules do with a frame that is seen as it comes in, for its record.
//!
//! The snapshot that the batch goes through is asked ([`flow::Snapshot::resolve`]): nothing is counted or learned. The last answer is kept for frames that
//! differ in nothing that it rests on, so that most cost a comparison.

use crate::id::PortAt;
use crate::rung::Rung;
use flow::{Asked, Nanos, Resolved, Snapshot, Stamp, To};
use wire::{DropReason, Field, Key, WORDS};

/// What became of a frame by the rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// The last table that was searched.
    pub table: u8,
    /// The cookie of the entry found there; `None`: there is none.
    pub cookie: Option<u64>,
    /// Where the frame goes.
    pub to: Whither,
    /// The rung that took its batch, if it is known.
    pub rung: Option<Rung>,
    /// From when the batch was there until the last of its frames had left; what waits in queues is not waited for.
    pub wait: Nanos,
}

/// Where a frame goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whither {
    /// Out of this port.
    Port(u32),
    /// To several places.
    Several,
    /// To the controller.
    Controller,
    /// Nowhere.
    Nowhere(DropReason),
}

impl Whither {
    /// A kind from 1 on, and a number.
    pub(super) fn packed(self) -> (u8, u32) {
        match self {
            Self::Port(port) => (1, port),
            Self::Several => (2, 0),
            Self::Controller => (3, 0),
            Self::Nowhere(reason) => (4, reason as u32),
        }
    }

    pub(super) fn of((kind, number): (u8, u32)) -> Option<Self> {
        Some(match kind {
            1 => Self::Port(number),
            2 => Self::Several,
            3 => Self::Controller,
            4 => Self::Nowhere(*DropReason::ALL.get(number as usize)?),
            _ => return None,
        })
    }
}

/// The last answer.
#[derive(Default)]
pub(super) struct Verdicts(Option<Known>);

struct Known {
    at: PortAt,
    key: Key,
    looked_at: Key,
    stamp: Stamp,
    verdict: Option<Verdict>,
}

impl Verdicts {
    /// What rules do with a frame of this key. `None`: it cannot be told.
    pub(super) fn of(
        &mut self,
        tables: &Snapshot,
        at: PortAt,
        now: Nanos,
        key: &Key,
    ) -> Option<Verdict> {
        let is_it = |known: &Known| {
            let same =
                |word: usize| (known.key.0[word] ^ key.0[word]) & known.looked_at.0[word] == 0;
            known.at == at && (0..WORDS).all(same) && tables.holds(&known.stamp, now)
        };
        if let Some(known) = self.0.as_ref().filter(|known| is_it(known)) {
            return known.verdict;
        }
        let Resolved { entries, missed, exit, looked_at, stamp, .. } =
            tables.resolve(key, &Asked::ALL, now);
        let to = match exit {
            To::Port(port) => Some(Whither::Port(port)),
            To::Ports(_) | To::Several(_) => Some(Whither::Several),
            To::Controller(_) => Some(Whither::Controller),
            To::Drop(reason) => Some(Whither::Nowhere(reason)),
            To::Depends(_) => None,
        };
        let last = entries.last().filter(|_| missed.is_none());
        let table = missed.or(last.map(|hit| hit.table)).unwrap_or_default();
        let cookie = last.map(|hit| tables.cookie(hit));
        let verdict =
            to.map(|to| Verdict { table, cookie, to, rung: None, wait: Nanos::default() });
        self.0 = Some(Known { at, key: *key, looked_at, stamp, verdict });
        verdict
    }
}

/// The key of a frame as a switch sees it that comes in there, by a tunnel with this id and from this end, if by one.
pub(super) fn key_of(at: PortAt, head: &[u8], (tunnel_id, tun_src): (u32, u16)) -> Key {
    let mut key = wire::parse_bytes(head).0;
    key.set(Field::InPort, u128::from(at.port));
    key.set(Field::TunnelId, tunnel_id.into());
    key.set(Field::TunSrc, tun_src.into());
    key
}
