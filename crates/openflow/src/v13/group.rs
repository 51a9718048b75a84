//! Group-mod and group multiparts (§7.3.4.3, §7.3.5.6 to §7.3.5.9).

use super::multipart::HEADERS;
use super::{Wire, known, put_all, take_all};
use crate::bytes::{Reader, Writer};
use crate::error::{ErrorCode, Fault};
use crate::group::{
    Bucket, Counter, GroupCapabilities, GroupDesc, GroupFeatures, GroupMod, GroupModCommand,
    GroupStats, GroupType,
};
use crate::ids::{GroupId, PortNo};

impl Wire for GroupMod {
    fn put(&self, out: &mut Writer) {
        out.u16(self.command.wire());
        out.u8(self.kind.wire());
        out.zeros(1);
        out.u32(self.id.0);
        put_all(&self.buckets, out);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        input.need(8)?;
        let command =
            known(input.u16()?, GroupModCommand::from_wire, ErrorCode::GroupModFailedBadCommand)?;
        let kind = known(input.u8()?, GroupType::from_wire, ErrorCode::GroupModFailedBadType)?;
        input.skip(1)?;
        let id = GroupId(input.u32()?);
        let buckets = take_all(input.all(ErrorCode::GroupModFailedBadBucket))?;
        Ok(GroupMod { command, kind, id, buckets })
    }
}

/// Bytes of a bucket before its actions.
const BUCKET_LEN: usize = 16;

impl Wire for Bucket {
    fn put(&self, out: &mut Writer) {
        let start = out.len();
        out.u16(0);
        out.u16(self.weight);
        out.u32(self.watch_port.0);
        out.u32(self.watch_group.0);
        out.zeros(4);
        put_all(&self.actions, out);
        out.patch_len(start, start);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let mut body = take_sized(input, BUCKET_LEN)?;
        let (weight, watch_port, watch_group) =
            (body.u16()?, PortNo(body.u32()?), GroupId(body.u32()?));
        body.skip(4)?;
        Ok(Bucket {
            weight,
            watch_port,
            watch_group,
            actions: take_all(body.all(ErrorCode::BadActionBadLen))?,
        })
    }
}

/// The rest of a structure that begins with its own length, which is not below `least`.
pub(super) fn take_sized<'a>(input: &mut Reader<'a>, least: usize) -> Result<Reader<'a>, Fault> {
    let bad = input.bad_len("a length below the structure's, or past the end");
    let len = usize::from(input.peek_u16(0)?);
    if len < least || len > input.len() {
        return Err(bad);
    }
    let mut body = input.part(len, bad.code)?;
    body.skip(2)?;
    Ok(body)
}

impl Wire for GroupDesc {
    fn put(&self, out: &mut Writer) {
        let start = out.len();
        out.u16(0);
        out.u8(self.kind.wire());
        out.zeros(1);
        out.u32(self.id.0);
        put_all(&self.buckets, out);
        out.patch_len(start, start);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let mut body = take_sized(input, DESC_LEN)?;
        let kind = known(body.u8()?, GroupType::from_wire, ErrorCode::GroupModFailedBadType)?;
        body.skip(1)?;
        Ok(GroupDesc { kind, id: GroupId(body.u32()?), buckets: take_all(body)? })
    }
}

/// Bytes of a group's description before its buckets.
const DESC_LEN: usize = 8;

/// Whether a group of these buckets can be described: a description goes whole into one message (§7.3.5), where its buckets have eight
/// bytes less than in a group-mod.
pub(crate) fn can_be_described(buckets: &[Bucket]) -> bool {
    let mut out = Writer::default();
    put_all(buckets, &mut out);
    HEADERS + DESC_LEN + out.len() <= usize::from(u16::MAX)
}

impl Wire for Counter {
    fn put(&self, out: &mut Writer) {
        out.u64(self.packets);
        out.u64(self.bytes);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        Ok(Counter { packets: input.u64()?, bytes: input.u64()? })
    }
}

impl Wire for GroupStats {
    fn put(&self, out: &mut Writer) {
        let start = out.len();
        out.u16(0);
        out.zeros(2);
        out.u32(self.id.0);
        out.u32(self.ref_count);
        out.zeros(4);
        self.total.put(out);
        out.u32(self.duration_s);
        out.u32(self.duration_ns);
        put_all(&self.buckets, out);
        out.patch_len(start, start);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let mut body = take_sized(input, 40)?;
        body.skip(2)?;
        let (id, ref_count) = (GroupId(body.u32()?), body.u32()?);
        body.skip(4)?;
        Ok(GroupStats {
            id,
            ref_count,
            total: Wire::take(&mut body)?,
            duration_s: body.u32()?,
            duration_ns: body.u32()?,
            buckets: take_all(body)?,
        })
    }
}

impl Wire for GroupFeatures {
    fn put(&self, out: &mut Writer) {
        out.u32(self.types);
        out.u32(self.capabilities.bits());
        self.max_groups.iter().chain(&self.actions).for_each(|word| out.u32(*word));
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let types = input.u32()?;
        let capabilities = GroupCapabilities::from_bits_retain(input.u32()?);
        let max_groups = [input.u32()?, input.u32()?, input.u32()?, input.u32()?];
        let actions = [input.u32()?, input.u32()?, input.u32()?, input.u32()?];
        Ok(GroupFeatures { types, capabilities, max_groups, actions })
    }
}
