//! Action lists (1.0.0 §5.2.4): type, length, body, a multiple of 8 bytes.
//!
//! 1.0's actions are not one to one with later ones:
//!
//! | 1.0 | here |
//! |---|---|
//! | `SET_VLAN_VID`, `SET_VLAN_PCP` | [`Action::EnsureVlan`], then the set-field: an untagged packet gets a tag |
//! | `STRIP_VLAN` | [`Action::PopVlan`], which does nothing to an untagged packet |
//! | `SET_NW_TOS` | set-field of the six DSCP bits; ECN stays |
//! | `SET_TP_SRC`, `SET_TP_DST` | two set-fields, of TCP's port and of UDP's: each changes only packets of its own |
//! | `ENQUEUE` | set-queue, output, set-queue 0, because the queue is for this output alone |
//! | suiro's vendor actions | [`Action::Place`]; set-field of the flow control field |
//!
//! Towards 1.0, an output under a queue is an enqueue, and both ports set alike are one action; pushes, other pops, TTLs, groups, masked set-fields and those of other
//! fields are left out.

use super::port::{from_wire, to_wire};
use crate::action::{Action, Instruction};
use crate::bytes::{Reader, Writer};
use crate::envelope::take_list;
use crate::error::{ErrorCode, Fault};
use crate::ids::PortNo;
use crate::oxm::{Oxm, OxmField, SUIRO, VLAN_PRESENT};
use crate::steering::{put_action as put_place, put_set_fcf, take_action as take_steering};

// `OFPAT_*`.
const OUTPUT: u16 = 0;
const SET_VLAN_VID: u16 = 1;
const SET_VLAN_PCP: u16 = 2;
const STRIP_VLAN: u16 = 3;
const SET_DL_SRC: u16 = 4;
const SET_DL_DST: u16 = 5;
const SET_NW_SRC: u16 = 6;
const SET_NW_DST: u16 = 7;
const SET_NW_TOS: u16 = 8;
const SET_TP_SRC: u16 = 9;
const SET_TP_DST: u16 = 10;
const ENQUEUE: u16 = 11;
const VENDOR: u16 = 0xffff;

/// No queue in particular.
const NO_QUEUE: u32 = 0;

/// Writes what 1.0 can say of the instructions: actions applied, then actions written.
pub(super) fn put_instructions(instructions: &[Instruction], out: &mut Writer) {
    let lists = |applied: bool| {
        instructions.iter().filter_map(move |instruction| match instruction {
            Instruction::ApplyActions(list) if applied => Some(list),
            Instruction::WriteActions(list) if !applied => Some(list),
            _ => None,
        })
    };
    lists(true).chain(lists(false)).for_each(|list| put_actions(list, out));
}

/// The instructions that a list of actions is.
pub(super) fn take_instructions(input: Reader<'_>) -> Result<Vec<Instruction>, Fault> {
    let actions = take_actions(input)?;
    Ok(if actions.is_empty() { Vec::new() } else { vec![Instruction::ApplyActions(actions)] })
}

/// Writes a list of actions.
pub(super) fn put_actions(actions: &[Action], out: &mut Writer) {
    let mut queue = None;
    let mut rest = actions;
    while let [action, after @ ..] = rest {
        rest = after;
        match (action, after) {
            (
                Action::SetQueue(one),
                [Action::Output { port, .. }, Action::SetQueue(NO_QUEUE), after @ ..],
            ) => {
                put_enqueue(*port, *one, out);
                (queue, rest) = (None, after);
            }
            (Action::SetField(first), [Action::SetField(second), after @ ..])
                if are_both_ports(first, second) =>
            {
                put_action(action, out);
                rest = after;
            }
            (Action::SetQueue(id), _) => queue = (*id != NO_QUEUE).then_some(*id),
            (Action::Output { port, .. }, _) if queue.is_some() => {
                put_enqueue(*port, queue.unwrap_or(NO_QUEUE), out);
            }
            _ => put_action(action, out),
        }
    }
}

/// `ofp_action_enqueue`; a port that 1.0 cannot name is left out.
fn put_enqueue(port: PortNo, queue: u32, out: &mut Writer) {
    let Some(port) = to_wire(port) else { return };
    put_header(ENQUEUE, 16, out);
    out.u16(port);
    out.zeros(6);
    out.u32(queue);
}

