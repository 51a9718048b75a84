//! Text of a bounded length, as OpenFlow keeps it: NUL-padded bytes that nobody promises to be UTF-8.

use std::fmt;

/// At most `N` bytes without NUL; longer text is cut, because the wire has no room for more.
#[derive(Clone, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct FixedText<const N: usize>(Box<[u8]>);

/// A port's name (`OFP_MAX_PORT_NAME_LEN`).
pub type PortName = FixedText<16>;

impl<const N: usize> FixedText<N> {
    /// The text in `bytes`, up to the first NUL or the `N`th byte.
    pub fn new(bytes: &[u8]) -> Self {
        let end = bytes.iter().take(N).position(|b| *b == 0).unwrap_or(bytes.len().min(N));
        Self(bytes[..end].into())
    }

    /// The bytes, without padding.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl<const N: usize> From<&str> for FixedText<N> {
    fn from(text: &str) -> Self {
        Self::new(text.as_bytes())
    }
}

impl<const N: usize> fmt::Display for FixedText<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&String::from_utf8_lossy(&self.0))
    }
}

impl<const N: usize> fmt::Debug for FixedText<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_ends_at_nul_or_at_the_room() {
        assert_eq!(FixedText::<4>::new(b"ab\0d").as_bytes(), b"ab");
        assert_eq!(FixedText::<4>::new(b"abcdef").as_bytes(), b"abcd");
        assert_eq!(FixedText::<4>::from("eth0").to_string(), "eth0");
    }
}
