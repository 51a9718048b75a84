//! Cutting a byte stream into messages (OpenFlow 1.3.5 §7.1: every message begins with version, type, length, xid).

use crate::kinds;
use crate::version::Version;

/// Bytes of the header that every message begins with.
pub const HEADER_LEN: usize = 8;

/// The header of a message, whatever its version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Wire version, known to us or not.
    pub version: u8,
    /// Message type, numbered by the version.
    pub kind: u8,
    /// Bytes of the whole message, this header included.
    pub length: u16,
    /// Transaction: an answer repeats the request's.
    pub xid: u32,
}

impl Header {
    /// Reads a header off the front of `bytes`; `None` if there are fewer than 8.
    pub fn peek(bytes: &[u8]) -> Option<Self> {
        let [version, kind, l0, l1, x0, x1, x2, x3] = *bytes.first_chunk::<HEADER_LEN>()?;
        let (length, xid) = (u16::from_be_bytes([l0, l1]), u32::from_be_bytes([x0, x1, x2, x3]));
        Some(Self { version, kind, length, xid })
    }

    /// What the message is called, as its version's `OFPT_…` without that; `None` for what this crate does not speak.
    pub fn kind_name(&self) -> Option<&'static str> {
        let names: &[&str] = match self.known_version()? {
            Version::V1_0 => &kinds::V1_0,
            Version::V1_3 => &kinds::V1_3,
        };
        names.get(usize::from(self.kind)).copied()
    }

    /// The version, if this crate speaks it.
    pub fn known_version(&self) -> Option<Version> {
        Version::from_wire(self.version)
    }
}

/// A stream whose length field contradicts itself cannot be resynchronised: the connection must be closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("message type {kind} of version {version} declares {length} bytes, fewer than its header")]
pub struct BadFrame {
    /// Wire version.
    pub version: u8,
    /// Message type.
    pub kind: u8,
    /// Declared length.
    pub length: u16,
    /// Transaction, for the error message that precedes the close.
    pub xid: u32,
}

/// The first whole message in `stream`, or `None` while bytes are missing.
///
/// The caller removes the returned slice's length from its buffer. A message has at most 65535 bytes, so a caller that
/// reads no further while one is whole never holds more than that beyond its read size.
///
/// # Errors
/// [`BadFrame`] when the declared length is below 8.
pub fn next_frame(stream: &[u8]) -> Result<Option<&[u8]>, BadFrame> {
    let Some(header) = Header::peek(stream) else { return Ok(None) };
    let Header { version, kind, length, xid } = header;
    if usize::from(length) < HEADER_LEN {
        return Err(BadFrame { version, kind, length, xid });
    }
    Ok(stream.get(..usize::from(length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_returned_only_when_whole() {
        let hello = [4, 0, 0, 8, 0, 0, 0, 7, 4, 2];
        assert_eq!(next_frame(&hello), Ok(Some(&hello[..8])));
        assert_eq!(next_frame(&hello[..8]), Ok(Some(&hello[..8])));
        assert_eq!(next_frame(&hello[..7]), Ok(None));
        assert_eq!(next_frame(&hello[8..]), Ok(None));
    }

    #[test]
    fn a_length_below_the_header_ends_the_stream() {
        let error = next_frame(&[4, 2, 0, 7, 0, 0, 0, 9, 0]).unwrap_err();
        assert_eq!(error, BadFrame { version: 4, kind: 2, length: 7, xid: 9 });
    }
}
