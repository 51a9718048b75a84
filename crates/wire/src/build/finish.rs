//! Lengths and checksums, from the inside out.

use super::Frame;
use crate::checksum::{complete, fold, sum};
use crate::ip::checksum_offset;
use crate::{PartialChecksum, ip_proto};
use std::net::{Ipv4Addr, Ipv6Addr};

/// A layer whose length or checksum depends on what follows it. The frame ends where each of them ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Open {
    Ipv4 { at: usize, src: Ipv4Addr, dst: Ipv4Addr },
    Ipv6 { at: usize, src: Ipv6Addr, dst: Ipv6Addr },
    Transport { at: usize, proto: u8 },
}

impl Open {
    /// The layer's checksum, if a source may leave it to do.
    pub(super) fn partial(self) -> Option<PartialChecksum> {
        match self {
            Self::Transport { at, proto } if proto != ip_proto::ICMP => {
                Some(checksum_at(at, proto))
            }
            _ => None,
        }
    }
}

fn checksum_at(at: usize, proto: u8) -> PartialChecksum {
    PartialChecksum {
        start: at as u16,
        offset: checksum_offset(proto).unwrap_or(PartialChecksum::CRC_OFFSET),
    }
}

impl Frame {
    /// Fills in what is open; `left_to_do` keeps the pseudo-header's sum only.
    pub(super) fn finish_with(mut self, left_to_do: Option<PartialChecksum>) -> Vec<u8> {
        while let Some(open) = self.open.pop() {
            match open {
                Open::Ipv4 { at, .. } => self.finish_ipv4(at),
                Open::Ipv6 { at, .. } => self.put(at + 4, self.bytes.len() - at - 40),
                Open::Transport { at, proto } => self.finish_transport(at, proto, left_to_do),
            }
        }
        self.bytes
    }

    fn finish_ipv4(&mut self, at: usize) {
        let header = usize::from(self.bytes[at] & 0xf) * 4;
        self.put(at + 2, self.bytes.len() - at);
        let checksum = !fold(sum(&self.bytes[at..at + header]));
        self.put(at + 10, usize::from(checksum));
    }

    fn finish_transport(&mut self, at: usize, proto: u8, left_to_do: Option<PartialChecksum>) {
        let checksum = checksum_at(at, proto);
        let len = self.bytes.len() - at;
        if proto == ip_proto::UDP {
            self.put(at + 4, len);
        }
        if !checksum.is_crc() {
            let pseudo =
                if proto == ip_proto::ICMP { 0 } else { fold(self.pseudo_header(proto, len)) };
            self.put(at + usize::from(checksum.offset), usize::from(pseudo));
        }
        if left_to_do != Some(checksum) {
            complete(&mut self.bytes, checksum).expect("the header was appended");
        }
    }

    /// The sum of the pseudo-header of the innermost IP layer still open, which is the transport's own.
    fn pseudo_header(&self, proto: u8, len: usize) -> u64 {
        let addresses = match self.open.last() {
            Some(Open::Ipv4 { src, dst, .. }) => sum(&src.octets()) + sum(&dst.octets()),
            Some(Open::Ipv6 { src, dst, .. }) => sum(&src.octets()) + sum(&dst.octets()),
            _ => 0,
        };
        addresses + u64::from(proto) + len as u64
    }

    /// Writes a length or checksum; a frame too long for its length fields gets them cut off, as a sender of rubbish would.
    fn put(&mut self, at: usize, value: usize) {
        self.bytes[at..at + 2].copy_from_slice(&(value as u16).to_be_bytes());
    }
}
