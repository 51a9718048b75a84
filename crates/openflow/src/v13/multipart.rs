//! Multipart requests and replies (§7.3.5), and the cutting of long replies.

use super::{MULTIPART_REPLY, Wire, begin, finish, known, put_all, take_all};
use crate::action::{Action, Instruction};
use crate::bytes::{Reader, Writer};
use crate::envelope::Entries;
use crate::error::{EncodeError, ErrorCode, Fault};
use crate::fixed_text::FixedText;
use crate::flow_mod::FlowModFlags;
use crate::ids::{GroupId, MeterId, PortNo, TableId};
use crate::matching::Match;
use crate::multipart::{
    AggregateStats, FlowStats, FlowStatsRequest, MultipartKind, MultipartReply, MultipartRequest,
    Part, SwitchDesc,
};
use crate::oxm::Prerequisite;
use crate::wording::Wording;

/// `OFPMPF_REQ_MORE` and `OFPMPF_REPLY_MORE`.
const MORE: u16 = 1;

fn put_header(kind: MultipartKind, more: bool, out: &mut Writer) {
    out.u16(kind.wire());
    out.u16(u16::from(more));
    out.zeros(4);
}

fn take_header(input: &mut Reader<'_>) -> Result<(MultipartKind, bool), Fault> {
    input.need(8)?;
    let kind = known(input.u16()?, MultipartKind::from_wire, ErrorCode::BadRequestBadMultipart)?;
    let more = input.u16()? & MORE != 0;
    input.skip(4)?;
    Ok((kind, more))
}

impl Wire for Part<MultipartRequest> {
    fn put(&self, out: &mut Writer) {
        put_header(self.body.kind(), self.more, out);
        match &self.body {
            MultipartRequest::Flow(request) | MultipartRequest::Aggregate(request) => {
                request.put(out)
            }
            MultipartRequest::PortStats(PortNo(id))
            | MultipartRequest::Group(GroupId(id))
            | MultipartRequest::Meter(MeterId(id))
            | MultipartRequest::MeterConfig(MeterId(id)) => {
                out.u32(*id);
                out.zeros(4);
            }
            MultipartRequest::Queue { port, queue } => {
                out.u32(port.0);
                out.u32(*queue);
            }
            MultipartRequest::TableFeatures(tables) => put_all(tables, out),
            MultipartRequest::Experimenter(body) => body.put(out),
            MultipartRequest::Desc
            | MultipartRequest::Table
            | MultipartRequest::GroupDesc
            | MultipartRequest::GroupFeatures
            | MultipartRequest::MeterFeatures
            | MultipartRequest::PortDesc => {}
        }
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let (kind, more) = take_header(input)?;
        Ok(Part { more, body: take_request(kind, input)? })
    }
}

fn take_request(kind: MultipartKind, input: &mut Reader<'_>) -> Result<MultipartRequest, Fault> {
    Ok(match kind {
        MultipartKind::Desc => MultipartRequest::Desc,
        MultipartKind::Flow => MultipartRequest::Flow(Wire::take(input)?),
        MultipartKind::Aggregate => MultipartRequest::Aggregate(Wire::take(input)?),
        MultipartKind::Table => MultipartRequest::Table,
        MultipartKind::PortStats => MultipartRequest::PortStats(PortNo(take_id(input)?)),
        MultipartKind::Queue => {
            MultipartRequest::Queue { port: PortNo(input.u32()?), queue: input.u32()? }
        }
        MultipartKind::Group => MultipartRequest::Group(GroupId(take_id(input)?)),
        MultipartKind::GroupDesc => MultipartRequest::GroupDesc,
        MultipartKind::GroupFeatures => MultipartRequest::GroupFeatures,
        MultipartKind::Meter => MultipartRequest::Meter(MeterId(take_id(input)?)),
        MultipartKind::MeterConfig => MultipartRequest::MeterConfig(MeterId(take_id(input)?)),
        MultipartKind::MeterFeatures => MultipartRequest::MeterFeatures,
        MultipartKind::TableFeatures => MultipartRequest::TableFeatures(take_all(
            input.all(ErrorCode::TableFeaturesFailedBadLen),
        )?),
        MultipartKind::PortDesc => MultipartRequest::PortDesc,
        MultipartKind::Experimenter => MultipartRequest::Experimenter(Wire::take(input)?),
    })
}

