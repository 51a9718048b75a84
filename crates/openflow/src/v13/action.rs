//! Actions and instructions (§7.2.4, §7.2.5): type, length, body, padded to 8 bytes.

use super::{Wire, put_all, take_all};
use crate::action::{Action, Instruction, NICIRA};
use crate::bytes::{Reader, Writer};
use crate::error::{ErrorCode, Fault};
use crate::ids::{GroupId, MeterId, PortNo, TableId};
use crate::oxm::{Oxm, OxmField, SUIRO};
use crate::steering::{put_action, put_set_fcf, take_action};

// `OFPAT_*`.
const OUTPUT: u16 = 0;
const COPY_TTL_OUT: u16 = 11;
const COPY_TTL_IN: u16 = 12;
const SET_MPLS_TTL: u16 = 15;
const DEC_MPLS_TTL: u16 = 16;
const PUSH_VLAN: u16 = 17;
const POP_VLAN: u16 = 18;
const PUSH_MPLS: u16 = 19;
const POP_MPLS: u16 = 20;
const SET_QUEUE: u16 = 21;
const GROUP: u16 = 22;
const SET_NW_TTL: u16 = 23;
const DEC_NW_TTL: u16 = 24;
const SET_FIELD: u16 = 25;
const PUSH_PBB: u16 = 26;
const POP_PBB: u16 = 27;
pub(super) const EXPERIMENTER: u16 = 0xffff;

/// `NXAST_REG_LOAD2`: set-field with a mask, which 1.3 lacks and Open vSwitch has as this experimenter's action. The OXM
/// TLV follows the subtype at once (nicira-ext.h).
const REG_LOAD2: u16 = 33;

impl Wire for Action {
    fn put(&self, out: &mut Writer) {
        let start = out.len();
        out.u16(action_type(self));
        out.u16(0);
        put_arguments(self, out);
        out.pad8(start);
        out.patch_len(start + 2, start);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let (kind, mut body) = take_header(input, ErrorCode::BadActionBadLen)?;
        let action = take_arguments(kind, &mut body)?;
        if body.len() >= 8 {
            return Err(body.bad_len("an action longer than its type"));
        }
        Ok(action)
    }
}

/// Type, and a reader of the body that the length delimits: lengths are multiples of 8 and not below 8.
fn take_header<'a>(input: &mut Reader<'a>, short: ErrorCode) -> Result<(u16, Reader<'a>), Fault> {
    let mut head = input.clone();
    let bad = Fault::new(short, "a length that is no multiple of 8, or past the end");
    let (kind, len) = (head.u16().map_err(|_| bad)?, usize::from(head.u16().map_err(|_| bad)?));
    if len < 8 || len % 8 != 0 || len > input.len() {
        return Err(bad);
    }
    let mut body = input.part(len, short)?;
    body.skip(4)?;
    Ok((kind, body))
}

fn action_type(action: &Action) -> u16 {
    match action {
        Action::Output { .. } => OUTPUT,
        Action::Group(_) => GROUP,
        Action::SetQueue(_) => SET_QUEUE,
        Action::PushVlan(_) | Action::EnsureVlan => PUSH_VLAN,
        Action::PopVlan => POP_VLAN,
        Action::PushMpls(_) => PUSH_MPLS,
        Action::PopMpls(_) => POP_MPLS,
        Action::PushPbb(_) => PUSH_PBB,
        Action::PopPbb => POP_PBB,
        Action::SetField(Oxm::Known { mask: Some(_), .. }) => EXPERIMENTER,
        Action::SetField(_) => SET_FIELD,
        Action::CopyTtlOut => COPY_TTL_OUT,
        Action::CopyTtlIn => COPY_TTL_IN,
        Action::SetMplsTtl(_) => SET_MPLS_TTL,
        Action::DecMplsTtl => DEC_MPLS_TTL,
        Action::SetNwTtl(_) => SET_NW_TTL,
        Action::DecNwTtl => DEC_NW_TTL,
        Action::Place(_) | Action::Experimenter { .. } => EXPERIMENTER,
    }
}

