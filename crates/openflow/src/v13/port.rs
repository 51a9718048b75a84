//! Ports and queues (§7.2.1, §7.2.2, §7.3.4.5, §7.3.6, §7.4.3).

use super::{Wire, known, put_all, take_all};
use crate::bytes::{Reader, Writer};
use crate::error::{ErrorCode, Fault};
use crate::fixed_text::PortName;
use crate::ids::PortNo;
use crate::port::{
    Mac, PortConfig, PortDesc, PortFeatures, PortMod, PortReason, PortState, PortStats, PortStatus,
    Queue, QueueConfig, QueueProperty, QueueStats,
};

/// The bits that 1.0 alone defines: a port that one controller keeps out of floods by 1.0 says nothing of it here.
const OF_1_0: PortConfig =
    PortConfig::NO_STP.union(PortConfig::NO_RECV_STP).union(PortConfig::NO_FLOOD);

impl Wire for PortDesc {
    fn put(&self, out: &mut Writer) {
        out.u32(self.number.0);
        out.zeros(4);
        out.bytes(&self.hw_addr.0);
        out.zeros(2);
        out.fixed(self.name.as_bytes(), 16);
        out.u32((self.config - OF_1_0).bits());
        out.u32(self.state.bits());
        for features in [self.current, self.advertised, self.supported, self.peer] {
            out.u32(features.bits());
        }
        out.u32(self.current_speed_kbps);
        out.u32(self.max_speed_kbps);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let number = PortNo(input.u32()?);
        input.skip(4)?;
        let hw_addr = Mac(input.array()?);
        input.skip(2)?;
        Ok(PortDesc {
            number,
            hw_addr,
            name: PortName::new(input.take(16)?),
            config: PortConfig::from_bits_retain(input.u32()?) - OF_1_0,
            state: PortState::from_bits_retain(input.u32()?),
            current: PortFeatures::from_bits_retain(input.u32()?),
            advertised: PortFeatures::from_bits_retain(input.u32()?),
            supported: PortFeatures::from_bits_retain(input.u32()?),
            peer: PortFeatures::from_bits_retain(input.u32()?),
            current_speed_kbps: input.u32()?,
            max_speed_kbps: input.u32()?,
        })
    }
}

impl Wire for PortStatus {
    fn put(&self, out: &mut Writer) {
        out.u8(self.reason.wire());
        out.zeros(7);
        self.port.put(out);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let reason = known(input.u8()?, PortReason::from_wire, ErrorCode::BadRequestBadType)?;
        input.skip(7)?;
        Ok(PortStatus { reason, port: Wire::take(input)? })
    }
}

impl Wire for PortMod {
    fn put(&self, out: &mut Writer) {
        out.u32(self.number.0);
        out.zeros(4);
        out.bytes(&self.hw_addr.0);
        out.zeros(2);
        out.u32(self.config.bits());
        out.u32(self.mask.bits());
        out.u32(self.advertise.bits());
        out.zeros(4);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let number = PortNo(input.u32()?);
        input.skip(4)?;
        let hw_addr = Mac(input.array()?);
        input.skip(2)?;
        let config = PortConfig::from_bits_retain(input.u32()?);
        let mask = PortConfig::from_bits_retain(input.u32()?);
        let advertise = PortFeatures::from_bits_retain(input.u32()?);
        input.skip(4)?;
        Ok(PortMod { number, hw_addr, config, mask, advertise })
    }
}

impl Wire for PortStats {
    fn put(&self, out: &mut Writer) {
        out.u32(self.number.0);
        out.zeros(4);
        let counters = [
            self.rx_packets,
            self.tx_packets,
            self.rx_bytes,
            self.tx_bytes,
            self.rx_dropped,
            self.tx_dropped,
            self.rx_errors,
            self.tx_errors,
            self.rx_frame_err,
            self.rx_over_err,
            self.rx_crc_err,
            self.collisions,
        ];
        counters.iter().for_each(|counter| out.u64(*counter));
        out.u32(self.duration_s);
        out.u32(self.duration_ns);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let number = PortNo(input.u32()?);
        input.skip(4)?;
        Ok(PortStats {
            number,
            rx_packets: input.u64()?,
            tx_packets: input.u64()?,
            rx_bytes: input.u64()?,
            tx_bytes: input.u64()?,
            rx_dropped: input.u64()?,
            tx_dropped: input.u64()?,
            rx_errors: input.u64()?,
            tx_errors: input.u64()?,
            rx_frame_err: input.u64()?,
            rx_over_err: input.u64()?,
            rx_crc_err: input.u64()?,
            collisions: input.u64()?,
            duration_s: input.u32()?,
            duration_ns: input.u32()?,
        })
    }
}

