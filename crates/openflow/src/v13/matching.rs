//! `ofp_match` and OXM TLVs (§7.2.3).

use super::{Wire, take_all};
use crate::bytes::{Reader, Writer};
use crate::error::{ErrorCode, Fault};
use crate::matching::Match;
use crate::oxm::{CLASS_EXPERIMENTER, ONF, Oxm, OxmField, OxmId, UnknownOxm};

/// The same match in the bodies of steering's messages, which are those of no version.
pub(crate) fn put_match(fields: &Match, out: &mut Writer) {
    fields.put(out);
}

/// The way back of [`put_match`].
pub(crate) fn take_match(input: &mut Reader<'_>) -> Result<Match, Fault> {
    Match::take(input)
}

/// `OFPMT_OXM`.
const MATCH_TYPE_OXM: u16 = 1;

impl Wire for Match {
    fn put(&self, out: &mut Writer) {
        let start = out.len();
        out.u16(MATCH_TYPE_OXM);
        out.u16(0);
        super::put_all(&self.0, out);
        out.patch_len(start + 2, start);
        out.pad8(start);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let kind = input.u16()?;
        let len = usize::from(input.u16()?);
        if kind != MATCH_TYPE_OXM {
            return Err(Fault::new(
                ErrorCode::BadMatchBadType,
                "a match that is not made of OXM TLVs",
            ));
        }
        let body = len.checked_sub(4).filter(|body| *body <= input.len());
        let body =
            body.ok_or(Fault::new(ErrorCode::BadMatchBadLen, "a match longer than its message"))?;
        let fields = take_all(input.part(body, ErrorCode::BadMatchBadLen)?)?;
        input.skip(len.next_multiple_of(8) - len)?;
        Ok(Match(fields))
    }
}

impl Wire for Oxm {
    fn put(&self, out: &mut Writer) {
        match self {
            Oxm::Known { field, value, mask } => put_known(*field, *value, *mask, out),
            Oxm::Unknown(oxm) => put_unknown(oxm, out),
        }
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let class = input.u16()?;
        let field_and_mask = input.u8()?;
        let (number, masked) = (field_and_mask >> 1, field_and_mask & 1 == 1);
        let len = usize::from(input.u8()?);
        let short = input.bad_len("an OXM TLV of the wrong length");
        let mut body = input.part(len, short.code)?;
        let experimenter = match class {
            CLASS_EXPERIMENTER => body.clone().u32()?,
            _ => 0,
        };
        let Some(field) = OxmField::from_wire(class, number, experimenter) else {
            return Ok(Oxm::Unknown(UnknownOxm { class, number, masked, body: body.remaining() }));
        };
        if len != field.body_len(masked) {
            return Err(short);
        }
        body.skip(len - field.bytes() * (1 + usize::from(masked)))?;
        let value = body.uint(field.bytes())?;
        if !masked {
            return Ok(Oxm::exact(field, value));
        }
        Ok(Oxm::masked(field, value, body.uint(field.bytes())?))
    }
}

fn put_known(field: OxmField, value: u128, mask: Option<u128>, out: &mut Writer) {
    let id = OxmId::of(field, mask.is_some());
    id.put(out);
    out.uint(value, field.bytes());
    if let Some(mask) = mask {
        out.uint(mask, field.bytes());
    }
}

fn put_unknown(oxm: &UnknownOxm, out: &mut Writer) {
    let len = oxm.body.len().min(255);
    out.u16(oxm.class);
    out.u8(oxm.number << 1 | u8::from(oxm.masked));
    out.u8(len as u8);
    out.bytes(&oxm.body[..len]);
}

impl Wire for OxmId {
    fn put(&self, out: &mut Writer) {
        out.u32(self.header);
        if self.header >> 16 == u32::from(CLASS_EXPERIMENTER) {
            out.u32(self.experimenter.unwrap_or(ONF));
        }
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let header = input.u32()?;
        let experimenter = match header >> 16 == u32::from(CLASS_EXPERIMENTER) {
            true => Some(input.u32()?),
            false => None,
        };
        Ok(OxmId { header, experimenter })
    }
}
