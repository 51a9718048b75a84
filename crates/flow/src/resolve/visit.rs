//! Who is told of each step of a frame's way.

use super::{Asked, Hit};
use crate::action::{Action, PortNo};
use crate::meter::MeterVerdict;
use crate::packet::PacketIn;
use std::ops::Range;
use wire::{DropReason, Field, Key};

/// Why a way was not followed to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// The frame's program ends here; other copies go on.
    Cut,
    /// The rest depends on this field, which is not known.
    Depends(Field),
    /// The visitor knows enough.
    Enough,
}

/// Where a frame or a copy leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit<'a> {
    /// By each of these ports; not empty.
    Ports(&'a [PortNo]),
    /// To the controller.
    Controller(PacketIn),
}

/// Is told of each step, in order. A copy's steps come between those of the frame it was made of.
///
/// Whoever has heard enough answers [`Stop::Enough`].
#[expect(clippy::missing_errors_doc, reason = "the trait says what all of them mean")]
pub trait Visitor {
    /// A table was searched for a frame of this key, of which the bits of the mask are known; of a frame that is there whole, with those that
    /// are not known too: whether they matter is the visitor's to say, who knows the table's entries.
    fn search(&mut self, _table: u8, _of: (&Key, &Key), _found: Option<&Hit>) -> Result<(), Stop> {
        Ok(())
    }

    /// The frame finds an entry.
    fn hit(&mut self, _hit: Hit) -> Result<(), Stop> {
        Ok(())
    }

    /// A table has no entry for the frame.
    fn miss(&mut self, _table: u8) -> Result<(), Stop> {
        Ok(())
    }

    /// The frame passes a meter, which perhaps changes its DSCP.
    fn limit(&mut self, _meter: u32, _remarks: bool) -> Result<(), Stop> {
        Ok(())
    }

    /// What a meter does now, with a frame that is there whole.
    fn metered(&mut self, _meter: u32, _verdict: MeterVerdict) -> Result<(), Stop> {
        Ok(())
    }

    /// A group chose these of its buckets; none if it does not exist, or none of them is usable.
    fn group(&mut self, _group: u32, _chosen: &Range<usize>) {}

    /// The frame or a copy takes a bucket of a group.
    fn bucket(&mut self, _group: u32, _bucket: usize) -> Result<(), Stop> {
        Ok(())
    }

    /// The headers are changed, if the frame has them. A TTL that is not known is taken not to run out.
    fn edit(&mut self, _action: &Action) -> Result<(), Stop> {
        Ok(())
    }

    /// A bridge decides (`NORMAL`), and learns where the source is.
    fn bridge(&mut self) -> Result<(), Stop> {
        Ok(())
    }

    /// An output, or the rest of the way, leads nowhere. The frame is lost for the last of these reasons if nothing of it leaves.
    fn nowhere(&mut self, _reason: DropReason) {}

    /// What left of the frame or a copy so far left as it was: now that changes, or the copy ends, or another begins.
    fn parted(&mut self) {}

    /// A frame that is there whole, or a copy, leaves as it is now; instead of [`Visitor::exit`].
    fn leave(&mut self, _frame: &Asked, _queue: u32, _exit: Exit<'_>) -> Result<(), Stop> {
        Ok(())
    }

    /// The frame or a copy leaves, after these edits, by this queue.
    fn exit(&mut self, _edits: &[Action], _queue: u32, _exit: Exit<'_>) -> Result<(), Stop> {
        Ok(())
    }
}
