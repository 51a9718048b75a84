//! A change of the host's steering entries, which are none of a switch's tables.

use super::Wire;
use super::action::Place;
use crate::bytes::{Reader, Writer};
use crate::envelope::known;
use crate::error::{ErrorCode, Fault};
use crate::fixed_text::FixedText;
use crate::flow_mod::FlowModCommand;
use crate::matching::Match;
use crate::oxm::{Oxm, OxmField};
use crate::v13::{put_match, take_match};

/// A change of steering entries. Commands mean what they mean in a flow-mod (OpenFlow 1.3.5 §6.4).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PlaceMod {
    /// What to do.
    pub command: FlowModCommand,
    /// Higher wins.
    pub priority: u16,
    /// Where; of no meaning in deletions.
    pub place: Place,
    /// Opaque value of the controller.
    pub cookie: u64,
    /// Cookie bits that filter modifications and deletions; 0 = no filter.
    pub cookie_mask: u64,
    /// Entries of this interface only; empty = of every interface, also of those that are attached later.
    pub interface: FixedText<16>,
    /// Which frames.
    pub fields: Match,
}

/// The fields of OpenFlow that steering knows, beside [`OxmField::STEERING`] and the ends of tunnels.
const KNOWN: &[OxmField] = &[
    OxmField::EthDst,
    OxmField::EthSrc,
    OxmField::EthType,
    OxmField::VlanVid,
    OxmField::IpDscp,
    OxmField::IpEcn,
    OxmField::IpProto,
    OxmField::Ipv4Src,
    OxmField::Ipv4Dst,
    OxmField::TcpSrc,
    OxmField::TcpDst,
    OxmField::UdpSrc,
    OxmField::UdpDst,
    OxmField::SctpSrc,
    OxmField::SctpDst,
    OxmField::Ipv6Src,
    OxmField::Ipv6Dst,
    OxmField::TunnelId,
];

impl PlaceMod {
    /// Refuses a bad match, and a place that means nothing.
    ///
    /// # Errors
    /// The error to answer with.
    pub fn check(&self) -> Result<(), Fault> {
        self.fields.check_fields(|field| {
            let own = field.is_end() || OxmField::STEERING.contains(&field);
            own || KNOWN.contains(&field)
        })?;
        if self.fields.0.contains(&Oxm::exact(OxmField::VmId, 0)) {
            return Err(Fault::new(ErrorCode::BadMatchBadValue, "0 names no virtual machine"));
        }
        match self.command {
            FlowModCommand::Delete | FlowModCommand::DeleteStrict => Ok(()),
            _ => self.place.check(),
        }
    }
}

impl Wire for PlaceMod {
    fn put(&self, out: &mut Writer) {
        out.u8(self.command.wire());
        out.zeros(3);
        out.u16(self.priority);
        self.place.put(out);
        out.zeros(6);
        out.u64(self.cookie);
        out.u64(self.cookie_mask);
        out.fixed(self.interface.as_bytes(), 16);
        put_match(&self.fields, out);
    }

    fn take(input: &mut Reader<'_>) -> Result<Self, Fault> {
        let command =
            known(input.u8()?, FlowModCommand::from_wire, ErrorCode::FlowModFailedBadCommand)?;
        input.skip(3)?;
        let (priority, place) = (input.u16()?, Place::take(input)?);
        input.skip(6)?;
        Ok(Self {
            command,
            priority,
            place,
            cookie: input.u64()?,
            cookie_mask: input.u64()?,
            interface: FixedText::new(input.take(16)?),
            fields: take_match(input)?,
        })
    }
}
