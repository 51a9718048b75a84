//! Rules as bytes: format 2.
//!
//! Independent of the layout of [`Key`], which may change with any release: a match is a list of fields by their own stable codes
//! ([`FIELDS`]), and each action has a stable tag. All numbers are big-endian.
//!
//! ```text
//! id     = table:1 priority:2 (field:1 value:n mask:n)*          n = the field's width in whole bytes; a tunnel's end is its address:
//!                                                                 value:16, IPv6 or IPv4 mapped into it (RFC 4291 §2.5.5.2), `::` no end
//! entry  = cookie:8 idle:2 hard:2 flags:2 note:4 stamp instruction*
//! instruction = 1 meter:4 | 2 count:4 action* | 3 | 4 count:4 action* | 5 value:8 mask:8 | 6 table:1 | 7 count:4 max_len:2*
//! action = tag:1 operands, see `put_action`
//! ```
//!
//! `max_len` is that of the outputs but to the controller, as [`flow::Wording`] lists it. A list of no actions is one that was sent so.
//! Format 1 had neither note nor stamp (see `upgrade`).

use super::stamp::{self, Moment};
use crate::journal::{FlowEntry, FlowId};
use flow::{Action, Instructions, Output, Transport};
use port::{Ends, Share};
use std::net::{IpAddr, Ipv6Addr};
use wire::{Field, Key};

/// Bytes that are no rule of this format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the record is damaged or of an unknown kind")]
pub struct BadRecord;

/// The fields and their codes, for ever: codes are never reused. Fields that share bits of the key all have one, since a
/// `set_field` says which name was meant; a match is written with the first that covers its bits.
const FIELDS: &[(u8, Field)] = &[
    (1, Field::InPort),
    (2, Field::Metadata),
    (3, Field::TunnelId),
    (4, Field::EthDst),
    (5, Field::EthSrc),
    (6, Field::EthType),
    (7, Field::VlanVid),
    (8, Field::VlanPcp),
    (9, Field::IpDscp),
    (10, Field::IpEcn),
    (11, Field::IpProto),
    (12, Field::IpFrag),
    (13, Field::Ipv4Src),
    (14, Field::Ipv4Dst),
    (15, Field::TpSrc),
    (16, Field::TpDst),
    (17, Field::TcpFlags),
    (18, Field::IcmpType),
    (19, Field::IcmpCode),
    (20, Field::ArpOp),
    (21, Field::ArpSpa),
    (22, Field::ArpTpa),
    (23, Field::ArpSha),
    (24, Field::ArpTha),
    (25, Field::Ipv6Src),
    (26, Field::Ipv6Dst),
    (27, Field::Ipv6Flabel),
    (28, Field::Ipv6NdTarget),
    (29, Field::Ipv6NdSll),
    (30, Field::Ipv6NdTll),
    (31, Field::MplsLabel),
    (32, Field::MplsTc),
    (33, Field::MplsBos),
    (34, Field::PbbIsid),
    (35, Field::PbbUca),
    (36, Field::Ipv6Exthdr),
    (37, Field::TunSrc),
    (38, Field::TunDst),
    (39, Field::InPhyPort),
];

/// Which rule, as the store's key: rules of one table and priority lie together.
pub fn id_bytes(id: &FlowId, ends: &Ends) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    out.push(id.table);
    out.extend(id.priority.to_be_bytes());
    let mut left = id.mask;
    for &(code, field) in FIELDS {
        let mask = left.get(field);
        if mask != 0 {
            left.set(field, 0);
            out.push(code);
            put_value(&mut out, ends, field, id.key.get(field) & mask);
            put_wide(&mut out, field, mask);
        }
    }
    debug_assert_eq!(left, Key::default(), "every bit of a key belongs to a field");
    out
}

