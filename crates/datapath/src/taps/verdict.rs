//! What rules do with a frame that is seen as it comes in, for its record.
//!
//! The snapshot that the batch goes through is asked ([`flow::Snapshot::resolve`]): nothing is counted or learned. The last answer is kept for frames that
//! differ in nothing that it rests on, so that most cost a comparison.

use crate::id::PortAt;
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
    /// The snapshot, and the time, for which it was found to hold last.
    held: (u64, Nanos),
    verdict: Option<Verdict>,
}

impl Known {
    /// Whether it is the answer for this key.
    fn is_of(&self, at: PortAt, key: &Key) -> bool {
        let same = |word: usize| (self.key.0[word] ^ key.0[word]) & self.looked_at.0[word] == 0;
        self.at == at && (0..WORDS).all(same)
    }

    /// Whether it still holds: asked once a batch.
    fn holds(&mut self, tables: &Snapshot, now: Nanos) -> bool {
        let asked = (tables.serial(), now);
        if self.held != asked && tables.holds(&self.stamp, now) {
            self.held = asked;
        }
        self.held == asked
    }
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
        if let Some(known) = self.0.as_mut().filter(|known| known.is_of(at, key))
            && known.holds(tables, now)
        {
            return known.verdict;
        }
        let Answered { verdict, looked_at, stamp } = ask(tables, key, now);
        let held = (tables.serial(), now);
        self.0 = Some(Known { at, key: *key, looked_at, stamp, held, verdict });
        verdict
    }
}

/// What rules do, and what that rests on.
struct Answered {
    verdict: Option<Verdict>,
    looked_at: Key,
    stamp: Stamp,
}

fn ask(tables: &Snapshot, key: &Key, now: Nanos) -> Answered {
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
    Answered { verdict: to.map(|to| Verdict { table, cookie, to }), looked_at, stamp }
}

/// What rules did with a frame when the tables were those of this number: what they do now, if nothing that it rests on has changed since.
pub(super) fn verdict_then(
    tables: &Snapshot,
    serial: u64,
    (at, head): (PortAt, &[u8]),
    now: Nanos,
) -> Option<Verdict> {
    let Answered { verdict, stamp, .. } = ask(tables, &key_of(at, head, (0, 0)), now);
    verdict.filter(|_| tables.answered_before(&stamp, serial))
}

/// The key of a frame as a switch sees it that comes in there, by a tunnel with this id and from this end, if by one.
pub(super) fn key_of(at: PortAt, head: &[u8], (tunnel_id, tun_src): (u32, u16)) -> Key {
    let mut key = wire::parse_bytes(head).0;
    key.set(Field::InPort, u128::from(at.port));
    key.set(Field::TunnelId, tunnel_id.into());
    key.set(Field::TunSrc, tun_src.into());
    key
}
