//! One packet out of a file that somebody captured, by its number: pcapng, or pcap as tcpdump writes it.
//!
//! Packets are numbered as Wireshark numbers them: from 1, and what stands between them as an event counts, too.
//!
//! Source of pcap: the IETF draft "PCAP Capture File Format" (draft-ietf-opsawg-pcap).

use crate::block::Direction;
use crate::pcapng::ETHERNET;
use crate::reader::{BadBlock, Blocks, Content};

/// Magic numbers of pcap: times in microseconds, in nanoseconds.
const PCAP: [u32; 2] = [0xa1b2_c3d4, 0xa1b2_3c4d];
/// Bytes of pcap's own header, and of the one before each packet.
const FILE_HEADER: usize = 24;
const PACKET_HEADER: usize = 16;

/// A packet of a file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Picked {
    /// Its first bytes.
    pub bytes: Vec<u8>,
    /// How many it has.
    pub original: u32,
    /// Its way, where the file says it.
    pub direction: Option<Direction>,
    /// What the file says of it.
    pub comment: String,
    /// Where it was seen; empty where the file does not say.
    pub interface: String,
}

impl Picked {
    /// What its comment says of one thing, as `key=value`.
    pub fn said(&self, key: &str) -> Option<&str> {
        let is_it = |word: &&str| word.split_once('=').is_some_and(|(name, _)| name == key);
        self.comment.split(' ').find(is_it).map(|word| &word[key.len() + 1..])
    }
}

/// Why there is no such packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotPicked {
    /// It is no such file.
    #[error("it is neither pcapng nor pcap")]
    Kind,
    /// It ends earlier.
    #[error("it has {0} packets")]
    Fewer(u64),
    /// That number is an event's.
    #[error("number {0} is an event, and no packet")]
    Event(u64),
    /// No Ethernet header is in front.
    #[error("its packets are of link type {0}, and not Ethernet")]
    Link(u16),
    /// It cannot be read.
    #[error("it has {0}")]
    Block(#[from] BadBlock),
}

/// The packet of that number.
///
/// # Errors
/// [`NotPicked`].
pub fn pick(file: &[u8], number: u64) -> Result<Picked, NotPicked> {
    let magic = *file.first_chunk().ok_or(NotPicked::Kind)?;
    match magic {
        [0x0a, 0x0d, 0x0d, 0x0a] => from_blocks(file, number),
        _ if PCAP.contains(&u32::from_le_bytes(magic)) => {
            from_pcap(file, number, u32::from_le_bytes)
        }
        _ if PCAP.contains(&u32::from_be_bytes(magic)) => {
            from_pcap(file, number, u32::from_be_bytes)
        }
        _ => Err(NotPicked::Kind),
    }
}

fn from_blocks(file: &[u8], number: u64) -> Result<Picked, NotPicked> {
    let mut blocks = Blocks::default();
    blocks.push(file);
    let (mut interfaces, mut count) = (Vec::new(), 0);
    while let Some(block) = blocks.next_block()? {
        let content = block.content()?;
        count += u64::from(matches!(content, Content::Packet(_) | Content::Journal(_)));
        match content {
            Content::Section => interfaces.clear(),
            Content::Interface { link, name, .. } => interfaces.push((link, name.to_owned())),
            Content::Journal(_) if count == number => return Err(NotPicked::Event(number)),
            Content::Packet(packet) if count == number => {
                let found = interfaces.get(packet.interface as usize);
                let (link, interface) = found.cloned().unwrap_or((ETHERNET, String::new()));
                is_ethernet(link)?;
                return Ok(Picked {
                    bytes: packet.bytes.to_vec(),
                    original: packet.original,
                    direction: packet.direction,
                    comment: packet.comment.to_owned(),
                    interface,
                });
            }
            _ => {}
        }
    }
    Err(NotPicked::Fewer(count))
}

