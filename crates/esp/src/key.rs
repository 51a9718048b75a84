//! Key material.

use ring::digest::{Context, SHA256};
use std::fmt;
use zeroize::Zeroizing;

/// Bytes of the salt behind the AES key (RFC 4106 §8.1).
const SALT: usize = 4;
/// Lengths with the salt: AES-128 and AES-256.
const LENGTHS: [usize; 2] = [16 + SALT, 32 + SALT];

/// An AES key and its salt, in RFC 4106's order (§8.1). Wiped when it goes; says nothing of itself.
pub struct Key(Zeroizing<Vec<u8>>);

/// Not a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadKey {
    /// Something that is no hexadecimal digit.
    #[error("a key is written in hexadecimal digits")]
    NotHex,
    /// Neither AES-128 nor AES-256 with a salt.
    #[error("a key has 20 bytes (AES-128) or 36 (AES-256), the salt's 4 among them")]
    Length,
}

impl Key {
    /// From AES key and salt.
    ///
    /// # Errors
    /// Neither 20 nor 36 bytes.
    pub fn new(bytes: &[u8]) -> Result<Self, BadKey> {
        let has_length = LENGTHS.contains(&bytes.len());
        has_length.then(|| Self(Zeroizing::new(bytes.to_vec()))).ok_or(BadKey::Length)
    }

    /// From hexadecimal digits.
    ///
    /// # Errors
    /// Other characters, or another length.
    pub fn from_hex(text: &str) -> Result<Self, BadKey> {
        let digits = text.as_bytes();
        // At its full length from the beginning: a vector that grows leaves copies behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(digits.len() / 2 + 1));
        for pair in digits.chunks(2) {
            let digit = |at: usize| char::from(*pair.get(at)?).to_digit(16);
            let (high, low) = digit(0).zip(digit(1)).ok_or(BadKey::NotHex)?;
            bytes.push((high << 4 | low) as u8);
        }
        if LENGTHS.contains(&bytes.len()) { Ok(Self(bytes)) } else { Err(BadKey::Length) }
    }

    /// What names the key in a file of counters, and tells nothing of it: half of a SHA-256 of at least 160 random bits.
    pub fn fingerprint(&self) -> [u8; 16] {
        let mut context = Context::new(&SHA256);
        context.update(b"suiro ESP key fingerprint\0");
        context.update(&self.0);
        let mut half = [0; 16];
        half.copy_from_slice(&context.finish().as_ref()[..16]);
        half
    }

    /// The AES key.
    pub(crate) fn aes(&self) -> &[u8] {
        &self.0[..self.0.len() - SALT]
    }

    /// The salt.
    pub(crate) fn salt(&self) -> [u8; SALT] {
        self.0.last_chunk().copied().unwrap_or_default()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key(AES-{})", 8 * self.aes().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_twenty_or_thirty_six_bytes_and_never_printed() {
        let key = Key::from_hex(&"c0fe".repeat(10)).unwrap();
        assert_eq!((key.aes().len(), key.salt()), (16, [0xc0, 0xfe, 0xc0, 0xfe]));
        assert_eq!(format!("{key:?}"), "Key(AES-128)");
        assert_eq!(format!("{:?}", Key::new(&[7; 36]).unwrap()), "Key(AES-256)");
        for (text, error) in [
            ("", BadKey::Length),
            ("abc", BadKey::NotHex),
            ("0g", BadKey::NotHex),
            ("00", BadKey::Length),
        ] {
            assert_eq!(Key::from_hex(text).map(drop), Err(error), "{text}");
        }
    }

    #[test]
    fn fingerprints_tell_keys_and_salts_apart() {
        let print =
            |byte, last| Key::new(&[&[byte; 19][..], &[last]].concat()).unwrap().fingerprint();
        assert_eq!(print(1, 2), print(1, 2));
        assert_ne!(print(1, 2), print(1, 3));
        assert_ne!(print(1, 2), print(2, 2));
    }
}
