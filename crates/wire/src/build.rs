//! Frames built layer by layer: for tests, the lab, and the few frames that the node sends itself.
//!
//! Each layer announces itself in the one before it, and [`Frame::finish`] fills in lengths and checksums from the inside out:
//!
//! ```
//! use wire::build::{Frame, Ipv4, Tcp};
//! let frame = Frame::ethernet([2; 6], [4; 6]).vlan(0x8100, 7).ipv4(Ipv4::default()).tcp(Tcp::default()).payload(b"hello").finish();
//! assert_eq!(frame.len(), 14 + 4 + 20 + 20 + 5);
//! ```

mod finish;
mod layer;
mod of_key;

pub use layer::{Arp, Ipv4, Ipv6, Tcp};

use crate::PartialChecksum;
use crate::tunnel::{Gre, Vxlan};
use finish::Open;

/// A frame under construction.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    bytes: Vec<u8>,
    open: Vec<Open>,
    next: Next,
}

/// Where the layer just written names the next one.
#[derive(Clone, Copy, Debug, Default)]
enum Next {
    #[default]
    Nowhere,
    EthType(usize),
    IpProto(usize),
    /// In an MPLS shim: only the bottom-of-stack bit.
    Bottom(usize),
}

impl Frame {
    /// Begins with an Ethernet header.
    pub fn ethernet(dst: [u8; 6], src: [u8; 6]) -> Self {
        Self::default().inner_ethernet(dst, src)
    }

    /// Appends an Ethernet header, as the payload of a tunnel.
    #[must_use]
    pub fn inner_ethernet(mut self, dst: [u8; 6], src: [u8; 6]) -> Self {
        self.append(&dst);
        self.append(&src);
        self.append(&[0, 0]);
        self.next = Next::EthType(self.bytes.len() - 2);
        self
    }

    /// Writes the checksums and lengths; all checksums complete.
    pub fn finish(self) -> Vec<u8> {
        self.finish_with(None)
    }

    /// The same, but the innermost TCP, UDP, SCTP or ICMPv6 checksum is left to do; `None` without such a header.
    pub fn finish_partial(self) -> Option<(Vec<u8>, PartialChecksum)> {
        let partial = self.open.iter().rev().find_map(|open| open.partial())?;
        Some((self.finish_with(Some(partial)), partial))
    }

    /// Appends bytes that no layer announces.
    #[must_use]
    pub fn payload(mut self, bytes: &[u8]) -> Self {
        self.append(bytes);
        self
    }

    /// Appends a VXLAN header.
    #[must_use]
    pub fn vxlan(self, vni: u32) -> Self {
        self.payload(&Vxlan { vni }.emit())
    }

    /// Appends a GRE header, whose protocol the next layer fills in.
    #[must_use]
    pub fn gre(mut self, header: Gre) -> Self {
        self.announce(0, crate::ip_proto::GRE);
        let at = self.bytes.len();
        self.bytes.resize(at + header.len(), 0);
        header.emit(&mut self.bytes[at..]).expect("the header has the length it says");
        self.next = Next::EthType(at + 2);
        self
    }

    fn append(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Names the layer about to be written, by either number, in the layer before.
    fn announce(&mut self, eth_type: u16, ip_proto: u8) {
        match std::mem::take(&mut self.next) {
            Next::Nowhere => {}
            Next::EthType(at) => self.bytes[at..at + 2].copy_from_slice(&eth_type.to_be_bytes()),
            Next::IpProto(at) => self.bytes[at] = ip_proto,
            // Another shim follows: this one is not the bottom.
            Next::Bottom(at) if crate::eth_type::is_mpls(eth_type) => self.bytes[at + 2] &= !1,
            Next::Bottom(_) => {}
        }
    }
}