fn take_id(input: &mut Reader<'_>) -> Result<u32, Fault> {
    let id = input.u32()?;
    input.skip(4)?;
    Ok(id)
}

impl Wire for Part<MultipartReply> {
    fn put(&self, out: &mut Writer) {
        put_header(self.body.kind(), self.more, out);
        out.bytes(&entries(&self.body).out.0);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let (kind, more) = take_header(input)?;
        Ok(Part { more, body: take_reply(kind, input)? })
    }
}

fn entries(reply: &MultipartReply) -> Entries {
    match reply {
        MultipartReply::Desc(desc) => one(desc),
        MultipartReply::Flow(flows) => many(flows),
        MultipartReply::Aggregate(sums) => one(sums),
        MultipartReply::Table(tables) => many(tables),
        MultipartReply::PortStats(ports) => many(ports),
        MultipartReply::Queue(queues) => many(queues),
        MultipartReply::Group(groups) => many(groups),
        MultipartReply::GroupDesc(groups) => many(groups),
        MultipartReply::GroupFeatures(features) => one(features),
        MultipartReply::Meter(meters) => many(meters),
        MultipartReply::MeterConfig(meters) => many(meters),
        MultipartReply::MeterFeatures(features) => one(features),
        MultipartReply::TableFeatures(tables) => many(tables),
        MultipartReply::PortDesc(ports) => many(ports),
        MultipartReply::Experimenter(body) => one(body),
    }
}

fn one<T: Wire>(body: &T) -> Entries {
    many(std::slice::from_ref(body))
}

fn many<T: Wire>(items: &[T]) -> Entries {
    Entries::of(items, T::put)
}

/// Bytes of header and multipart header.
pub(super) const HEADERS: usize = 16;

/// See [`crate::encode_reply`].
pub(crate) fn encode_reply(
    xid: u32,
    reply: &MultipartReply,
    more: bool,
) -> Result<Vec<Vec<u8>>, EncodeError> {
    let kind = reply.kind();
    let entries = entries(reply);
    let pieces = entries
        .pieces(usize::from(u16::MAX) - HEADERS)
        .ok_or(EncodeError::EntryTooLong { kind })?;
    let last = pieces.len() - 1;
    let messages = pieces.iter().enumerate().map(|(i, piece)| {
        let mut out = begin(MULTIPART_REPLY, xid);
        put_header(kind, more || i < last, &mut out);
        out.bytes(piece);
        finish(out)
    });
    messages.collect()
}

/// The list that fills the rest of a reply.
fn take_list<T: Wire>(input: &mut Reader<'_>) -> Result<Vec<T>, Fault> {
    take_all(input.all(ErrorCode::BadRequestBadLen))
}

fn take_reply(kind: MultipartKind, input: &mut Reader<'_>) -> Result<MultipartReply, Fault> {
    Ok(match kind {
        MultipartKind::Desc => MultipartReply::Desc(Wire::take(input)?),
        MultipartKind::Flow => MultipartReply::Flow(take_list(input)?),
        MultipartKind::Aggregate => MultipartReply::Aggregate(Wire::take(input)?),
        MultipartKind::Table => MultipartReply::Table(take_list(input)?),
        MultipartKind::PortStats => MultipartReply::PortStats(take_list(input)?),
        MultipartKind::Queue => MultipartReply::Queue(take_list(input)?),
        MultipartKind::Group => MultipartReply::Group(take_list(input)?),
        MultipartKind::GroupDesc => MultipartReply::GroupDesc(take_list(input)?),
        MultipartKind::GroupFeatures => MultipartReply::GroupFeatures(Wire::take(input)?),
        MultipartKind::Meter => MultipartReply::Meter(take_list(input)?),
        MultipartKind::MeterConfig => MultipartReply::MeterConfig(take_list(input)?),
        MultipartKind::MeterFeatures => MultipartReply::MeterFeatures(Wire::take(input)?),
        MultipartKind::TableFeatures => MultipartReply::TableFeatures(take_list(input)?),
        MultipartKind::PortDesc => MultipartReply::PortDesc(take_list(input)?),
        MultipartKind::Experimenter => MultipartReply::Experimenter(Wire::take(input)?),
    })
}

