//! Names of a datapath's switches and ports: for the node, and within the workers.

pub use port::{PortAt, SwitchId};

/// Index of a switch in every worker's table, chosen by the control thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct SwitchIx(pub(crate) u32);

/// Index of a port in every worker's table, chosen by the control thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct PortIx(pub(crate) u32);

/// One side of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Side {
    /// Into the switch.
    Rx = 1,
    /// Out of the switch.
    Tx = 2,
    /// Of a tunnel, on the underlay: both ways.
    Outside = 4,
    /// Of its queues: into them and out of them.
    Queue = 8,
    /// Into the switch, while frames are timed.
    Timed = 16,
}
