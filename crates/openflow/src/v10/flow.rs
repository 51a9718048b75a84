//! Flow-mod and flow-removed (1.0.0 §5.3.3, §5.4.2).
//!
//! 1.0 names no table. Entries are added to and modified in table 0; deletions go for all tables, so that a controller of 1.0 can
//! empty a switch that one of 1.3 has filled.

use super::action::{put_instructions, take_instructions};
use super::matching::{is_exact, put_match, take_match};
use super::port::{put_port, take_port};
use super::{Wire, known, put_buffer, take_buffer};
use crate::bytes::{Reader, Writer};
use crate::error::{ErrorCode, Fault};
use crate::flow_mod::{FlowMod, FlowModCommand, FlowModFlags, FlowRemoved, FlowRemovedReason};
use crate::ids::{GroupId, TableId};
use crate::version::Version;
use crate::wording::Wording;

/// `OFPFF_*`: the flags that 1.0 shares with later versions have the same bits.
const FLAGS: FlowModFlags = FlowModFlags::SEND_FLOW_REM.union(FlowModFlags::CHECK_OVERLAP);
/// `OFPFF_EMERG`: for the emergency flow cache, an option that 1.0.1 made one and 1.1 removed.
const EMERG: u16 = 4;

/// The priority of an entry without wildcards: it is always the highest (§3.4).
pub(super) const HIGHEST: u16 = u16::MAX;

/// Bytes of a flow-mod without actions.
const FLOW_MOD_LEN: usize = 64;

impl Wire for FlowMod {
    fn put(&self, out: &mut Writer) {
        put_match(&self.fields, self.wording, out);
        out.u64(self.cookie);
        out.u16(self.command.wire().into());
        out.u16(self.idle_timeout_s);
        out.u16(self.hard_timeout_s);
        out.u16(self.wording.priority().unwrap_or(self.priority));
        put_buffer(self.buffer_id, out);
        put_port(self.out_port, out);
        out.u16((self.flags & FLAGS).bits());
        put_instructions(&self.instructions, out);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        input.need(FLOW_MOD_LEN)?;
        let exact = is_exact(input)?;
        let ((fields, wording), cookie) = (take_match(input)?, input.u64()?);
        let command = known(input.u16()?, command, ErrorCode::FlowModFailedBadCommand)?;
        let (idle_timeout_s, hard_timeout_s) = (input.u16()?, input.u16()?);
        let priority = input.u16()?;
        let (buffer_id, out_port) = (take_buffer(input)?, take_port(input)?);
        let flags = take_flags(input.u16()?, idle_timeout_s | hard_timeout_s != 0)?;
        Ok(FlowMod {
            cookie,
            cookie_mask: 0,
            table: table(command),
            command,
            idle_timeout_s,
            hard_timeout_s,
            priority: if exact { HIGHEST } else { priority },
            buffer_id,
            out_port,
            out_group: GroupId::ANY,
            flags,
            fields,
            instructions: take_instructions(input.all(ErrorCode::BadActionBadLen))?,
            version: Version::V1_0,
            wording: said(wording, exact, priority),
        })
    }
}

/// The wording of an entry that was sent with this priority.
pub(super) fn said(wording: Wording, is_exact: bool, priority: u16) -> Wording {
    if is_exact && priority != HIGHEST { wording.with_priority(priority) } else { wording }
}

fn command(number: u16) -> Option<FlowModCommand> {
    FlowModCommand::from_wire(u8::try_from(number).ok()?)
}

fn table(command: FlowModCommand) -> TableId {
    match command {
        FlowModCommand::Delete | FlowModCommand::DeleteStrict => TableId::ALL,
        FlowModCommand::Add | FlowModCommand::Modify | FlowModCommand::ModifyStrict => TableId(0),
    }
}

/// Emergency entries must not time out (§4.6); and as there is no emergency table, none has room for one.
fn take_flags(bits: u16, times_out: bool) -> Result<FlowModFlags, Fault> {
    if bits & EMERG != 0 && times_out {
        let what = "an emergency entry that times out";
        return Err(Fault::new(ErrorCode::FlowModFailedBadTimeout, what));
    }
    if bits & EMERG != 0 {
        let what = "an emergency entry: suiro has no emergency table, its fail mode serves instead";
        return Err(Fault::new(ErrorCode::FlowModFailedTableFull, what));
    }
    let what = "a flag that OpenFlow 1.0 does not define";
    FlowModFlags::from_bits(bits)
        .filter(|flags| FLAGS.contains(*flags))
        .ok_or(Fault::new(ErrorCode::FlowModFailedBadFlags, what))
}

impl Wire for FlowRemoved {
    fn put(&self, out: &mut Writer) {
        put_match(&self.fields, self.wording, out);
        out.u64(self.cookie);
        out.u16(self.wording.priority().unwrap_or(self.priority));
        out.u8(match self.reason {
            FlowRemovedReason::GroupDelete => FlowRemovedReason::Delete.wire(),
            reason => reason.wire(),
        });
        out.zeros(1);
        out.u32(self.duration_s);
        out.u32(self.duration_ns);
        out.u16(self.idle_timeout_s);
        out.zeros(2);
        out.u64(self.packet_count);
        out.u64(self.byte_count);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let exact = is_exact(input)?;
        let ((fields, wording), cookie) = (take_match(input)?, input.u64()?);
        let priority = input.u16()?;
        let reason = known(input.u8()?, reason, ErrorCode::BadRequestBadType)?;
        input.skip(1)?;
        let (duration_s, duration_ns, idle_timeout_s) = (input.u32()?, input.u32()?, input.u16()?);
        input.skip(2)?;
        Ok(FlowRemoved {
            cookie,
            priority: if exact { HIGHEST } else { priority },
            wording: said(wording, exact, priority),
            reason,
            table: TableId(0),
            duration_s,
            duration_ns,
            idle_timeout_s,
            hard_timeout_s: 0,
            packet_count: input.u64()?,
            byte_count: input.u64()?,
            fields,
        })
    }
}

fn reason(number: u8) -> Option<FlowRemovedReason> {
    FlowRemovedReason::from_wire(number).filter(|reason| *reason != FlowRemovedReason::GroupDelete)
}
