//! MPLS shims and the PBB I-TAG.

use super::{Edit, EditError};
use crate::{Field, eth_type, parse};

/// Bytes of an MPLS shim.
const SHIM: usize = 4;
/// Bytes that a PBB push adds: type, control information, customer addresses.
const PBB: usize = 2 + parse::ITAG;

impl Edit<'_> {
    /// Pushes an MPLS shim before all others and after the VLAN tags; the frame's type becomes `eth_type` (0x8847 or 0x8848).
    ///
    /// Label, traffic class and TTL come from the shim that was first; without one the TTL is IP's and the rest 0 (OpenFlow 1.3.5 §5.12.1).
    ///
    /// # Errors
    /// `Malformed` for another type or an 802.3 frame; `NotPresent` without an Ethernet header; `NoRoom`.
    pub fn push_mpls(&mut self, eth_type: u16) -> Result<(), EditError> {
        if !eth_type::is_mpls(eth_type) {
            return Err(EditError::Malformed);
        }
        let type_at = self.type_at()?;
        let bottom = !eth_type::is_mpls(self.eth_type());
        let copied = match self.layers.labels {
            0 => self.nw_ttl().map_or(0, u32::from),
            _ => u32::from_be_bytes(self.bytes_at(type_at + 2)?) & !0x100,
        };
        let shim = copied | u32::from(bottom) << 8;
        self.insert(type_at + 2, SHIM)?.copy_from_slice(&shim.to_be_bytes());
        self.put(type_at, eth_type.to_be_bytes())?;
        self.reparse();
        Ok(())
    }

    /// Pops the first MPLS shim; the frame's type becomes `eth_type`.
    ///
    /// # Errors
    /// `NotPresent` without a shim; `Malformed` for a type that is none (below 0x600) or an 802.3 frame.
    pub fn pop_mpls(&mut self, eth_type: u16) -> Result<(), EditError> {
        if self.layers.labels == 0 {
            return Err(EditError::NotPresent);
        }
        if eth_type < eth_type::MIN {
            return Err(EditError::Malformed);
        }
        let type_at = self.type_at()?;
        self.remove(type_at + 2, SHIM)?;
        self.put(type_at, eth_type.to_be_bytes())?;
        self.reparse();
        Ok(())
    }

    /// Pushes a PBB I-TAG right after the Ethernet addresses: tags that were there become the customer's.
    ///
    /// The customer addresses are those of the frame, the I-SID is that of the tag that was outermost or 0, the I-PCP is the VLAN's
    /// (OpenFlow 1.3.5 §5.12.1).
    ///
    /// # Errors
    /// `Malformed` for a type other than 0x88e7; `NotPresent` without an Ethernet header; `NoRoom`.
    pub fn push_pbb(&mut self, eth_type: u16) -> Result<(), EditError> {
        if eth_type != eth_type::PBB {
            return Err(EditError::Malformed);
        }
        if self.layers.l3 == 0 {
            return Err(EditError::NotPresent);
        }
        let addresses: [u8; 12] = self.bytes_at(0)?;
        let isid = self.key.get(Field::PbbIsid) as u32;
        let pcp = self.key.get(Field::VlanPcp) as u32;
        let gap = self.insert(12, PBB)?;
        gap[..2].copy_from_slice(&eth_type.to_be_bytes());
        gap[2..6].copy_from_slice(&(pcp << 29 | isid).to_be_bytes());
        gap[6..].copy_from_slice(&addresses);
        self.reparse();
        Ok(())
    }

    /// Pops the I-TAG: the customer addresses become the frame's. VLAN tags before it stay.
    ///
    /// # Errors
    /// `NotPresent` without an I-TAG; `Malformed` when no customer frame follows it or it came in an 802.3 frame.
    pub fn pop_pbb(&mut self) -> Result<(), EditError> {
        if self.eth_type() != eth_type::PBB {
            return Err(EditError::NotPresent);
        }
        let type_at = self.type_at()?;
        // The customer's own type must follow, or what is left would be no frame.
        let itag: [u8; parse::ITAG + 2] =
            self.bytes_at(type_at + 2).map_err(|_| EditError::Malformed)?;
        let (_, addresses) =
            itag[..parse::ITAG].split_last_chunk::<12>().ok_or(EditError::Malformed)?;
        self.remove(type_at, PBB)?;
        self.put(0, *addresses)?;
        self.reparse();
        Ok(())
    }
}
