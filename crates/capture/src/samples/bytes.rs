//! Numbers in network byte order, behind each other.

/// Bytes of a message that is being written.
#[derive(Clone, Default, Debug)]
pub(super) struct Bytes(pub Vec<u8>);

impl Bytes {
    pub(super) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(super) fn u16(&mut self, value: u16) {
        self.0.extend(value.to_be_bytes());
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.0.extend(value.to_be_bytes());
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.0.extend(value.to_be_bytes());
    }

    /// XDR's opaque of variable length (RFC 4506 §4.10): the length, the bytes, zeros up to a multiple of four.
    pub(super) fn opaque(&mut self, bytes: &[u8]) {
        self.u32(bytes.len() as u32);
        self.0.extend(bytes);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }
}
