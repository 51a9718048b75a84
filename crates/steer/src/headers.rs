//! What the steering program sees of a frame, and which frames a rule selects by it.
//!
//! One flat record of header fields, and a rule as value and mask over it: what the program matches, the agent can match too, for `why`.

use crate::rule::{Rule, Underlay};
use openflow::{Match, Oxm, OxmField};
use place::VmId;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The header fields of one frame, host order; an absent field is 0. All but the last four are of the headers inside a tunnel when
/// there is one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Headers {
    /// Ethernet type.
    pub ether_type: u16,
    /// VLAN tag as OpenFlow has it: 0x1000 | id, 0 without a tag.
    pub vlan_vid: u16,
    /// Its priority.
    pub vlan_pcp: u8,
    /// IP protocol.
    pub ip_proto: u8,
    /// IPv4 ToS or IPv6 traffic class.
    pub tos: u8,
    /// Open vSwitch's fragment bits: 1 a fragment, 2 not the first.
    pub frag: u8,
    /// Source address; IPv4 is mapped (RFC 4291 §2.5.5.2).
    pub src: u128,
    /// Destination address.
    pub dst: u128,
    /// TCP, UDP or SCTP source port.
    pub tp_src: u16,
    /// Destination port.
    pub tp_dst: u16,
    /// VXLAN network id.
    pub tun_id: u32,
    /// The tunnel's source address.
    pub tun_src: u128,
    /// Its destination address.
    pub tun_dst: u128,
    /// ToS of the outermost IP header, where the flow control field is.
    pub outer_tos: u8,
}

/// Frames that agree with `value` in the bits of `mask`; no bit of `value` is outside it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Selector {
    /// What.
    pub value: Headers,
    /// Where.
    pub mask: Headers,
}

/// The top 96 bits of a mapped IPv4 address.
const MAPPED: u128 = 0xffff << 32;
/// A mask of the part of an address that says "IPv4".
const FAMILY: u128 = !0 << 32;

