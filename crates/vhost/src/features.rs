//! Feature bits of VIRTIO and of its network device, as driver and device agree on them.

use crate::sys::{ASKED, Header, SentHeader};
use bitflags::bitflags;
use std::ops::Range;

bitflags! {
    /// Bits of VIRTIO 1.2 §5.1.3 (0..=63 but 24..=50) and §6 (24..=50), and two of vhost-user's own.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct Features: u64 {
        /// The driver may send frames with a checksum to complete.
        const CSUM = 1 << 0;
        /// The driver takes frames with a checksum to complete.
        const GUEST_CSUM = 1 << 1;
        /// The device tells its MTU.
        const MTU = 1 << 3;
        /// The device tells its MAC address.
        const MAC = 1 << 5;
        /// The driver takes large TCP frames over IPv4.
        const GUEST_TSO4 = 1 << 7;
        /// … over IPv6.
        const GUEST_TSO6 = 1 << 8;
        /// … with ECN.
        const GUEST_ECN = 1 << 9;
        /// The driver may send large TCP frames over IPv4.
        const HOST_TSO4 = 1 << 11;
        /// … over IPv6.
        const HOST_TSO6 = 1 << 12;
        /// … with ECN.
        const HOST_ECN = 1 << 13;
        /// A frame may fill several of the driver's receive buffers.
        const MRG_RXBUF = 1 << 15;
        /// The device tells whether its link is up.
        const STATUS = 1 << 16;
        /// There is a control queue.
        const CTRL_VQ = 1 << 17;
        /// The driver announces itself when asked.
        const GUEST_ANNOUNCE = 1 << 21;
        /// Several pairs of queues.
        const MQ = 1 << 22;
        /// Write a log of the pages that the device dirties (vhost).
        const LOG_ALL = 1 << 26;
        /// Descriptors may point to tables of descriptors.
        const INDIRECT_DESC = 1 << 28;
        /// Notifications by index instead of by flag.
        const EVENT_IDX = 1 << 29;
        /// The vhost-user protocol has features of its own (vhost-user).
        const PROTOCOL_FEATURES = 1 << 30;
        /// VIRTIO 1.0 and later: little endian, 12-byte header.
        const VERSION_1 = 1 << 32;
        /// Addresses go through an IOMMU.
        const ACCESS_PLATFORM = 1 << 33;
        /// Packed rings.
        const RING_PACKED = 1 << 34;
        /// Buffers are used in the order in which they were made available.
        const IN_ORDER = 1 << 35;
        /// The driver takes large UDP frames over IPv4.
        const GUEST_USO4 = 1 << 54;
        /// … over IPv6.
        const GUEST_USO6 = 1 << 55;
        /// The driver may send large UDP frames.
        const HOST_USO = 1 << 56;
    }
}

impl Features {
    /// Bytes of the header before each frame: the last two, `num_buffers`, are there with VIRTIO 1.0 or mergeable buffers (VIRTIO 1.2 §5.1.6, §5.1.6.1).
    pub const fn header_len(self) -> usize {
        self.header() as usize
    }

    #[inline]
    pub(crate) const fn header(self) -> Header {
        match self.intersects(Self::VERSION_1.union(Self::MRG_RXBUF)) {
            true => Header::Twelve,
            false => Header::Ten,
        }
    }

    /// Before each frame that the driver sends. Without CSUM and all of HOST_* its `flags` and `gso_type` are zero (VIRTIO 1.2 §5.1.6.2.1).
    #[inline]
    pub(crate) const fn sent_header(self) -> SentHeader {
        let large = Self::HOST_TSO4.union(Self::HOST_TSO6).union(Self::HOST_USO);
        let said = Self::CSUM.union(large).union(Self::HOST_ECN);
        SentHeader { header: self.header(), speaks: self.intersects(said) }
    }

    /// The bytes of what the driver sends that are worth asking for as soon as it is there: not those of a header that is not read.
    #[inline]
    pub(crate) const fn asked_of_sent(self) -> Range<usize> {
        let SentHeader { header, speaks } = self.sent_header();
        let from = if speaks { 0 } else { header as usize };
        from..ASKED
    }

    /// Names of the bits that are set, in order, for people.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        self.iter_names().map(|(name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_speaks_of_what_was_negotiated_and_of_nothing_else() {
        let silent = Features::VERSION_1 | Features::MRG_RXBUF | Features::GUEST_CSUM;
        assert_eq!(silent.asked_of_sent(), 12..ASKED);
        for one in [Features::CSUM, Features::HOST_TSO4, Features::HOST_TSO6, Features::HOST_USO] {
            assert_eq!((silent | one).asked_of_sent(), 0..ASKED, "{one:?}");
        }
    }

    #[test]
    fn the_header_has_num_buffers_from_version_1_on() {
        assert_eq!(Features::empty().header_len(), 10);
        assert_eq!(Features::MRG_RXBUF.header_len(), 12);
        assert_eq!(Features::VERSION_1.header_len(), 12);
    }
}
