//! Which checksums follow a changed field, and how. The body is never needed: every update is a function of the change alone.

use super::{Edit, EditError};
use crate::checksum::{crc32c_shift, sum_u128, update, update_partial};
use crate::ip::{self, checksum_offset};
use crate::parse::{chain, chunk};
use crate::{Field, PartialChecksum, ip_proto};

/// What covers a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Covers {
    /// No checksum that we keep.
    Nothing,
    /// The IPv4 header checksum.
    Ipv4Header,
    /// The IPv4 header checksum and the transport's pseudo-header.
    Ipv4Address,
    /// The transport's pseudo-header.
    Ipv6Address,
    /// The same unless a routing header has segments left: then the checksum covers the last address in that header (RFC 8200 §8.1).
    Ipv6Destination,
    /// The transport or ICMP checksum, as part of its own header.
    Transport,
}

/// Aligned 16-bit words that were replaced: their sums before and after.
#[derive(Clone, Copy)]
pub(super) struct Change {
    old: u64,
    new: u64,
}

impl Change {
    /// The change of a field of an even number of bytes, both values right-aligned.
    pub fn of(old: u128, new: u128) -> Self {
        Self { old: sum_u128(old), new: sum_u128(new) }
    }
}

/// Updates the header checksum of the IPv4 header at `ip`.
pub(super) fn ipv4_header(bytes: &mut [u8], ip: usize, change: Change) {
    replace(bytes, ip + 10, |checksum| update(checksum, change.old, change.new));
}

impl Edit<'_> {
    /// Brings every checksum that `covers` names in step with a change of the `width` bytes at `at`.
    ///
    /// # Errors
    /// `Malformed` when the new checksum cannot be known: only SCTP ports of a first fragment. Nothing changed then.
    pub(super) fn follow(
        &mut self,
        covers: Covers,
        at: usize,
        width: usize,
        old: u128,
        new: u128,
    ) -> Result<(), EditError> {
        let change = Change::of(old, new);
        match covers {
            Covers::Nothing => {}
            Covers::Ipv4Header => {
                ipv4_header(self.head.bytes_mut(), usize::from(self.layers.ip), change)
            }
            Covers::Ipv4Address => {
                ipv4_header(self.head.bytes_mut(), usize::from(self.layers.ip), change);
                self.pseudo_header(change);
            }
            Covers::Ipv6Destination if self.is_routed() => {}
            Covers::Ipv6Address | Covers::Ipv6Destination => self.pseudo_header(change),
            Covers::Transport if self.ip_proto() == ip_proto::SCTP => {
                return self.sctp(at, width, old ^ new);
            }
            Covers::Transport => self.transport(change),
        }
        Ok(())
    }

    fn ip_proto(&self) -> u8 {
        self.key.get(Field::IpProto) as u8
    }

    /// Whether the destination address is that of a waypoint.
    fn is_routed(&self) -> bool {
        chain(self.head.bytes(), usize::from(self.layers.ip)).is_some_and(|chain| chain.routed)
    }

    /// A change of an address: TCP, UDP and ICMPv6 cover it, be they partial or complete.
    fn pseudo_header(&mut self, change: Change) {
        if self.ip_proto() == ip_proto::ICMP {
            return;
        }
        let Some((at, partial)) = self.transport_checksum() else { return };
        if partial {
            replace(self.head.bytes_mut(), at, |field| {
                update_partial(field, change.old, change.new)
            });
        } else {
            self.complete(at, change);
        }
    }

    /// A change in the transport header itself: a partial checksum does not cover it yet.
    fn transport(&mut self, change: Change) {
        if let Some((at, false)) = self.transport_checksum() {
            self.complete(at, change);
        }
    }

    /// Updates a complete checksum. In UDP 0 means "none" and stays, and a sum of 0 is written as 0xffff (RFC 768).
    ///
    /// So it is in ICMP, whose message, the only one without a pseudo-header, may become all zeros: 0xffff is right then, and 0, which is as
    /// right beside any other byte, is not; the change alone does not tell which it is (RFC 1624 §3).
    fn complete(&mut self, at: usize, change: Change) {
        let proto = self.ip_proto();
        let (is_udp, is_icmp) = (proto == ip_proto::UDP, proto == ip_proto::ICMP);
        replace(self.head.bytes_mut(), at, |checksum| {
            match update(checksum, change.old, change.new) {
                _ if is_udp && checksum == 0 => 0,
                0 if is_udp || is_icmp => 0xffff,
                updated => updated,
            }
        });
    }

    /// Where the transport's 16-bit checksum lies and whether it is partial.
    fn transport_checksum(&self) -> Option<(usize, bool)> {
        let l4 = self.layers.l4;
        let offset = checksum_offset(self.ip_proto()).filter(|_| l4 != 0)?;
        let partial = self.offload.checksum == Some(PartialChecksum { start: l4, offset });
        Some((usize::from(l4 + offset), partial))
    }

    /// CRC32c of an SCTP packet after `width` bytes at `at` changed by `difference`. The bytes after them are not needed, only their number.
    fn sctp(&mut self, at: usize, width: usize, difference: u128) -> Result<(), EditError> {
        let l4 = self.layers.l4;
        let crc = PartialChecksum { start: l4, offset: PartialChecksum::CRC_OFFSET };
        if self.offload.checksum == Some(crc) {
            return Ok(());
        }
        if self.key.get(Field::IpFrag) != 0 {
            // The CRC covers the whole datagram, whose length no fragment but the last knows.
            return Err(EditError::Malformed);
        }
        let after = self.ip_end()?.checked_sub(at + width).ok_or(EditError::Malformed)?;
        let difference = difference.to_be_bytes();
        let changed = crc32c_shift(&difference[difference.len() - width..], after as u32);
        let field = usize::from(l4 + PartialChecksum::CRC_OFFSET);
        let old = u32::from_le_bytes(self.bytes_at(field)?);
        self.put(field, (old ^ changed).to_le_bytes())
    }

    /// Where the IP packet ends by its own account, from the frame's first byte. A jumbogram ends with the frame.
    fn ip_end(&self) -> Result<usize, EditError> {
        let packet = ip::packet(self.head.bytes(), usize::from(self.layers.ip))
            .ok_or(EditError::NotPresent)?;
        Ok(packet.end.unwrap_or(*self.frame_len as usize))
    }
}

/// Replaces the 16-bit word at `at`, which the parser has seen inside the head.
fn replace(bytes: &mut [u8], at: usize, with: impl FnOnce(u16) -> u16) {
    let Some(word) = chunk(bytes, at).map(|word| with(u16::from_be_bytes(*word))) else { return };
    bytes[at..at + 2].copy_from_slice(&word.to_be_bytes());
}
