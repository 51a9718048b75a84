//! The writer of a capture file: each function appends one block.
//!
//! Times are nanoseconds since 1970. An interface's number is its place among the interface blocks of the section.

use crate::block::{
    BYTE_ORDER, Direction, block, code, end_options, halves, kind, moment, option, padded,
};
use crate::id::PacketId;

/// Ethernet frames without FCS.
pub const ETHERNET: u16 = 1;
/// Messages of a named protocol without what is below it ("upper PDU").
pub const UPPER_PDU: u16 = 252;

/// Who wrote a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Section<'a> {
    /// The program.
    pub application: &'a str,
    /// The system.
    pub os: &'a str,
    /// For people.
    pub comment: &'a str,
}

/// Begins a file, or a further section of one.
pub fn section(out: &mut Vec<u8>, section: &Section<'_>) {
    block(out, kind::SECTION, |out| {
        out.extend(BYTE_ORDER.to_le_bytes());
        out.extend(1u16.to_le_bytes());
        out.extend(0u16.to_le_bytes());
        out.extend(u64::MAX.to_le_bytes()); // how long the section is: not known
        let from = out.len();
        option(out, code::COMMENT, section.comment.as_bytes());
        option(out, code::SECTION_OS, section.os.as_bytes());
        option(out, code::SECTION_APPLICATION, section.application.as_bytes());
        end_options(out, from);
    });
}

/// A point at which packets are seen.
#[derive(Clone, Copy, Debug)]
pub struct Interface<'a> {
    /// What its packets begin with.
    pub link: u16,
    /// Most bytes of a packet that are kept; 0 for all.
    pub snap: u32,
    /// What it is called.
    pub name: &'a str,
    /// For people.
    pub description: &'a str,
    /// Which packets are kept; empty for all.
    pub filter: &'a str,
    /// Kind of port.
    pub hardware: &'a str,
}

/// Declares the next interface. It may come after packets of others.
pub fn interface(out: &mut Vec<u8>, interface: &Interface<'_>) {
    block(out, kind::INTERFACE, |out| {
        out.extend(interface.link.to_le_bytes());
        out.extend([0; 2]);
        out.extend(interface.snap.to_le_bytes());
        let from = out.len();
        option(out, code::INTERFACE_NAME, interface.name.as_bytes());
        option(out, code::INTERFACE_DESCRIPTION, interface.description.as_bytes());
        option(out, code::INTERFACE_RESOLUTION, &[9]); // nanoseconds
        if !interface.filter.is_empty() {
            let text = [&[0], interface.filter.as_bytes()].concat(); // 0: a text of libpcap's kind
            option(out, code::INTERFACE_FILTER, &text);
        }
        option(out, code::INTERFACE_HARDWARE, interface.hardware.as_bytes());
        end_options(out, from);
    });
}

/// A packet that was seen, or the number of packets that nobody saw.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Packet<'a> {
    /// Number of the interface.
    pub interface: u32,
    /// When.
    pub at_ns: u64,
    /// Bytes on the way.
    pub original: u32,
    /// The first of them.
    pub bytes: &'a [u8],
    /// What is known of it, as `key=value`.
    pub comment: &'a str,
    /// Its way.
    pub direction: Option<Direction>,
    /// Packets of this interface that are missing in the file since the one before.
    pub dropped: u64,
    /// Its number at every point.
    pub id: Option<PacketId>,
    /// The queue, or the core, that had it.
    pub queue: Option<u32>,
}

/// Appends a packet.
pub fn packet(out: &mut Vec<u8>, packet: &Packet<'_>) {
    block(out, kind::PACKET, |out| {
        out.extend(packet.interface.to_le_bytes());
        moment(out, packet.at_ns);
        out.extend((packet.bytes.len() as u32).to_le_bytes());
        out.extend(packet.original.to_le_bytes());
        padded(out, packet.bytes);
        let from = out.len();
        option(out, code::COMMENT, packet.comment.as_bytes());
        if let Some(direction) = packet.direction {
            option(out, code::PACKET_FLAGS, &direction.flags().to_le_bytes());
        }
        if packet.dropped > 0 {
            option(out, code::PACKET_DROPPED, &packet.dropped.to_le_bytes());
        }
        if let Some(PacketId(id)) = packet.id {
            option(out, code::PACKET_ID, &id.to_le_bytes());
        }
        if let Some(queue) = packet.queue {
            option(out, code::PACKET_QUEUE, &queue.to_le_bytes());
        }
        end_options(out, from);
    });
}

/// How many packets an interface had, over the whole capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Statistics {
    /// Number of the interface.
    pub interface: u32,
    /// When this was counted.
    pub at_ns: u64,
    /// When the capture began.
    pub start_ns: u64,
    /// Matched the filter.
    pub matched: u64,
    /// Of those, how many are not in the file for want of room.
    pub lost: u64,
    /// Of those, how many are not in the file for want of time.
    pub over_budget: u64,
    /// Packets that were not looked at, for want of more time.
    pub not_looked: u64,
}

/// Appends what was counted. Matched = in the file + lost + over budget.
pub fn statistics(out: &mut Vec<u8>, counts: &Statistics) {
    block(out, kind::STATISTICS, |out| {
        out.extend(counts.interface.to_le_bytes());
        moment(out, counts.at_ns);
        let from = out.len();
        option(out, code::STATISTICS_START, &halves(counts.start_ns));
        option(out, code::STATISTICS_END, &halves(counts.at_ns));
        option(out, code::STATISTICS_RECEIVED, &counts.matched.to_le_bytes());
        let missing = counts.lost + counts.over_budget;
        option(out, code::STATISTICS_LOST, &missing.to_le_bytes());
        option(out, code::STATISTICS_ACCEPTED, &counts.matched.to_le_bytes());
        let written = counts.matched.saturating_sub(missing);
        option(out, code::STATISTICS_DELIVERED, &written.to_le_bytes());
        if counts.over_budget > 0 || counts.not_looked > 0 {
            let (over, not) = (counts.over_budget, counts.not_looked);
            let comment = format!("over_budget={over} not_looked={not}");
            option(out, code::COMMENT, comment.as_bytes());
        }
        end_options(out, from);
    });
}

/// Appends something that happened, as the systemd journal exports it: a row between the packets.
pub fn journal(out: &mut Vec<u8>, at_ns: u64, message: &str, fields: &[(&str, &str)]) {
    block(out, kind::JOURNAL, |out| {
        // A line break would begin another field.
        let clean = |text: &str| text.replace('\n', " ");
        let mut text = format!(
            "__REALTIME_TIMESTAMP={}\nMESSAGE={}\nSYSLOG_IDENTIFIER=suiro\n",
            at_ns / 1000,
            clean(message)
        );
        for (key, value) in fields {
            text += &format!("{key}={}\n", clean(value));
        }
        padded(out, text.as_bytes());
    });
}
