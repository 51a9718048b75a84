//! Tags, and the headers around the frames of a flow that leaves or comes by a tunnel.
//!
//! The flow is exact, so what lies outside is, too: addresses, source port, VNI. What differs from frame to frame are two lengths, the ECN bits
//! (RFC 6040 §4.1: the inner ones) and two checksums. VXLAN (RFC 7348) over IPv4 only: what is longer stays on the worker.

use crate::{Declined, EditKind, FlowReason};
use std::net::Ipv4Addr;
use wire::checksum::{self, fold, pseudo_ipv4, sum};
use wire::tunnel::{Outer, Vxlan};
use wire::{Field, Key, PartialChecksum, VLAN_PRESENT, eth_type, ip_proto};

/// Bytes of the headers outside: Ethernet, IPv4, UDP, VXLAN.
pub const OUTSIDE: usize = 14 + IPV4 + UDP + Vxlan::LEN;

const IPV4: usize = 20;
const UDP: usize = 8;
/// Places in the headers.
const IP: usize = 14;
const TOTAL_LEN: usize = IP + 2;
const MAY_FRAGMENT: usize = IP + 6;
const IP_SUM: usize = IP + 10;
const AT_UDP: usize = IP + IPV4;
const UDP_LEN: usize = AT_UDP + 4;
const UDP_SUM: usize = AT_UDP + 6;

/// A VLAN tag.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tag {
    /// Its type.
    pub tpid: u16,
    /// Priority, drop bit, VLAN id.
    pub tci: u16,
}

impl Tag {
    /// The only type that rungs take in.
    pub(crate) const TPID: u16 = eth_type::VLAN;

    /// The one that frames with this key come with.
    pub(crate) fn of(key: &Key) -> Option<Self> {
        let tci = (key.get(Field::VlanPcp) as u16) << 13 | key.get(Field::VlanVid) as u16 & 0xfff;
        let is_there = key.get(Field::VlanVid) as u16 & VLAN_PRESENT != 0;
        is_there.then_some(Self { tpid: Self::TPID, tci })
    }
}

/// The headers around a flow's frames: what is put there, or what is there and comes off.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Outside {
    /// Their bytes; lengths, checksums and the ECN bits are 0.
    pub head: [u8; OUTSIDE],
    /// The tag of the underlay.
    pub tag: Option<Tag>,
    /// Whether UDP has a checksum.
    pub has_sum: bool,
}

impl Outside {
    /// The headers of a tunnel's packets from that source port under that DS field, whose ECN bits do not count.
    ///
    /// # Errors
    /// They are not VXLAN over IPv4.
    pub fn new(outer: &Outer, (port, ds): (u16, u8), vni: u32) -> Result<Self, Declined> {
        if outer.len() + Vxlan::LEN != OUTSIDE {
            return Err(FlowReason::Edits(EditKind::Tunnel).into());
        }
        let mut head = [0; OUTSIDE];
        outer.write(&mut head, (port, ds & 0xfc), 0, None);
        head[OUTSIDE - Vxlan::LEN..].copy_from_slice(&Vxlan { vni }.emit());
        for varies in [TOTAL_LEN, IP_SUM, UDP_LEN, UDP_SUM] {
            head[varies..varies + 2].fill(0);
        }
        Ok(Self { head, tag: None, has_sum: outer.checksum })
    }

    /// What is around frames whose packets have this key, which is of UDP over IPv4; TTL, identification and whether they may be fragmented are 0, too.
    pub fn around(key: &Key, vni: u32) -> Self {
        let mac = |field| {
            let [_, _, mac @ ..] = (key.get(field) as u64).to_be_bytes();
            mac
        };
        let address = |field| Ipv4Addr::from_bits(key.get(field) as u32).into();
        let outer = Outer {
            mac: mac(Field::EthDst),
            from_mac: mac(Field::EthSrc),
            from: address(Field::Ipv4Src),
            to: address(Field::Ipv4Dst),
            port: key.get(Field::TpDst) as u16,
            ttl: 0,
            checksum: true,
        };
        let (port, ds) = (key.get(Field::TpSrc) as u16, (key.get(Field::IpDscp) as u8) << 2);
        let mut outside =
            Self::new(&outer, (port, ds), vni).expect("over IPv4 they have this length");
        outside.head[MAY_FRAGMENT..MAY_FRAGMENT + 2].fill(0);
        Self { tag: Tag::of(key), ..outside }
    }

    /// What the tables of the underlay's switch see of the packets that come in at that port.
    pub fn key(&self, in_port: u32) -> Key {
        let mut packet = self.head.to_vec();
        self.put_lengths(&mut packet);
        self.put_tag(&mut packet);
        wire::parse(&wire::Head::copy_of(&packet), in_port).0
    }

    /// Puts them around a frame, whose ECN bits are these and whose checksums are complete.
    pub fn put_on(&self, frame: &mut Vec<u8>, ecn: u8) {
        frame.splice(..0, self.head);
        frame[IP + 1] |= ecn;
        self.put_lengths(frame);
        let ip_sum = !fold(sum(&frame[IP..AT_UDP]));
        frame[IP_SUM..IP_SUM + 2].copy_from_slice(&ip_sum.to_be_bytes());
        if self.has_sum {
            let len = (frame.len() - AT_UDP) as u16;
            let pseudo = fold(u64::from(self.pseudo_sum()) + u64::from(len));
            frame[UDP_SUM..UDP_SUM + 2].copy_from_slice(&pseudo.to_be_bytes());
            let partial = PartialChecksum { start: AT_UDP as u16, offset: 6 };
            checksum::complete(frame, partial).expect("the header is in the frame");
        }
        self.put_tag(frame);
    }

    fn put_tag(&self, packet: &mut Vec<u8>) {
        if let Some(Tag { tpid, tci }) = self.tag {
            packet.splice(12..12, (u32::from(tpid) << 16 | u32::from(tci)).to_be_bytes());
        }
    }

    fn put_lengths(&self, packet: &mut [u8]) {
        for (place, from) in [(TOTAL_LEN, IP), (UDP_LEN, AT_UDP)] {
            let len = (packet.len() - from) as u16;
            packet[place..place + 2].copy_from_slice(&len.to_be_bytes());
        }
    }

    /// The sum of the IPv4 header without what differs from frame to frame.
    pub fn ip_sum(&self) -> u16 {
        fold(sum(&self.head[IP..AT_UDP]))
    }

    /// The sum of UDP's pseudo-header without the length.
    pub fn pseudo_sum(&self) -> u16 {
        let address = |at: usize| {
            let bytes: &[u8; 4] = self.head[at..at + 4].try_into().expect("four bytes");
            u32::from_be_bytes(*bytes)
        };
        fold(pseudo_ipv4(address(IP + 12), address(IP + 16), ip_proto::UDP, 0))
    }
}

/// The ECN bits of a frame that begins with an untagged head.
pub(crate) fn ecn(head: &[u8], is_ipv6: bool) -> u8 {
    if is_ipv6 { head[IP + 1] >> 4 & 3 } else { head[IP + 1] & 3 }
}
