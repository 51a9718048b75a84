//! What would become of a frame that came in now: its way through switches, over vlinks and out of ports, step by step.
//!
//! The tables that workers have are asked ([`flow::Snapshot::follow`]), and of ports what workers ask of them. Nothing is sent, counted, learned or
//! charged. What only happens to real frames is left out: rings and queues that are full, controllers' quotas, how many copies a switch has left, steering between workers, and what a
//! port's own device does.

mod journey;
mod world;

pub(crate) use journey::Journey;
pub(crate) use world::{Door, World};

use crate::id::{PortAt, SwitchId};
use flow::{Asked, Hit, MeterVerdict, PacketIn, PortNo};
use std::ops::Range;
use wire::{DropReason, Field, Key};

/// Whoever knows the entries of switches.
pub trait Rules {
    /// The field on which it depends what a frame of this key finds in a table, as far as the key is known; `found` is what it finds as it is.
    fn open_field(
        &self,
        switch: SwitchId,
        table: u8,
        of: (&Key, &Key),
        found: Option<&Hit>,
    ) -> Option<Field>;
}

/// Visits of switches after which nothing more is told. Chosen: twice the longest path.
pub(crate) const VISITS: usize = 2048;

/// Visits of one switch after which it is a storm, in which it depends on the workers' memory which copies live on. Chosen: more than a program has
/// ways around.
pub(crate) const ROUNDS: usize = 16;

/// The way of a frame.
#[derive(Clone, Default)]
pub struct Way {
    /// Its steps and those of its copies, in the order in which workers take them.
    pub steps: Vec<Step>,
    /// A field that a step asks for and that is not known: the way was not followed further.
    pub depends: Option<Field>,
    /// It was not followed to its end: it goes round among switches.
    pub is_cut: bool,
}

/// One step.
#[derive(Clone)]
pub struct Step {
    /// The switch.
    pub switch: SwitchId,
    /// Vlinks behind the frame.
    pub hops: u32,
    /// What happens.
    pub what: What,
}

/// What happens to a frame.
#[derive(Clone)]
pub enum What {
    /// It comes in by a port.
    Enters(PortNo, Box<Asked>),
    /// A table is searched for a frame of this key, as far as it is known.
    Search(u8, Box<(Key, Key)>),
    /// The table has an entry for it.
    Hit(Hit),
    /// The table has none.
    Miss(u8),
    /// A meter is asked.
    Meter(u32, MeterVerdict),
    /// A group chooses buckets.
    Group(u32, Range<usize>),
    /// It or a copy takes a bucket.
    Bucket(u32, usize),
    /// A bridge decides.
    Bridge,
    /// An output, or the rest of the way, leads nowhere.
    Nowhere(DropReason),
    /// It goes to the controller.
    Controller(PacketIn),
    /// It crosses the vlink of this port, to that one.
    Crosses(PortNo, PortAt),
    /// It leaves by this port and queue, as it is then.
    Leaves(PortNo, u32, Box<Asked>),
    /// This port does not take it.
    Refused(PortNo, DropReason),
    /// It or a copy of it is lost by the switch's verdict.
    Lost(DropReason),
}
