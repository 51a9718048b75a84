//! The layers.

use super::finish::Open;
use super::{Frame, Next};
use crate::{eth_type, ip_proto};
use std::net::{Ipv4Addr, Ipv6Addr};

/// An ARP packet for IPv4 over Ethernet.
#[derive(Clone, Copy, Debug)]
pub struct Arp {
    /// 1 = request, 2 = reply.
    pub op: u16,
    /// Sender hardware address.
    pub sha: [u8; 6],
    /// Sender protocol address.
    pub spa: Ipv4Addr,
    /// Target hardware address.
    pub tha: [u8; 6],
    /// Target protocol address.
    pub tpa: Ipv4Addr,
}

/// What can be chosen in an IPv4 header.
#[derive(Clone, Copy, Debug)]
pub struct Ipv4<'a> {
    /// Source.
    pub src: Ipv4Addr,
    /// Destination.
    pub dst: Ipv4Addr,
    /// DSCP and ECN.
    pub tos: u8,
    /// Identification.
    pub id: u16,
    /// Flags (0x2000 = more fragments) and fragment offset in 8 bytes.
    pub fragment: u16,
    /// Time to live.
    pub ttl: u8,
    /// Options; a multiple of 4 bytes, at most 40.
    pub options: &'a [u8],
}

impl Default for Ipv4<'_> {
    fn default() -> Self {
        let (src, dst) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        Self { src, dst, tos: 0, id: 0, fragment: 0, ttl: 64, options: &[] }
    }
}

/// What can be chosen in an IPv6 header.
#[derive(Clone, Copy, Debug)]
pub struct Ipv6 {
    /// Source.
    pub src: Ipv6Addr,
    /// Destination.
    pub dst: Ipv6Addr,
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Hop limit.
    pub hop_limit: u8,
}

impl Default for Ipv6 {
    fn default() -> Self {
        let (src, dst) = (
            Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1),
            Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2),
        );
        Self { src, dst, traffic_class: 0, flow_label: 0, hop_limit: 64 }
    }
}

/// What can be chosen in a TCP header.
#[derive(Clone, Copy, Debug)]
pub struct Tcp<'a> {
    /// Source port.
    pub src: u16,
    /// Destination port.
    pub dst: u16,
    /// Sequence number.
    pub sequence: u32,
    /// Flags, 12 bits.
    pub flags: u16,
    /// Options; a multiple of 4 bytes, at most 40.
    pub options: &'a [u8],
}

impl Default for Tcp<'_> {
    fn default() -> Self {
        Self { src: 1024, dst: 80, sequence: 1, flags: 0x010, options: &[] }
    }
}

impl Frame {
    /// Appends an Ethernet type that no method here stands for; payload follows.
    #[must_use]
    pub fn eth_type(mut self, eth_type: u16) -> Self {
        self.announce(eth_type, 0);
        self
    }

    /// Appends a VLAN tag of type `tpid`; `tci` is PCP, DEI and VID.
    #[must_use]
    pub fn vlan(mut self, tpid: u16, tci: u16) -> Self {
        self.announce(tpid, 0);
        self.append(&tci.to_be_bytes());
        self.append(&[0, 0]);
        self.next = Next::EthType(self.bytes.len() - 2);
        self
    }

    /// Appends an MPLS shim.
    #[must_use]
    pub fn mpls(mut self, label: u32, tc: u8, ttl: u8) -> Self {
        self.announce(eth_type::MPLS, 0);
        let at = self.bytes.len();
        let shim = label << 12 | u32::from(tc & 7) << 9 | 0x100 | u32::from(ttl);
        self.append(&shim.to_be_bytes());
        self.next = Next::Bottom(at);
        self
    }

    /// Appends a PBB I-TAG with I-PCP `pcp`, and the customer's addresses.
    #[must_use]
    pub fn pbb(mut self, pcp: u8, isid: u32, dst: [u8; 6], src: [u8; 6]) -> Self {
        self.announce(eth_type::PBB, 0);
        let control = u32::from(pcp) << 29 | isid & 0xff_ffff;
        self.append(&control.to_be_bytes());
        self.inner_ethernet(dst, src)
    }

    /// Appends an ARP packet.
    #[must_use]
    pub fn arp(mut self, arp: Arp) -> Self {
        self.announce(eth_type::ARP, 0);
        self.append(&[0, 1, 8, 0, 6, 4]);
        self.append(&arp.op.to_be_bytes());
        self.append(&arp.sha);
        self.append(&arp.spa.octets());
        self.append(&arp.tha);
        self.append(&arp.tpa.octets());
        self
    }

    /// Appends an IPv4 header.
    #[must_use]
    pub fn ipv4(mut self, header: Ipv4<'_>) -> Self {
        self.announce(eth_type::IPV4, ip_proto::IPV4);
        let at = self.bytes.len();
        let words = 5 + header.options.len() / 4;
        self.append(&[0x40 | words as u8, header.tos, 0, 0]);
        self.append(&header.id.to_be_bytes());
        self.append(&header.fragment.to_be_bytes());
        self.append(&[header.ttl, ip_proto::NO_NEXT, 0, 0]);
        self.append(&header.src.octets());
        self.append(&header.dst.octets());
        self.append(header.options);
        self.open.push(Open::Ipv4 { at, src: header.src, dst: header.dst });
        self.next = Next::IpProto(at + 9);
        self
    }

