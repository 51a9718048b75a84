//! What frames change of a switch as they pass, beside its counters.

use crate::action::PortNo;

/// What frames that were only followed would have changed of one switch.
#[derive(Clone, Default, Debug)]
pub struct Memory {
    /// Stations that a bridge would have learned: VLAN id, address and port, the latest last.
    pub(super) learned: Vec<(u16, u64, PortNo)>,
    /// Frames that were put to meters: meter and bytes.
    pub(super) passed: Vec<(u32, u32)>,
}

impl Memory {
    /// Behind which port a station would be known now.
    pub(super) fn station(&self, vlan: u16, mac: u64) -> Option<PortNo> {
        let found = self.learned.iter().rev().find(|&&(v, m, _)| (v, m) == (vlan, mac));
        found.map(|&(_, _, port)| port)
    }
}
