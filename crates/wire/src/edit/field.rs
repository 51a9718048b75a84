//! `set_field` (OpenFlow 1.3.5 §5.12): where each field lies, and the write.

use super::sums::Covers;
use super::{Edit, EditError, Version};
use crate::parse::{ITAG, chain, chunk, link_layer_option, nd_option_for};
use crate::{Field, VLAN_PRESENT, eth_type, ip_proto};

/// Where an Ethernet address lies in the key's words 0 and 1.
const ADDRESS: u64 = !0xffff;

impl Field {
    /// Whether `set_field` accepts it. The rest is not in the frame (`in_port`, `tun_src`), not one place in it (`ip_frag`, `ipv6_exthdr`),
    /// or written by its own instruction (`metadata`).
    pub const fn is_settable(self) -> bool {
        !matches!(
            self,
            Self::InPort | Self::Metadata | Self::TunSrc | Self::IpFrag | Self::Ipv6Exthdr
        )
    }
}

/// Where a field lies in the head.
#[derive(Clone, Copy)]
struct Place {
    /// First byte of the big-endian word that holds it; at an even distance from what its checksum covers.
    at: usize,
    /// Bytes of the word.
    width: Width,
    /// Bits below the field.
    shift: u32,
    /// Bits of the field.
    bits: u32,
    covers: Covers,
    /// What the key needs after the write.
    then: Then,
}

/// Widths in bytes.
#[derive(Clone, Copy)]
enum Width {
    One = 1,
    Two = 2,
    Four = 4,
    Six = 6,
    Sixteen = 16,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    /// Only this field changed.
    SetKey,
    /// The field says what follows.
    Reparse,
}

impl Place {
    const fn new(at: usize, width: Width) -> Self {
        Self {
            at,
            width,
            shift: 0,
            bits: 8 * width as u32,
            covers: Covers::Nothing,
            then: Then::SetKey,
        }
    }

    const fn bits(self, shift: u32, bits: u32) -> Self {
        Self { shift, bits, ..self }
    }

    /// `word` with the field's bits under `mask` replaced. Fields narrower than their word have at most 32 bits.
    const fn replaced(self, word: u128, value: u128, mask: u128) -> u128 {
        if self.bits > 32 {
            let mask = mask & u128::MAX >> (128 - self.bits);
            return word & !mask | value & mask;
        }
        let mask = (mask as u32 & u32::MAX >> (32 - self.bits)) << self.shift;
        let word = word as u32;
        (word & !mask | (value as u32) << self.shift & mask) as u128
    }

    const fn covered(self, covers: Covers) -> Self {
        Self { covers, ..self }
    }

    const fn reparse(self) -> Self {
        Self { then: Then::Reparse, ..self }
    }
}