fn put_header(kind: u16, len: u16, out: &mut Writer) {
    out.u16(kind);
    out.u16(len);
}

/// Writes an action that stands for itself, if 1.0 has it.
fn put_action(action: &Action, out: &mut Writer) {
    match action {
        Action::Output { port, max_len } => {
            let Some(port) = to_wire(*port) else { return };
            put_header(OUTPUT, 8, out);
            out.u16(port);
            out.u16(*max_len);
        }
        Action::PopVlan => {
            put_header(STRIP_VLAN, 8, out);
            out.zeros(4);
        }
        Action::SetField(Oxm::Known { field: OxmField::Fcf, value, mask }) => {
            put_header(VENDOR, 16, out);
            out.u32(SUIRO);
            put_set_fcf(*value, mask.unwrap_or(OxmField::Fcf.full()), out);
        }
        Action::SetField(Oxm::Known { field, value, mask: None }) => put_set(*field, *value, out),
        Action::Place(place) => {
            put_header(VENDOR, 16, out);
            out.u32(SUIRO);
            put_place(*place, out);
        }
        Action::Experimenter { experimenter, body } => {
            let start = out.len();
            put_header(VENDOR, 0, out);
            out.u32(*experimenter);
            out.bytes(body);
            out.pad8(start);
            out.patch_len(start + 2, start);
        }
        _ => {}
    }
}

fn put_set(field: OxmField, value: u128, out: &mut Writer) {
    let Some((kind, len)) = setter(field) else { return };
    put_header(kind, len, out);
    match kind {
        SET_VLAN_VID => out.u16(value as u16 & !VLAN_PRESENT),
        SET_VLAN_PCP => out.u8(value as u8),
        SET_NW_TOS => out.u8((value << 2) as u8),
        SET_DL_SRC | SET_DL_DST => out.uint(value, 6),
        SET_NW_SRC | SET_NW_DST => out.u32(value as u32),
        _ => out.u16(value as u16),
    }
    let written = if len == 16 { 10 } else { written(kind) };
    out.zeros(usize::from(len) - written);
}

/// Whether TCP's and UDP's port are set alike, as [`set_ports`] reads it.
fn are_both_ports(first: &Oxm, second: &Oxm) -> bool {
    use OxmField::{TcpDst, TcpSrc, UdpDst, UdpSrc};
    let (
        Oxm::Known { field: first, value: tcp, mask: None },
        Oxm::Known { field: second, value: udp, mask: None },
    ) = (first, second)
    else {
        return false;
    };
    matches!((first, second), (TcpSrc, UdpSrc) | (TcpDst, UdpDst)) && tcp == udp
}

/// Header and argument of an action of 8 bytes.
fn written(kind: u16) -> usize {
    match kind {
        SET_VLAN_PCP | SET_NW_TOS => 5,
        SET_NW_SRC | SET_NW_DST => 8,
        _ => 6,
    }
}

/// Type and length of the action that sets a field.
fn setter(field: OxmField) -> Option<(u16, u16)> {
    Some(match field {
        OxmField::VlanVid => (SET_VLAN_VID, 8),
        OxmField::VlanPcp => (SET_VLAN_PCP, 8),
        OxmField::EthSrc => (SET_DL_SRC, 16),
        OxmField::EthDst => (SET_DL_DST, 16),
        OxmField::Ipv4Src => (SET_NW_SRC, 8),
        OxmField::Ipv4Dst => (SET_NW_DST, 8),
        OxmField::IpDscp => (SET_NW_TOS, 8),
        OxmField::TcpSrc | OxmField::UdpSrc | OxmField::SctpSrc => (SET_TP_SRC, 8),
        OxmField::TcpDst | OxmField::UdpDst | OxmField::SctpDst => (SET_TP_DST, 8),
        _ => return None,
    })
}

/// Reads actions until nothing is left.
pub(super) fn take_actions(input: Reader<'_>) -> Result<Vec<Action>, Fault> {
    let mut actions = Vec::new();
    take_list(input, |input| take_action(input, &mut actions))?;
    Ok(actions)
}

