//! Matches: lists of OXM fields ↔ a key under a mask.
//!
//! Several OXM fields share bits of [`wire::Key`] (TCP, UDP and SCTP ports; IPv4 and ARP addresses). Their prerequisites
//! (OpenFlow 1.3.5 §7.2.3.8) tell them apart, so the way back looks at the key's own Ethernet type and IP protocol. A set-field may
//! stand where nothing of that kind is known, so it says which transport's field it means ([`transport`]).
//!
//! The flow control field of steering is DSCP and ECN here ([`Oxm::parts`]). On the way back these go by their own names, unless they
//! are under masks, for which OpenFlow has no word: then they are the flow control field again.
//!
//! The addresses of a tunnel are numbers here ([`super::end`]), one for both families.

use super::end::{Naming, oxm_end};
use flow::Transport;
use openflow::{Match, Oxm, OxmField, Prerequisite};
use port::{Ends, NoNumber};
use wire::{Field, Key, WORDS};

/// A match as the tables take it: `key` is already under `mask`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KeyMask {
    /// The values.
    pub key: Key,
    /// Which bits count.
    pub mask: Key,
    /// The physical port, if it is matched: the key says only whether it is another one than the port.
    pub in_phy_port: u32,
}

/// The part of the key that holds an OXM field; `None` for those of steering, which the tables do not have.
pub const fn field(oxm: OxmField) -> Option<Field> {
    Some(match oxm {
        OxmField::InPort => Field::InPort,
        OxmField::InPhyPort => Field::InPhyPort,
        OxmField::Metadata => Field::Metadata,
        OxmField::EthDst => Field::EthDst,
        OxmField::EthSrc => Field::EthSrc,
        OxmField::EthType => Field::EthType,
        OxmField::VlanVid => Field::VlanVid,
        OxmField::VlanPcp => Field::VlanPcp,
        OxmField::IpDscp => Field::IpDscp,
        OxmField::IpEcn => Field::IpEcn,
        OxmField::IpProto => Field::IpProto,
        OxmField::Ipv4Src => Field::Ipv4Src,
        OxmField::Ipv4Dst => Field::Ipv4Dst,
        OxmField::TcpSrc | OxmField::UdpSrc | OxmField::SctpSrc => Field::TpSrc,
        OxmField::TcpDst | OxmField::UdpDst | OxmField::SctpDst => Field::TpDst,
        OxmField::Icmpv4Type | OxmField::Icmpv6Type => Field::IcmpType,
        OxmField::Icmpv4Code | OxmField::Icmpv6Code => Field::IcmpCode,
        OxmField::ArpOp => Field::ArpOp,
        OxmField::ArpSpa => Field::ArpSpa,
        OxmField::ArpTpa => Field::ArpTpa,
        OxmField::ArpSha => Field::ArpSha,
        OxmField::ArpTha => Field::ArpTha,
        OxmField::Ipv6Src => Field::Ipv6Src,
        OxmField::Ipv6Dst => Field::Ipv6Dst,
        OxmField::Ipv6Flabel => Field::Ipv6Flabel,
        OxmField::Ipv6NdTarget => Field::Ipv6NdTarget,
        OxmField::Ipv6NdSll => Field::Ipv6NdSll,
        OxmField::Ipv6NdTll => Field::Ipv6NdTll,
        OxmField::MplsLabel => Field::MplsLabel,
        OxmField::MplsTc => Field::MplsTc,
        OxmField::MplsBos => Field::MplsBos,
        OxmField::PbbIsid => Field::PbbIsid,
        OxmField::TunnelId => Field::TunnelId,
        OxmField::Ipv6Exthdr => Field::Ipv6Exthdr,
        OxmField::TcpFlags => Field::TcpFlags,
        OxmField::Fcf | OxmField::VmId | OxmField::IpFrag => return None,
        OxmField::TunIpv4Src | OxmField::TunIpv6Src => Field::TunSrc,
        OxmField::TunIpv4Dst | OxmField::TunIpv6Dst => Field::TunDst,
    })
}

