//! What a rung does to a frame's bytes.

use crate::headers::Tag;
use crate::program::{Edit, FlowProgram};
use wire::{Field, checksum, eth_type};

/// Bytes of a head that a patch may change: Ethernet, IPv6, ports, rounded up.
pub const PATCHED: usize = 64;

/// What a rung does to a frame's bytes, as constants.
///
/// Places are those of the frame *without its tag*: addresses at 0, type at 12, the network header at 14. The order is: tag off, bytes and
/// sums, TTL, tag on. Sums are one's complement sums of 16-bit words, in host order, to be added to the sum that a checksum
/// stands for (RFC 1624): `checksum' = !(!checksum + sum)`, carries folded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Patch {
    /// Bits that stay.
    pub keep: [u8; PATCHED],
    /// Bits that replace the others: `head[i] & keep[i] | put[i]`.
    pub put: [u8; PATCHED],
    /// What the changed bytes add to the IPv4 header's sum; the TTL not included.
    pub ip_sum: u16,
    /// What changed addresses add to the pseudo-header's sum: to a partial checksum and to a complete one of TCP, UDP, ICMPv6.
    pub pseudo_sum: u16,
    /// What changed ports add to the transport's sum: to a complete checksum only.
    pub ports_sum: u16,
    /// Whether the TTL or hop limit is decremented. The IPv4 header's sum then loses 0x0100.
    pub dec_ttl: bool,
    /// Whether the tag is taken off.
    pub pop: bool,
    /// The tag that is put on.
    pub push: Option<Tag>,
}

impl Patch {
    /// Changes nothing.
    pub const NOTHING: Self = Self {
        keep: [0xff; PATCHED],
        put: [0; PATCHED],
        ip_sum: 0,
        pseudo_sum: 0,
        ports_sum: 0,
        dec_ttl: false,
        pop: false,
        push: None,
    };
}

/// Where the network header begins in a frame without its tag.
const L3: usize = 14;

/// A field's place in a frame without its tag, in bits, and what covers it.
struct Place {
    at: usize,
    bits: usize,
    covers: Covers,
}

/// The sums that a field is part of.
enum Covers {
    Nothing,
    Ipv4Header,
    Ipv4Address,
    Ipv6Address,
    Transport,
}

impl Patch {
    /// What a flow's edits come to.
    pub fn of(program: &FlowProgram) -> Self {
        let mut patch = Self::NOTHING;
        let is_ipv6 = program.key.get(Field::EthType) as u16 == eth_type::IPV6;
        for edit in &program.edits {
            match *edit {
                Edit::PopVlan => patch.pop = true,
                Edit::PushVlan { tpid, tci } => patch.push = Some(Tag { tpid, tci }),
                Edit::DecTtl => patch.dec_ttl = true,
                Edit::Set { field, old, new } => patch.set(place(field, is_ipv6), old, new),
            }
        }
        patch
    }

    fn set(&mut self, Place { at, bits, covers }: Place, old: u128, new: u128) {
        for bit in 0..bits {
            let (byte, mask) = ((at + bit) / 8, 0x80 >> ((at + bit) % 8));
            self.keep[byte] &= !mask;
            if new >> (bits - 1 - bit) & 1 == 1 {
                self.put[byte] |= mask;
            }
        }
        // The words that a field lies in: how far its lowest bit is from the end of one.
        let shift = (16 - (at + bits) % 16) % 16;
        let change = (old << shift, new << shift);
        let add = |sum: &mut u16| *sum = added(*sum, change);
        match covers {
            Covers::Nothing => {}
            Covers::Ipv4Header => add(&mut self.ip_sum),
            Covers::Ipv4Address => {
                [&mut self.ip_sum, &mut self.pseudo_sum].into_iter().for_each(add)
            }
            Covers::Ipv6Address => add(&mut self.pseudo_sum),
            Covers::Transport => add(&mut self.ports_sum),
        }
    }
}

/// A sum to which a change of words is added.
fn added(sum: u16, (old, new): (u128, u128)) -> u16 {
    checksum::update_partial(sum, checksum::sum_u128(old), checksum::sum_u128(new))
}

/// Where a field lies. The fields are those that [`FlowProgram::of`] sets.
fn place(field: Field, is_ipv6: bool) -> Place {
    let (at, covers) = match field {
        Field::EthDst => (0, Covers::Nothing),
        Field::EthSrc => (6, Covers::Nothing),
        // The traffic class lies across the first two bytes of IPv6.
        Field::IpDscp if is_ipv6 => {
            return Place { at: 8 * L3 + 4, bits: 6, covers: Covers::Nothing };
        }
        Field::IpDscp => (L3 + 1, Covers::Ipv4Header),
        Field::Ipv4Src => (L3 + 12, Covers::Ipv4Address),
        Field::Ipv4Dst => (L3 + 16, Covers::Ipv4Address),
        Field::Ipv6Src => (L3 + 8, Covers::Ipv6Address),
        Field::Ipv6Dst => (L3 + 24, Covers::Ipv6Address),
        Field::TpSrc => (transport(is_ipv6), Covers::Transport),
        Field::TpDst => (transport(is_ipv6) + 2, Covers::Transport),
        other => unreachable!("no program sets {}", other.name()),
    };
    Place { at: 8 * at, bits: field.bits() as usize, covers }
}

/// Where the transport header begins in a frame without its tag.
const fn transport(is_ipv6: bool) -> usize {
    L3 + if is_ipv6 { 40 } else { 20 }
}
