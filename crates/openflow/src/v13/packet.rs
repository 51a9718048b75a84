//! Packet-in and packet-out (§7.4.1, §7.3.7).

use super::{Wire, known, put_all, put_buffer, take_all, take_buffer};
use crate::bytes::{Reader, Writer};
use crate::error::{ErrorCode, Fault};
use crate::ids::{PortNo, TableId};
use crate::packet::{PacketIn, PacketInReason, PacketOut};

impl Wire for PacketIn {
    fn put(&self, out: &mut Writer) {
        put_buffer(self.buffer_id, out);
        out.u16(self.total_len);
        out.u8(self.reason.wire());
        out.u8(self.table.0);
        out.u64(self.cookie);
        self.fields.put(out);
        out.zeros(2);
        out.bytes(&self.data);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let (buffer_id, total_len) = (take_buffer(input)?, input.u16()?);
        let reason = known(input.u8()?, PacketInReason::from_wire, ErrorCode::BadRequestBadType)?;
        let (table, cookie, fields) = (TableId(input.u8()?), input.u64()?, Wire::take(input)?);
        input.skip(2)?;
        Ok(PacketIn {
            buffer_id,
            total_len,
            reason,
            table,
            cookie,
            fields,
            data: input.remaining(),
        })
    }
}

impl Wire for PacketOut {
    fn put(&self, out: &mut Writer) {
        put_buffer(self.buffer_id, out);
        out.u32(self.in_port.0);
        let at = out.len();
        out.u16(0);
        out.zeros(6);
        let start = out.len();
        put_all(&self.actions, out);
        out.patch_len(at, start);
        out.bytes(&self.data);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let (buffer_id, in_port, actions_len) =
            (take_buffer(input)?, PortNo(input.u32()?), input.u16()?);
        input.skip(6)?;
        let actions = take_all(input.part(usize::from(actions_len), ErrorCode::BadActionBadLen)?)?;
        Ok(PacketOut { buffer_id, in_port, actions, data: input.remaining() })
    }
}
