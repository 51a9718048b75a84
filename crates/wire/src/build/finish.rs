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
    /// Fills in what is open; in the end `left_to_do` keeps the pseudo-header's sum only, or 0 where there is none. The checksums of tunnels
    /// around it are those of the frame with it done, as Linux leaves them.
    pub(super) fn finish_with(mut self, left_to_do: Option<PartialChecksum>) -> Vec<u8> {
        let mut undone = 0;
        while let Some(open) = self.open.pop() {
            match open {
                Open::Ipv4 { at, .. } => self.finish_ipv4(at),
                Open::Ipv6 { at, .. } => self.put(at + 4, self.bytes.len() - at - 40),
                Open::Transport { at, proto } => {
                    let pseudo = self.finish_transport(at, proto);
                    if left_to_do == Some(checksum_at(at, proto)) {
                        undone = pseudo;
                    }
                }
            }
        }
        if let Some(partial) = left_to_do {
            let at = usize::from(partial.start + partial.offset);
            self.put(at, usize::from(undone));
            if partial.is_crc() {
                self.put(at + 2, 0);
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

    /// Completes a transport's checksum; returns the sum of its pseudo-header.
    fn finish_transport(&mut self, at: usize, proto: u8) -> u16 {
        let checksum = checksum_at(at, proto);
        let len = self.bytes.len() - at;
        if proto == ip_proto::UDP {
            self.put(at + 4, len);
        }
        let has_pseudo = proto != ip_proto::ICMP && !checksum.is_crc();
        let pseudo = if has_pseudo { fold(self.pseudo_header(proto, len)) } else { 0 };
        if !checksum.is_crc() {
            self.put(at + usize::from(checksum.offset), usize::from(pseudo));
        }
        complete(&mut self.bytes, checksum).expect("the header was appended");
        pseudo
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