/// The transport that an OXM field is of, where others share its part of the key.
pub const fn transport(oxm: OxmField) -> Option<Transport> {
    match oxm {
        OxmField::TcpSrc | OxmField::TcpDst => Some(Transport::Tcp),
        OxmField::UdpSrc | OxmField::UdpDst => Some(Transport::Udp),
        OxmField::SctpSrc | OxmField::SctpDst => Some(Transport::Sctp),
        OxmField::Icmpv4Type | OxmField::Icmpv4Code => Some(Transport::Icmpv4),
        OxmField::Icmpv6Type | OxmField::Icmpv6Code => Some(Transport::Icmpv6),
        _ => None,
    }
}

/// The key and mask of a match that [`Match::check`] found good; fields that suiro does not know are not there then.
///
/// # Errors
/// No number is left for a tunnel's end.
pub fn key_mask(fields: &Match, naming: Naming<'_>) -> Result<KeyMask, NoNumber> {
    let mut found = KeyMask::default();
    for oxm in fields.0.iter().flat_map(Oxm::parts) {
        if let Oxm::Known { field: name, value, mask } = oxm
            && let Some(place) = field(name)
        {
            let value = if name.is_end() { naming.number(name, value)?.into() } else { value };
            let mask = mask.unwrap_or(place.full());
            found.mask.set(place, mask);
            found.key.set(place, value & mask);
            if name == OxmField::InPhyPort {
                found.in_phy_port = value as u32;
            }
        }
    }
    if found.mask.get(Field::InPhyPort) != 0 {
        let in_port = found.key.get(Field::InPort) as u32;
        found.key.set(Field::InPhyPort, difference(in_port, found.in_phy_port));
    }
    Ok(found)
}

/// What [`Field::InPhyPort`] is for two ports: 0 for the same, as in every packet. Different ports differ by what has room.
fn difference(in_port: u32, in_phy_port: u32) -> u128 {
    match in_port ^ in_phy_port {
        0 => 0,
        bits => 1 + u128::from(bits) % Field::InPhyPort.full(),
    }
}

/// The match of a key and mask, its fields in wire order, which puts prerequisites first.
pub fn oxm_match(matched: &KeyMask, ends: &Ends) -> Match {
    let mut fields = Vec::with_capacity(4);
    let mut candidates = candidates(&matched.mask);
    while candidates != 0 {
        let name = OxmField::ALL[candidates.trailing_zeros() as usize];
        candidates &= candidates - 1;
        let Some(place) = field(name) else { continue };
        let mask = matched.mask.get(place);
        if name == OxmField::InPhyPort && mask != 0 {
            fields.push(Oxm::exact(name, matched.in_phy_port.into()));
        } else if mask != 0 && holds(name.spec().prerequisite, matched) {
            fields.push(Oxm::masked(name, matched.key.get(place), mask));
        }
    }
    let ends_matched = ENDS.iter().filter(|end| matched.mask.get(**end) != 0);
    fields
        .extend(ends_matched.map(|end| oxm_end(*end, ends.address(matched.key.get(*end) as u16))));
    join_flow_control(&mut fields);
    Match(fields)
}

/// The fields that are numbers of tunnels' ends, matched whole or not at all.
const ENDS: [Field; 2] = [Field::TunSrc, Field::TunDst];

/// Makes DSCP and ECN the flow control field if one of them is under a mask.
fn join_flow_control(fields: &mut Vec<Oxm>) {
    let is_part = |oxm: &Oxm| matches!(oxm.field(), Some(OxmField::IpDscp | OxmField::IpEcn));
    let is_masked = |oxm: &Oxm| matches!(oxm, Oxm::Known { mask: Some(_), .. });
    if !fields.iter().any(|oxm| is_part(oxm) && is_masked(oxm)) {
        return;
    }
    let found = Match(std::mem::take(fields));
    let part = |name| found.get(name).unwrap_or_default();
    let joined = Oxm::fcf(part(OxmField::IpDscp), part(OxmField::IpEcn));
    fields.extend(found.0.into_iter().filter(|oxm| !is_part(oxm)));
    fields.push(joined);
}

