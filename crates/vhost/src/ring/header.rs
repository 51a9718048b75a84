//! The header before a frame in a network device's buffers (VIRTIO 1.2 §5.1.6).

/// Bytes of the longest header; its last two are `num_buffers`.
pub const HEADER_MAX: usize = 12;

/// Where `num_buffers` stands in it.
const NUM_BUFFERS: usize = 10;

/// A header: its bytes are the number's lowest twelve, the first one lowest.
///
/// A number, because bytes that are put together in memory and then moved as words make the processor wait until every store before them has
/// reached the cache: with a guest's lines on their way that was a third of a frame's whole cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NetHeader(pub u128);

impl NetHeader {
    /// The header in memory.
    pub fn of(bytes: &[u8; HEADER_MAX]) -> Self {
        let mut all = [0; 16];
        all[..HEADER_MAX].copy_from_slice(bytes);
        Self(u128::from_le_bytes(all))
    }

    /// Its bytes in memory.
    pub fn bytes(self) -> [u8; HEADER_MAX] {
        let mut bytes = [0; HEADER_MAX];
        bytes.copy_from_slice(&self.0.to_le_bytes()[..HEADER_MAX]);
        bytes
    }

    /// The same header with this number of buffers.
    #[inline]
    pub(super) fn with_buffers(self, count: u16) -> Self {
        let at = 8 * NUM_BUFFERS;
        Self(self.0 & !(0xffff << at) | u128::from(count) << at)
    }
}