/// The rest of a rule, written `now`.
pub fn entry_bytes(entry: &FlowEntry, ends: &Ends, now: Moment) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    out.extend(entry.cookie.to_be_bytes());
    out.extend(entry.idle_timeout_s.to_be_bytes());
    out.extend(entry.hard_timeout_s.to_be_bytes());
    out.extend(entry.flags.to_be_bytes());
    out.extend(entry.note.to_be_bytes());
    out.extend(stamp::bytes(entry.age_ns, now));
    put_instructions(&mut out, ends, &entry.instructions);
    out
}

/// Reads [`id_bytes`].
///
/// # Errors
/// Anything else, or no number is left for an end.
pub fn read_id(bytes: &[u8], ends: &Share) -> Result<FlowId, BadRecord> {
    let mut bytes = Reader(bytes, ends);
    let (table, priority) = (bytes.u8()?, bytes.u16()?);
    let (mut key, mut mask) = (Key::default(), Key::default());
    while !bytes.0.is_empty() {
        let field = bytes.field()?;
        key.set(field, bytes.value(field)?);
        mask.set(field, bytes.wide(field)?);
    }
    Ok(FlowId { table, priority, key, mask })
}

/// Bytes of an entry before its note, which format 1 did not have.
pub const BEFORE_NOTE: usize = 14;

/// Reads [`entry_bytes`], `now`.
///
/// # Errors
/// Anything else, or no number is left for an end.
pub fn read_entry(bytes: &[u8], ends: &Share, now: Moment) -> Result<FlowEntry, BadRecord> {
    let mut bytes = Reader(bytes, ends);
    Ok(FlowEntry {
        cookie: bytes.u64()?,
        idle_timeout_s: bytes.u16()?,
        hard_timeout_s: bytes.u16()?,
        flags: bytes.u16()?,
        note: bytes.u32()?,
        age_ns: stamp::age(&bytes.take()?, now),
        idle_ns: 0,
        counted: flow::Counted::default(),
        instructions: read_instructions(&mut bytes)?,
    })
}

fn put_instructions(out: &mut Vec<u8>, ends: &Ends, instructions: &Instructions) {
    let Instructions { meter, apply, clear, write, metadata, goto, wording } = instructions;
    if let Some(meter) = meter {
        out.push(1);
        out.extend(meter.to_be_bytes());
    }
    if !apply.is_empty() || wording.empty_apply {
        put_actions(out, ends, 2, apply);
    }
    if *clear {
        out.push(3);
    }
    if !write.is_empty() || wording.empty_write {
        put_actions(out, ends, 4, write);
    }
    if let Some((value, mask)) = metadata {
        out.push(5);
        out.extend(value.to_be_bytes());
        out.extend(mask.to_be_bytes());
    }
    if let Some(table) = goto {
        out.extend([6, *table]);
    }
    if !wording.max_len.is_empty() {
        put_u32(out, 7, wording.max_len.len() as u32);
        wording.max_len.iter().for_each(|len| out.extend(len.to_be_bytes()));
    }
}

fn read_instructions(bytes: &mut Reader<'_>) -> Result<Instructions, BadRecord> {
    let mut all = Instructions::default();
    while !bytes.0.is_empty() {
        match bytes.u8()? {
            1 => all.meter = Some(bytes.u32()?),
            2 => {
                all.apply = read_actions(bytes)?;
                all.wording.empty_apply = all.apply.is_empty();
            }
            3 => all.clear = true,
            4 => {
                all.write = read_actions(bytes)?;
                all.wording.empty_write = all.write.is_empty();
            }
            5 => all.metadata = Some((bytes.u64()?, bytes.u64()?)),
            6 => all.goto = Some(bytes.u8()?),
            7 => all.wording.max_len = read_max_len(bytes)?,
            _ => return Err(BadRecord),
        }
    }
    Ok(all)
}

fn put_actions(out: &mut Vec<u8>, ends: &Ends, tag: u8, actions: &[Action]) {
    put_u32(out, tag, actions.len() as u32);
    actions.iter().for_each(|action| put_action(out, ends, action));
}