fn put_arguments(action: &Action, out: &mut Writer) {
    match action {
        Action::Output { port, max_len } => {
            out.u32(port.0);
            out.u16(*max_len);
            out.zeros(6);
        }
        Action::Group(GroupId(id)) | Action::SetQueue(id) => out.u32(*id),
        Action::PushVlan(ether)
        | Action::PushMpls(ether)
        | Action::PopMpls(ether)
        | Action::PushPbb(ether) => {
            out.u16(*ether);
        }
        Action::EnsureVlan => out.u16(0x8100),
        Action::SetMplsTtl(ttl) | Action::SetNwTtl(ttl) => out.u8(*ttl),
        Action::SetField(Oxm::Known { field: OxmField::Fcf, value, mask: Some(mask) }) => {
            out.u32(SUIRO);
            put_set_fcf(*value, *mask, out);
        }
        Action::SetField(oxm @ Oxm::Known { mask: Some(_), .. }) => {
            out.u32(NICIRA);
            out.u16(REG_LOAD2);
            oxm.put(out);
        }
        Action::SetField(oxm) => oxm.put(out),
        Action::Place(place) => {
            out.u32(SUIRO);
            put_action(*place, out);
        }
        Action::Experimenter { experimenter, body } => {
            out.u32(*experimenter);
            out.bytes(body);
        }
        Action::PopVlan
        | Action::PopPbb
        | Action::CopyTtlOut
        | Action::CopyTtlIn
        | Action::DecMplsTtl
        | Action::DecNwTtl => out.zeros(4),
    }
}

fn take_arguments(kind: u16, body: &mut Reader<'_>) -> Result<Action, Fault> {
    Ok(match kind {
        OUTPUT => {
            let (port, max_len) = (PortNo(body.u32()?), body.u16()?);
            body.skip(6)?;
            Action::Output { port, max_len }
        }
        GROUP => Action::Group(GroupId(body.u32()?)),
        SET_QUEUE => Action::SetQueue(body.u32()?),
        PUSH_VLAN => Action::PushVlan(body.u16()?),
        POP_VLAN => Action::PopVlan,
        PUSH_MPLS => Action::PushMpls(body.u16()?),
        POP_MPLS => Action::PopMpls(body.u16()?),
        PUSH_PBB => Action::PushPbb(body.u16()?),
        POP_PBB => Action::PopPbb,
        SET_FIELD => Action::SetField(take_set_field(body)?),
        COPY_TTL_OUT => Action::CopyTtlOut,
        COPY_TTL_IN => Action::CopyTtlIn,
        SET_MPLS_TTL => Action::SetMplsTtl(body.u8()?),
        DEC_MPLS_TTL => Action::DecMplsTtl,
        SET_NW_TTL => Action::SetNwTtl(body.u8()?),
        DEC_NW_TTL => Action::DecNwTtl,
        EXPERIMENTER => take_experimenter(body)?,
        _ => {
            return Err(Fault::new(
                ErrorCode::BadActionBadType,
                "an action type that OpenFlow 1.3 does not define",
            ));
        }
    })
}

fn take_set_field(body: &mut Reader<'_>) -> Result<Oxm, Fault> {
    let mut field = body.all(ErrorCode::BadActionBadSetLen);
    let oxm = Oxm::take(&mut field)?;
    *body = field;
    let masked = match &oxm {
        Oxm::Known { mask, .. } => mask.is_some(),
        Oxm::Unknown(oxm) => oxm.masked,
    };
    if masked {
        return Err(Fault::new(
            ErrorCode::BadActionBadSetArgument,
            "a set-field with a mask, which 1.3 does not have",
        ));
    }
    Ok(oxm)
}

