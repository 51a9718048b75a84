//! ESP in UDP (RFC 3948).

/// UDP port of ESP and IKE behind a UDP header (RFC 3948 §2.1).
pub const PORT: u16 = 4500;

/// What is in a datagram on [`PORT`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Datagram {
    /// ESP: its SPI is not 0.
    Esp,
    /// Of a key exchange: it begins with four zero bytes (§2.2).
    Ike,
    /// One byte 0xff, which keeps a NAT's mapping alive and means nothing (§2.3).
    Keepalive,
    /// None of these.
    Other,
}

/// Tells ESP from what else comes on its port.
pub fn classify(datagram: &[u8]) -> Datagram {
    match datagram {
        [0xff] => Datagram::Keepalive,
        [0, 0, 0, 0, ..] => Datagram::Ike,
        [_, _, _, _, ..] => Datagram::Esp,
        _ => Datagram::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn esp_ike_and_keepalives_are_told_apart() {
        assert_eq!(classify(&[0xff]), Datagram::Keepalive);
        assert_eq!(classify(&[0, 0, 0, 0, 1]), Datagram::Ike);
        assert_eq!(classify(&[0, 0, 0, 1]), Datagram::Esp);
        for other in [&[][..], &[0xfe], &[0xff, 0xff], &[0, 0, 0]] {
            assert_eq!(classify(other), Datagram::Other);
        }
    }
}
