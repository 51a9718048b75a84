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
        for field in [Field::InPort, Field::Metadata, Field::TunnelId, Field::TunSrc, Field::TunDst]
        {
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
        let Some(first) = heads.next().and_then(|head| head.bytes().first_chunk()) else {
            return false;
        };
        self.tells(first)
            && heads.all(|head| {
                let bytes = head.bytes().first_chunk();
                bytes.is_some_and(|bytes| self.agree(first, bytes) && self.is_whole(bytes))
            })
    }

    /// Whether this frame has its fields where they are looked for.
    fn tells(&self, first: &[u8; SPAN]) -> bool {
        match be!(u16, first, 12) {
            eth_type::IPV4 if self.is_network => first[14] == 0x45 && self.is_whole(first),
            kind => !self.is_network && kind >= eth_type::MIN && !eth_type::is_vlan(kind),
        }
    }

    /// IPv4's header is one only if the packet is as long as that: see [`crate::parse()`].
    #[inline(always)]
    fn is_whole(&self, bytes: &[u8; SPAN]) -> bool {
        !self.is_network || be!(u16, bytes, 16) >= 20
    }

    #[inline(always)]
    fn agree(&self, first: &[u8; SPAN], other: &[u8; SPAN]) -> bool {
        let differs = |at: usize| (word(first, at) ^ word(other, at)) & word(&self.bytes, at);
        // The last word overlaps the one before it.
        differs(0) | differs(8) | differs(16) | differs(24) | differs(SPAN - 8) == 0
    }
}

/// Eight bytes, in whatever order the machine has them.
#[inline(always)]
fn word(bytes: &[u8; SPAN], at: usize) -> u64 {
    let (_, rest) = bytes.split_at(at);
    u64::from_ne_bytes(*rest.first_chunk().expect("every caller leaves eight bytes"))
}
