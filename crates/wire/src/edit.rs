//! How a header is changed in place.

use crate::{Field, Head, Key, Layers, Offload};

/// Why an edit was refused; head, key, layers and offload are as they were.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EditError {
    /// The head has no room for a pushed header, or the header lies past the head.
    NoRoom,
    /// The frame has no such header or field.
    NotPresent,
    /// The TTL or hop limit would reach 0.
    TtlExpired,
    /// The frame's bytes or its offload state contradict the edit.
    Malformed,
}

/// One frame under edit; all five stay in step.
pub struct Edit<'a> {
    /// The bytes.
    pub head: &'a mut Head,
    /// The flow key.
    pub key: &'a mut Key,
    /// Where the headers are.
    pub layers: &'a mut Layers,
    /// Checksum and segmentation state.
    pub offload: &'a mut Offload,
    /// Bytes of the whole frame.
    pub frame_len: &'a mut u32,
}

#[expect(unused_variables, reason = "signatures first; the bodies follow in the next commit")]
impl Edit<'_> {
    /// Pushes a VLAN tag.
    pub fn push_vlan(&mut self, tpid: u16) -> Result<(), EditError> {
        Err(EditError::NotPresent)
    }
    /// Pops the outermost VLAN tag.
    pub fn pop_vlan(&mut self) -> Result<(), EditError> {
        Err(EditError::NotPresent)
    }
    /// Pushes an MPLS shim.
    pub fn push_mpls(&mut self, eth_type: u16) -> Result<(), EditError> {
        Err(EditError::NotPresent)
    }
    /// Pops the outermost MPLS shim.
    pub fn pop_mpls(&mut self, eth_type: u16) -> Result<(), EditError> {
        Err(EditError::NotPresent)
    }
    /// Pushes a PBB I-TAG.
    pub fn push_pbb(&mut self, eth_type: u16) -> Result<(), EditError> {
        Err(EditError::NotPresent)
    }
    /// Pops the PBB I-TAG.
    pub fn pop_pbb(&mut self) -> Result<(), EditError> {
        Err(EditError::NotPresent)
    }
    /// Sets a field under a mask.
    pub fn set_field(&mut self, field: Field, value: u128, mask: u128) -> Result<(), EditError> {
        Err(EditError::NotPresent)
    }
    /// Copies the TTL outwards.
    pub fn copy_ttl_out(&mut self) -> Result<(), EditError> {
        Err(EditError::NotPresent)
    }
    /// Copies the TTL inwards.
    pub fn copy_ttl_in(&mut self) -> Result<(), EditError> {
        Err(EditError::NotPresent)
    }
    /// Sets the MPLS TTL.
    pub fn set_mpls_ttl(&mut self, ttl: u8) -> Result<(), EditError> {
        Err(EditError::NotPresent)
    }
    /// Decrements the MPLS TTL.
    pub fn dec_mpls_ttl(&mut self) -> Result<(), EditError> {
        Err(EditError::NotPresent)
    }
    /// Sets the IP TTL.
    pub fn set_nw_ttl(&mut self, ttl: u8) -> Result<(), EditError> {
        Err(EditError::NotPresent)
    }
    /// Decrements the IP TTL.
    pub fn dec_nw_ttl(&mut self) -> Result<(), EditError> {
        Err(EditError::NotPresent)
    }
}