fn read_max_len(bytes: &mut Reader<'_>) -> Result<Vec<u16>, BadRecord> {
    let count = bytes.u32()?;
    (0..count).map(|_| bytes.u16()).collect()
}

fn read_actions(bytes: &mut Reader<'_>) -> Result<Vec<Action>, BadRecord> {
    let count = bytes.u32()?;
    (0..count).map(|_| read_action(bytes)).collect()
}

fn put_action(out: &mut Vec<u8>, ends: &Ends, action: &Action) {
    match *action {
        Action::Output(output) => put_output(out, output),
        Action::Group(id) => put_u32(out, 10, id),
        Action::SetQueue(id) => put_u32(out, 11, id),
        Action::PushVlan(tpid) => put_u16(out, 12, tpid),
        Action::EnsureVlan => out.push(25),
        Action::PopVlan => out.push(13),
        Action::PushMpls(ethertype) => put_u16(out, 14, ethertype),
        Action::PopMpls(ethertype) => put_u16(out, 15, ethertype),
        Action::PushPbb(ethertype) => put_u16(out, 16, ethertype),
        Action::PopPbb => out.push(17),
        Action::SetField { field, of, value, mask } => {
            match of {
                None => out.extend([18, code_of(field)]),
                Some(transport) => out.extend([26, transport_code(transport), code_of(field)]),
            }
            put_value(out, ends, field, value);
            put_wide(out, field, mask);
        }
        Action::CopyTtlOut => out.push(19),
        Action::CopyTtlIn => out.push(20),
        Action::SetMplsTtl(ttl) => out.extend([21, ttl]),
        Action::DecMplsTtl => out.push(22),
        Action::SetNwTtl(ttl) => out.extend([23, ttl]),
        Action::DecNwTtl => out.push(24),
    }
}

fn put_output(out: &mut Vec<u8>, output: Output) {
    match output {
        Output::Port(port) => put_u32(out, 1, port),
        Output::InPort => out.push(2),
        Output::All => out.push(3),
        Output::Flood => out.push(4),
        Output::Normal => out.push(5),
        Output::Controller { max_len } => put_u16(out, 6, max_len),
        Output::Table => out.push(7),
        Output::Local => out.push(8),
    }
}

fn read_action(bytes: &mut Reader<'_>) -> Result<Action, BadRecord> {
    Ok(match bytes.u8()? {
        1 => Action::Output(Output::Port(bytes.u32()?)),
        2 => Action::Output(Output::InPort),
        3 => Action::Output(Output::All),
        4 => Action::Output(Output::Flood),
        5 => Action::Output(Output::Normal),
        6 => Action::Output(Output::Controller { max_len: bytes.u16()? }),
        7 => Action::Output(Output::Table),
        8 => Action::Output(Output::Local),
        10 => Action::Group(bytes.u32()?),
        11 => Action::SetQueue(bytes.u32()?),
        12 => Action::PushVlan(bytes.u16()?),
        13 => Action::PopVlan,
        14 => Action::PushMpls(bytes.u16()?),
        15 => Action::PopMpls(bytes.u16()?),
        16 => Action::PushPbb(bytes.u16()?),
        17 => Action::PopPbb,
        18 => read_set_field(bytes, None)?,
        26 => {
            let of = bytes.transport()?;
            read_set_field(bytes, Some(of))?
        }
        19 => Action::CopyTtlOut,
        20 => Action::CopyTtlIn,
        21 => Action::SetMplsTtl(bytes.u8()?),
        22 => Action::DecMplsTtl,
        23 => Action::SetNwTtl(bytes.u8()?),
        24 => Action::DecNwTtl,
        25 => Action::EnsureVlan,
        _ => return Err(BadRecord),
    })
}

