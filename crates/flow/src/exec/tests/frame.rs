//! Frames as lists of header values. An edit changes a value; the bytes are made from scratch, checksums included.

use crate::action::{Action, Transport};
use wire::{EditError, Field, eth_type, ip_proto};

/// Bytes that the real head has for pushed headers.
const ROOM: usize = wire::HEADROOM;

/// An Ethernet frame with tags, shims, an IPv4 header, a header of UDP, TCP or ICMP and four bytes of payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frame {
    pub dst: u64,
    pub src: u64,
    pub tags: Vec<(u16, u16)>,
    pub eth_type: u16,
    pub shims: Vec<u32>,
    pub dscp: u8,
    pub ttl: u8,
    pub addresses: [u32; 2],
    pub transport: Transport,
    /// ICMP's type and code are the first bytes of these.
    pub ports: [u16; 2],
    /// Bytes pushed and not popped.
    pub pushed: isize,
}

impl Frame {
    /// An untagged frame.
    pub fn new(dst: u64, src: u64) -> Self {
        Self {
            dst,
            src,
            tags: vec![],
            eth_type: eth_type::IPV4,
            shims: vec![],
            dscp: 10,
            ttl: 3,
            addresses: [0x0a00_0001, 0x0a00_0002],
            transport: Transport::Udp,
            ports: [1000, 53],
            pushed: 0,
        }
    }

    /// The same with another transport.
    pub fn carrying(self, transport: Transport) -> Self {
        let ports = if transport == Transport::Icmpv4 { [8, 0] } else { self.ports };
        Self { transport, ports, ..self }
    }

    /// The same with one VLAN tag.
    pub fn tagged(mut self, vid: u16) -> Self {
        self.tags = vec![(eth_type::VLAN, vid)];
        self
    }

    /// The VLAN that a bridge puts the frame in.
    pub fn vlan(&self) -> u16 {
        self.tags.first().map_or(0, |(_, tci)| tci & 0xfff)
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.dst.to_be_bytes()[2..].to_vec();
        bytes.extend(&self.src.to_be_bytes()[2..]);
        for (tpid, tci) in &self.tags {
            bytes.extend([tpid.to_be_bytes(), tci.to_be_bytes()].concat());
        }
        bytes.extend(self.eth_type.to_be_bytes());
        bytes.extend(self.shims.iter().flat_map(|shim| shim.to_be_bytes()));
        bytes.extend(self.packet());
        bytes
    }

