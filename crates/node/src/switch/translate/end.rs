//! Addresses of tunnels' ends ↔ the numbers that the tables know them by ([`Ends`]).

use openflow::{Oxm, OxmField};
use port::{Ends, NoNumber, Share};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use wire::Field;

/// How addresses become numbers.
#[derive(Clone, Copy)]
pub enum Naming<'e> {
    /// Each gets one, which the share holds: a rule is to know it.
    Give(&'e Share),
    /// One that has none is nobody, whom nothing matches.
    Look(&'e Ends),
}

impl Naming<'_> {
    /// The number for the value of such a field: 0.0.0.0 is no end.
    pub(super) fn number(self, field: OxmField, value: u128) -> Result<u16, NoNumber> {
        let end = match field {
            OxmField::TunIpv4Src | OxmField::TunIpv4Dst => {
                IpAddr::from(Ipv4Addr::from_bits(value as u32))
            }
            // What is IPv4's, mapped into IPv6, is on no wire.
            _ => IpAddr::from(Ipv6Addr::from_bits(value)).to_canonical(),
        };
        match self {
            _ if end.is_unspecified() => Ok(Ends::NONE),
            Self::Give(share) => share.name(end),
            Self::Look(ends) => Ok(ends.number(end).unwrap_or(Ends::NOBODY)),
        }
    }
}

/// The field of an end in the words of its family.
pub fn oxm_end(place: Field, end: Option<IpAddr>) -> Oxm {
    let (v4, v6) = match place {
        Field::TunSrc => (OxmField::TunIpv4Src, OxmField::TunIpv6Src),
        _ => (OxmField::TunIpv4Dst, OxmField::TunIpv6Dst),
    };
    match end {
        None => Oxm::exact(v4, 0),
        Some(IpAddr::V4(end)) => Oxm::exact(v4, end.to_bits().into()),
        Some(IpAddr::V6(end)) => Oxm::exact(v6, end.to_bits()),
    }
}
