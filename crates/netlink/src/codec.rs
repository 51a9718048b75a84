//! rtnetlink messages as bytes: the few that a port needs (`linux/netlink.h`, `linux/rtnetlink.h`).
//!
//! Message header, 16 bytes: `len` 0..4, `type` 4..6, `flags` 6..8, `sequence` 8..12, `port` 12..16; attribute header, 4 bytes:
//! `len` 0..2, `type` 2..4, value padded to 4. Host byte order. Unknown attributes are skipped, short ones ignored, so a newer
//! kernel cannot break us.

use std::net::IpAddr;

pub(crate) const NLMSG_ERROR: u16 = 2;
pub(crate) const NLMSG_DONE: u16 = 3;
pub(crate) const NLM_F_REQUEST: u16 = 1;
pub(crate) const NLM_F_ACK: u16 = 4;
pub(crate) const NLM_F_DUMP: u16 = 0x300;
pub(crate) const NLM_F_EXCL: u16 = 0x200;
pub(crate) const NLM_F_CREATE: u16 = 0x400;
pub(crate) const RTM_NEWLINK: u16 = 16;
pub(crate) const RTM_DELLINK: u16 = 17;
pub(crate) const RTM_GETLINK: u16 = 18;
pub(crate) const RTM_NEWADDR: u16 = 20;
pub(crate) const RTM_DELADDR: u16 = 21;
pub(crate) const RTM_GETADDR: u16 = 22;
pub(crate) const RTM_NEWROUTE: u16 = 24;
pub(crate) const RTM_DELROUTE: u16 = 25;
pub(crate) const RTM_GETROUTE: u16 = 26;
pub(crate) const RTM_NEWNEIGH: u16 = 28;
pub(crate) const RTM_DELNEIGH: u16 = 29;
pub(crate) const RTM_GETNEIGH: u16 = 30;
pub(crate) const RTM_GETNSID: u16 = 90;

const MESSAGE_HEADER: usize = 16;
const ATTRIBUTE_HEADER: usize = 4;
/// Flags in an attribute's type: nested, network byte order.
const TYPE_FLAGS: u16 = 0xc000;
/// The first of them, `NLA_F_NESTED`.
const NESTED: u16 = 0x8000;

const fn align(len: usize) -> usize {
    (len + 3) & !3
}

/// A message being written.
pub(crate) struct Request(Vec<u8>);

impl Request {
    /// A message of type `kind` beginning with the fixed part `body`.
    pub(crate) fn new(kind: u16, body: &[u8]) -> Self {
        let mut bytes = vec![0; MESSAGE_HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&(NLM_F_REQUEST | NLM_F_ACK).to_ne_bytes());
        bytes.extend_from_slice(body);
        Self(bytes)
    }

    /// The same with these flags, too.
    pub(crate) fn flagged(mut self, flags: u16) -> Self {
        let flags = u16::from_ne_bytes([self.0[6], self.0[7]]) | flags;
        self.0[6..8].copy_from_slice(&flags.to_ne_bytes());
        self
    }

    /// Appends an attribute whose value is an IP address.
    pub(crate) fn address(self, kind: u16, value: IpAddr) -> Self {
        match value {
            IpAddr::V4(value) => self.attribute(kind, &value.octets()),
            IpAddr::V6(value) => self.attribute(kind, &value.octets()),
        }
    }

    /// Appends an attribute.
    pub(crate) fn attribute(mut self, kind: u16, value: &[u8]) -> Self {
        let len = (ATTRIBUTE_HEADER + value.len()) as u16;
        self.0.extend_from_slice(&len.to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.0.extend_from_slice(value);
        self.0.resize(align(self.0.len()), 0);
        self
    }

    /// Appends an attribute whose value is the attributes that `fill` appends.
    pub(crate) fn nested(self, kind: u16, fill: impl FnOnce(Self) -> Self) -> Self {
        let start = self.0.len();
        let mut filled = fill(self.attribute(kind | NESTED, &[]));
        let len = (filled.0.len() - start) as u16;
        filled.0[start..start + 2].copy_from_slice(&len.to_ne_bytes());
        filled
    }

    /// The finished bytes.
    pub(crate) fn finish(mut self, sequence: u32) -> Vec<u8> {
        let len = self.0.len() as u32;
        self.0[0..4].copy_from_slice(&len.to_ne_bytes());
        self.0[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.0
    }
}

/// A message received.
#[derive(Clone, Copy)]
pub(crate) struct Message<'a> {
    /// `RTM_…` or `NLMSG_…`.
    pub(crate) kind: u16,
    /// Which request it answers; 0 for events.
    pub(crate) sequence: u32,
    /// What follows the header.
    pub(crate) body: &'a [u8],
}

/// The messages in a datagram; stops at the first one that does not fit.
pub(crate) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let len = read_u32(bytes)? as usize;
        let message = bytes.get(..len).filter(|message| message.len() >= MESSAGE_HEADER)?;
        bytes = bytes.get(align(len)..).unwrap_or_default();
        let kind = read_u16(&message[4..])?;
        let sequence = read_u32(&message[8..])?;
        Some(Message { kind, sequence, body: &message[MESSAGE_HEADER..] })
    })
}

/// The attributes in `bytes`; stops at the first one that does not fit.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let len = read_u16(bytes)? as usize;
        let kind = read_u16(bytes.get(2..)?)? & !TYPE_FLAGS;
        let value = bytes.get(ATTRIBUTE_HEADER..len)?;
        bytes = bytes.get(align(len)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The first two bytes as a number.
pub(crate) fn read_u16(bytes: &[u8]) -> Option<u16> {
    bytes.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes))
}

/// The first four bytes as a number.
pub(crate) fn read_u32(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

/// The name with the 0 that ends it.
pub(crate) fn terminated(name: &str) -> Vec<u8> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.push(0);
    bytes
}

/// The text before the first 0.
pub(crate) fn text(value: &[u8]) -> String {
    let text = value.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// An address: its family is as the number of bytes says.
pub(crate) fn read_address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = || <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from);
    v4().or_else(|| <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from))
}

/// `AF_INET` or `AF_INET6`.
pub(crate) fn family(address: IpAddr) -> u8 {
    let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    family as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_request_reads_back_with_its_attributes() {
        let bytes = Request::new(RTM_GETLINK, &[7; 16])
            .attribute(3, b"eth0\0")
            .attribute(4, &[1, 2, 3, 4])
            .finish(9);
        let message = messages(&bytes).next().unwrap();
        assert_eq!((message.kind, message.sequence), (RTM_GETLINK, 9));
        let read: Vec<_> = attributes(&message.body[16..]).collect();
        assert_eq!(read, vec![(3, &b"eth0\0"[..]), (4, &[1, 2, 3, 4][..])]);
    }

    #[test]
    fn a_nested_attribute_holds_what_was_appended_inside_and_nothing_after_it() {
        let inside = |request: Request| request.attribute(1, b"ab").attribute(2, &[]);
        let bytes = Request::new(RTM_GETLINK, &[]).nested(7, inside).attribute(8, &[9]).finish(1);
        let message = messages(&bytes).next().unwrap();
        let outer: Vec<_> = attributes(message.body).collect();
        assert_eq!((outer[0].0, outer[1]), (7, (8, &[9][..])));
        let inner: Vec<_> = attributes(outer[0].1).collect();
        assert_eq!(inner, [(1, &b"ab"[..]), (2, &[][..])]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic_and_to_an_end(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(messages(&bytes).take(1000).count() < 1000);
            for message in messages(&bytes) {
                prop_assert!(attributes(message.body).take(1000).count() < 1000);
            }
        }
    }
}
