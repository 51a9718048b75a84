//! What is still to be done to a frame: its checksum and its segmentation (virtio-net header semantics, VIRTIO 1.2 §5.1.6).
//!
//! A frame of up to 64 KiB travels whole from guest to guest; only a port that cannot take such frames resolves this state.

/// Kind of large frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Gso {
    /// An ordinary frame.
    #[default]
    None,
    /// TCP over IPv4, cut every `size` bytes of payload.
    TcpV4,
    /// TCP over IPv6.
    TcpV6,
    /// UDP, cut into datagrams of `size` bytes (USO).
    Udp,
}

/// A checksum that the destination must still complete: the field already holds the pseudo-header's sum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartialChecksum {
    /// Where summing begins, from the frame's first byte.
    pub start: u16,
    /// Where the 16-bit result goes, from `start`.
    pub offset: u16,
}

impl PartialChecksum {
    /// Where SCTP's CRC32c lies in its header.
    pub(crate) const CRC_OFFSET: u16 = 8;

    /// Whether the checksum is SCTP's CRC32c and not a 16-bit sum.
    ///
    /// Only the offset can tell: no protocol whose checksum is offloaded keeps a 16-bit sum at offset 8 (TCP 16, UDP 6,
    /// ICMPv6 2). Linux hands such frames out on veth, which offers `NETIF_F_SCTP_CRC`, but takes none back with a
    /// virtio-net header, so a port completes them before it sends.
    pub const fn is_crc(self) -> bool {
        self.offset == Self::CRC_OFFSET
    }

    /// Whether it is UDP's of a DHCP message (RFC 2131, RFC 8415) in the frame that begins with `head`.
    ///
    /// Clients read those raw, past the stack that would complete the checksum or look at its mark, and drop what is not complete.
    pub fn is_dhcp(self, head: &[u8]) -> bool {
        const PORTS: [u16; 4] = [67, 68, 546, 547];
        let udp = head.get(usize::from(self.start)..).and_then(|udp| udp.first_chunk::<8>());
        udp.filter(|_| self.offset == 6).is_some_and(|&[a, b, c, d, ..]| {
            let ports = [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])];
            ports.iter().any(|port| PORTS.contains(port))
        })
    }
}

/// Checksum and segmentation state of one frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Offload {
    /// A checksum to complete; `None` means that all checksums are in place.
    pub checksum: Option<PartialChecksum>,
    /// Kind of large frame.
    pub gso: Gso,
    /// Payload bytes per segment; 0 unless `gso` is set.
    pub gso_size: u16,
    /// TCP with CWR set in the first segment only (`VIRTIO_NET_HDR_GSO_ECN`).
    pub gso_ecn: bool,
    /// The sender vouches for the checksums (`VIRTIO_NET_HDR_F_DATA_VALID`).
    pub verified: bool,
}

impl Offload {
    /// Whether there is nothing to say of the frame: it is small and whole, and no one vouches for it.
    #[inline]
    pub const fn is_none(&self) -> bool {
        self.checksum.is_none() && matches!(self.gso, Gso::None) && !self.verified
    }
}
