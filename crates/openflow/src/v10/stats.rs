//! Statistics (1.0.0 §5.3.5): requests, replies, and the cutting of long replies.

use super::action::{put_instructions, take_instructions};
use super::flow::{HIGHEST, said};
use super::matching::{EVERY_BIT, is_exact, put_match, take_match};
use super::port::{put_port, take_port, to_wire};
use super::{NOT_IN_1_0, STATS_REPLY, Wire, begin, finish, known, take_list};
use crate::bytes::{Reader, Writer};
use crate::envelope::Entries;
use crate::error::{EncodeError, ErrorCode, Fault};
use crate::fixed_text::FixedText;
use crate::flow_mod::FlowModFlags;
use crate::ids::{GroupId, PortNo, TableId};
use crate::multipart::{
    AggregateStats, FlowStats, FlowStatsRequest, MultipartKind, MultipartReply, MultipartRequest,
    Part, SwitchDesc,
};
use crate::port::{PortStats, QueueStats};
use crate::table::TableStats;

/// The emergency table.
const EMERGENCY: TableId = TableId(0xfe);

/// `OFPSF_REPLY_MORE`; requests have no flag.
const MORE: u16 = 1;

/// Types have the numbers that they have later, as far as 1.0 has them.
fn kind(number: u16) -> Option<MultipartKind> {
    MultipartKind::from_wire(number)
        .filter(|kind| *kind <= MultipartKind::Queue || *kind == MultipartKind::Experimenter)
}

fn take_kind(input: &mut Reader<'_>) -> Result<MultipartKind, Fault> {
    input.need(4)?;
    known(input.u16()?, kind, ErrorCode::BadRequestBadMultipart)
}

pub(super) fn put_request(
    part: &Part<MultipartRequest>,
    out: &mut Writer,
) -> Result<(), EncodeError> {
    out.u16(part.body.kind().wire());
    out.u16(0);
    match &part.body {
        MultipartRequest::Desc | MultipartRequest::Table => {}
        MultipartRequest::Flow(request) | MultipartRequest::Aggregate(request) => request.put(out),
        MultipartRequest::PortStats(port) => {
            put_port(*port, out);
            out.zeros(6);
        }
        MultipartRequest::Queue { port, queue } => {
            put_port(if *port == PortNo::ANY { PortNo::ALL } else { *port }, out);
            out.zeros(2);
            out.u32(*queue);
        }
        MultipartRequest::Experimenter(body) => body.put(out),
        _ => return Err(NOT_IN_1_0),
    }
    Ok(())
}

pub(super) fn take_request(input: &mut Reader<'_>) -> Result<Part<MultipartRequest>, Fault> {
    let kind = take_kind(input)?;
    input.skip(2)?;
    Ok(Part::last(match kind {
        MultipartKind::Desc => MultipartRequest::Desc,
        MultipartKind::Flow => MultipartRequest::Flow(Wire::take(input)?),
        MultipartKind::Aggregate => MultipartRequest::Aggregate(Wire::take(input)?),
        MultipartKind::Table => MultipartRequest::Table,
        MultipartKind::PortStats => {
            let port = take_port(input)?;
            input.skip(6)?;
            MultipartRequest::PortStats(port)
        }
        MultipartKind::Queue => take_queue_request(input)?,
        _ => MultipartRequest::Experimenter(Wire::take(input)?),
    }))
}

/// All ports are `OFPP_ALL` here; `OFPP_NONE` says the same to who took the words of port statistics.
fn take_queue_request(input: &mut Reader<'_>) -> Result<MultipartRequest, Fault> {
    let port = take_port(input)?;
    input.skip(2)?;
    let port = if port == PortNo::ALL { PortNo::ANY } else { port };
    Ok(MultipartRequest::Queue { port, queue: input.u32()? })
}

fn entries(reply: &MultipartReply) -> Result<Entries, EncodeError> {
    Ok(match reply {
        MultipartReply::Desc(desc) => one(desc),
        MultipartReply::Flow(flows) => Entries::of(flows, Wire::put),
        MultipartReply::Aggregate(sums) => one(sums),
        MultipartReply::Table(tables) => Entries::of(tables, Wire::put),
        MultipartReply::PortStats(ports) => {
            Entries::of(&shown(ports, |port| port.number), Wire::put)
        }
        MultipartReply::Queue(queues) => Entries::of(&shown(queues, |queue| queue.port), Wire::put),
        MultipartReply::Experimenter(body) => one(body),
        _ => return Err(NOT_IN_1_0),
    })
}