/// An address as [`Headers`] hold it.
pub fn mapped(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => MAPPED | u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

/// An address as people write it.
pub fn unmapped(address: u128) -> IpAddr {
    match address & FAMILY == MAPPED {
        true => Ipv4Addr::from(address as u32).into(),
        false => Ipv6Addr::from(address).into(),
    }
}

/// The flow control field's virtual machine: the seven high bits of the byte (seed 000, figure 3).
const FCF_VM_MASK: u8 = 0xfe;
impl Selector {
    /// Whether it selects a frame.
    pub fn selects(&self, frame: &Headers) -> bool {
        let Headers {
            ether_type,
            vlan_vid,
            vlan_pcp,
            ip_proto,
            tos,
            frag,
            src,
            dst,
            tp_src,
            tp_dst,
            tun_id,
            tun_src,
            tun_dst,
            outer_tos,
        } = self.mask;
        let v = &self.value;
        (frame.ether_type ^ v.ether_type) & ether_type == 0
            && (frame.vlan_vid ^ v.vlan_vid) & vlan_vid == 0
            && (frame.vlan_pcp ^ v.vlan_pcp) & vlan_pcp == 0
            && (frame.ip_proto ^ v.ip_proto) & ip_proto == 0
            && (frame.tos ^ v.tos) & tos == 0
            && (frame.frag ^ v.frag) & frag == 0
            && (frame.src ^ v.src) & src == 0
            && (frame.dst ^ v.dst) & dst == 0
            && (frame.tp_src ^ v.tp_src) & tp_src == 0
            && (frame.tp_dst ^ v.tp_dst) & tp_dst == 0
            && (frame.tun_id ^ v.tun_id) & tun_id == 0
            && (frame.tun_src ^ v.tun_src) & tun_src == 0
            && (frame.tun_dst ^ v.tun_dst) & tun_dst == 0
            && (frame.outer_tos ^ v.outer_tos) & outer_tos == 0
    }

    /// What a rule says without its `vm_id`.
    pub fn of(rule: &Rule) -> Self {
        let mut selector = Self::of_match(&rule.fields);
        if let Some(frag) = rule.own.frag {
            (selector.value.frag, selector.mask.frag) = frag.bits();
        }
        if let Some((value, mask)) = rule.own.tun_src.map(addresses) {
            (selector.value.tun_src, selector.mask.tun_src) = (value, mask);
        }
        if let Some((value, mask)) = rule.own.tun_dst.map(addresses) {
            (selector.value.tun_dst, selector.mask.tun_dst) = (value, mask);
        }
        selector
    }

    /// What OpenFlow says. Fields that the program does not see were refused when the rule was read.
    fn of_match(fields: &Match) -> Self {
        let mut selector = Self::default();
        for oxm in &fields.0 {
            let Oxm::Known { field, value, mask } = oxm else { continue };
            selector.set(*field, *value, mask.unwrap_or(field.full()));
        }
        selector
    }

    fn set(&mut self, field: OxmField, value: u128, mask: u128) {
        let (v, m) = (&mut self.value, &mut self.mask);
        let (value, value16, mask16) = (value & mask, (value & mask) as u16, mask as u16);
        let (value8, mask8) = (value as u8, mask as u8);
        match field {
            OxmField::EthType => (v.ether_type, m.ether_type) = (value16, mask16),
            OxmField::VlanVid => (v.vlan_vid, m.vlan_vid) = (value16, mask16),
            OxmField::VlanPcp => (v.vlan_pcp, m.vlan_pcp) = (value8, mask8),
            OxmField::IpProto => (v.ip_proto, m.ip_proto) = (value8, mask8),
            OxmField::IpDscp => {
                v.tos |= value8 << 2;
                m.tos |= mask8 << 2;
            }
            OxmField::IpEcn => {
                v.tos |= value8;
                m.tos |= mask8;
            }
            OxmField::Ipv4Src => (v.src, m.src) = (MAPPED | value, FAMILY | mask),
            OxmField::Ipv4Dst => (v.dst, m.dst) = (MAPPED | value, FAMILY | mask),
            OxmField::Ipv6Src => (v.src, m.src) = (value, mask),
            OxmField::Ipv6Dst => (v.dst, m.dst) = (value, mask),
            OxmField::TcpSrc | OxmField::UdpSrc | OxmField::SctpSrc => {
                (v.tp_src, m.tp_src) = (value16, mask16);
            }
            OxmField::TcpDst | OxmField::UdpDst | OxmField::SctpDst => {
                (v.tp_dst, m.tp_dst) = (value16, mask16);
            }
            OxmField::TunnelId => (v.tun_id, m.tun_id) = (value as u32, mask as u32),
            OxmField::Fcf => (v.outer_tos, m.outer_tos) = (value8, mask8),
            _ => {}
        }
    }

    /// The same frames, as far as they are for that machine by its address. `None` when the rule names other destinations.
    pub fn to_address(mut self, address: IpAddr) -> Option<Self> {
        let ether_type = if address.is_ipv4() { 0x0800 } else { 0x86dd };
        let frame = Headers { ether_type, dst: mapped(address), ..Headers::default() };
        let fits = (frame.ether_type ^ self.value.ether_type) & self.mask.ether_type == 0
            && (frame.dst ^ self.value.dst) & self.mask.dst == 0;
        (self.value.ether_type, self.mask.ether_type) = (ether_type, u16::MAX);
        (self.value.dst, self.mask.dst) = (frame.dst, u128::MAX);
        fits.then_some(self)
    }

    /// The same frames, as far as the flow control field says that they are for that machine. `None` when it has no room for its id.
    pub fn to_fcf(mut self, vm: VmId) -> Option<Self> {
        self.value.outer_tos |= (vm.get() << 1) as u8;
        self.mask.outer_tos |= FCF_VM_MASK;
        vm.fits_fcf().then_some(self)
    }
}

fn addresses(underlay: Underlay) -> (u128, u128) {
    match underlay {
        Underlay::V4(address, mask) => {
            (MAPPED | u128::from(address), FAMILY | u128::from(mask))
        }
        Underlay::V6(address, mask) => (address, mask),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::parse_rule;

    fn selector(text: &str) -> Selector {
        Selector::of(&parse_rule(&format!("{text},actions=place(core=auto)")).unwrap())
    }

    fn udp(dst: &str) -> Headers {
        let dst = mapped(dst.parse().unwrap());
        Headers { ether_type: 0x0800, ip_proto: 17, dst, tp_dst: 53, ..Headers::default() }
    }

    #[test]
    fn a_selector_selects_what_its_rule_says() {
        assert!(selector("udp,nw_dst=10.0.0.0/8,tp_dst=53").selects(&udp("10.1.2.3")));
        assert!(!selector("udp,nw_dst=10.0.0.0/8,tp_dst=53").selects(&udp("11.1.2.3")));
        assert!(!selector("tcp,tp_dst=53").selects(&udp("10.1.2.3")));
        assert!(selector("ip_frag=not_later").selects(&udp("10.1.2.3")));
        assert!(!selector("ip_frag=first").selects(&udp("10.1.2.3")));
        assert!(selector("").selects(&Headers::default()));
    }

    #[test]
    fn an_ipv4_rule_never_selects_an_ipv6_frame_that_ends_in_the_same_bits() {
        let mut frame = udp("10.0.0.1");
        frame.dst &= u128::from(u32::MAX);
        assert!(!selector("tun_dst=10.0.0.1").selects(&Headers { tun_dst: frame.dst, ..frame }));
        assert!(!selector("ip,nw_dst=10.0.0.1").selects(&frame));
    }

    #[test]
    fn a_machine_is_its_address_within_what_the_rule_says() {
        let address = "10.0.0.9".parse().unwrap();
        let to = selector("ip,nw_src=10.0.0.1").to_address(address).unwrap();
        assert_eq!((to.value.dst, to.mask.dst), (mapped(address), u128::MAX));
        assert_eq!(selector("ip,nw_dst=10.1.0.0/16").to_address(address), None);
        assert_eq!(selector("ipv6").to_address(address), None);
    }

    #[test]
    fn a_machine_without_addresses_is_its_flow_control_field() {
        let vm = VmId::new(5).unwrap();
        let to = selector("").to_fcf(vm).unwrap();
        for priority in [0, 1] {
            assert!(to.selects(&Headers { outer_tos: 5 << 1 | priority, ..Headers::default() }));
        }
        assert!(!to.selects(&Headers { outer_tos: 6 << 1, ..Headers::default() }));
        assert_eq!(selector("").to_fcf(VmId::new(128).unwrap()), None);
    }
}
