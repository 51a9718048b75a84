//! Ports (1.0.0 §5.2.1, §5.3.4, §5.4.3) and queues (§5.2.2, §5.3.5).
//!
//! Port numbers have 16 bits. The reserved ones are the low halves of the later ones, from `OFPP_MAX` on; numbers between 0xff00
//! and the later `OFPP_MAX` have none, and their ports are hidden.

use super::{Wire, known, take_list};
use crate::bytes::{Reader, Writer};
use crate::error::{ErrorCode, Fault};
use crate::fixed_text::PortName;
use crate::ids::PortNo;
use crate::port::{
    Mac, PortConfig, PortDesc, PortFeatures, PortMod, PortReason, PortState, PortStatus, Queue,
    QueueConfig, QueueProperty,
};

/// `OFPP_MAX`.
const MAX: u16 = 0xff00;
/// What the reserved numbers have in common in later versions.
const RESERVED: u32 = 0xffff_0000;

/// The number here of a port of 1.0.
pub(super) fn from_wire(number: u16) -> PortNo {
    PortNo(if number < MAX { number.into() } else { RESERVED | u32::from(number) })
}

/// The number in 1.0 of a port; `None` if it is hidden.
pub(super) fn to_wire(port: PortNo) -> Option<u16> {
    let low = port.0 as u16;
    (from_wire(low) == port).then_some(low)
}

/// Writes a port, a hidden one as `OFPP_NONE`.
pub(super) fn put_port(port: PortNo, out: &mut Writer) {
    out.u16(to_wire(port).unwrap_or(PortNo::ANY.0 as u16));
}

pub(super) fn take_port(input: &mut Reader<'_>) -> Result<PortNo, Fault> {
    input.u16().map(from_wire)
}

/// The port of a queue-get-config request: one of the switch's own (§5.3.5), because the answer has no place to say which.
pub(super) fn take_queue_port(input: &mut Reader<'_>) -> Result<PortNo, Fault> {
    let port = take_port(input)?;
    input.skip(2)?;
    if port.is_ordinary() || port == PortNo::LOCAL {
        return Ok(port);
    }
    Err(Fault::new(ErrorCode::QueueOpFailedBadPort, "the queues of what is no port"))
}

/// `OFPPS_STP_BLOCK`, the last of four values of `OFPPS_STP_MASK`; the others mean "not blocked" here.
const STP_BLOCK: u32 = 3 << 8;
const STP_MASK: u32 = 3 << 8;

fn put_state(state: PortState, out: &mut Writer) {
    let blocked = if state.contains(PortState::BLOCKED) { STP_BLOCK } else { 0 };
    out.u32((state & PortState::LINK_DOWN).bits() | blocked);
}

fn take_state(input: &mut Reader<'_>) -> Result<PortState, Fault> {
    let bits = input.u32()?;
    let blocked =
        if bits & STP_MASK == STP_BLOCK { PortState::BLOCKED } else { PortState::empty() };
    Ok(PortState::from_bits_retain(bits) & PortState::LINK_DOWN | blocked)
}

/// Speeds up to 10 Gbit/s have the bits that they have later.
const SPEEDS: u32 = 0x7f;
/// Medium, auto-negotiation and pause: five bits that moved from 7 to 11 when speeds were added.
const MEDIA: u32 = 0x1f;
const MEDIA_HERE: u32 = 7;
const MEDIA_LATER: u32 = 11;

/// `OFPPF_*` of 1.0, without the speeds that it has no bit for.
fn put_features(features: PortFeatures, out: &mut Writer) {
    let bits = features.bits();
    out.u32(bits & SPEEDS | (bits >> MEDIA_LATER & MEDIA) << MEDIA_HERE);
}

fn take_features(input: &mut Reader<'_>) -> Result<PortFeatures, Fault> {
    let bits = input.u32()?;
    let later = bits & SPEEDS | (bits >> MEDIA_HERE & MEDIA) << MEDIA_LATER;
    Ok(PortFeatures::from_bits_retain(later))
}