fn take_experimenter(body: &mut Reader<'_>) -> Result<Action, Fault> {
    let experimenter = body.u32()?;
    if experimenter == NICIRA && body.peek_u16(0) == Ok(REG_LOAD2) {
        return take_reg_load2(body);
    }
    if experimenter == SUIRO
        && let Some(action) = take_action(body)?
    {
        return Ok(action);
    }
    Ok(Action::Experimenter { experimenter, body: body.remaining() })
}

/// The field of a `reg_load2`; one of Nicira's own registers stays an experimenter's action.
fn take_reg_load2(body: &mut Reader<'_>) -> Result<Action, Fault> {
    let mut field = body.clone();
    field.skip(2)?;
    let oxm = Oxm::take(&mut field)?;
    if let Oxm::Unknown(_) = oxm {
        return Ok(Action::Experimenter { experimenter: NICIRA, body: body.remaining() });
    }
    *body = field;
    Ok(Action::SetField(oxm))
}

// `OFPIT_*`.
const GOTO_TABLE: u16 = 1;
const WRITE_METADATA: u16 = 2;
const WRITE_ACTIONS: u16 = 3;
const APPLY_ACTIONS: u16 = 4;
const CLEAR_ACTIONS: u16 = 5;
const METER: u16 = 6;

impl Wire for Instruction {
    fn put(&self, out: &mut Writer) {
        let start = out.len();
        match self {
            Instruction::GotoTable(table) => {
                out.u32(u32::from(GOTO_TABLE) << 16);
                out.u8(table.0);
            }
            Instruction::WriteMetadata { value, mask } => {
                out.u32(u32::from(WRITE_METADATA) << 16);
                out.zeros(4);
                out.u64(*value);
                out.u64(*mask);
            }
            Instruction::WriteActions(actions) => put_actions(WRITE_ACTIONS, actions, out),
            Instruction::ApplyActions(actions) => put_actions(APPLY_ACTIONS, actions, out),
            Instruction::ClearActions => put_actions(CLEAR_ACTIONS, &[], out),
            Instruction::Meter(id) => {
                out.u32(u32::from(METER) << 16);
                out.u32(id.0);
            }
            Instruction::Experimenter { experimenter, body } => {
                out.u32(u32::from(EXPERIMENTER) << 16);
                out.u32(*experimenter);
                out.bytes(body);
            }
        }
        out.pad8(start);
        out.patch_len(start + 2, start);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let (kind, mut body) = take_header(input, ErrorCode::BadInstructionBadLen)?;
        let instruction = take_instruction(kind, &mut body)?;
        if !body.is_empty() {
            return Err(body.bad_len("an instruction longer than its type"));
        }
        Ok(instruction)
    }
}

fn put_actions(kind: u16, actions: &[Action], out: &mut Writer) {
    out.u32(u32::from(kind) << 16);
    out.zeros(4);
    put_all(actions, out);
}

fn take_instruction(kind: u16, body: &mut Reader<'_>) -> Result<Instruction, Fault> {
    Ok(match kind {
        GOTO_TABLE => {
            let table = TableId(body.u8()?);
            body.skip(3)?;
            Instruction::GotoTable(table)
        }
        WRITE_METADATA => {
            body.skip(4)?;
            Instruction::WriteMetadata { value: body.u64()?, mask: body.u64()? }
        }
        WRITE_ACTIONS => Instruction::WriteActions(take_actions(body)?),
        APPLY_ACTIONS => Instruction::ApplyActions(take_actions(body)?),
        CLEAR_ACTIONS => {
            body.skip(4)?;
            Instruction::ClearActions
        }
        METER => Instruction::Meter(MeterId(body.u32()?)),
        EXPERIMENTER => {
            Instruction::Experimenter { experimenter: body.u32()?, body: body.remaining() }
        }
        _ => {
            let what = "an instruction type that OpenFlow 1.3 does not define";
            return Err(Fault::new(ErrorCode::BadInstructionUnknownInst, what));
        }
    })
}

fn take_actions(body: &mut Reader<'_>) -> Result<Vec<Action>, Fault> {
    body.skip(4)?;
    take_all(body.all(ErrorCode::BadActionBadLen))
}
