//! The flow key: what steering knows of a frame. The layout is that of the kernel's program, `crates/xdp/bpf/abi.h`, whose crate compares
//! the numbers.

/// 64-bit words of a key.
pub const WORDS: usize = 12;
/// Words that tell flows apart, the first ones; of the last of them [`FLOW_WORD5`].
pub const FLOW_WORDS: usize = 6;
/// Bits of word 5 that tell flows apart.
pub const FLOW_WORD5: u64 = 0xffff_ff00_0000_0000;
/// Bit of [`Field::TunId`] that says "in a tunnel".
pub const TUNNEL: u32 = 0x100_0000;
/// Bit of [`Field::DlVlan`] that says "tagged".
pub const VLAN: u16 = 0x1000;

/// The flow key of a frame, or the mask of a selector.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct FlowKey(pub [u64; WORDS]);

/// A part of the key. In a tunnel, all but the `Tun…` and `OuterTos` are the inner headers'.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Field {
    /// IPv6 source, or IPv4 in the low 32 bits.
    NwSrc,
    /// Destination, likewise.
    NwDst,
    /// 0 outside a tunnel; in a VXLAN tunnel [`FlowKey::vni`].
    TunId,
    /// TCP, UDP or SCTP source port; the high half of an ESP SPI.
    TpSrc,
    /// Destination port; the low half of an ESP SPI.
    TpDst,
    /// Ethernet type behind all tags.
    DlType,
    /// IP protocol, or IPv6's last next-header value.
    NwProto,
    /// Type of service, or traffic class.
    NwTos,
    /// 0 without a tag; else [`FlowKey::vlan`] of the outermost.
    DlVlan,
    /// Type of service of the outermost IP header: where the flow control field is.
    OuterTos,
    /// 1: a fragment; 2: not the first.
    IpFrag,
    /// Source of the outermost IP header, in a tunnel or not.
    TunSrc,
    /// Destination, likewise.
    TunDst,
    /// Ethernet source.
    DlSrc,
    /// Ethernet destination.
    DlDst,
}

impl Field {
    /// Every field.
    pub const ALL: [Self; 15] = [
        Self::NwSrc,
        Self::NwDst,
        Self::TunId,
        Self::TpSrc,
        Self::TpDst,
        Self::DlType,
        Self::NwProto,
        Self::NwTos,
        Self::DlVlan,
        Self::OuterTos,
        Self::IpFrag,
        Self::TunSrc,
        Self::TunDst,
        Self::DlSrc,
        Self::DlDst,
    ];

    /// First word, shift of the lowest bit, width; 128 bits go on in the next word.
    const fn place(self) -> (usize, u32, u32) {
        match self {
            Self::NwSrc => (0, 0, 128),
            Self::NwDst => (2, 0, 128),
            Self::TunId => (4, 32, 32),
            Self::TpSrc => (4, 16, 16),
            Self::TpDst => (4, 0, 16),
            Self::DlType => (5, 48, 16),
            Self::NwProto => (5, 40, 8),
            Self::NwTos => (5, 32, 8),
            Self::DlVlan => (5, 16, 16),
            Self::OuterTos => (5, 8, 8),
            Self::IpFrag => (5, 0, 8),
            Self::TunSrc => (6, 0, 128),
            Self::TunDst => (8, 0, 128),
            Self::DlSrc => (10, 16, 48),
            Self::DlDst => (11, 16, 48),
        }
    }

    /// Bits of its value.
    pub const fn bits(self) -> u32 {
        self.place().2
    }

    /// All of them.
    pub const fn full(self) -> u128 {
        u128::MAX >> (128 - self.bits())
    }
}

impl FlowKey {
    /// [`Field::TunId`] of that VXLAN network.
    pub const fn vni(vni: u32) -> u128 {
        (TUNNEL | vni & 0xff_ffff) as u128
    }

    /// [`Field::DlVlan`] of that VLAN.
    pub const fn vlan(id: u16) -> u128 {
        (VLAN | id & 0xfff) as u128
    }

    /// A field's value.
    pub fn get(&self, field: Field) -> u128 {
        let (word, shift, bits) = field.place();
        if bits == 128 {
            return u128::from(self.0[word]) << 64 | u128::from(self.0[word + 1]);
        }
        u128::from(self.0[word] >> shift) & field.full()
    }

    /// Sets a field; bits beyond its width are lost.
    pub fn set(&mut self, field: Field, value: u128) {
        let (word, shift, bits) = field.place();
        let value = value & field.full();
        if bits == 128 {
            (self.0[word], self.0[word + 1]) = ((value >> 64) as u64, value as u64);
            return;
        }
        let mask = (field.full() as u64) << shift;
        self.0[word] = self.0[word] & !mask | (value as u64) << shift;
    }

    /// With a field set.
    #[must_use]
    pub fn with(mut self, field: Field, value: u128) -> Self {
        self.set(field, value);
        self
    }

    /// What tells its flow from others: addresses, ports, protocol, tunnel.
    #[must_use]
    pub fn flow(&self) -> Self {
        let mut words = self.0;
        words[5] &= FLOW_WORD5;
        words[FLOW_WORDS..].fill(0);
        Self(words)
    }

    /// Both, bit by bit.
    #[must_use]
    pub fn and(&self, mask: &Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & mask.0[word]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_fields_share_a_bit() {
        let mut seen = FlowKey::default();
        for field in Field::ALL {
            assert_eq!(seen.get(field), 0, "{field:?}");
            seen.set(field, field.full());
            assert_eq!(seen.get(field), field.full());
        }
    }

    #[test]
    fn a_flow_is_told_by_addresses_ports_protocol_and_tunnel() {
        let mut full = FlowKey::default();
        Field::ALL.iter().for_each(|&field| full.set(field, field.full()));
        let flow = full.flow();
        let told = [
            Field::NwSrc,
            Field::NwDst,
            Field::TunId,
            Field::TpSrc,
            Field::TpDst,
            Field::DlType,
            Field::NwProto,
        ];
        for field in Field::ALL {
            assert_eq!(flow.get(field) != 0, told.contains(&field), "{field:?}");
        }
    }
}
