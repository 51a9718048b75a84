//! Flow-mod and flow-removed (§7.3.4.1, §7.4.2).

use super::{Wire, known, put_all, put_buffer, take_all, take_buffer};
use crate::bytes::{Reader, Writer};
use crate::error::{ErrorCode, Fault};
use crate::flow_mod::{FlowMod, FlowModCommand, FlowModFlags, FlowRemoved, FlowRemovedReason};
use crate::ids::{GroupId, PortNo, TableId};
use crate::version::Version;
use crate::wording::Wording;

/// Bytes of a flow-mod without instructions, its match being empty.
const FLOW_MOD_LEN: usize = 48;

impl Wire for FlowMod {
    fn put(&self, out: &mut Writer) {
        out.u64(self.cookie);
        out.u64(self.cookie_mask);
        out.u8(self.table.0);
        out.u8(self.command.wire());
        out.u16(self.idle_timeout_s);
        out.u16(self.hard_timeout_s);
        out.u16(self.priority);
        put_buffer(self.buffer_id, out);
        out.u32(self.out_port.0);
        out.u32(self.out_group.0);
        out.u16(self.flags.bits());
        out.zeros(2);
        self.fields.put(out);
        put_all(&self.instructions, out);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        input.need(FLOW_MOD_LEN)?;
        let (cookie, cookie_mask, table) = (input.u64()?, input.u64()?, TableId(input.u8()?));
        let command =
            known(input.u8()?, FlowModCommand::from_wire, ErrorCode::FlowModFailedBadCommand)?;
        let (idle_timeout_s, hard_timeout_s, priority) = (input.u16()?, input.u16()?, input.u16()?);
        let buffer_id = take_buffer(input)?;
        let (out_port, out_group) = (PortNo(input.u32()?), GroupId(input.u32()?));
        let flags = FlowModFlags::from_bits_retain(input.u16()?);
        input.skip(2)?;
        Ok(FlowMod {
            cookie,
            cookie_mask,
            table,
            command,
            idle_timeout_s,
            hard_timeout_s,
            priority,
            buffer_id,
            out_port,
            out_group,
            flags,
            fields: Wire::take(input)?,
            instructions: take_all(input.all(ErrorCode::BadInstructionBadLen))?,
            version: Version::V1_3,
            wording: Wording::default(),
        })
    }
}

impl Wire for FlowRemoved {
    fn put(&self, out: &mut Writer) {
        out.u64(self.cookie);
        out.u16(self.priority);
        out.u8(self.reason.wire());
        out.u8(self.table.0);
        out.u32(self.duration_s);
        out.u32(self.duration_ns);
        out.u16(self.idle_timeout_s);
        out.u16(self.hard_timeout_s);
        out.u64(self.packet_count);
        out.u64(self.byte_count);
        self.fields.put(out);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        Ok(FlowRemoved {
            cookie: input.u64()?,
            priority: input.u16()?,
            reason: known(input.u8()?, FlowRemovedReason::from_wire, ErrorCode::BadRequestBadType)?,
            table: TableId(input.u8()?),
            duration_s: input.u32()?,
            duration_ns: input.u32()?,
            idle_timeout_s: input.u16()?,
            hard_timeout_s: input.u16()?,
            packet_count: input.u64()?,
            byte_count: input.u64()?,
            fields: Wire::take(input)?,
            wording: Wording::default(),
        })
    }
}