    fn packet(&self) -> Vec<u8> {
        let addresses = self.addresses.map(u32::to_be_bytes).concat();
        let segment = self.segment(&addresses);
        let len = 20 + segment.len() as u8;
        let mut ip = vec![0x45, self.dscp << 2, 0, len, 0, 0, 0, 0, self.ttl, self.proto(), 0, 0];
        ip.extend(addresses);
        let sum = checksum(&ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        [ip, segment].concat()
    }

    fn proto(&self) -> u8 {
        match self.transport {
            Transport::Udp => ip_proto::UDP,
            Transport::Tcp => ip_proto::TCP,
            Transport::Icmpv4 => ip_proto::ICMP,
            other => panic!("the model has no {other:?}"),
        }
    }

    fn segment(&self, addresses: &[u8]) -> Vec<u8> {
        let [first, second] = self.ports.map(u16::to_be_bytes);
        let (mut segment, sum_at) = match self.transport {
            Transport::Udp => ([first, second, [0, 12], [0, 0]].concat(), 6),
            Transport::Tcp => {
                let rest = [0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x18, 0x20, 0, 0, 0, 0, 0];
                ([&first[..], &second, &rest].concat(), 16)
            }
            _ => (vec![first[1], second[1], 0, 0, 0, 7, 0, 1], 2),
        };
        segment.extend(b"suir");
        let pseudo = [addresses, &[0, self.proto(), 0, segment.len() as u8]].concat();
        let pseudo = if self.transport == Transport::Icmpv4 { &[][..] } else { &pseudo };
        let sum = match (self.transport, checksum(&[pseudo, &segment].concat())) {
            (Transport::Udp, 0) => 0xffff, // RFC 768: 0 would mean that there is none
            (_, sum) => sum,
        };
        segment[sum_at..sum_at + 2].copy_from_slice(&sum.to_be_bytes());
        segment
    }

    /// Applies a header action; refuses as the real one must.
    pub fn edit(&mut self, action: &Action) -> Result<(), EditError> {
        match *action {
            Action::PushVlan(tpid) => {
                self.push()?;
                let tci = self.tags.first().map_or(0, |(_, tci)| *tci);
                self.tags.insert(0, (tpid, tci));
            }
            Action::EnsureVlan if self.tags.is_empty() => self.edit(&Action::PushVlan(0x8100))?,
            Action::EnsureVlan => {}
            Action::PopVlan => {
                present(!self.tags.is_empty())?;
                self.tags.remove(0);
                self.pushed -= 4;
            }
            Action::PushMpls(kind) => {
                self.push()?;
                let shim = match (self.is_mpls(), self.is_ip()) {
                    (true, _) => self.shims[0] & !0x100,
                    (false, true) => u32::from(self.ttl) | 0x100,
                    (false, false) => 0x100,
                };
                self.shims.insert(0, shim);
                self.eth_type = kind;
            }
            Action::PopMpls(kind) => {
                present(self.is_mpls())?;
                self.shims.remove(0);
                self.eth_type = kind;
                self.pushed -= 4;
            }
            Action::SetField { field, of, value, .. } => return self.set(field, of, value),
            _ => return self.edit_ttl(action),
        }
        Ok(())
    }

    fn push(&mut self) -> Result<(), EditError> {
        if self.pushed + 4 > ROOM as isize {
            return Err(EditError::NoRoom);
        }
        self.pushed += 4;
        Ok(())
    }

    fn edit_ttl(&mut self, action: &Action) -> Result<(), EditError> {
        match *action {
            Action::SetMplsTtl(ttl) => *self.shim()? = *self.shim()? & !0xff | u32::from(ttl),
            Action::DecMplsTtl => match *self.shim()? & 0xff {
                0 | 1 => return Err(EditError::TtlExpired),
                _ => *self.shim()? -= 1,
            },
            Action::SetNwTtl(ttl) => {
                present(self.is_ip())?;
                self.ttl = ttl;
            }
            Action::DecNwTtl => {
                present(self.is_ip())?;
                self.ttl =
                    self.ttl.checked_sub(1).filter(|&ttl| ttl > 0).ok_or(EditError::TtlExpired)?;
            }
            Action::CopyTtlOut => {
                let inner = match self.below()? {
                    Below::Shim => self.shims[1] as u8,
                    Below::Ip => self.ttl,
                };
                self.shims[0] = self.shims[0] & !0xff | u32::from(inner);
            }
            Action::CopyTtlIn => match self.below()? {
                Below::Shim => self.shims[1] = self.shims[1] & !0xff | self.shims[0] & 0xff,
                Below::Ip => self.ttl = self.shims[0] as u8,
            },
            _ => panic!("{action:?} edits nothing"),
        }
        Ok(())
    }

    fn below(&self) -> Result<Below, EditError> {
        present(self.is_mpls())?;
        match self.shims[..] {
            [first, _, ..] if first & 0x100 == 0 => Ok(Below::Shim),
            [_] => Ok(Below::Ip),
            _ => Err(EditError::NotPresent),
        }
    }

    fn shim(&mut self) -> Result<&mut u32, EditError> {
        present(self.is_mpls())?;
        Ok(&mut self.shims[0])
    }

    fn set(&mut self, field: Field, of: Option<Transport>, value: u128) -> Result<(), EditError> {
        let ip = present(self.is_ip());
        if of.is_some() {
            present(self.is_ip() && of == Some(self.transport))?;
        }
        match field {
            Field::EthDst => self.dst = value as u64,
            Field::EthSrc => self.src = value as u64,
            Field::VlanVid => {
                let tag = self.tags.first_mut().ok_or(EditError::NotPresent)?;
                tag.1 = tag.1 & 0xf000 | value as u16 & 0xfff;
            }
            Field::VlanPcp => {
                let tag = self.tags.first_mut().ok_or(EditError::NotPresent)?;
                tag.1 = tag.1 & 0x1fff | (value as u16) << 13;
            }
            Field::MplsLabel => *self.shim()? = *self.shim()? & 0xfff | (value as u32) << 12,
            Field::IpDscp => ip.map(|()| self.dscp = value as u8)?,
            Field::Ipv4Src => ip.map(|()| self.addresses[0] = value as u32)?,
            Field::Ipv4Dst => ip.map(|()| self.addresses[1] = value as u32)?,
            Field::TpSrc | Field::IcmpType => self.ports[0] = value as u16,
            Field::TpDst | Field::IcmpCode => self.ports[1] = value as u16,
            _ => panic!("the model does not set {}", field.name()),
        }
        Ok(())
    }

    fn is_mpls(&self) -> bool {
        eth_type::is_mpls(self.eth_type)
    }

    fn is_ip(&self) -> bool {
        self.eth_type == eth_type::IPV4 && self.shims.is_empty()
    }
}

/// What follows the first shim.
enum Below {
    Shim,
    Ip,
}

fn present(is: bool) -> Result<(), EditError> {
    if is { Ok(()) } else { Err(EditError::NotPresent) }
}

/// The Internet checksum of an even number of bytes (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
