//! Vendor messages, features, configuration (1.0.0 §5.5.4, §5.3.1, §5.3.2).

use super::port::to_wire;
use super::{Wire, known, take_list};
use crate::bytes::{Reader, Writer};
use crate::error::{ErrorCode, Fault};
use crate::switch::{Capabilities, Experimenter, Features, FragmentMode, SwitchConfig};

impl Wire for Experimenter {
    fn put(&self, out: &mut Writer) {
        out.u32(self.experimenter);
        out.u32(self.exp_type);
        out.bytes(&self.body);
    }

    /// 1.0 leaves all after the vendor to the vendor; every vendor known begins with a type. One that does not is not known.
    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let experimenter = input.u32()?;
        let mut body = input.all(ErrorCode::BadRequestBadExperimenter);
        Ok(Experimenter { experimenter, exp_type: body.u32()?, body: body.remaining() })
    }
}

/// Capabilities that came later: bit 8 is the spanning tree here, which suiro does not speak.
const LATER: Capabilities = Capabilities::GROUP_STATS.union(Capabilities::PORT_BLOCKED);

impl Wire for Features {
    fn put(&self, out: &mut Writer) {
        out.u64(self.datapath_id);
        out.u32(self.buffers);
        out.u8(self.tables);
        out.zeros(3);
        out.u32((self.capabilities - LATER).bits());
        out.u32(self.actions);
        let shown = self.ports.iter().filter(|port| to_wire(port.number).is_some());
        shown.for_each(|port| port.put(out));
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let (datapath_id, buffers, tables) = (input.u64()?, input.u32()?, input.u8()?);
        input.skip(3)?;
        Ok(Features {
            datapath_id,
            buffers,
            tables,
            auxiliary_id: 0,
            capabilities: Capabilities::from_bits_retain(input.u32()?) - LATER,
            actions: input.u32()?,
            ports: take_list(input.all(ErrorCode::BadRequestBadLen), Wire::take)?,
        })
    }
}

impl Wire for SwitchConfig {
    fn put(&self, out: &mut Writer) {
        out.u16(self.fragments.wire());
        out.u16(self.miss_send_len);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        input.need(4)?;
        let fragments =
            known(input.u16()?, FragmentMode::from_wire, ErrorCode::SwitchConfigFailedBadFlags)?;
        Ok(SwitchConfig { fragments, miss_send_len: input.u16()? })
    }
}