fn read_set_field(bytes: &mut Reader<'_>, of: Option<Transport>) -> Result<Action, BadRecord> {
    let field = bytes.field()?;
    Ok(Action::SetField { field, of, value: bytes.value(field)?, mask: bytes.wide(field)? })
}

/// The codes of the transports whose field a `set_field` may be of: for ever, as those of [`FIELDS`].
fn transport_code(transport: Transport) -> u8 {
    match transport {
        Transport::Tcp => 1,
        Transport::Udp => 2,
        Transport::Sctp => 3,
        Transport::Icmpv4 => 4,
        Transport::Icmpv6 => 5,
    }
}

fn code_of(field: Field) -> u8 {
    let found = FIELDS.iter().find(|(_, other)| *other == field);
    found.expect("a test holds FIELDS to name every field").0
}

fn put_u16(out: &mut Vec<u8>, tag: u8, value: u16) {
    out.push(tag);
    out.extend(value.to_be_bytes());
}

fn put_u32(out: &mut Vec<u8>, tag: u8, value: u32) {
    out.push(tag);
    out.extend(value.to_be_bytes());
}

/// A number means nothing to the next process: of a tunnel's end its address is kept.
fn put_value(out: &mut Vec<u8>, ends: &Ends, field: Field, value: u128) {
    if !is_end(field) {
        return put_wide(out, field, value);
    }
    let address = match ends.address(value as u16) {
        None => Ipv6Addr::UNSPECIFIED,
        Some(IpAddr::V4(address)) => address.to_ipv6_mapped(),
        Some(IpAddr::V6(address)) => address,
    };
    out.extend(address.octets());
}

fn is_end(field: Field) -> bool {
    matches!(field, Field::TunSrc | Field::TunDst)
}

fn put_wide(out: &mut Vec<u8>, field: Field, value: u128) {
    let bytes = value.to_be_bytes();
    out.extend(&bytes[bytes.len() - width(field)..]);
}

fn width(field: Field) -> usize {
    field.bits().div_ceil(8) as usize
}

/// Takes numbers off the front, and gives ends theirs.
struct Reader<'a>(&'a [u8], &'a Share);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], BadRecord> {
        let (head, rest) = self.0.split_first_chunk().ok_or(BadRecord)?;
        self.0 = rest;
        Ok(*head)
    }

    fn u8(&mut self) -> Result<u8, BadRecord> {
        self.take().map(u8::from_be_bytes)
    }

    fn u16(&mut self) -> Result<u16, BadRecord> {
        self.take().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, BadRecord> {
        self.take().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, BadRecord> {
        self.take().map(u64::from_be_bytes)
    }

    fn field(&mut self) -> Result<Field, BadRecord> {
        let code = self.u8()?;
        FIELDS.iter().find(|(other, _)| *other == code).map(|&(_, field)| field).ok_or(BadRecord)
    }

    fn transport(&mut self) -> Result<Transport, BadRecord> {
        Ok(match self.u8()? {
            1 => Transport::Tcp,
            2 => Transport::Udp,
            3 => Transport::Sctp,
            4 => Transport::Icmpv4,
            5 => Transport::Icmpv6,
            _ => return Err(BadRecord),
        })
    }

    /// As [`put_value`] wrote it.
    fn value(&mut self, field: Field) -> Result<u128, BadRecord> {
        if !is_end(field) {
            return self.wide(field);
        }
        let end = Ipv6Addr::from(self.take::<16>()?).to_canonical();
        if end.is_unspecified() {
            return Ok(Ends::NONE.into());
        }
        self.1.name(end).map(u128::from).map_err(|_| BadRecord)
    }

    fn wide(&mut self, field: Field) -> Result<u128, BadRecord> {
        let (value, rest) = self.0.split_at_checked(width(field)).ok_or(BadRecord)?;
        self.0 = rest;
        Ok(value.iter().fold(0, |sum, &byte| sum << 8 | u128::from(byte)))
    }
}

#[cfg(test)]
mod tests;