fn one<T: Wire>(body: &T) -> Entries {
    Entries::of(std::slice::from_ref(body), Wire::put)
}

/// What does not belong to a hidden port.
fn shown<T: Copy>(items: &[T], port: impl Fn(&T) -> PortNo) -> Vec<T> {
    items.iter().filter(|item| to_wire(port(item)).is_some()).copied().collect()
}

fn put_reply_header(kind: MultipartKind, more: bool, out: &mut Writer) {
    out.u16(kind.wire());
    out.u16(if more { MORE } else { 0 });
}

pub(super) fn put_reply(part: &Part<MultipartReply>, out: &mut Writer) -> Result<(), EncodeError> {
    put_reply_header(part.body.kind(), part.more, out);
    out.bytes(&entries(&part.body)?.out.0);
    Ok(())
}

/// Bytes of header and statistics header.
const HEADERS: usize = 12;

/// See [`crate::encode_reply`].
pub(crate) fn encode_reply(
    xid: u32,
    reply: &MultipartReply,
    more: bool,
) -> Result<Vec<Vec<u8>>, EncodeError> {
    let kind = reply.kind();
    let entries = entries(reply)?;
    let pieces = entries
        .pieces(usize::from(u16::MAX) - HEADERS)
        .ok_or(EncodeError::EntryTooLong { kind })?;
    let last = pieces.len() - 1;
    let messages = pieces.iter().enumerate().map(|(i, piece)| {
        let mut out = begin(STATS_REPLY, xid);
        put_reply_header(kind, more || i < last, &mut out);
        out.bytes(piece);
        finish(out)
    });
    messages.collect()
}

pub(super) fn take_reply(input: &mut Reader<'_>) -> Result<Part<MultipartReply>, Fault> {
    let kind = take_kind(input)?;
    let more = input.u16()? & MORE != 0;
    let body = match kind {
        MultipartKind::Desc => MultipartReply::Desc(Wire::take(input)?),
        MultipartKind::Flow => MultipartReply::Flow(take_rest(input)?),
        MultipartKind::Aggregate => MultipartReply::Aggregate(Wire::take(input)?),
        MultipartKind::Table => MultipartReply::Table(take_rest(input)?),
        MultipartKind::PortStats => MultipartReply::PortStats(take_rest(input)?),
        MultipartKind::Queue => MultipartReply::Queue(take_rest(input)?),
        _ => MultipartReply::Experimenter(Wire::take(input)?),
    };
    Ok(Part { more, body })
}

fn take_rest<T: Wire>(input: &mut Reader<'_>) -> Result<Vec<T>, Fault> {
    take_list(input.all(ErrorCode::BadRequestBadLen), Wire::take)
}

impl Wire for FlowStatsRequest {
    fn put(&self, out: &mut Writer) {
        self.fields.put(out);
        out.u8(self.table.0);
        out.zeros(1);
        put_port(self.out_port, out);
    }

    /// Table 0xfe asks for the emergency table (1.0.0 §5.3.5), which is not there and so has no entries: what is asked for then is what
    /// goes to port 0, which nothing does.
    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let (fields, table) = (Wire::take(input)?, TableId(input.u8()?));
        input.skip(1)?;
        let out_port = take_port(input)?;
        let (table, out_port) =
            if table == EMERGENCY { (TableId::ALL, PortNo(0)) } else { (table, out_port) };
        Ok(FlowStatsRequest {
            table,
            out_port,
            out_group: GroupId::ANY,
            cookie: 0,
            cookie_mask: 0,
            fields,
        })
    }
}

/// Bytes of a flow's statistics before its actions.
const FLOW_LEN: usize = 88;

impl Wire for FlowStats {
    fn put(&self, out: &mut Writer) {
        let start = out.len();
        out.u16(0);
        out.u8(self.table.0);
        out.zeros(1);
        put_match(&self.fields, self.wording, out);
        out.u32(self.duration_s);
        out.u32(self.duration_ns);
        out.u16(self.wording.priority().unwrap_or(self.priority));
        out.u16(self.idle_timeout_s);
        out.u16(self.hard_timeout_s);
        out.zeros(6);
        out.u64(self.cookie);
        out.u64(self.packet_count);
        out.u64(self.byte_count);
        put_instructions(&self.instructions, out);
        out.patch_len(start, start);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let len = usize::from(input.peek_u16(0)?);
        if len < FLOW_LEN || len > input.len() {
            return Err(input.bad_len("a flow's statistics of the wrong length"));
        }
        let mut body = input.part(len, ErrorCode::BadRequestBadLen)?;
        body.skip(2)?;
        let table = TableId(body.u8()?);
        body.skip(1)?;
        let exact = is_exact(&body)?;
        let (fields, wording) = take_match(&mut body)?;
        let (duration_s, duration_ns, priority) = (body.u32()?, body.u32()?, body.u16()?);
        let (idle_timeout_s, hard_timeout_s) = (body.u16()?, body.u16()?);
        body.skip(6)?;
        Ok(FlowStats {
            table,
            duration_s,
            duration_ns,
            priority: if exact { HIGHEST } else { priority },
            wording: said(wording, exact, priority),
            idle_timeout_s,
            hard_timeout_s,
            flags: FlowModFlags::empty(),
            cookie: body.u64()?,
            packet_count: body.u64()?,
            byte_count: body.u64()?,
            fields,
            instructions: take_instructions(body.all(ErrorCode::BadActionBadLen))?,
        })
    }
}

