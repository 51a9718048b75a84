//! VLAN tags, on the common path: the key and layers are moved, not parsed anew.

use super::{Edit, EditError};
use crate::{VLAN_PRESENT, eth_type};

/// Where the outermost tag begins: after the addresses.
const AT: usize = 12;
/// Bytes of a tag.
const TAG: usize = 4;

impl Edit<'_> {
    /// Pushes an outermost VLAN tag of type `tpid` (0x8100 or 0x88a8) with the VID and PCP of the tag that was outermost, or 0.
    ///
    /// # Errors
    /// `Malformed` for another `tpid`; `NotPresent` without an Ethernet header; `NoRoom`.
    pub fn push_vlan(&mut self, tpid: u16) -> Result<(), EditError> {
        if !eth_type::is_vlan(tpid) {
            return Err(EditError::Malformed);
        }
        if self.layers.l3 == 0 {
            return Err(EditError::NotPresent);
        }
        let tci = self.key.0[1] as u16 & !VLAN_PRESENT;
        let tag = u32::from(tpid) << 16 | u32::from(tci);
        self.insert(AT, TAG)?.copy_from_slice(&tag.to_be_bytes());
        self.key.0[1] |= u64::from(VLAN_PRESENT);
        self.layers.vlans += 1;
        self.layers.move_by(TAG as i16);
        Ok(())
    }

    /// Pops the outermost VLAN tag.
    ///
    /// # Errors
    /// `NotPresent` for an untagged frame.
    pub fn pop_vlan(&mut self) -> Result<(), EditError> {
        if self.layers.vlans == 0 {
            return Err(EditError::NotPresent);
        }
        self.remove(AT, TAG)?;
        self.layers.vlans -= 1;
        self.layers.move_by(-(TAG as i16));
        let next = match self.layers.vlans {
            0 => 0,
            _ => u16::from_be_bytes(self.bytes_at(AT + 2)?) | VLAN_PRESENT,
        };
        self.key.0[1] = self.key.0[1] & !0xffff | u64::from(next);
        Ok(())
    }
}
