//! Where each match field lies in a frame (OpenFlow 1.3.5 table 12): the outermost header that has it.

use super::frame::{Frame, Payload, Transport};
use openflow::OxmField;

/// `OFPVID_PRESENT`.
const PRESENT: u128 = 0x1000;

/// A field to read, or to write with a new value.
enum Do {
    Read,
    Write(u128),
}

impl Frame {
    /// The field's value; `None` when the frame has no such header or the field is not in the frame.
    pub fn get(&self, field: OxmField) -> Option<u128> {
        self.clone().field(field, &Do::Read)
    }

    /// This frame with another value in the field.
    #[must_use]
    pub fn with(&self, field: OxmField, value: u128) -> Self {
        let mut frame = self.clone();
        assert!(frame.field(field, &Do::Write(value)).is_some(), "{field:?} is not in {self:?}");
        frame
    }

    fn field(&mut self, field: OxmField, what: &Do) -> Option<u128> {
        match field {
            OxmField::EthDst => Some(number(&mut self.dst, what)),
            OxmField::EthSrc => Some(number(&mut self.src, what)),
            OxmField::EthType => {
                let mut value = self.eth_type();
                let old = number(&mut value, what);
                self.named = Some(value);
                Some(old)
            }
            OxmField::VlanVid => {
                let tag = self.tags.first_mut()?;
                let mut value = u128::from(tag.vid) | PRESENT;
                let old = number(&mut value, what);
                tag.vid = value as u16 & 0xfff;
                Some(old)
            }
            OxmField::VlanPcp => Some(number(&mut self.tags.first_mut()?.pcp, what)),
            OxmField::MplsLabel => Some(number(&mut self.shims.first_mut()?.label, what)),
            OxmField::MplsTc => Some(number(&mut self.shims.first_mut()?.tc, what)),
            OxmField::MplsBos => {
                let shim = self.shims.first_mut()?;
                let mut value = u8::from(shim.bottom);
                let old = number(&mut value, what);
                shim.bottom = value == 1;
                Some(old)
            }
            _ if !self.shims.is_empty() => None,
            _ => payload(&mut self.payload, field, what),
        }
    }
}

fn payload(payload: &mut Payload, field: OxmField, what: &Do) -> Option<u128> {
    match (payload, field) {
        (Payload::Pbb(pbb), OxmField::PbbIsid) => Some(number(&mut pbb.isid, what)),
        (Payload::Arp(arp), OxmField::ArpOp) => Some(number(&mut arp.op, what)),
        (Payload::Arp(arp), OxmField::ArpSpa) => Some(number(&mut arp.spa, what)),
        (Payload::Arp(arp), OxmField::ArpTpa) => Some(number(&mut arp.tpa, what)),
        (Payload::Arp(arp), OxmField::ArpSha) => Some(number(&mut arp.sha, what)),
        (Payload::Arp(arp), OxmField::ArpTha) => Some(number(&mut arp.tha, what)),
        (Payload::Ip(ip), _) => match (field, ip.version) {
            (OxmField::IpDscp, _) => Some(number(&mut ip.dscp, what)),
            (OxmField::IpEcn, _) => Some(number(&mut ip.ecn, what)),
            (OxmField::IpProto, _) => {
                let mut value = ip.proto();
                let old = number(&mut value, what);
                ip.named = Some(value);
                Some(old)
            }
            (OxmField::Ipv4Src, 4) | (OxmField::Ipv6Src, 6) => Some(number(&mut ip.src, what)),
            (OxmField::Ipv4Dst, 4) | (OxmField::Ipv6Dst, 6) => Some(number(&mut ip.dst, what)),
            (OxmField::Ipv6Flabel, 6) => Some(number(&mut ip.flow_label, what)),
            _ => transport(&mut ip.transport, field, what),
        },
        _ => None,
    }
}

fn transport(transport: &mut Transport, field: OxmField, what: &Do) -> Option<u128> {
    match (transport, field) {
        (Transport::Tcp(tcp), OxmField::TcpSrc) => Some(number(&mut tcp.src, what)),
        (Transport::Tcp(tcp), OxmField::TcpDst) => Some(number(&mut tcp.dst, what)),
        (Transport::Tcp(tcp), OxmField::TcpFlags) => Some(number(&mut tcp.flags, what)),
        (Transport::Udp(src, _, _), OxmField::UdpSrc) => Some(number(src, what)),
        (Transport::Udp(_, dst, _), OxmField::UdpDst) => Some(number(dst, what)),
        (Transport::Sctp(src, _), OxmField::SctpSrc) => Some(number(src, what)),
        (Transport::Sctp(_, dst), OxmField::SctpDst) => Some(number(dst, what)),
        (Transport::Icmpv4(icmp), OxmField::Icmpv4Type) => Some(number(&mut icmp.kind, what)),
        (Transport::Icmpv4(icmp), OxmField::Icmpv4Code) => Some(number(&mut icmp.code, what)),
        (Transport::Icmpv6(icmp), OxmField::Icmpv6Type) => Some(number(&mut icmp.kind, what)),
        (Transport::Icmpv6(icmp), OxmField::Icmpv6Code) => Some(number(&mut icmp.code, what)),
        (Transport::Nd(nd), OxmField::Icmpv6Type) => Some(number(&mut nd.icmp.kind, what)),
        (Transport::Nd(nd), OxmField::Icmpv6Code) => Some(number(&mut nd.icmp.code, what)),
        (Transport::Nd(nd), OxmField::Ipv6NdTarget) => Some(number(&mut nd.target, what)),
        (Transport::Nd(nd), OxmField::Ipv6NdSll) if nd.option == 1 => {
            Some(number(&mut nd.address, what))
        }
        (Transport::Nd(nd), OxmField::Ipv6NdTll) if nd.option == 2 => {
            Some(number(&mut nd.address, what))
        }
        _ => None,
    }
}

/// Reads or replaces a number; returns what it was.
fn number<T: Copy + TryInto<u128> + TryFrom<u128>>(place: &mut T, what: &Do) -> u128 {
    let old = (*place).try_into().ok().expect("an unsigned number");
    if let Do::Write(value) = what {
        *place = T::try_from(*value).ok().expect("a value of the field's width");
    }
    old
}