    /// Appends an IPv6 header.
    #[must_use]
    pub fn ipv6(mut self, header: Ipv6) -> Self {
        self.announce(eth_type::IPV6, ip_proto::IPV6);
        let at = self.bytes.len();
        let first = 6 << 28 | u32::from(header.traffic_class) << 20 | header.flow_label & 0xf_ffff;
        self.append(&first.to_be_bytes());
        self.append(&[0, 0, ip_proto::NO_NEXT, header.hop_limit]);
        self.append(&header.src.octets());
        self.append(&header.dst.octets());
        self.open.push(Open::Ipv6 { at, src: header.src, dst: header.dst });
        self.next = Next::IpProto(at + 6);
        self
    }

    /// Appends an IPv6 extension header; `rest` is what follows its next-header byte.
    #[must_use]
    pub fn extension(mut self, proto: u8, rest: &[u8]) -> Self {
        self.announce(0, proto);
        self.next = Next::IpProto(self.bytes.len());
        self.append(&[ip_proto::NO_NEXT]);
        self.append(rest);
        self
    }

    /// Appends an IPv6 fragment header; `offset` is the offset in 8 bytes shifted by 3, bit 0 = more fragments.
    #[must_use]
    pub fn fragment(self, offset: u16, id: u32) -> Self {
        let [high, low] = offset.to_be_bytes();
        let [a, b, c, d] = id.to_be_bytes();
        self.extension(ip_proto::FRAGMENT, &[0, high, low, a, b, c, d])
    }

    /// Appends an IPv6 routing header of type 0 with one address, to be visited next unless `segments_left` is 0.
    #[must_use]
    pub fn routing(mut self, segments_left: u8, address: Ipv6Addr) -> Self {
        let mut rest = vec![2, 0, segments_left, 0, 0, 0, 0];
        rest.extend(address.octets());
        if segments_left > 0
            && let Some(Open::Ipv6 { dst, .. }) = self.open.last_mut()
        {
            *dst = address;
        }
        self.extension(ip_proto::ROUTING, &rest)
    }

    /// Appends a TCP header.
    #[must_use]
    pub fn tcp(mut self, header: Tcp<'_>) -> Self {
        let at = self.begin_transport(ip_proto::TCP);
        let offset = 5 + header.options.len() as u16 / 4;
        self.append(&header.src.to_be_bytes());
        self.append(&header.dst.to_be_bytes());
        self.append(&header.sequence.to_be_bytes());
        self.append(&[0; 4]);
        self.append(&(offset << 12 | header.flags & 0xfff).to_be_bytes());
        self.append(&[0xff, 0xff, 0, 0, 0, 0]);
        self.append(header.options);
        self.open.push(Open::Transport { at, proto: ip_proto::TCP });
        self
    }

    /// Appends a UDP header.
    #[must_use]
    pub fn udp(self, src: u16, dst: u16) -> Self {
        self.ports(ip_proto::UDP, src, dst, 8)
    }

    /// Appends an SCTP common header.
    #[must_use]
    pub fn sctp(self, src: u16, dst: u16) -> Self {
        self.ports(ip_proto::SCTP, src, dst, 12)
    }

    /// Appends an ICMP header with zero rest.
    #[must_use]
    pub fn icmp(self, icmp_type: u8, code: u8) -> Self {
        self.icmp_with(icmp_type, code, [0; 4])
    }

    /// Appends an ICMP header that ends with `rest`, which means what the type says.
    #[must_use]
    pub fn icmp_with(mut self, icmp_type: u8, code: u8, rest: [u8; 4]) -> Self {
        let at = self.begin_transport(ip_proto::ICMP);
        self.append(&[icmp_type, code, 0, 0]);
        self.append(&rest);
        self.open.push(Open::Transport { at, proto: ip_proto::ICMP });
        self
    }

    /// Appends the four bytes of an ICMPv6 header; the message follows as payload.
    #[must_use]
    pub fn icmpv6(mut self, icmp_type: u8, code: u8) -> Self {
        let at = self.begin_transport(ip_proto::ICMPV6);
        self.append(&[icmp_type, code, 0, 0]);
        self.open.push(Open::Transport { at, proto: ip_proto::ICMPV6 });
        self
    }

    /// Appends a neighbour solicitation (type 135) or advertisement (136) with its link-layer address option.
    #[must_use]
    pub fn neighbor(self, icmp_type: u8, target: Ipv6Addr, address: Option<[u8; 6]>) -> Self {
        let frame = self.icmpv6(icmp_type, 0).payload(&[0; 4]).payload(&target.octets());
        match address {
            Some(address) => frame.payload(&[icmp_type - 134, 1]).payload(&address),
            None => frame,
        }
    }

    fn ports(mut self, proto: u8, src: u16, dst: u16, header: usize) -> Self {
        let at = self.begin_transport(proto);
        self.append(&src.to_be_bytes());
        self.append(&dst.to_be_bytes());
        self.bytes.resize(at + header, 0);
        self.open.push(Open::Transport { at, proto });
        self
    }

    fn begin_transport(&mut self, proto: u8) -> usize {
        self.announce(0, proto);
        self.bytes.len()
    }
}