/// `ofp_phy_port`; the speeds in kbit/s have no place.
impl Wire for PortDesc {
    fn put(&self, out: &mut Writer) {
        put_port(self.number, out);
        out.bytes(&self.hw_addr.0);
        out.fixed(self.name.as_bytes(), 16);
        out.u32(self.config.bits());
        put_state(self.state, out);
        for features in [self.current, self.advertised, self.supported, self.peer] {
            put_features(features, out);
        }
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        Ok(PortDesc {
            number: take_port(input)?,
            hw_addr: Mac(input.array()?),
            name: PortName::new(input.take(16)?),
            config: PortConfig::from_bits_retain(input.u32()?),
            state: take_state(input)?,
            current: take_features(input)?,
            advertised: take_features(input)?,
            supported: take_features(input)?,
            peer: take_features(input)?,
            current_speed_kbps: 0,
            max_speed_kbps: 0,
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

/// Bits of the spanning tree, which suiro does not speak. 1.0 has no error for them (§5.4.4), so they are taken and mean nothing.
const OF_SPANNING_TREE: PortConfig = PortConfig::NO_STP.union(PortConfig::NO_RECV_STP);

impl Wire for PortMod {
    fn put(&self, out: &mut Writer) {
        put_port(self.number, out);
        out.bytes(&self.hw_addr.0);
        out.u32(self.config.bits());
        out.u32(self.mask.bits());
        put_features(self.advertise, out);
        out.zeros(4);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let (number, hw_addr) = (take_port(input)?, Mac(input.array()?));
        let config = PortConfig::from_bits_retain(input.u32()?);
        let mask = PortConfig::from_bits_retain(input.u32()?) - OF_SPANNING_TREE;
        let advertise = take_features(input)?;
        input.skip(4)?;
        Ok(PortMod { number, hw_addr, config, mask, advertise })
    }
}

impl Wire for QueueConfig {
    fn put(&self, out: &mut Writer) {
        put_port(self.port, out);
        out.zeros(6);
        self.queues.iter().for_each(|queue| put_queue(queue, out));
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let port = take_port(input)?;
        input.skip(6)?;
        let rest = input.all(ErrorCode::BadRequestBadLen);
        Ok(QueueConfig { port, queues: take_list(rest, |input| take_queue(input, port))? })
    }
}

// `OFPQT_*`. A highest rate and experimenters' properties came later and are left out.
const NO_PROPERTY: u16 = 0;
const MIN_RATE: u16 = 1;

/// `ofp_packet_queue`.
fn put_queue(queue: &Queue, out: &mut Writer) {
    let start = out.len();
    out.u32(queue.id);
    out.u16(0);
    out.zeros(2);
    for property in &queue.properties {
        let QueueProperty::MinRate(rate) = property else { continue };
        out.u16(MIN_RATE);
        out.u16(16);
        out.zeros(4);
        out.u16(*rate);
        out.zeros(6);
    }
    out.patch_len(start + 4, start);
}

fn take_queue(input: &mut Reader<'_>, port: PortNo) -> Result<Queue, Fault> {
    let len = usize::from(input.peek_u16(4)?);
    if len < 8 || len > input.len() {
        return Err(input.bad_len("a queue of the wrong length"));
    }
    let mut body = input.part(len, ErrorCode::BadRequestBadLen)?;
    let id = body.u32()?;
    body.skip(4)?;
    let properties = take_list(body, take_property)?;
    Ok(Queue { id, port, properties: properties.into_iter().flatten().collect() })
}

fn take_property(input: &mut Reader<'_>) -> Result<Option<QueueProperty>, Fault> {
    let (kind, len) = (input.peek_u16(0)?, usize::from(input.peek_u16(2)?));
    let whole = match kind {
        NO_PROPERTY => len >= 8,
        _ => len == 16,
    };
    if !whole || len > input.len() {
        return Err(input.bad_len("a queue property of the wrong length"));
    }
    let mut body = input.part(len, ErrorCode::BadRequestBadLen)?;
    body.skip(8)?;
    match kind {
        NO_PROPERTY => Ok(None),
        MIN_RATE => Ok(Some(QueueProperty::MinRate(body.u16()?))),
        _ => Err(Fault::new(
            ErrorCode::BadRequestBadType,
            "a queue property that OpenFlow 1.0 does not define",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_numbers_are_the_same_both_ways_and_others_are_hidden() {
        for number in 0..=u16::MAX {
            assert_eq!(to_wire(from_wire(number)), Some(number));
        }
        assert_eq!(from_wire(0xfffd), PortNo::CONTROLLER);
        assert_eq!(from_wire(0xffff), PortNo::ANY);
        assert_eq!(from_wire(0xfeff), PortNo(0xfeff));
        for hidden in [0xff00, 0xffff, 70_000, 0xffff_feff] {
            assert_eq!(to_wire(PortNo(hidden)), None, "{hidden:#x}");
        }
    }
}
