//! The flow key: which bits of a packet a rule can look at, and where they lie.
//!
//! 16 words of 64 bits, host order. Fields that can never be present together share bits: IPv4 addresses serve
//! ARP too, transport ports serve ICMP type and code and the ARP operation, and the IPv6 flow label lies where IPv6
//! has no IPv4 address. OpenFlow's prerequisites (OpenFlow 1.3.5 §7.2.3.8) make every match on a shared field name the
//! Ethernet type or IP protocol that tells them apart, so sharing never confuses two rules.
//!
//! | word | bits 63..0 |
//! |---|---|
//! | 0 | eth_dst 48, eth_type 16 |
//! | 1 | eth_src 48, vlan: pcp 3, present 1, vid 12 |
//! | 2 | in_port 32, ip_proto 8, ip_dscp 6, ip_ecn 2, ip_frag 8, spare 8 |
//! | 3 | ipv4_src or arp_spa 32, ipv4_dst or arp_tpa 32 (IPv6: ipv6_flabel in the low 20) |
//! | 4 | tp_src, icmp type or arp_op 16; tp_dst or icmp code 16; tcp_flags 16; ipv6_exthdr 16 |
//! | 5, 6 | ipv6_src |
//! | 7, 8 | ipv6_dst |
//! | 9, 10 | ipv6_nd_target |
//! | 11 | arp_sha or ipv6_nd_sll 48, tun_src 16 |
//! | 12 | metadata |
//! | 13 | arp_tha or ipv6_nd_tll 48, tun_dst 16 |
//! | 14 | tunnel_id |
//! | 15 | mpls_label 20, mpls_tc 3, mpls_bos 1, pbb_isid 24, pbb_uca 1, in_phy_port 15 |
//!
//! `tun_src` and `tun_dst` are numbers that stand for addresses (docs/decisions/0018); who gave them out knows which.

/// Words in a [`Key`].
pub const WORDS: usize = 16;

/// The word that holds `in_port`; the only part of a parsed key that changes when a frame crosses a vlink.
pub const IN_PORT_WORD: usize = 2;

/// The word that is `metadata`.
pub(crate) const METADATA_WORD: usize = 12;

/// The words that hold `tun_src` and `tun_dst` below an Ethernet address, and their bits there.
pub(crate) const TUN_SRC_WORD: usize = 11;
pub(crate) const TUN_DST_WORD: usize = 13;
pub(crate) const TUN_BITS: u64 = 0xffff;

/// The word that is `tunnel_id`. It follows that of `tun_dst`: what a port needs of both lies in a row.
pub(crate) const TUNNEL_ID_WORD: usize = TUN_DST_WORD + 1;

/// Bit of [`Field::VlanVid`] that says "there is a tag" (`OFPVID_PRESENT`, OpenFlow 1.3.5 §7.2.3.7).
pub const VLAN_PRESENT: u16 = 0x1000;

/// The flow key of one packet, or the mask of a match: bits outside every [`Field`] are always 0 in a parsed key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(C, align(64))]
pub struct Key(pub [u64; WORDS]);

/// What of a key the tunnel wants that a frame leaves by: the words of `tun_dst` and `tunnel_id`.
#[derive(Clone, Copy)]
pub struct TunnelOut<'k>(pub &'k [u64; 2]);

impl TunnelOut<'_> {
    /// [`Field::TunnelId`].
    #[inline]
    pub const fn id(self) -> u64 {
        self.0[1]
    }

    /// [`Field::TunDst`].
    #[inline]
    pub const fn dst(self) -> u16 {
        (self.0[0] & TUN_BITS) as u16
    }
}

macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $word:literal, $shift:literal, $bits:literal;)*) => {
        /// A part of the flow key, named as in OpenFlow 1.3.5 §7.2.3.7 (table 12).
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        pub enum Field { $($(#[$doc])* $name,)* }

        impl Field {
            /// Every field, in declaration order.
            pub const ALL: &'static [Field] = &[$(Field::$name,)*];

            /// The OpenFlow name, in lower case.
            pub const fn name(self) -> &'static str {
                match self { $(Field::$name => $text,)* }
            }

            /// First (most significant) word, shift of the lowest bit, and width; 128-bit fields go on in the next word.
            const fn place(self) -> (usize, u32, u32) {
                match self { $(Field::$name => ($word, $shift, $bits),)* }
            }
        }
    };
}

fields! {
    /// Switch-local port number of ingress.
    InPort = "in_port", 2, 32, 32;
    /// Whether the physical port is another one: 0 in every packet, for suiro has no port on top of a port.
    InPhyPort = "in_phy_port", 15, 0, 15;
    /// Table metadata, 0 at table 0.
    Metadata = "metadata", 12, 0, 64;
    /// Logical port's tunnel id (VXLAN VNI, GRE key).
    TunnelId = "tunnel_id", 14, 0, 64;
    /// Number of the tunnel's end that sent the frame; 0: no tunnel, or an end without a number.
    TunSrc = "tun_src", 11, 0, 16;
    /// Number of the tunnel's end that the frame shall go to; 0: none.
    TunDst = "tun_dst", 13, 0, 16;
    /// Ethernet destination.
    EthDst = "eth_dst", 0, 16, 48;
    /// Ethernet source.
    EthSrc = "eth_src", 1, 16, 48;
    /// Ethernet type after all VLAN tags (and the type of the frame as it is for PBB and MPLS).
    EthType = "eth_type", 0, 0, 16;
    /// VLAN id with [`VLAN_PRESENT`]; 0 means untagged. Outermost tag.
    VlanVid = "vlan_vid", 1, 0, 13;
    /// VLAN priority of the outermost tag.
    VlanPcp = "vlan_pcp", 1, 13, 3;
    /// IP DSCP.
    IpDscp = "ip_dscp", 2, 18, 6;
    /// IP ECN.
    IpEcn = "ip_ecn", 2, 16, 2;
    /// IP protocol, or the last IPv6 next-header value.
    IpProto = "ip_proto", 2, 24, 8;
    /// Fragment bits: 1 = any fragment, 2 = not the first one.
    IpFrag = "ip_frag", 2, 8, 8;
    /// IPv4 source.
    Ipv4Src = "ipv4_src", 3, 32, 32;
    /// IPv4 destination.
    Ipv4Dst = "ipv4_dst", 3, 0, 32;
    /// TCP, UDP or SCTP source port.
    TpSrc = "tp_src", 4, 48, 16;
    /// TCP, UDP or SCTP destination port.
    TpDst = "tp_dst", 4, 32, 16;
    /// TCP flags, 12 bits (OpenFlow 1.5 and the Nicira extension).
    TcpFlags = "tcp_flags", 4, 16, 12;
    /// ICMP or ICMPv6 type (shares [`Field::TpSrc`]).
    IcmpType = "icmp_type", 4, 48, 8;
    /// ICMP or ICMPv6 code (shares [`Field::TpDst`]).
    IcmpCode = "icmp_code", 4, 32, 8;
    /// ARP operation (shares [`Field::TpSrc`]).
    ArpOp = "arp_op", 4, 48, 16;
    /// ARP sender protocol address (shares [`Field::Ipv4Src`]).
    ArpSpa = "arp_spa", 3, 32, 32;
    /// ARP target protocol address (shares [`Field::Ipv4Dst`]).
    ArpTpa = "arp_tpa", 3, 0, 32;
    /// ARP sender hardware address.
    ArpSha = "arp_sha", 11, 16, 48;
    /// ARP target hardware address.
    ArpTha = "arp_tha", 13, 16, 48;
    /// IPv6 source.
    Ipv6Src = "ipv6_src", 5, 0, 128;
    /// IPv6 destination.
    Ipv6Dst = "ipv6_dst", 7, 0, 128;
    /// IPv6 flow label (shares the low bits of [`Field::Ipv4Dst`]).
    Ipv6Flabel = "ipv6_flabel", 3, 0, 20;
    /// IPv6 neighbour discovery target.
    Ipv6NdTarget = "ipv6_nd_target", 9, 0, 128;
    /// IPv6 neighbour discovery source link-layer address (shares [`Field::ArpSha`]).
    Ipv6NdSll = "ipv6_nd_sll", 11, 16, 48;
    /// IPv6 neighbour discovery target link-layer address (shares [`Field::ArpTha`]).
    Ipv6NdTll = "ipv6_nd_tll", 13, 16, 48;
    /// MPLS label of the first shim.
    MplsLabel = "mpls_label", 15, 44, 20;
    /// MPLS traffic class.
    MplsTc = "mpls_tc", 15, 41, 3;
    /// MPLS bottom-of-stack bit.
    MplsBos = "mpls_bos", 15, 40, 1;
    /// PBB service instance id.
    PbbIsid = "pbb_isid", 15, 16, 24;
    /// PBB use-customer-addresses bit (OpenFlow 1.4).
    PbbUca = "pbb_uca", 15, 15, 1;
    /// IPv6 extension header pseudo-field (`OFPIEH_*`, 9 bits).
    Ipv6Exthdr = "ipv6_exthdr", 4, 0, 9;
}

impl Field {
    /// Width in bits.
    pub const fn bits(self) -> u32 {
        self.place().2
    }

    /// All bits of the field set, as a value of [`Key::get`].
    pub const fn full(self) -> u128 {
        u128::MAX >> (128 - self.bits())
    }
}

impl Key {
    /// The field's value, right-aligned.
    #[inline]
    pub const fn get(&self, field: Field) -> u128 {
        let (word, shift, bits) = field.place();
        if bits == 128 {
            return (self.0[word] as u128) << 64 | self.0[word + 1] as u128;
        }
        (self.0[word] >> shift) as u128 & field.full()
    }

    /// Replaces the field; bits of `value` above the field's width are ignored.
    #[inline]
    pub const fn set(&mut self, field: Field, value: u128) {
        let (word, shift, bits) = field.place();
        if bits == 128 {
            self.0[word] = (value >> 64) as u64;
            self.0[word + 1] = value as u64;
            return;
        }
        let mask = (field.full() as u64) << shift;
        self.0[word] = self.0[word] & !mask | ((value as u64) << shift) & mask;
    }

    /// What of a key is for the tunnel that the frame leaves by, where it lies: who will not look need not read it.
    #[inline]
    pub fn tunnel(&self) -> TunnelOut<'_> {
        let (_, from) = self.0.split_at(TUN_DST_WORD);
        TunnelOut(from.first_chunk().expect("two words lie there"))
    }

    /// Forgets what was said of tunnels.
    #[inline]
    pub fn clear_tunnel(&mut self) {
        self.0[TUN_SRC_WORD] &= !TUN_BITS;
        self.0[TUN_DST_WORD] &= !TUN_BITS;
        self.0[TUNNEL_ID_WORD] = 0;
    }

    /// Bitwise and, word by word: a key under a mask.
    #[must_use]
    #[inline]
    pub fn masked(&self, mask: &Key) -> Key {
        Key(std::array::from_fn(|i| self.0[i] & mask.0[i]))
    }

    /// Bitwise or, word by word: both masks.
    #[must_use]
    #[inline]
    pub fn union(&self, mask: &Key) -> Key {
        Key(std::array::from_fn(|i| self.0[i] | mask.0[i]))
    }

    /// Bitwise and not, word by word: the bits of `self` that are not in `mask`.
    #[must_use]
    #[inline]
    pub fn without(&self, mask: &Key) -> Key {
        Key(std::array::from_fn(|i| self.0[i] & !mask.0[i]))
    }

    /// Whether `packet` agrees with this key on every bit of `mask`. `self` must already be masked.
    #[inline]
    pub fn matches(&self, mask: &Key, packet: &Key) -> bool {
        (0..WORDS).fold(0, |differ, i| differ | (packet.0[i] & mask.0[i]) ^ self.0[i]) == 0
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut map = f.debug_map();
        for &field in Field::ALL {
            if self.get(field) != 0 {
                map.entry(&field.name(), &format_args!("{:#x}", self.get(field)));
            }
        }
        map.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_set_is_the_field_got_and_nothing_else_moves() {
        for &field in Field::ALL {
            let mut key = Key([0xaaaa_aaaa_aaaa_aaaa; WORDS]);
            let before = key;
            key.set(field, field.full() / 3);
            assert_eq!(key.get(field), field.full() / 3, "{}", field.name());
            key.set(field, before.get(field));
            assert_eq!(key, before, "{}", field.name());
        }
    }
}
