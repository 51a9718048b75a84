//! Names of switches and ports, as those have them who connect ports to switches.

use std::fmt;

/// A switch of this node. The node chooses the number and never reuses one that is still in service.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct SwitchId(pub u32);

impl fmt::Display for SwitchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "switch {}", self.0)
    }
}

/// A port of one switch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct PortAt {
    /// The switch.
    pub switch: SwitchId,
    /// Its OpenFlow port number.
    pub port: u32,
}

impl fmt::Display for PortAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} port {}", self.switch, self.port)
    }
}