impl Wire for AggregateStats {
    fn put(&self, out: &mut Writer) {
        out.u64(self.packet_count);
        out.u64(self.byte_count);
        out.u32(self.flow_count);
        out.zeros(4);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let (packet_count, byte_count, flow_count) = (input.u64()?, input.u64()?, input.u32()?);
        input.skip(4)?;
        Ok(AggregateStats { packet_count, byte_count, flow_count })
    }
}

impl Wire for TableStats {
    /// Every field may be wildcarded in every table; the name is the number's.
    fn put(&self, out: &mut Writer) {
        out.u8(self.table.0);
        out.zeros(3);
        out.fixed(format!("table{}", self.table.0).as_bytes(), 32);
        out.u32(EVERY_BIT);
        out.u32(self.max_entries);
        out.u32(self.active);
        out.u64(self.lookups);
        out.u64(self.matches);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let table = TableId(input.u8()?);
        input.skip(3 + 32 + 4)?;
        Ok(TableStats {
            table,
            max_entries: input.u32()?,
            active: input.u32()?,
            lookups: input.u64()?,
            matches: input.u64()?,
        })
    }
}

impl Wire for PortStats {
    /// How long the port is there has no place.
    fn put(&self, out: &mut Writer) {
        put_port(self.number, out);
        out.zeros(6);
        let counters = [
            self.rx_packets,
            self.tx_packets,
            self.rx_bytes,
            self.tx_bytes,
            self.rx_dropped,
            self.tx_dropped,
            self.rx_errors,
            self.tx_errors,
            self.rx_frame_err,
            self.rx_over_err,
            self.rx_crc_err,
            self.collisions,
        ];
        counters.iter().for_each(|counter| out.u64(*counter));
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let number = take_port(input)?;
        input.skip(6)?;
        Ok(PortStats {
            number,
            rx_packets: input.u64()?,
            tx_packets: input.u64()?,
            rx_bytes: input.u64()?,
            tx_bytes: input.u64()?,
            rx_dropped: input.u64()?,
            tx_dropped: input.u64()?,
            rx_errors: input.u64()?,
            tx_errors: input.u64()?,
            rx_frame_err: input.u64()?,
            rx_over_err: input.u64()?,
            rx_crc_err: input.u64()?,
            collisions: input.u64()?,
            duration_s: 0,
            duration_ns: 0,
        })
    }
}

impl Wire for QueueStats {
    fn put(&self, out: &mut Writer) {
        put_port(self.port, out);
        out.zeros(2);
        out.u32(self.queue);
        out.u64(self.tx_bytes);
        out.u64(self.tx_packets);
        out.u64(self.tx_errors);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let port = take_port(input)?;
        input.skip(2)?;
        Ok(QueueStats {
            port,
            queue: input.u32()?,
            tx_bytes: input.u64()?,
            tx_packets: input.u64()?,
            tx_errors: input.u64()?,
            duration_s: 0,
            duration_ns: 0,
        })
    }
}

/// `ofp_desc_stats`, which never changed.
impl Wire for SwitchDesc {
    fn put(&self, out: &mut Writer) {
        out.fixed(self.manufacturer.as_bytes(), 256);
        out.fixed(self.hardware.as_bytes(), 256);
        out.fixed(self.software.as_bytes(), 256);
        out.fixed(self.serial_number.as_bytes(), 32);
        out.fixed(self.datapath.as_bytes(), 256);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        Ok(SwitchDesc {
            manufacturer: FixedText::new(input.take(256)?),
            hardware: FixedText::new(input.take(256)?),
            software: FixedText::new(input.take(256)?),
            serial_number: FixedText::new(input.take(32)?),
            datapath: FixedText::new(input.take(256)?),
        })
    }
}
