//! Table counters and table features (§7.3.5.4, §7.3.5.5).

use super::{Wire, action, put_all, take_all};
use crate::bytes::{Reader, Writer};
use crate::error::{ErrorCode, Fault};
use crate::fixed_text::FixedText;
use crate::ids::TableId;
use crate::table::{EntryScope, TableFeatures, TableProperty, TableStats, TypeId};

impl Wire for TableStats {
    fn put(&self, out: &mut Writer) {
        out.u8(self.table.0);
        out.zeros(3);
        out.u32(self.active);
        out.u64(self.lookups);
        out.u64(self.matches);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let table = TableId(input.u8()?);
        input.skip(3)?;
        Ok(TableStats {
            table,
            max_entries: 0,
            active: input.u32()?,
            lookups: input.u64()?,
            matches: input.u64()?,
        })
    }
}

/// Bytes before the properties.
const FEATURES_LEN: usize = 64;

impl Wire for TableFeatures {
    fn put(&self, out: &mut Writer) {
        let start = out.len();
        out.u16(0);
        out.u8(self.table.0);
        out.zeros(5);
        out.fixed(self.name.as_bytes(), 32);
        out.u64(self.metadata_match);
        out.u64(self.metadata_write);
        out.u32(self.config);
        out.u32(self.max_entries);
        put_all(&self.properties, out);
        out.patch_len(start, start);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let mut body = super::group::take_sized(input, FEATURES_LEN)?;
        let table = TableId(body.u8()?);
        body.skip(5)?;
        Ok(TableFeatures {
            table,
            name: FixedText::new(body.take(32)?),
            metadata_match: body.u64()?,
            metadata_write: body.u64()?,
            config: body.u32()?,
            max_entries: body.u32()?,
            properties: take_all(body.all(ErrorCode::TableFeaturesFailedBadLen))?,
        })
    }
}

// `OFPTFPT_*`: the miss variant of a type is the next number.
const INSTRUCTIONS: u16 = 0;
const NEXT_TABLES: u16 = 2;
const WRITE_ACTIONS: u16 = 4;
const APPLY_ACTIONS: u16 = 6;
const MATCH: u16 = 8;
const WILDCARDS: u16 = 10;
const WRITE_SETFIELD: u16 = 12;
const APPLY_SETFIELD: u16 = 14;
const EXPERIMENTER: u16 = 0xfffe;

impl Wire for TableProperty {
    fn put(&self, out: &mut Writer) {
        let start = out.len();
        let (kind, scope) = property_type(self);
        out.u16(kind + u16::from(scope == EntryScope::Miss));
        out.u16(0);
        match self {
            Self::Instructions(_, ids)
            | Self::WriteActions(_, ids)
            | Self::ApplyActions(_, ids) => put_all(ids, out),
            Self::NextTables(_, tables) => tables.iter().for_each(|table| out.u8(table.0)),
            Self::Match(ids)
            | Self::Wildcards(ids)
            | Self::WriteSetField(_, ids)
            | Self::ApplySetField(_, ids) => {
                put_all(ids, out);
            }
            Self::Experimenter { experimenter, exp_type, body, .. } => {
                out.u32(*experimenter);
                out.u32(*exp_type);
                out.bytes(body);
            }
        }
        out.patch_len(start + 2, start);
        out.pad8(start);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let (kind, len) = (input.peek_u16(0)?, usize::from(input.peek_u16(2)?));
        let padded = len.next_multiple_of(8);
        if len < 4 || padded > input.len() {
            return Err(input.bad_len("a table property of the wrong length"));
        }
        let mut body = input.part(len, ErrorCode::TableFeaturesFailedBadLen)?;
        input.skip(padded - len)?;
        body.skip(4)?;
        take_property(kind, body)
    }
}

fn property_type(property: &TableProperty) -> (u16, EntryScope) {
    match property {
        TableProperty::Instructions(scope, _) => (INSTRUCTIONS, *scope),
        TableProperty::NextTables(scope, _) => (NEXT_TABLES, *scope),
        TableProperty::WriteActions(scope, _) => (WRITE_ACTIONS, *scope),
        TableProperty::ApplyActions(scope, _) => (APPLY_ACTIONS, *scope),
        TableProperty::Match(_) => (MATCH, EntryScope::Regular),
        TableProperty::Wildcards(_) => (WILDCARDS, EntryScope::Regular),
        TableProperty::WriteSetField(scope, _) => (WRITE_SETFIELD, *scope),
        TableProperty::ApplySetField(scope, _) => (APPLY_SETFIELD, *scope),
        TableProperty::Experimenter { scope, .. } => (EXPERIMENTER, *scope),
    }
}

fn take_property(kind: u16, mut body: Reader<'_>) -> Result<TableProperty, Fault> {
    let scope = if kind & 1 == 1 { EntryScope::Miss } else { EntryScope::Regular };
    Ok(match (kind & !1, scope) {
        (INSTRUCTIONS, _) => TableProperty::Instructions(scope, take_all(body)?),
        (NEXT_TABLES, _) => {
            TableProperty::NextTables(scope, body.remaining().into_iter().map(TableId).collect())
        }
        (WRITE_ACTIONS, _) => TableProperty::WriteActions(scope, take_all(body)?),
        (APPLY_ACTIONS, _) => TableProperty::ApplyActions(scope, take_all(body)?),
        (MATCH, EntryScope::Regular) => TableProperty::Match(take_all(body)?),
        (WILDCARDS, EntryScope::Regular) => TableProperty::Wildcards(take_all(body)?),
        (WRITE_SETFIELD, _) => TableProperty::WriteSetField(scope, take_all(body)?),
        (APPLY_SETFIELD, _) => TableProperty::ApplySetField(scope, take_all(body)?),
        (EXPERIMENTER, _) => TableProperty::Experimenter {
            scope,
            experimenter: body.u32()?,
            exp_type: body.u32()?,
            body: body.remaining(),
        },
        _ => {
            let what = "a table property that OpenFlow 1.3 does not define";
            return Err(Fault::new(ErrorCode::TableFeaturesFailedBadType, what));
        }
    })
}

impl Wire for TypeId {
    fn put(&self, out: &mut Writer) {
        match self {
            TypeId::Standard(number) => {
                out.u16(*number);
                out.u16(4);
            }
            TypeId::Experimenter { experimenter, body } => {
                out.u16(action::EXPERIMENTER);
                out.u16(8 + body.len() as u16);
                out.u32(*experimenter);
                out.bytes(body);
            }
        }
    }

    /// Some switches give ids the 8 bytes of a whole header; the padding after the type is dropped.
    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let (number, len) = (input.peek_u16(0)?, usize::from(input.peek_u16(2)?));
        if len < 4 || len > input.len() {
            return Err(input.bad_len("an action or instruction id of the wrong length"));
        }
        let mut body = input.part(len, ErrorCode::TableFeaturesFailedBadLen)?;
        body.skip(4)?;
        if number != action::EXPERIMENTER {
            return Ok(TypeId::Standard(number));
        }
        Ok(TypeId::Experimenter { experimenter: body.u32()?, body: body.remaining() })
    }
}