fn take_action(input: &mut Reader<'_>, actions: &mut Vec<Action>) -> Result<(), Fault> {
    let bad_len =
        Fault::new(ErrorCode::BadActionBadLen, "an action of another length than its type has");
    let (kind, len) = (input.peek_u16(0)?, usize::from(input.peek_u16(2)?));
    if len < 8 || len % 8 != 0 || len > input.len() {
        return Err(bad_len);
    }
    let mut body = input.part(len, ErrorCode::BadActionBadLen)?;
    body.skip(4)?;
    if !matches!(kind, VENDOR | 12..) && len != length(kind) {
        return Err(bad_len);
    }
    take_arguments(kind, &mut body, actions)
}

fn length(kind: u16) -> usize {
    if matches!(kind, SET_DL_SRC | SET_DL_DST | ENQUEUE) { 16 } else { 8 }
}

fn take_arguments(
    kind: u16,
    body: &mut Reader<'_>,
    actions: &mut Vec<Action>,
) -> Result<(), Fault> {
    let set = |field, value: u128| Action::SetField(Oxm::exact(field, value));
    match kind {
        OUTPUT => {
            actions.push(Action::Output { port: from_wire(body.u16()?), max_len: body.u16()? });
        }
        SET_VLAN_VID => {
            let id = argument(body.u16()?, 0xfff)?;
            actions.push(Action::EnsureVlan);
            actions.push(set(OxmField::VlanVid, (VLAN_PRESENT | id).into()));
        }
        SET_VLAN_PCP => {
            let pcp = argument(body.u8()?.into(), 7)?;
            actions.push(Action::EnsureVlan);
            actions.push(set(OxmField::VlanPcp, pcp.into()));
        }
        STRIP_VLAN => actions.push(Action::PopVlan),
        SET_DL_SRC => actions.push(set(OxmField::EthSrc, body.uint(6)?)),
        SET_DL_DST => actions.push(set(OxmField::EthDst, body.uint(6)?)),
        SET_NW_SRC => actions.push(set(OxmField::Ipv4Src, body.uint(4)?)),
        SET_NW_DST => actions.push(set(OxmField::Ipv4Dst, body.uint(4)?)),
        SET_NW_TOS => {
            let tos = argument(body.u8()?.into(), 0xfc)?;
            actions.push(set(OxmField::IpDscp, (tos >> 2).into()));
        }
        SET_TP_SRC => set_ports(OxmField::TcpSrc, OxmField::UdpSrc, body, actions)?,
        SET_TP_DST => set_ports(OxmField::TcpDst, OxmField::UdpDst, body, actions)?,
        ENQUEUE => take_enqueue(body, actions)?,
        VENDOR => actions.push(take_vendor(body)?),
        _ => {
            let what = "an action type that OpenFlow 1.0 does not define";
            return Err(Fault::new(ErrorCode::BadActionBadType, what));
        }
    }
    Ok(())
}

fn take_vendor(body: &mut Reader<'_>) -> Result<Action, Fault> {
    let experimenter = body.u32()?;
    let known = if experimenter == SUIRO { take_steering(body)? } else { None };
    Ok(known.unwrap_or_else(|| Action::Experimenter { experimenter, body: body.remaining() }))
}

/// A port of whichever the packet has, TCP or UDP (1.0.0 §3.3, table 5).
fn set_ports(
    tcp: OxmField,
    udp: OxmField,
    body: &mut Reader<'_>,
    actions: &mut Vec<Action>,
) -> Result<(), Fault> {
    let port = body.uint(2)?;
    actions.extend([tcp, udp].map(|field| Action::SetField(Oxm::exact(field, port))));
    Ok(())
}

/// An argument that has bits nowhere but in `bits`.
fn argument(value: u16, bits: u16) -> Result<u16, Fault> {
    let what = "an argument with bits that its field has no room for";
    if value & !bits == 0 {
        Ok(value)
    } else {
        Err(Fault::new(ErrorCode::BadActionBadArgument, what))
    }
}

/// Queues belong to ports: a port of the switch, its local port, or the one that the packet came by.
fn take_enqueue(body: &mut Reader<'_>, actions: &mut Vec<Action>) -> Result<(), Fault> {
    let port = from_wire(body.u16()?);
    body.skip(6)?;
    if !(port.is_ordinary() || port == PortNo::IN_PORT || port == PortNo::LOCAL) {
        return Err(Fault::new(ErrorCode::BadActionBadOutPort, "an enqueue to what has no queues"));
    }
    actions.push(Action::SetQueue(body.u32()?));
    actions.push(Action::Output { port, max_len: 0 });
    actions.push(Action::SetQueue(NO_QUEUE));
    Ok(())
}
