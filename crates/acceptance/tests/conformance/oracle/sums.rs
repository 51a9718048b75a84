//! Checksums, by their definitions.

/// RFC 1071: the complement of the ones' complement sum of 16-bit words, an odd byte padded with zero.
pub fn internet(parts: &[&[u8]]) -> u16 {
    let bytes = parts.concat();
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    let mut sum: u32 = bytes.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !sum as u16
}

/// RFC 9260 appendix A: CRC32c, bit by bit.
pub fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
        }
    }
    !crc
}

/// The oracle's own sums agree with published values.
pub fn known_answers() {
    assert_eq!(crc32c(b"123456789"), 0xe306_9283); // RFC 3720 B.4's polynomial, the usual check value
    // RFC 1071 §3: the sum of these is 0xddf2.
    assert_eq!(internet(&[&[0x00, 0x01, 0xf2, 0x03], &[0xf4, 0xf5, 0xf6, 0xf7]]), !0xddf2);
}