impl Wire for FlowStatsRequest {
    fn put(&self, out: &mut Writer) {
        out.u8(self.table.0);
        out.zeros(3);
        out.u32(self.out_port.0);
        out.u32(self.out_group.0);
        out.zeros(4);
        out.u64(self.cookie);
        out.u64(self.cookie_mask);
        self.fields.put(out);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let table = TableId(input.u8()?);
        input.skip(3)?;
        let (out_port, out_group) = (PortNo(input.u32()?), GroupId(input.u32()?));
        input.skip(4)?;
        let (cookie, cookie_mask) = (input.u64()?, input.u64()?);
        Ok(FlowStatsRequest {
            table,
            out_port,
            out_group,
            cookie,
            cookie_mask,
            fields: Wire::take(input)?,
        })
    }
}

/// Writes an entry's instructions. A conditional push is left out where the packet is known to have a tag, by the match or by an
/// action before: nothing is pushed there. Elsewhere 1.3 has no word for it, and a push comes nearest.
fn put_told(instructions: &[Instruction], fields: &Match, out: &mut Writer) {
    for instruction in instructions {
        match instruction {
            Instruction::ApplyActions(list) if list.contains(&Action::EnsureVlan) => {
                Instruction::ApplyActions(without_idle_pushes(list, fields)).put(out);
            }
            other => other.put(out),
        }
    }
}

fn without_idle_pushes(list: &[Action], fields: &Match) -> Vec<Action> {
    let mut is_tagged = fields.satisfies(Prerequisite::Vlan);
    let mut told = Vec::with_capacity(list.len());
    for action in list {
        if is_tagged && *action == Action::EnsureVlan {
            continue;
        }
        match action {
            Action::EnsureVlan | Action::PushVlan(_) => is_tagged = true,
            Action::PopVlan => is_tagged = false,
            _ => {}
        }
        told.push(action.clone());
    }
    told
}

/// Bytes of a flow's statistics before its match.
const FLOW_LEN: usize = 48;

impl Wire for FlowStats {
    fn put(&self, out: &mut Writer) {
        let start = out.len();
        out.u16(0);
        out.u8(self.table.0);
        out.zeros(1);
        out.u32(self.duration_s);
        out.u32(self.duration_ns);
        out.u16(self.priority);
        out.u16(self.idle_timeout_s);
        out.u16(self.hard_timeout_s);
        out.u16(self.flags.bits());
        out.zeros(4);
        out.u64(self.cookie);
        out.u64(self.packet_count);
        out.u64(self.byte_count);
        self.fields.put(out);
        put_told(&self.instructions, &self.fields, out);
        out.patch_len(start, start);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let mut body = super::group::take_sized(input, FLOW_LEN)?;
        let table = TableId(body.u8()?);
        body.skip(1)?;
        let (duration_s, duration_ns, priority) = (body.u32()?, body.u32()?, body.u16()?);
        let (idle_timeout_s, hard_timeout_s) = (body.u16()?, body.u16()?);
        let flags = FlowModFlags::from_bits_retain(body.u16()?);
        body.skip(4)?;
        Ok(FlowStats {
            table,
            duration_s,
            duration_ns,
            priority,
            idle_timeout_s,
            hard_timeout_s,
            flags,
            cookie: body.u64()?,
            packet_count: body.u64()?,
            byte_count: body.u64()?,
            fields: Wire::take(&mut body)?,
            instructions: take_all(body.all(ErrorCode::BadInstructionBadLen))?,
            wording: Wording::default(),
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
