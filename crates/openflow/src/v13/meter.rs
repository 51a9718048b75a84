//! Meter-mod and meter multiparts (§7.3.4.4, §7.3.5.11 to §7.3.5.13).

use super::group::take_sized;
use super::{Wire, known, put_all, take_all};
use crate::bytes::{Reader, Writer};
use crate::error::{ErrorCode, Fault};
use crate::ids::MeterId;
use crate::meter::{
    BandKind, MeterBand, MeterConfig, MeterFeatures, MeterFlags, MeterMod, MeterModCommand,
    MeterStats,
};

// `OFPMBT_*`.
const DROP: u16 = 1;
const DSCP_REMARK: u16 = 2;
const EXPERIMENTER: u16 = 0xffff;

/// Every band of 1.3 has this length.
const BAND_LEN: u16 = 16;

impl Wire for MeterBand {
    fn put(&self, out: &mut Writer) {
        let kind = match self.kind {
            BandKind::Drop => DROP,
            BandKind::DscpRemark { .. } => DSCP_REMARK,
            BandKind::Experimenter { .. } => EXPERIMENTER,
        };
        out.u16(kind);
        out.u16(BAND_LEN);
        out.u32(self.rate);
        out.u32(self.burst_size);
        match self.kind {
            BandKind::Drop => out.zeros(4),
            BandKind::DscpRemark { prec_level } => out.u32(u32::from(prec_level) << 24),
            BandKind::Experimenter { experimenter } => out.u32(experimenter),
        }
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        input.need(BAND_LEN.into())?;
        let (kind, len) = (input.u16()?, input.u16()?);
        if ![DROP, DSCP_REMARK, EXPERIMENTER].contains(&kind) {
            return Err(Fault::new(
                ErrorCode::MeterModFailedBadBand,
                "a band type that OpenFlow does not define",
            ));
        }
        if len != BAND_LEN {
            return Err(input.bad_len("a band of the wrong length"));
        }
        let (rate, burst_size, last) = (input.u32()?, input.u32()?, input.u32()?);
        let kind = match kind {
            DROP => BandKind::Drop,
            DSCP_REMARK => BandKind::DscpRemark { prec_level: (last >> 24) as u8 },
            _ => BandKind::Experimenter { experimenter: last },
        };
        Ok(MeterBand { kind, rate, burst_size })
    }
}

impl Wire for MeterMod {
    fn put(&self, out: &mut Writer) {
        out.u16(self.command.wire());
        out.u16(self.flags.bits());
        out.u32(self.id.0);
        put_all(&self.bands, out);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        input.need(8)?;
        Ok(MeterMod {
            command: known(
                input.u16()?,
                MeterModCommand::from_wire,
                ErrorCode::MeterModFailedBadCommand,
            )?,
            flags: MeterFlags::from_bits_retain(input.u16()?),
            id: MeterId(input.u32()?),
            bands: take_all(input.all(ErrorCode::BadRequestBadLen))?,
        })
    }
}

impl Wire for MeterConfig {
    fn put(&self, out: &mut Writer) {
        let start = out.len();
        out.u16(0);
        out.u16(self.flags.bits());
        out.u32(self.id.0);
        put_all(&self.bands, out);
        out.patch_len(start, start);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let mut body = take_sized(input, 8)?;
        let (flags, id) = (MeterFlags::from_bits_retain(body.u16()?), MeterId(body.u32()?));
        Ok(MeterConfig { flags, id, bands: take_all(body)? })
    }
}

impl Wire for MeterStats {
    fn put(&self, out: &mut Writer) {
        let start = out.len();
        out.u32(self.id.0);
        out.u16(0);
        out.zeros(6);
        out.u32(self.flow_count);
        self.input.put(out);
        out.u32(self.duration_s);
        out.u32(self.duration_ns);
        put_all(&self.bands, out);
        out.patch_len(start + 4, start);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let bad = input.bad_len("a length below the structure's, or past the end");
        let len = usize::from(input.peek_u16(4)?);
        if len < 40 || len > input.len() {
            return Err(bad);
        }
        let mut body = input.part(len, bad.code)?;
        let id = MeterId(body.u32()?);
        body.skip(8)?;
        Ok(MeterStats {
            id,
            flow_count: body.u32()?,
            input: Wire::take(&mut body)?,
            duration_s: body.u32()?,
            duration_ns: body.u32()?,
            bands: take_all(body)?,
        })
    }
}

impl Wire for MeterFeatures {
    fn put(&self, out: &mut Writer) {
        out.u32(self.max_meter);
        out.u32(self.band_types);
        out.u32(u32::from(self.capabilities.bits()));
        out.u8(self.max_bands);
        out.u8(self.max_color);
        out.zeros(2);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let (max_meter, band_types) = (input.u32()?, input.u32()?);
        let capabilities = MeterFlags::from_bits_retain(input.u32()? as u16);
        let (max_bands, max_color) = (input.u8()?, input.u8()?);
        input.skip(2)?;
        Ok(MeterFeatures { max_meter, band_types, capabilities, max_bands, max_color })
    }
}
