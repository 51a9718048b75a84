//! The whole answer, gathered on the way.

use super::visit::{Exit, Stop, Visitor};
use super::{Hit, Stamp};
use crate::action::{Action, PortNo};
use crate::packet::PacketIn;
use wire::{DropReason, Field, Key};

/// What becomes of a frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resolved {
    /// Entries that it finds, in order.
    pub entries: Vec<Hit>,
    /// Changes of its headers before it leaves, in order. A change of a header that it does not have does nothing.
    pub edits: Vec<Action>,
    /// The table that has no entry for it, if one has not.
    pub missed: Option<u8>,
    /// Buckets of groups that it or a copy takes.
    pub buckets: Vec<(u32, usize)>,
    /// Its source, if a bridge decides and learns it: VLAN id and address.
    pub learns: Vec<(u16, u64)>,
    /// Queue that it leaves by; 0 = none chosen.
    pub queue: u32,
    /// Where it goes.
    pub exit: To,
    /// Why a copy is lost while another leaves.
    pub lost: Option<DropReason>,
    /// Meters that it passes, the controller's included.
    pub limits: Vec<Metered>,
    /// One of those meters may change its DSCP, beside [`Resolved::edits`].
    pub remarks: bool,
    /// A TTL is decremented on its way, of the frame or of a copy.
    pub decrements: bool,
    /// Bits of the frame, as it came, that the answer rests on.
    pub looked_at: Key,
    /// Until when the answer holds.
    pub stamp: Stamp,
}

/// A meter on a frame's way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metered {
    /// Its number.
    pub meter: u32,
    /// Entries that the frame has found when it comes there: all that one which is dropped there counts for.
    pub entries: usize,
    /// A copy has left before.
    pub is_late: bool,
}

/// Where a frame goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum To {
    /// Out of one port.
    Port(PortNo),
    /// Out of several ports, everywhere alike.
    Ports(Box<[PortNo]>),
    /// To the controller.
    Controller(PacketIn),
    /// To several destinations that differ in how it looks, or are ports and the controller. `edits` and `queue` of the answer are empty.
    Several(Box<[Leaving]>),
    /// Nowhere.
    Drop(DropReason),
    /// It depends on this field, which is not known.
    Depends(Field),
}

/// One of several ways in which a frame leaves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leaving {
    /// Changes of its headers, in order.
    pub edits: Vec<Action>,
    /// Queue that it leaves by.
    pub queue: u32,
    /// [`To::Port`], [`To::Ports`] or [`To::Controller`].
    pub to: To,
}

/// What was heard so far.
#[derive(Default)]
pub(super) struct Answer {
    entries: Vec<Hit>,
    missed: Option<u8>,
    buckets: Vec<(u32, usize)>,
    limits: Vec<Metered>,
    remarks: bool,
    decrements: bool,
    leaving: Vec<Leaving>,
}

impl Visitor for Answer {
    fn hit(&mut self, hit: Hit) -> Result<(), Stop> {
        self.entries.push(hit);
        Ok(())
    }

    fn miss(&mut self, table: u8) -> Result<(), Stop> {
        self.missed = Some(table);
        Ok(())
    }

    fn bucket(&mut self, group: u32, bucket: usize) -> Result<(), Stop> {
        self.buckets.push((group, bucket));
        Ok(())
    }

    fn limit(&mut self, meter: u32, remarks: bool) -> Result<(), Stop> {
        self.remarks |= remarks;
        let (entries, is_late) = (self.entries.len(), !self.leaving.is_empty());
        self.limits.push(Metered { meter, entries, is_late });
        Ok(())
    }

    fn edit(&mut self, action: &Action) -> Result<(), Stop> {
        self.decrements |= matches!(action, Action::DecNwTtl | Action::DecMplsTtl);
        Ok(())
    }

    fn exit(&mut self, edits: &[Action], queue: u32, exit: Exit<'_>) -> Result<(), Stop> {
        let to = match exit {
            Exit::Ports(&[port]) => To::Port(port),
            Exit::Ports(ports) => To::Ports(ports.into()),
            Exit::Controller(why) => To::Controller(why),
        };
        self.leaving.push(Leaving { edits: edits.to_vec(), queue, to });
        Ok(())
    }
}

impl Answer {
    /// The answer, once the way has ended.
    pub fn resolved(
        self,
        end: Result<Option<DropReason>, Stop>,
        lost: Option<DropReason>,
        learns: Vec<(u16, u64)>,
        (looked_at, stamp): (Key, Stamp),
    ) -> Resolved {
        let Self { entries, missed, buckets, limits, remarks, decrements, leaving } = self;
        let nowhere = |to| Leaving { edits: Vec::new(), queue: 0, to };
        let (Leaving { edits, queue, to }, lost) = match end {
            Err(Stop::Depends(field)) => (nowhere(To::Depends(field)), None),
            Ok(Some(reason)) => (nowhere(To::Drop(reason)), None),
            Ok(None) | Err(Stop::Cut | Stop::Enough) => (together(leaving), lost),
        };
        Resolved {
            entries,
            edits,
            missed,
            buckets,
            learns,
            queue,
            exit: to,
            lost,
            limits,
            remarks,
            decrements,
            looked_at,
            stamp,
        }
    }
}

/// All ways in which a frame leaves as one, if they are alike.
fn together(mut leaving: Vec<Leaving>) -> Leaving {
    match leaving.len() {
        0 => return Leaving { edits: Vec::new(), queue: 0, to: To::Drop(DropReason::ByRule) },
        1 => return leaving.remove(0),
        _ => {}
    }
    let mut ports = Vec::new();
    let first = leaving.first();
    let is_like_first = |other: &Leaving| {
        first.is_some_and(|first| (&first.edits, first.queue) == (&other.edits, other.queue))
    };
    for one in &leaving {
        match &one.to {
            To::Port(port) if is_like_first(one) => ports.push(*port),
            To::Ports(more) if is_like_first(one) => ports.extend_from_slice(more),
            _ => {
                return Leaving { edits: Vec::new(), queue: 0, to: To::Several(leaving.into()) };
            }
        }
    }
    let Leaving { edits, queue, .. } = leaving.swap_remove(0);
    Leaving { edits, queue, to: To::Ports(ports.into()) }
}