impl Edit<'_> {
    /// Replaces the bits of `mask` in `field` by those of `value`, both right-aligned.
    ///
    /// `eth_type` and `ip_proto` only change what the frame is called: nothing is converted, a transport checksum is left as it is.
    ///
    /// # Errors
    /// `NotPresent` when the frame has no such field; `Malformed` when the frame's framing or checksum cannot follow.
    pub fn set_field(&mut self, field: Field, value: u128, mask: u128) -> Result<(), EditError> {
        let bits = |address: u128| (address as u64) << 16;
        match field {
            Field::TunnelId | Field::TunDst => {
                let old = self.key.get(field);
                self.key.set(field, old & !mask | value & mask);
                Ok(())
            }
            Field::EthDst => self.set_addresses([bits(mask), 0], [bits(value), 0]),
            Field::EthSrc => self.set_addresses([0, bits(mask)], [0, bits(value)]),
            _ => self.set_at(self.place(field)?, field, value, mask),
        }
    }

    /// Replaces bits of both Ethernet addresses, destination first, at once: what every routing rule does, so the shortest way. Masks and
    /// values lie as in the key's words 0 and 1: an address is the upper 48 bits, what is below them is left alone.
    ///
    /// # Errors
    /// `NotPresent` without an Ethernet header.
    #[inline]
    pub fn set_addresses(&mut self, masks: [u64; 2], values: [u64; 2]) -> Result<(), EditError> {
        present(self.layers.l3 != 0)?;
        let new: [u64; 2] = std::array::from_fn(|i| {
            let mask = masks[i] & ADDRESS;
            self.key.0[i] & !mask | values[i] & mask
        });
        let addresses: &mut [u8; 12] =
            self.head.bytes_mut().first_chunk_mut().ok_or(EditError::NotPresent)?;
        addresses[..8].copy_from_slice(&(new[0] & ADDRESS | new[1] >> 48).to_be_bytes());
        addresses[8..].copy_from_slice(&((new[1] >> 16) as u32).to_be_bytes());
        self.key.0[..2].copy_from_slice(&new);
        Ok(())
    }

    fn set_at(
        &mut self,
        place: Place,
        field: Field,
        value: u128,
        mask: u128,
    ) -> Result<(), EditError> {
        let old = self.read(place)?;
        let new = place.replaced(old, value, mask);
        if old == new {
            return Ok(());
        }
        if field == Field::EthType && (new as u16) < eth_type::MIN {
            return Err(EditError::Malformed);
        }
        self.follow(place.covers, place.at, place.width as usize, old, new)?;
        self.write(place, new)?;
        match (place.then, field) {
            (Then::Reparse, _) => self.reparse(),
            (Then::SetKey, Field::VlanVid) => self.key.set(field, new | u128::from(VLAN_PRESENT)),
            (Then::SetKey, _) => self.key.set(field, new >> place.shift),
        }
        Ok(())
    }

    /// The word that holds the field. Each width is a load of its own, so that none becomes a loop.
    fn read(&self, place: Place) -> Result<u128, EditError> {
        let at = place.at;
        Ok(match place.width {
            Width::One => self.bytes_at(at).map(u8::from_be_bytes)?.into(),
            Width::Two => self.bytes_at(at).map(u16::from_be_bytes)?.into(),
            Width::Four => self.bytes_at(at).map(u32::from_be_bytes)?.into(),
            Width::Six => {
                let [a, b, c, d, e, f] = self.bytes_at(at)?;
                u64::from_be_bytes([0, 0, a, b, c, d, e, f]).into()
            }
            Width::Sixteen => self.bytes_at(at).map(u128::from_be_bytes)?,
        })
    }

    /// Writes the word that [`Edit::read`] found there.
    fn write(&mut self, place: Place, value: u128) -> Result<(), EditError> {
        let at = place.at;
        match place.width {
            Width::One => self.put(at, (value as u8).to_be_bytes()),
            Width::Two => self.put(at, (value as u16).to_be_bytes()),
            Width::Four => self.put(at, (value as u32).to_be_bytes()),
            Width::Six => {
                let [_, _, address @ ..] = (value as u64).to_be_bytes();
                self.put::<6>(at, address)
            }
            Width::Sixteen => self.put(at, value.to_be_bytes()),
        }
    }

    fn place(&self, field: Field) -> Result<Place, EditError> {
        match field {
            Field::EthType => Ok(Place::new(self.type_at()?, Width::Two).reparse()),
            Field::VlanVid => Ok(self.tag()?.bits(0, 12)),
            Field::VlanPcp => Ok(self.tag()?.bits(13, 3)),
            Field::IpDscp => self.traffic_class(2, 6),
            Field::IpEcn => self.traffic_class(0, 2),
            Field::IpProto => self.protocol(),
            Field::Ipv4Src => self.ipv4(12),
            Field::Ipv4Dst => self.ipv4(16),
            Field::Ipv6Src => {
                Ok(Place::new(self.ipv6()? + 8, Width::Sixteen).covered(Covers::Ipv6Address))
            }
            Field::Ipv6Dst => {
                Ok(Place::new(self.ipv6()? + 24, Width::Sixteen).covered(Covers::Ipv6Destination))
            }
            Field::Ipv6Flabel => Ok(Place::new(self.ipv6()?, Width::Four).bits(0, 20)),
            Field::TpSrc => self.ports(0),
            Field::TpDst => self.ports(2),
            Field::TcpFlags => Ok(self.transport_word(&[ip_proto::TCP], 12)?.bits(0, 12)),
            Field::IcmpType => Ok(self.icmp()?.bits(8, 8)),
            Field::IcmpCode => Ok(self.icmp()?.bits(0, 8)),
            Field::ArpOp => self.arp(6, Width::Two),
            Field::ArpSha => self.arp(8, Width::Six),
            Field::ArpSpa => self.arp(14, Width::Four),
            Field::ArpTha => self.arp(18, Width::Six),
            Field::ArpTpa => self.arp(24, Width::Four),
            Field::Ipv6NdTarget => self.nd_target(),
            Field::Ipv6NdSll => self.nd_option(1),
            Field::Ipv6NdTll => self.nd_option(2),
            Field::MplsLabel => Ok(self.shim()?.bits(12, 20)),
            Field::MplsTc => Ok(self.shim()?.bits(9, 3)),
            Field::MplsBos => Ok(self.shim()?.bits(8, 1).reparse()),
            Field::PbbIsid => Ok(self.itag()?.bits(0, 24)),
            Field::PbbUca => Ok(self.itag()?.bits(27, 1)),
            // Not settable, or written by `set_field` itself.
            Field::InPort
            | Field::InPhyPort
            | Field::Metadata
            | Field::TunSrc
            | Field::IpFrag
            | Field::Ipv6Exthdr
            | Field::TunnelId
            | Field::TunDst
            | Field::EthDst
            | Field::EthSrc => Err(EditError::NotPresent),
        }
    }

    fn tag(&self) -> Result<Place, EditError> {
        present(self.layers.vlans != 0)?;
        Ok(Place::new(14, Width::Two))
    }

    fn shim(&self) -> Result<Place, EditError> {
        present(self.layers.labels != 0)?;
        Ok(Place::new(usize::from(self.layers.l3), Width::Four))
    }

    fn itag(&self) -> Result<Place, EditError> {
        let at = usize::from(self.layers.l3);
        present(self.eth_type() == eth_type::PBB)?;
        self.bytes_at::<ITAG>(at)?;
        Ok(Place::new(at, Width::Four))
    }

    fn arp(&self, at: usize, width: Width) -> Result<Place, EditError> {
        present(self.eth_type() == eth_type::ARP && self.layers.payload != 0)?;
        Ok(Place::new(usize::from(self.layers.l3) + at, width))
    }

    fn ipv4(&self, at: usize) -> Result<Place, EditError> {
        match self.ip()? {
            (ip, Version::V4) => Ok(Place::new(ip + at, Width::Four).covered(Covers::Ipv4Address)),
            (_, Version::V6) => Err(EditError::NotPresent),
        }
    }

    fn ipv6(&self) -> Result<usize, EditError> {
        match self.ip()? {
            (ip, Version::V6) => Ok(ip),
            (_, Version::V4) => Err(EditError::NotPresent),
        }
    }

    /// Bits of the traffic class, which is the second byte of IPv4 and lies across the first two of IPv6.
    fn traffic_class(&self, shift: u32, bits: u32) -> Result<Place, EditError> {
        Ok(match self.ip()? {
            (ip, Version::V4) => {
                Place::new(ip, Width::Two).bits(shift, bits).covered(Covers::Ipv4Header)
            }
            (ip, Version::V6) => Place::new(ip, Width::Two).bits(4 + shift, bits),
        })
    }

    fn protocol(&self) -> Result<Place, EditError> {
        Ok(match self.ip()? {
            (ip, Version::V4) => {
                Place::new(ip + 8, Width::Two).bits(0, 8).covered(Covers::Ipv4Header).reparse()
            }
            (ip, Version::V6) => {
                let chain = chain(self.head.bytes(), ip).ok_or(EditError::NotPresent)?;
                Place::new(chain.proto_at, Width::One).reparse()
            }
        })
    }

    fn ports(&self, at: usize) -> Result<Place, EditError> {
        self.transport_word(&[ip_proto::TCP, ip_proto::UDP, ip_proto::SCTP], at)
    }

    /// Type and code. In ICMPv6 they decide whether neighbour discovery follows.
    fn icmp(&self) -> Result<Place, EditError> {
        Ok(self.transport_word(&[ip_proto::ICMP, ip_proto::ICMPV6], 0)?.reparse())
    }

    /// 16 bits of the transport header, which must be one of `protos`.
    fn transport_word(&self, protos: &[u8], at: usize) -> Result<Place, EditError> {
        let l4 = self.layers.l4;
        present(l4 != 0 && protos.contains(&(self.key.get(Field::IpProto) as u8)))?;
        Ok(Place::new(usize::from(l4) + at, Width::Two).covered(Covers::Transport))
    }

    /// The packet up to its end, where its neighbour discovery message begins, and the option type that this carries.
    fn nd(&self) -> Result<(&[u8], usize, u8), EditError> {
        let l4 = usize::from(self.layers.l4);
        present(l4 != 0 && self.key.get(Field::IpProto) as u8 == ip_proto::ICMPV6)?;
        let bytes = self.head.bytes();
        let end = chain(bytes, self.ipv6()?).ok_or(EditError::NotPresent)?.end;
        let message: &[u8; 24] = chunk(&bytes[..end], l4).ok_or(EditError::NotPresent)?;
        match (nd_option_for(message[0]), message[1]) {
            (Some(option), 0) => Ok((&bytes[..end], l4, option)),
            _ => Err(EditError::NotPresent),
        }
    }

    fn nd_target(&self) -> Result<Place, EditError> {
        let (_, l4, _) = self.nd()?;
        Ok(Place::new(l4 + 8, Width::Sixteen).covered(Covers::Transport))
    }

    fn nd_option(&self, wanted: u8) -> Result<Place, EditError> {
        let (packet, l4, option) = self.nd()?;
        present(option == wanted)?;
        let at = link_layer_option(packet, l4, wanted).ok_or(EditError::NotPresent)?;
        Ok(Place::new(at, Width::Six).covered(Covers::Transport))
    }
}

fn present(is: bool) -> Result<(), EditError> {
    if is { Ok(()) } else { Err(EditError::NotPresent) }
}
