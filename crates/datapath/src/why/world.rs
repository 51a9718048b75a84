//! Switches and ports as they are at one moment.

use crate::heads::fits;
use crate::id::{PortAt, PortIx, SwitchId, SwitchIx};
use flow::{Asked, PortNo, Snapshot};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use wire::DropReason;

/// A port.
pub(crate) struct Door {
    pub(crate) ix: PortIx,
    pub(crate) mtu: u32,
    pub(crate) is_up: bool,
    /// The other end of a vlink.
    pub(crate) far: Option<PortAt>,
}

/// All of them.
pub(crate) struct World {
    pub(crate) switches: HashMap<SwitchId, (SwitchIx, Arc<Snapshot>)>,
    pub(crate) ports: BTreeMap<PortAt, Door>,
}

impl World {
    /// Ports of a switch.
    pub(super) fn ports_of(&self, switch: SwitchId) -> usize {
        let at = |port: PortNo| PortAt { switch, port };
        self.ports.range(at(0)..=at(u32::MAX)).count()
    }

    /// The port, if a frame gets out of it.
    ///
    /// # Errors
    /// Why it does not.
    pub(super) fn out(&self, at: PortAt, frame: &Asked) -> Result<&Door, DropReason> {
        let door = self.ports.get(&at).ok_or(DropReason::NoPort)?;
        let is_open = |at: &PortAt| self.ports.get(at).is_some_and(|door| door.is_up);
        match () {
            () if !door.is_up || !door.far.iter().all(is_open) => Err(DropReason::PortDown),
            () if !fits(&frame.head, &frame.offload, frame.frame_len, door.mtu) => {
                Err(DropReason::TooBig)
            }
            () => Ok(door),
        }
    }
}
