//! A capture file as it arrives: whole blocks, and what is in them.

use crate::block::{BYTE_ORDER, Direction, code, kind};
use crate::id::PacketId;
use crate::pcapng::{Packet, Statistics};

/// Longest block that is believed. Chosen: a frame of 64 KiB with all that is said of it, several times.
const LONGEST: usize = 1 << 20;

/// What follows is no capture file of ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadBlock {
    /// The length of a block makes no sense.
    #[error("a block of {0} bytes")]
    Length(u32),
    /// The two lengths of a block differ, or what is in it goes past its end.
    #[error("a block that contradicts itself")]
    Broken,
    /// The section has the byte order of another machine.
    #[error("a section in big-endian order")]
    ByteOrder,
}

/// Bytes on their way to become blocks.
#[derive(Debug, Default)]
pub struct Blocks {
    bytes: Vec<u8>,
    /// Up to here blocks were handed out.
    read: usize,
}

impl Blocks {
    /// Adds what came.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.read);
        self.read = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole block, if it is there.
    ///
    /// # Errors
    /// [`BadBlock`]: nothing after it can be read.
    pub fn next_block(&mut self) -> Result<Option<Block<'_>>, BadBlock> {
        let rest = &self.bytes[self.read..];
        let Some(length) = word(rest, 4) else { return Ok(None) };
        let len = length as usize;
        if !(12..=LONGEST).contains(&len) || !len.is_multiple_of(4) {
            return Err(BadBlock::Length(length));
        }
        let Some(bytes) = rest.get(..len) else { return Ok(None) };
        if word(bytes, len - 4) != Some(length) {
            return Err(BadBlock::Broken);
        }
        let from = self.read;
        self.read += len;
        Ok(Some(Block(&self.bytes[from..self.read])))
    }

    /// Whether a part of a block waits for its rest.
    pub fn is_cut(&self) -> bool {
        self.read < self.bytes.len()
    }
}

/// One block.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a>(&'a [u8]);

/// What is in a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content<'a> {
    /// A section begins: interfaces are counted anew.
    Section,
    /// The next interface.
    Interface {
        /// What its packets begin with.
        link: u16,
        /// What it is called.
        name: &'a str,
        /// For people.
        description: &'a str,
    },
    /// A packet.
    Packet(Packet<'a>),
    /// What an interface counted.
    Statistics(Statistics),
    /// Something that happened.
    Journal(Seen<'a>),
    /// Something else.
    Other,
}

/// Something that happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen<'a> {
    /// When, in ns since 1970; whole microseconds.
    pub at_ns: u64,
    /// What.
    pub message: &'a str,
}

impl<'a> Block<'a> {
    /// All of it, as it stands in the file.
    pub fn bytes(&self) -> &'a [u8] {
        self.0
    }

    /// Takes it apart.
    ///
    /// # Errors
    /// [`BadBlock`].
    pub fn content(&self) -> Result<Content<'a>, BadBlock> {
        let body = &self.0[8..self.0.len() - 4];
        let content = match word(self.0, 0) {
            Some(kind::SECTION) if word(body, 0) != Some(BYTE_ORDER) => {
                return Err(BadBlock::ByteOrder);
            }
            Some(kind::SECTION) => Some(Content::Section),
            Some(kind::INTERFACE) => interface(body),
            Some(kind::PACKET) => packet(body).map(Content::Packet),
            Some(kind::STATISTICS) => statistics(body).map(Content::Statistics),
            Some(kind::JOURNAL) => journal(body).map(Content::Journal),
            _ => Some(Content::Other),
        };
        content.ok_or(BadBlock::Broken)
    }
}

fn interface(body: &[u8]) -> Option<Content<'_>> {
    let link = word(body, 0)? as u16;
    let (mut name, mut description) = ("", "");
    options(body.get(8..)?, |code, value| match code {
        code::INTERFACE_NAME => name = text(value),
        code::INTERFACE_DESCRIPTION => description = text(value),
        _ => {}
    })?;
    Some(Content::Interface { link, name, description })
}

fn packet(body: &[u8]) -> Option<Packet<'_>> {
    let captured = word(body, 12)? as usize;
    let bytes = body.get(20..)?.get(..captured)?;
    let mut packet = Packet {
        interface: word(body, 0)?,
        at_ns: moment(body, 4)?,
        original: word(body, 16)?,
        bytes,
        ..Packet::default()
    };
    options(body.get(20 + captured.next_multiple_of(4)..)?, |code, value| match code {
        code::COMMENT => packet.comment = text(value),
        code::PACKET_FLAGS => packet.direction = word(value, 0).and_then(Direction::of_flags),
        code::PACKET_DROPPED => packet.dropped = long(value).unwrap_or_default(),
        code::PACKET_ID => packet.id = long(value).map(PacketId),
        code::PACKET_QUEUE => packet.queue = word(value, 0),
        _ => {}
    })?;
    Some(packet)
}