fn from_pcap(file: &[u8], number: u64, word: fn([u8; 4]) -> u32) -> Result<Picked, NotPicked> {
    let at = |bytes: &[u8], at: usize| Some(word(*bytes.get(at..)?.first_chunk()?));
    is_ethernet(at(file, 20).ok_or(NotPicked::Kind)? as u16)?;
    let mut rest = &file[FILE_HEADER.min(file.len())..];
    for count in 0.. {
        let (Some(captured), Some(original)) = (at(rest, 8), at(rest, 12)) else {
            return Err(NotPicked::Fewer(count));
        };
        let packet =
            rest.get(PACKET_HEADER..).and_then(|rest| rest.split_at_checked(captured as usize));
        let Some((bytes, behind)) = packet else { return Err(NotPicked::Fewer(count)) };
        if count + 1 == number {
            return Ok(Picked { bytes: bytes.to_vec(), original, ..Picked::default() });
        }
        rest = behind;
    }
    unreachable!("a file ends")
}

fn is_ethernet(link: u16) -> Result<(), NotPicked> {
    if link == ETHERNET { Ok(()) } else { Err(NotPicked::Link(link)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pcapng;
    use proptest::prelude::*;

    fn pcap(packets: &[Vec<u8>], bytes_of: fn(u32) -> [u8; 4], link: u32) -> Vec<u8> {
        let mut file: Vec<u8> =
            [PCAP[0], 0, 0, 0, 65_536, link].into_iter().flat_map(bytes_of).collect();
        for packet in packets {
            let len = packet.len() as u32;
            file.extend([1, 2, len, len + 5].into_iter().flat_map(bytes_of));
            file.extend(packet);
        }
        file
    }

    fn blocks(packets: &[Vec<u8>]) -> Vec<u8> {
        let mut file = Vec::new();
        pcapng::section(&mut file, &pcapng::Section::default());
        let interface = pcapng::Interface {
            link: ETHERNET,
            snap: 0,
            name: "sw0:vm1",
            description: "",
            filter: "",
            hardware: "",
        };
        pcapng::interface(&mut file, &interface);
        for bytes in packets {
            let (comment, original) = ("switch=sw0 gso=1448", bytes.len() as u32 + 5);
            let direction = Some(Direction::In);
            let packet =
                pcapng::Packet { bytes, original, comment, direction, ..Default::default() };
            pcapng::packet(&mut file, &packet);
        }
        file
    }

    proptest! {
        #[test]
        fn each_packet_is_found_by_its_number_in_either_kind_of_file(
            packets in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..90), 1..9),
        ) {
            let count = packets.len() as u64;
            let files = [
                blocks(&packets),
                pcap(&packets, u32::to_le_bytes, 1),
                pcap(&packets, u32::to_be_bytes, 1),
            ];
            for file in &files {
                for (number, bytes) in (1..).zip(&packets) {
                    let found = pick(file, number).unwrap();
                    prop_assert_eq!((&found.bytes, found.original), (bytes, bytes.len() as u32 + 5));
                }
                prop_assert_eq!(pick(file, count + 1), Err(NotPicked::Fewer(count)));
                prop_assert_eq!(pick(file, 0), Err(NotPicked::Fewer(count)));
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..200),
            (kind, number) in (0..4usize, 0..4u64),
        ) {
            let magic = [[0x0a, 0x0d, 0x0d, 0x0a], PCAP[0].to_le_bytes(), PCAP[1].to_be_bytes()];
            if let (Some(magic), true) = (magic.get(kind), bytes.len() >= 4) {
                bytes[..4].copy_from_slice(magic);
            }
            let _ = pick(&bytes, number);
        }
    }

    #[test]
    fn what_a_file_says_of_a_packet_comes_with_it() {
        let found = pick(&blocks(&[vec![1; 20]]), 1).unwrap();
        assert_eq!((&*found.interface, found.direction), ("sw0:vm1", Some(Direction::In)));
        assert_eq!((found.said("gso"), found.said("drop")), (Some("1448"), None));
        assert_eq!(pick(&pcap(&[], u32::to_le_bytes, 113), 1), Err(NotPicked::Link(113)));
        assert_eq!(pick(b"text", 1), Err(NotPicked::Kind));
    }
}
