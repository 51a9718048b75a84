//! Frames that are alike: they have the same key, as far as a mask looks at it, which their bytes tell without one.
//!
//! In an untagged frame each field of the Ethernet header has one place, and in IPv4 without options (RFC 791 §3.1) each field of its header has. Two
//! frames that agree in the bytes of the fields that a mask looks at, and in the bytes that say that these are the places, are alike.

use crate::parse::be;
use crate::{Field, Head, Key, eth_type};

/// Bytes that fields are looked for in: the Ethernet header, and IPv4's without options.
const SPAN: usize = 14 + 20;

/// Words of a key whose fields lie there.
const WORDS_INSIDE: usize = 4;

/// What frames must agree in, to be alike under one mask.
#[derive(Clone, Copy)]
pub struct Likeness {
    bytes: [u8; SPAN],
    /// Fields of IPv4's header are among them.
    is_network: bool,
}

impl Likeness {
    /// `None`: the mask looks at fields that other frames have, or that have no place of their own. Fields that are not in a frame
    /// (`in_port`, metadata, tunnels) are the caller's business.
    pub fn of(mask: &Key) -> Option<Self> {
        let mut inside = *mask;
        for field in [
            Field::InPort,
            Field::InPhyPort,
            Field::Metadata,
            Field::TunnelId,
            Field::TunSrc,
            Field::TunDst,
        ] {
            inside.set(field, 0);
        }
        if inside.0[WORDS_INSIDE..].iter().any(|&word| word != 0) {
            return None;
        }
        let mut bytes = [0; SPAN];
        let mut put = |at: usize, field: Field| {
            let value = mask.get(field).to_be_bytes();
            let len = field.bits().div_ceil(8) as usize;
            bytes[at..at + len].copy_from_slice(&value[value.len() - len..]);
        };
        put(0, Field::EthDst);
        put(6, Field::EthSrc);
        put(23, Field::IpProto);
        put(26, Field::Ipv4Src);
        put(30, Field::Ipv4Dst);
        bytes[15] = (mask.get(Field::IpDscp) << 2 | mask.get(Field::IpEcn)) as u8;
        if mask.get(Field::IpFrag) != 0 {
            // More fragments, and the offset.
            (bytes[20], bytes[21]) = (0x3f, 0xff);
        }
        let is_network = inside.0[2] != 0 || inside.0[3] != 0;
        // The type always counts, and below it the version and the header's length: they say where the fields are.
        (bytes[12], bytes[13]) = (0xff, 0xff);
        bytes[14] = if is_network { 0xff } else { 0 };
        Some(Self { bytes, is_network })
    }

    /// Whether all of these heads are alike. `false` says that some are not, or that it cannot be told; the first one that differs ends the search.
    #[inline]
    pub fn holds<'h>(&self, mut heads: impl Iterator<Item = &'h Head>) -> bool {
        let pattern = heads.next().and_then(|first| self.pattern(first));
        pattern.is_some_and(|pattern| heads.all(|head| pattern.holds(head.bytes())))
    }

    /// What frames that are alike this one have; `None` if it has not its fields where they are looked for.
    pub fn pattern(&self, head: &Head) -> Option<Pattern> {
        let bytes = head.bytes().first_chunk::<SPAN>()?;
        let kind = be!(u16, bytes, 12);
        let is_told = match self.is_network {
            true => kind == eth_type::IPV4 && bytes[14] == 0x45,
            false => kind >= eth_type::MIN && !eth_type::is_vlan(kind),
        };
        if !is_told {
            return None;
        }
        let mut pattern = Pattern { value: [0; 64], mask: [0; 64], some: [0; 64] };
        pattern.mask[..SPAN].copy_from_slice(&self.bytes);
        for ((value, byte), mask) in pattern.value.iter_mut().zip(bytes).zip(self.bytes) {
            *value = byte & mask;
        }
        // IPv4's header is one only if the packet is as long as that (see [`crate::parse()`]): 20 bytes, and here 32, of which one bit tells. The type, which is not zero, is no condition.
        let (at, bits) = if self.is_network { (16, [0xff, 0xe0]) } else { (12, [0xff, 0xff]) };
        pattern.some[at..at + 2].copy_from_slice(&bits);
        Some(pattern).filter(|pattern| pattern.holds(bytes))
    }
}

/// What frames that are alike one have in their first bytes: whoever copies a frame can tell it of the bytes in hand, in one step.
#[derive(Clone, Debug)]
#[repr(C, align(64))] // a register's each
pub struct Pattern {
    /// The bits that count, as that frame has them; the others are zero.
    pub value: [u8; 64],
    /// Which count: none behind [`Pattern::SPAN`].
    pub mask: [u8; 64],
    /// One of these is set.
    pub some: [u8; 64],
}

impl Pattern {
    /// No frame is like another that has fewer bytes.
    pub const SPAN: usize = SPAN;

    /// Whether a frame that begins with these bytes is like that one.
    #[inline(always)]
    pub fn holds(&self, bytes: &[u8]) -> bool {
        let Some(bytes) = bytes.first_chunk::<SPAN>() else { return false };
        let [value, mask, some] = [&self.value, &self.mask, &self.some];
        let (mut differs, mut has) = (0, 0);
        // The last word overlaps the one before it.
        for at in [0, 8, 16, 24, SPAN - 8] {
            let bytes = word(bytes, at);
            differs |= bytes & word(mask, at) ^ word(value, at);
            has |= bytes & word(some, at);
        }
        differs == 0 && has != 0
    }
}

/// Eight bytes, in whatever order the machine has them.
#[inline(always)]
fn word<const N: usize>(bytes: &[u8; N], at: usize) -> u64 {
    let (_, rest) = bytes.split_at(at);
    u64::from_ne_bytes(*rest.first_chunk().expect("every caller leaves eight bytes"))
}
