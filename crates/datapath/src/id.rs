//! Names of a datapath's switches and ports: for the node, and within the workers.

use flow::PortNo;
use std::fmt;

/// A switch of this node. The node chooses the number and never reuses one that is still in service.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SwitchId(pub u32);

impl fmt::Display for SwitchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "switch {}", self.0)
    }
}

/// A port of one switch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PortAt {
    /// The switch.
    pub switch: SwitchId,
    /// Its port number.
    pub port: PortNo,
}

impl fmt::Display for PortAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} port {}", self.switch, self.port)
    }
}

/// Index of a switch in every worker's table, chosen by the control thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct SwitchIx(pub(crate) u32);

/// Index of a port in every worker's table, chosen by the control thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct PortIx(pub(crate) u32);