impl Wire for QueueStats {
    fn put(&self, out: &mut Writer) {
        out.u32(self.port.0);
        out.u32(self.queue);
        out.u64(self.tx_bytes);
        out.u64(self.tx_packets);
        out.u64(self.tx_errors);
        out.u32(self.duration_s);
        out.u32(self.duration_ns);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        Ok(QueueStats {
            port: PortNo(input.u32()?),
            queue: input.u32()?,
            tx_bytes: input.u64()?,
            tx_packets: input.u64()?,
            tx_errors: input.u64()?,
            duration_s: input.u32()?,
            duration_ns: input.u32()?,
        })
    }
}

impl Wire for QueueConfig {
    fn put(&self, out: &mut Writer) {
        out.u32(self.port.0);
        out.zeros(4);
        put_all(&self.queues, out);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let port = PortNo(input.u32()?);
        input.skip(4)?;
        Ok(QueueConfig { port, queues: take_all(input.all(ErrorCode::BadRequestBadLen))? })
    }
}

impl Wire for Queue {
    fn put(&self, out: &mut Writer) {
        let start = out.len();
        out.u32(self.id);
        out.u32(self.port.0);
        out.u16(0);
        out.zeros(6);
        put_all(&self.properties, out);
        out.patch_len(start + 8, start);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let bad = input.bad_len("a queue of the wrong length");
        let len = usize::from(input.peek_u16(8)?);
        if len < 16 || len > input.len() {
            return Err(bad);
        }
        let mut body = input.part(len, bad.code)?;
        let (id, port) = (body.u32()?, PortNo(body.u32()?));
        body.skip(8)?;
        Ok(Queue { id, port, properties: take_all(body)? })
    }
}

// `OFPQT_*`.
const MIN_RATE: u16 = 1;
const MAX_RATE: u16 = 2;
const EXPERIMENTER: u16 = 0xffff;

impl Wire for QueueProperty {
    fn put(&self, out: &mut Writer) {
        let start = out.len();
        let (kind, value) = match self {
            QueueProperty::MinRate(rate) => (MIN_RATE, u32::from(*rate) << 16),
            QueueProperty::MaxRate(rate) => (MAX_RATE, u32::from(*rate) << 16),
            QueueProperty::Experimenter { experimenter, .. } => (EXPERIMENTER, *experimenter),
        };
        out.u16(kind);
        out.u16(0);
        out.zeros(4);
        out.u32(value);
        out.zeros(4);
        if let QueueProperty::Experimenter { body, .. } = self {
            out.bytes(body);
        }
        out.pad8(start);
        out.patch_len(start + 2, start);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let bad = input.bad_len("a queue property of the wrong length");
        let (kind, len) = (input.peek_u16(0)?, usize::from(input.peek_u16(2)?));
        if len < 16 || len > input.len() || len % 8 != 0 || kind != EXPERIMENTER && len != 16 {
            return Err(bad);
        }
        let mut body = input.part(len, bad.code)?;
        body.skip(8)?;
        let value = body.u32()?;
        body.skip(4)?;
        match kind {
            MIN_RATE => Ok(QueueProperty::MinRate((value >> 16) as u16)),
            MAX_RATE => Ok(QueueProperty::MaxRate((value >> 16) as u16)),
            EXPERIMENTER => {
                Ok(QueueProperty::Experimenter { experimenter: value, body: body.remaining() })
            }
            _ => Err(Fault::new(
                ErrorCode::BadRequestBadType,
                "a queue property that OpenFlow 1.3 does not define",
            )),
        }
    }
}
