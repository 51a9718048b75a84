//! What two guests send each other.

use super::flows::Pattern;
use super::frame::Protocol;
use super::frontend::HEADER;
use super::sys::Line;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// How much of a frame the guests touch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Touch {
    /// The first line.
    Head,
    /// All of it, as a guest does that has a use for its traffic.
    Full,
}

/// What the guests send.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// Bytes of a frame, 64 or more.
    pub frame: usize,
    /// How much of it is touched.
    pub touch: Touch,
    /// Payload of the segments that a frame may be cut into, if it is such a frame (VIRTIO 1.2 §5.1.6.2: `gso_size`); then it carries TCP.
    pub segment: Option<u16>,
    /// What depends on the flow.
    pub pattern: Pattern,
    /// Flows in the order of their packets ([`super::flows::order`]).
    pub order: Arc<[u32]>,
}

impl Traffic {
    /// What its frames carry.
    pub fn protocol(&self) -> Protocol {
        if self.segment.is_some() { Protocol::Tcp } else { Protocol::Udp }
    }

    /// The virtio-net header of each of them.
    pub(super) fn header(&self) -> [u8; HEADER] {
        const NEEDS_CSUM: u8 = 1;
        const GSO_TCPV4: u8 = 1;
        // Ethernet and IPv4, then TCP's 20 bytes with the checksum at 16.
        const TCP: u16 = 14 + 20;
        let Some(segment) = self.segment else { return [0; HEADER] };
        let [[h0, h1], [s0, s1], [c0, c1]] = [TCP + 20, segment, TCP].map(u16::to_le_bytes);
        [NEEDS_CSUM, GSO_TCPV4, h0, h1, s0, s1, c0, c1, 16, 0, 0, 0]
    }

    /// Whether a received header says of a frame what it said when it was sent. The length of the headers is a hint, which a switch may
    /// give or not (§5.1.6.2), and the number of buffers is the receiver's own business.
    pub(super) fn is_whole(&self, line: &Line) -> bool {
        let mut got = [0; HEADER];
        got[..4].copy_from_slice(&line.0[6].load(Relaxed).to_le_bytes()[4..]);
        got[4..].copy_from_slice(&line.0[7].load(Relaxed).to_le_bytes());
        let sent = self.header();
        got[..2] == sent[..2] && got[4..10] == sent[4..10]
    }
}
