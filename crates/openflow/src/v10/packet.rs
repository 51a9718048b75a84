//! Packet-in and packet-out (1.0.0 §5.4.1, §5.3.6).

use super::action::{put_actions, take_actions};
use super::port::{put_port, take_port};
use super::{Wire, known, put_buffer, take_buffer};
use crate::bytes::{Reader, Writer};
use crate::error::{ErrorCode, Fault};
use crate::ids::{PortNo, TableId};
use crate::matching::Match;
use crate::oxm::OxmField;
use crate::packet::{PacketIn, PacketInReason, PacketOut};

/// What later versions put in place of the cookie of an entry that there is none of.
const NO_COOKIE: u64 = u64::MAX;

impl Wire for PacketIn {
    /// Table, cookie and fields beyond the port have no place; 1.0 knows an ended TTL only as an action.
    fn put(&self, out: &mut Writer) {
        put_buffer(self.buffer_id, out);
        out.u16(self.total_len);
        let port = self.fields.exact(OxmField::InPort).map(|port| PortNo(port as u32));
        put_port(port.unwrap_or(PortNo::ANY), out);
        out.u8(match self.reason {
            PacketInReason::InvalidTtl => PacketInReason::Action.wire(),
            reason => reason.wire(),
        });
        out.zeros(1);
        out.bytes(&self.data);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let (buffer_id, total_len, port) = (take_buffer(input)?, input.u16()?, take_port(input)?);
        let reason = known(input.u8()?, reason, ErrorCode::BadRequestBadType)?;
        input.skip(1)?;
        Ok(PacketIn {
            buffer_id,
            total_len,
            reason,
            table: TableId(0),
            cookie: NO_COOKIE,
            fields: Match::default().with(OxmField::InPort, port.0.into()),
            data: input.remaining(),
        })
    }
}

fn reason(number: u8) -> Option<PacketInReason> {
    PacketInReason::from_wire(number).filter(|reason| *reason != PacketInReason::InvalidTtl)
}

impl Wire for PacketOut {
    /// A packet of the controller's own came by `OFPP_NONE` here (§5.3.6) and by `OFPP_CONTROLLER` in later versions. Port 0, which no
    /// port has, is read as that, too: some libraries leave the field as it is.
    fn put(&self, out: &mut Writer) {
        put_buffer(self.buffer_id, out);
        put_port(if self.in_port == PortNo::CONTROLLER { PortNo::ANY } else { self.in_port }, out);
        let at = out.len();
        out.u16(0);
        let start = out.len();
        put_actions(&self.actions, out);
        out.patch_len(at, start);
        out.bytes(&self.data);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let (buffer_id, in_port, len) = (take_buffer(input)?, take_port(input)?, input.u16()?);
        let actions = take_actions(input.part(usize::from(len), ErrorCode::BadActionBadLen)?)?;
        Ok(PacketOut {
            buffer_id,
            in_port: match in_port {
                PortNo::ANY | PortNo(0) => PortNo::CONTROLLER,
                port => port,
            },
            actions,
            data: input.remaining(),
        })
    }
}