fn statistics(body: &[u8]) -> Option<Statistics> {
    let mut counts =
        Statistics { interface: word(body, 0)?, at_ns: moment(body, 4)?, ..Statistics::default() };
    options(body.get(12..)?, |code, value| match code {
        code::STATISTICS_START => counts.start_ns = moment(value, 0).unwrap_or_default(),
        code::STATISTICS_ACCEPTED => counts.matched = long(value).unwrap_or_default(),
        code::STATISTICS_LOST => counts.lost = long(value).unwrap_or_default(),
        code::COMMENT => {
            counts.over_budget = number(text(value), "over_budget=").unwrap_or_default();
            counts.not_looked = number(text(value), "not_looked=").unwrap_or_default();
        }
        _ => {}
    })?;
    // Other readers know of one number for what is missing.
    counts.lost = counts.lost.saturating_sub(counts.over_budget);
    Some(counts)
}

fn journal(body: &[u8]) -> Option<Seen<'_>> {
    let lines = || text(body).lines();
    let field = |key: &str| lines().find_map(|line| line.strip_prefix(key));
    let at_us: u64 = field("__REALTIME_TIMESTAMP=")?.parse().ok()?;
    Some(Seen { at_ns: at_us.saturating_mul(1000), message: field("MESSAGE=").unwrap_or_default() })
}

/// Shows each option; `None` if one goes past the end.
fn options<'a>(mut rest: &'a [u8], mut each: impl FnMut(u16, &'a [u8])) -> Option<()> {
    while !rest.is_empty() {
        let front = word(rest, 0)?;
        let (code, len) = (front as u16, (front >> 16) as usize);
        if code == code::END {
            break;
        }
        each(code, rest.get(4..)?.get(..len)?);
        rest = rest.get(4 + len.next_multiple_of(4)..)?;
    }
    Some(())
}

/// The number behind a key of a comment.
fn number(comment: &str, key: &str) -> Option<u64> {
    comment.split(' ').find_map(|part| part.strip_prefix(key))?.parse().ok()
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn long(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.first_chunk()?))
}

fn moment(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from(word(bytes, at)?) << 32 | u64::from(word(bytes, at + 4)?))
}

/// As much of it as is text.
fn text(bytes: &[u8]) -> &str {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    match std::str::from_utf8(&bytes[..end]) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pcapng;
    use proptest::prelude::*;

    fn contents(bytes: &[u8], cut: usize) -> Vec<String> {
        let mut blocks = Blocks::default();
        let mut read = Vec::new();
        for part in bytes.chunks(cut) {
            blocks.push(part);
            while let Some(block) = blocks.next_block().unwrap() {
                read.push(format!("{:?}", block.content().unwrap()));
            }
        }
        assert!(!blocks.is_cut());
        read
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_however_it_arrives(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            comment in "[a-z=0-9 ]{0,20}",
            numbers in any::<[u64; 5]>(),
            (direction, cut) in (0..3u32, 1..200usize),
        ) {
            let [at_ns, id, dropped, matched, not_looked] = numbers;
            let wanted = Packet {
                interface: 3,
                at_ns,
                original: 2000,
                bytes: &bytes,
                comment: &comment,
                direction: Direction::of_flags(direction),
                dropped,
                id: Some(PacketId(id)),
                queue: Some(7),
            };
            let (lost, over_budget) = (u64::from(direction) << 40, u64::from(direction));
            let counts = Statistics { interface: 3, at_ns, start_ns: 5, matched, lost, over_budget, not_looked };
            let mut file = Vec::new();
            let comment = "kept";
            pcapng::section(&mut file, &pcapng::Section { application: "suiro", os: "", comment });
            pcapng::interface(&mut file, &pcapng::Interface {
                link: pcapng::ETHERNET, snap: 0, name: "sw0:vm1", description: "a port", filter: "tcp", hardware: "tap",
            });
            pcapng::packet(&mut file, &wanted);
            pcapng::journal(&mut file, 5_000_001_000, "port vm1\nis down", &[("SUIRO_REVISION", "7")]);
            pcapng::statistics(&mut file, &counts);
            let interface =
                Content::Interface { link: 1, name: "sw0:vm1", description: "a port" };
            let happened = Content::Journal(Seen { at_ns: 5_000_001_000, message: "port vm1 is down" });
            let all = [Content::Section, interface, Content::Packet(wanted), happened, Content::Statistics(counts)];
            prop_assert_eq!(contents(&file, cut), all.map(|content| format!("{content:?}")));
        }

        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in proptest::collection::vec(any::<u8>(), 0..400),
            (kind, fits) in (0..12u32, any::<bool>()),
        ) {
            let mut block = bytes.clone();
            if fits && bytes.len() >= 12 {
                block.truncate(bytes.len() & !3);
                let length = block.len() as u32;
                block[..4].copy_from_slice(&kind.to_le_bytes());
                block[4..8].copy_from_slice(&length.to_le_bytes());
                let end = block.len() - 4;
                block[end..].copy_from_slice(&length.to_le_bytes());
            }
            let mut blocks = Blocks::default();
            blocks.push(&block);
            while let Ok(Some(block)) = blocks.next_block() {
                let _ = block.content();
            }
        }
    }
}