/// Bit per index in [`OxmField::ALL`] of the fields that have bits in each word of a key.
const IN_WORD: [u64; WORDS] = {
    let mut found = [0; WORDS];
    let mut at = 0;
    while at < OxmField::ALL.len() {
        let mut key = Key([0; WORDS]);
        if let Some(place) = field(OxmField::ALL[at]) {
            key.set(place, u128::MAX);
        }
        let mut word = 0;
        while word < WORDS {
            if key.0[word] != 0 {
                found[word] |= 1 << at;
            }
            word += 1;
        }
        at += 1;
    }
    found
};

/// The fields that may be in a mask, as bits: a dump asks for a million matches of a few fields each.
fn candidates(mask: &Key) -> u64 {
    (0..WORDS).filter(|&word| mask.0[word] != 0).fold(0, |all, word| all | IN_WORD[word])
}

/// The OXM name of a part of the key, of a transport's if several share it.
pub fn oxm_field(place: Field, of: Option<Transport>) -> Option<OxmField> {
    OxmField::ALL.iter().copied().find(|&name| (field(name), transport(name)) == (Some(place), of))
}

fn holds(prerequisite: Prerequisite, matched: &KeyMask) -> bool {
    let is = |place: Field, wanted: u128| {
        matched.mask.get(place) == place.full() && matched.key.get(place) == wanted
    };
    let any = |place: Field, wanted: &[u16]| wanted.iter().any(|&value| is(place, value.into()));
    match prerequisite {
        Prerequisite::None | Prerequisite::InPort => true,
        Prerequisite::Vlan => matched.key.get(Field::VlanVid) & u128::from(wire::VLAN_PRESENT) != 0,
        Prerequisite::EthType(types) => any(Field::EthType, types),
        Prerequisite::IpProto(proto) => {
            any(Field::EthType, &[0x0800, 0x86dd]) && is(Field::IpProto, proto.into())
        }
        Prerequisite::Icmpv4 => is(Field::EthType, 0x0800) && is(Field::IpProto, 1),
        Prerequisite::Icmpv6 => is(Field::EthType, 0x86dd) && is(Field::IpProto, 58),
        Prerequisite::NeighbourDiscovery(kinds) => {
            holds(Prerequisite::Icmpv6, matched)
                && kinds.iter().any(|&kind| is(Field::IcmpType, kind.into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use port::Share;
    use std::sync::Arc;

    /// There and back.
    fn round(fields: &Match) -> Match {
        let ends = Share::new(Arc::default());
        oxm_match(&key_mask(fields, Naming::Give(&ends)).unwrap(), &ends)
    }

    /// A match on `name` alone with what it needs, every value different from 0 where it may be.
    fn with_prerequisites(name: OxmField, value: u128) -> Match {
        let ip = |ether: u128, proto: u128| {
            Match::default().with(OxmField::EthType, ether).with(OxmField::IpProto, proto)
        };
        let base = match name.spec().prerequisite {
            Prerequisite::None => Match::default(),
            Prerequisite::InPort => Match::default().with(OxmField::InPort, 3),
            Prerequisite::Vlan => Match::default().with(OxmField::VlanVid, 0x1005),
            Prerequisite::EthType(types) => {
                Match::default().with(OxmField::EthType, types[0].into())
            }
            Prerequisite::IpProto(proto) => ip(0x86dd, proto.into()),
            Prerequisite::Icmpv4 => ip(0x0800, 1),
            Prerequisite::Icmpv6 => ip(0x86dd, 58),
            Prerequisite::NeighbourDiscovery(kinds) => {
                ip(0x86dd, 58).with(OxmField::Icmpv6Type, kinds[0].into())
            }
        };
        base.with(name, value)
    }

    #[test]
    fn every_field_comes_back_under_its_own_name() {
        for (name, _) in OxmField::of_tables() {
            let value = if name == OxmField::VlanVid { 0x1abc } else { (name.full() / 3) | 1 };
            let fields = with_prerequisites(name, value);
            fields.check().unwrap();
            assert_eq!(round(&fields), fields, "{name:?}");
        }
    }

    #[test]
    fn every_field_that_can_be_set_is_of_a_transport_or_of_one_header() {
        for &name in OxmField::ALL.iter().filter(|name| name.spec().settable) {
            let (place, of) = (field(name).unwrap(), transport(name));
            assert_eq!(oxm_field(place, of), Some(name), "{name:?}");
            let shared_by = Transport::with(place);
            assert_eq!(of.is_none(), shared_by.is_empty(), "{name:?}");
            assert!(of.is_none_or(|of| shared_by.contains(&of)), "{name:?}");
        }
    }

    #[test]
    fn masks_survive_and_value_bits_outside_are_gone() {
        let fields = Match::default().with(OxmField::EthType, 0x0800).with_masked(
            OxmField::Ipv4Dst,
            0x0a00_0000,
            0xff00_0000,
        );
        let ends = Share::new(Arc::default());
        let found = key_mask(&fields, Naming::Give(&ends)).unwrap();
        assert_eq!(found.key.masked(&found.mask), found.key);
        assert_eq!(oxm_match(&found, &ends), fields);
    }

    #[test]
    fn the_flow_control_field_comes_back_under_a_mask_alone() {
        let ip = Match::default().with(OxmField::EthType, 0x86dd);
        for (value, mask) in [(1, 1), (2, 0xfe), (0x84, 0xfc | 1), (0, 3 << 6)] {
            let fields = ip.clone().with_masked(OxmField::Fcf, value, mask);
            assert_eq!(round(&fields), fields, "{value:#x}/{mask:#x}");
        }
        let whole = ip.clone().with(OxmField::Fcf, 0x0b);
        let parts = ip.with(OxmField::IpDscp, 2).with(OxmField::IpEcn, 3);
        assert_eq!(round(&whole), parts);
    }

    #[test]
    fn an_end_is_one_number_in_whatever_words_and_one_that_nobody_named_matches_nothing() {
        let ends = Share::new(Arc::default());
        let of = |field, value, naming| {
            let found = key_mask(&Match::default().with(field, value), naming).unwrap();
            assert_eq!(found.mask.get(Field::TunSrc), 0xffff);
            found.key.get(Field::TunSrc) as u16
        };
        let (v4, v6) = (OxmField::TunIpv4Src, OxmField::TunIpv6Src);
        let (give, look) = (Naming::Give(&ends), Naming::Look(&ends));
        assert_eq!(of(v4, 0xc000_0202, look), Ends::NOBODY);
        assert_eq!(ends.held(), 0);
        assert_eq!((of(v4, 0xc000_0202, give), of(v6, 9, give)), (1, 2));
        assert_eq!((of(v4, 0xc000_0202, look), of(v6, 0xffff_c000_0202, give)), (1, 1));
        assert_eq!((of(v4, 0, give), ends.held()), (Ends::NONE, 2));
        let none = Match::default().with(v4, 0);
        assert_eq!(round(&none), none);
    }

    #[test]
    fn untagged_and_any_tag_are_told_apart() {
        let untagged = Match::default().with(OxmField::VlanVid, 0);
        let tagged = Match::default().with_masked(OxmField::VlanVid, 0x1000, 0x1000);
        assert_eq!(round(&untagged), untagged);
        assert_eq!(round(&tagged), tagged);
    }

    #[test]
    fn a_physical_port_is_told_back_and_matches_only_if_it_is_the_port() {
        for (in_port, in_phy_port) in
            [(3, 3), (1, 2), (2, 1), (0xffff_fffe, 1), (1, 0x7fff), (1, 0x8000), (1, 0xffff_0000)]
        {
            let of = |port, physical| {
                Match::default().with(OxmField::InPort, port).with(OxmField::InPhyPort, physical)
            };
            let fields = of(in_port, in_phy_port);
            assert_eq!(round(&fields), fields);
            let ends = Share::new(Arc::default());
            let found = key_mask(&fields, Naming::Give(&ends)).unwrap();
            let mut packet = Key::default();
            packet.set(Field::InPort, in_port);
            assert_eq!(packet.masked(&found.mask) == found.key, in_port == in_phy_port);
            let swapped = Match(fields.0.iter().rev().cloned().collect());
            assert_eq!(key_mask(&swapped, Naming::Give(&ends)), Ok(found), "in any order");
        }
    }
}
