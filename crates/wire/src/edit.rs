//! How a header is changed in place.
//!
//! An [`Edit`] borrows a frame's bytes, key, layers and offload state together, and every method leaves the five in step: the key and
//! layers equal a fresh parse, a checksum that was right stays right, and one that is partial stays partial. A refused edit changes nothing.
//!
//! Edits that can change which headers there are (MPLS, PBB, types) parse anew; the others move the key's bits themselves.
//! The semantics are OpenFlow 1.3.5 §5.12 and §7.2.5.

mod field;
mod shim;
mod sums;
mod ttl;
mod vlan;

pub use ttl::nw_ttl;

use crate::parse::{chunk, parse_into};
use crate::{Field, Head, Key, Layers, NoRoom, Offload, PartialChecksum, eth_type};
use std::error::Error;
use std::fmt;

/// Why an edit was refused; head, key, layers and offload are as they were.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EditError {
    /// The headroom is used up.
    NoRoom,
    /// The frame has no such header or field, or the field cannot be set ([`Field::is_settable`]).
    NotPresent,
    /// The TTL or hop limit would reach 0.
    TtlExpired,
    /// The frame's bytes, its offload state or the argument contradict the edit.
    Malformed,
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoRoom => "no room to push a header",
            Self::NotPresent => "the frame has no such header or field",
            Self::TtlExpired => "the TTL ran out",
            Self::Malformed => "the frame contradicts the edit",
        })
    }
}

impl Error for EditError {}

impl From<NoRoom> for EditError {
    fn from(NoRoom: NoRoom) -> Self {
        Self::NoRoom
    }
}

/// One frame under edit; all five stay in step.
pub struct Edit<'a> {
    /// The bytes.
    pub head: &'a mut Head,
    /// The flow key of `head`.
    pub key: &'a mut Key,
    /// Where the headers of `head` are.
    pub layers: &'a mut Layers,
    /// Checksum and segmentation state.
    pub offload: &'a mut Offload,
    /// Bytes of the whole frame: head and body.
    pub frame_len: &'a mut u32,
}

impl Edit<'_> {
    /// Parses anew after an edit that may have uncovered or hidden headers.
    fn reparse(&mut self) {
        parse_into(self.head, self.key, self.layers);
    }

    /// Opens `count` bytes at `at`; the offload state and the frame's length follow. Layers do not.
    fn insert(&mut self, at: usize, count: usize) -> Result<&mut [u8], EditError> {
        let checksum = self.checksum_after(at, |start| start.checked_add(count as u16))?;
        let frame_len = self.frame_len.checked_add(count as u32).ok_or(EditError::Malformed)?;
        let gap = self.head.open(at, count)?;
        (self.offload.checksum, *self.frame_len) = (checksum, frame_len);
        Ok(gap)
    }

    /// Removes `count` bytes at `at`; the offload state and the frame's length follow. Layers do not.
    fn remove(&mut self, at: usize, count: usize) -> Result<(), EditError> {
        let checksum = self.checksum_after(at + count, |start| start.checked_sub(count as u16))?;
        let frame_len = self.frame_len.checked_sub(count as u32).ok_or(EditError::Malformed)?;
        self.head.close(at, count).map_err(|NoRoom| EditError::Malformed)?;
        (self.offload.checksum, *self.frame_len) = (checksum, frame_len);
        Ok(())
    }

    /// The partial checksum after bytes before `limit` moved. One that begins before `limit` would cover the header that is pushed or
    /// popped, which no source means.
    fn checksum_after(
        &self,
        limit: usize,
        moved: impl Fn(u16) -> Option<u16>,
    ) -> Result<Option<PartialChecksum>, EditError> {
        let Some(checksum) = self.offload.checksum else { return Ok(None) };
        if usize::from(checksum.start) < limit {
            return Err(EditError::Malformed);
        }
        let start = moved(checksum.start).ok_or(EditError::Malformed)?;
        Ok(Some(PartialChecksum { start, ..checksum }))
    }

    /// The Ethernet type as the key shows it.
    fn eth_type(&self) -> u16 {
        self.key.get(Field::EthType) as u16
    }

    /// Offset of the Ethernet type that ends the tags.
    ///
    /// # Errors
    /// `NotPresent` without an Ethernet header; `Malformed` for an 802.3 frame, whose length field a new type or header would falsify.
    fn type_at(&self) -> Result<usize, EditError> {
        let at = 12 + 4 * usize::from(self.layers.vlans);
        let type_or_length = chunk(self.head.bytes(), at).map(|bytes| u16::from_be_bytes(*bytes));
        match type_or_length {
            None => Err(EditError::NotPresent),
            Some(..eth_type::MIN) => Err(EditError::Malformed),
            Some(_) => Ok(at),
        }
    }

    /// Offset and version of the IP header, if the frame is IP to OpenFlow: not below an MPLS stack.
    fn ip(&self) -> Result<(usize, Version), EditError> {
        match (self.layers.ip, self.eth_type()) {
            (0, _) => Err(EditError::NotPresent),
            (ip, eth_type::IPV4) => Ok((usize::from(ip), Version::V4)),
            (ip, eth_type::IPV6) => Ok((usize::from(ip), Version::V6)),
            _ => Err(EditError::NotPresent),
        }
    }

    /// The `N` bytes at `at`.
    fn bytes_at<const N: usize>(&self, at: usize) -> Result<[u8; N], EditError> {
        chunk(self.head.bytes(), at).copied().ok_or(EditError::NotPresent)
    }

    /// Replaces the `N` bytes at `at`.
    fn put<const N: usize>(&mut self, at: usize, value: [u8; N]) -> Result<(), EditError> {
        let place = self.head.bytes_mut().get_mut(at..).and_then(|rest| rest.first_chunk_mut());
        *place.ok_or(EditError::NotPresent)? = value;
        Ok(())
    }
}

/// Which IP.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    V4,
    V6,
}
