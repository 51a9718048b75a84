//! Fields that OpenFlow does not have.

use place::VmId;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What a rule says beside its OpenFlow match.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Own {
    /// For which virtual machine.
    pub vm: Option<VmId>,
    /// Source address of the tunnel.
    pub tun_src: Option<Underlay>,
    /// Destination address of the tunnel.
    pub tun_dst: Option<Underlay>,
    /// Which fragments.
    pub frag: Option<Frag>,
}

/// Addresses of one family that agree in the bits of a mask.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Underlay {
    /// IPv4: address and mask; no address bit outside the mask.
    V4(u32, u32),
    /// IPv6, likewise.
    V6(u128, u128),
}

impl Underlay {
    /// Whether these addresses contain all of `other`'s.
    pub fn covers(&self, other: &Self) -> bool {
        match (*self, *other) {
            (Self::V4(a, m), Self::V4(b, n)) => m & n == m && b & m == a,
            (Self::V6(a, m), Self::V6(b, n)) => m & n == m && b & m == a,
            _ => false,
        }
    }
}

/// The two families' `ADDRESS[/PREFIX]` and `ADDRESS[/MASK]`.
pub(super) fn parse_underlay(text: &str) -> Option<Underlay> {
    let (address, mask) = text.split_once('/').map_or((text, None), |(a, m)| (a, Some(m)));
    match address.parse().ok()? {
        IpAddr::V4(address) => {
            let mask = match mask {
                None => u32::MAX,
                Some(mask) => prefix(mask, 32)
                    .map(|ones| (u64::MAX << (32 - ones)) as u32)
                    .or_else(|| mask.parse::<Ipv4Addr>().ok().map(u32::from))?,
            };
            Some(Underlay::V4(u32::from(address) & mask, mask))
        }
        IpAddr::V6(address) => {
            let mask = match mask {
                None => u128::MAX,
                Some(mask) => prefix(mask, 128)
                    .map(|ones| if ones == 0 { 0 } else { u128::MAX << (128 - ones) })
                    .or_else(|| mask.parse::<Ipv6Addr>().ok().map(u128::from))?,
            };
            Some(Underlay::V6(u128::from(address) & mask, mask))
        }
    }
}

fn prefix(text: &str, width: u32) -> Option<u32> {
    text.parse().ok().filter(|ones| *ones <= width)
}

pub(super) fn print_underlay(addresses: &Underlay) -> String {
    match *addresses {
        Underlay::V4(address, u32::MAX) => Ipv4Addr::from(address).to_string(),
        Underlay::V4(address, mask) => {
            let ones = mask.leading_ones();
            let rest = if mask.count_ones() == ones {
                ones.to_string()
            } else {
                Ipv4Addr::from(mask).to_string()
            };
            format!("{}/{rest}", Ipv4Addr::from(address))
        }
        Underlay::V6(address, u128::MAX) => Ipv6Addr::from(address).to_string(),
        Underlay::V6(address, mask) => {
            let ones = mask.leading_ones();
            let rest = if mask.count_ones() == ones {
                ones.to_string()
            } else {
                Ipv6Addr::from(mask).to_string()
            };
            format!("{}/{rest}", Ipv6Addr::from(address))
        }
    }
}

/// Which fragments, as Open vSwitch names them (ovs-fields(7), `ip_frag`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Frag {
    /// Whole packets.
    No,
    /// Any fragment.
    Yes,
    /// The first fragment: it has the ports.
    First,
    /// All but the first.
    Later,
    /// Whole packets and first fragments.
    NotLater,
}

impl Frag {
    /// Every one.
    pub const ALL: [Self; 5] = [Self::No, Self::Yes, Self::First, Self::Later, Self::NotLater];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Yes => "yes",
            Self::First => "first",
            Self::Later => "later",
            Self::NotLater => "not_later",
        }
    }

    /// Value and mask of the two bits {1: fragment, 2: not the first}, as Open vSwitch has them (`FLOW_NW_FRAG_*`).
    pub const fn bits(self) -> (u8, u8) {
        match self {
            Self::No => (0, 3),
            Self::Yes => (1, 1),
            Self::First => (1, 3),
            Self::Later => (3, 3),
            Self::NotLater => (0, 2),
        }
    }
}
