//! Lengths and places in a packet (RFC 4303 §2, RFC 4106 §3).

/// Bytes before the encrypted part: SPI, sequence number, IV.
pub const HEADER: usize = 16;
/// Bytes of the integrity check value, GCM's tag whole.
pub const ICV: usize = 16;
/// Pad length and next header.
pub(crate) const TRAILER: usize = 2;
/// The encrypted part ends on such a boundary (RFC 4303 §2.4).
const ALIGN: usize = 4;

/// Bytes of the packet with so many of payload.
pub fn sealed_len(payload: usize) -> usize {
    HEADER + (payload + TRAILER).next_multiple_of(ALIGN) + ICV
}

/// Most bytes of payload that a packet of `sealed` bytes has room for; 0 also when it has none.
pub fn payload_max(sealed: usize) -> usize {
    let encrypted = sealed.saturating_sub(HEADER + ICV) / ALIGN * ALIGN;
    encrypted.saturating_sub(TRAILER)
}

/// The security parameters index of a packet.
pub fn spi(packet: &[u8]) -> Option<u32> {
    packet.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_has_room_for_as_much_as_fits_and_no_more() {
        for sealed in 0..200 {
            let most = payload_max(sealed);
            assert!(most == 0 || sealed_len(most) <= sealed, "{sealed}");
            assert!(sealed_len(most + 1) > sealed, "{sealed}");
        }
        assert_eq!((sealed_len(0), sealed_len(2), sealed_len(3)), (36, 36, 40));
    }
}
