//! AES-GCM as ESP uses it (RFC 4106).

use crate::key::Key;
use crate::packet::{HEADER, ICV};
use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

/// A key ready for use, and its salt.
pub(crate) struct Cipher {
    key: LessSafeKey,
    salt: [u8; 4],
}

/// What is authenticated and not encrypted (RFC 4106 §5): 8 bytes, or 12 with the high half of the sequence number.
struct Associated {
    bytes: [u8; 12],
    len: usize,
}

impl AsRef<[u8]> for Associated {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Associated {
    fn new(spi: u32, sequence: u64, has_esn: bool) -> Self {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&spi.to_be_bytes());
        match has_esn {
            true => bytes[4..].copy_from_slice(&sequence.to_be_bytes()),
            false => bytes[4..8].copy_from_slice(&(sequence as u32).to_be_bytes()),
        }
        Self { bytes, len: if has_esn { 12 } else { 8 } }
    }
}

impl Cipher {
    pub(crate) fn new(key: &Key) -> Self {
        let algorithm = if key.aes().len() == 16 { &AES_128_GCM } else { &AES_256_GCM };
        let unbound = UnboundKey::new(algorithm, key.aes()).expect("a `Key` has the length");
        Self { key: LessSafeKey::new(unbound), salt: key.salt() }
    }

    /// Encrypts between header and ICV, which it writes. The header is complete, its IV never used before.
    pub(crate) fn seal(&self, packet: &mut [u8], (spi, sequence, has_esn): (u32, u64, bool)) {
        let nonce = self.nonce(packet);
        let associated = Aad::from(Associated::new(spi, sequence, has_esn));
        let at = packet.len() - ICV;
        let (encrypted, icv) = packet.split_at_mut(at);
        let sealed =
            self.key.seal_in_place_separate_tag(nonce, associated, &mut encrypted[HEADER..]);
        icv.copy_from_slice(sealed.expect("shorter than GCM's 64 GiB").as_ref());
    }

    /// Verifies the ICV and decrypts in place; false: it is wrong, and what is behind the header is no plaintext.
    pub(crate) fn open(
        &self,
        packet: &mut [u8],
        (spi, sequence, has_esn): (u32, u64, bool),
    ) -> bool {
        let nonce = self.nonce(packet);
        let associated = Aad::from(Associated::new(spi, sequence, has_esn));
        self.key.open_in_place(nonce, associated, &mut packet[HEADER..]).is_ok()
    }

    fn nonce(&self, packet: &[u8]) -> Nonce {
        let mut nonce = [0; 12];
        nonce[..4].copy_from_slice(&self.salt);
        nonce[4..].copy_from_slice(&packet[8..HEADER]);
        Nonce::assume_unique_for_key(nonce)
    }
}
