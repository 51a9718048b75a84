//! A match: a list of OXM TLVs, and whether it makes sense (OpenFlow 1.3.5 §7.2.3).

use crate::error::{ErrorCode, Fault};
use crate::oxm::{CLASS_BASIC, Format, Oxm, OxmField, Prerequisite, VLAN_PRESENT};

/// Which packets: each field must agree. The order is the sender's.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Match(pub Vec<Oxm>);

impl Match {
    /// Value and mask of a field, if it is matched.
    pub fn get(&self, field: OxmField) -> Option<(u128, u128)> {
        self.0.iter().find_map(|oxm| match oxm {
            Oxm::Known { field: f, value, mask } if *f == field => {
                Some((*value, mask.unwrap_or(field.full())))
            }
            _ => None,
        })
    }

    /// The value of a field that is matched in every bit.
    pub fn exact(&self, field: OxmField) -> Option<u128> {
        self.get(field).and_then(|(value, mask)| (mask == field.full()).then_some(value))
    }

    /// This match and one more exact field.
    #[must_use]
    pub fn with(mut self, field: OxmField, value: u128) -> Self {
        self.0.push(Oxm::exact(field, value));
        self
    }

    /// This match and one more masked field.
    #[must_use]
    pub fn with_masked(mut self, field: OxmField, value: u128, mask: u128) -> Self {
        self.0.push(Oxm::masked(field, value, mask));
        self
    }

    /// Whether a switch may take this match as it stands.
    ///
    /// Prerequisites may come in any place of the list; the specification's order is the sender's duty, and no rule
    /// reads differently without it.
    ///
    /// # Errors
    /// The first of: unknown field, duplicate, mask not allowed, value or mask too wide, value bits outside the mask,
    /// prerequisite missing.
    pub fn check(&self) -> Result<(), Fault> {
        self.check_fields(|field| field == OxmField::Fcf || !OxmField::STEERING.contains(&field))?;
        self.check_ends()
    }

    /// The tables know the ends of tunnels by numbers: which of them is all that can be asked, and of both families one at most.
    fn check_ends(&self) -> Result<(), Fault> {
        for oxm in &self.0 {
            let (field, value, mask) = known(oxm)?;
            if field.is_end() && mask.is_some() {
                let what = "a tunnel address under a mask: tables match these whole";
                return Err(Fault::new(ErrorCode::BadMatchBadNwAddrMask, what));
            }
            if field.is_end() && is_no_end(field, value) {
                let what =
                    "no tunnel is tun_src=0.0.0.0 or tun_dst=0.0.0.0, also where it goes over IPv6";
                return Err(Fault::new(ErrorCode::BadMatchBadValue, what));
            }
        }
        for (v4, v6) in ENDS {
            if self.get(v4).is_some() && self.get(v6).is_some() {
                let what = "a tunnel's address twice: one of IPv4 and one of IPv6";
                return Err(Fault::new(ErrorCode::BadMatchDupField, what));
            }
        }
        Ok(())
    }

    /// As [`Match::check`], for the tables that know the fields of which `is_known` says so.
    pub(crate) fn check_fields(&self, is_known: impl Fn(OxmField) -> bool) -> Result<(), Fault> {
        let mut seen = 0u64;
        for oxm in &self.0 {
            let (field, value, mask) = known(oxm)?;
            if !is_known(field) {
                return Err(Fault::new(
                    ErrorCode::BadMatchBadField,
                    "a field that these tables do not have",
                ));
            }
            let bits = claimed(field);
            if seen & bits != 0 {
                return Err(Fault::new(ErrorCode::BadMatchDupField, "a field twice"));
            }
            seen |= bits;
            check_bits(field, value, mask)?;
            if !self.satisfies(field.spec().prerequisite) {
                return Err(Fault::new(
                    ErrorCode::BadMatchBadPrereq,
                    "a field without its prerequisite",
                ));
            }
        }
        Ok(())
    }

    /// Whether the match grants a prerequisite.
    pub fn satisfies(&self, prerequisite: Prerequisite) -> bool {
        let is = |field, value: u128| self.exact(field) == Some(value);
        let ether = |types: &[u16]| types.iter().any(|t| is(OxmField::EthType, u128::from(*t)));
        match prerequisite {
            Prerequisite::None => true,
            Prerequisite::InPort => self.get(OxmField::InPort).is_some(),
            Prerequisite::Vlan => {
                let present = u128::from(VLAN_PRESENT);
                self.get(OxmField::VlanVid).is_some_and(|(value, mask)| value & mask & present != 0)
            }
            Prerequisite::EthType(types) => ether(types),
            Prerequisite::IpProto(proto) => {
                ether(&[0x0800, 0x86dd]) && is(OxmField::IpProto, u128::from(proto))
            }
            Prerequisite::Icmpv4 => ether(&[0x0800]) && is(OxmField::IpProto, 1),
            Prerequisite::Icmpv6 => ether(&[0x86dd]) && is(OxmField::IpProto, 58),
            Prerequisite::NeighbourDiscovery(types) => {
                self.satisfies(Prerequisite::Icmpv6)
                    && types.iter().any(|t| is(OxmField::Icmpv6Type, u128::from(*t)))
            }
        }
    }
}

/// The two names of either end of a tunnel.
const ENDS: [(OxmField, OxmField); 2] =
    [(OxmField::TunIpv4Src, OxmField::TunIpv6Src), (OxmField::TunIpv4Dst, OxmField::TunIpv6Dst)];

/// Whether it is IPv6's way to say that there is no tunnel: IPv4's is the only one here, or a dump could not tell which was meant.
pub(crate) fn is_no_end(field: OxmField, value: u128) -> bool {
    matches!(field, OxmField::TunIpv6Src | OxmField::TunIpv6Dst) && value == 0
}

/// A bit for each field of which `field` has bits: the flow control field is DSCP and ECN.
fn claimed(field: OxmField) -> u64 {
    let bit = |field: OxmField| 1u64 << field as u8;
    match field {
        OxmField::Fcf => bit(field) | bit(OxmField::IpDscp) | bit(OxmField::IpEcn),
        _ => bit(field),
    }
}

fn known(oxm: &Oxm) -> Result<(OxmField, u128, Option<u128>), Fault> {
    match oxm {
        Oxm::Known { field, value, mask } => Ok((*field, *value, *mask)),
        Oxm::Unknown(oxm) if oxm.class == CLASS_BASIC => Err(Fault::new(
            ErrorCode::BadMatchBadField,
            "a field number that OpenFlow does not define",
        )),
        Oxm::Unknown(_) => {
            Err(Fault::new(ErrorCode::BadMatchBadField, "a field class that suiro does not know"))
        }
    }
}

fn check_bits(field: OxmField, value: u128, mask: Option<u128>) -> Result<(), Fault> {
    if value & !field.full() != 0 || bad_vlan(field, value, mask) {
        return Err(Fault::new(ErrorCode::BadMatchBadValue, "a value that the field cannot have"));
    }
    let Some(mask) = mask else { return Ok(()) };
    if !field.spec().maskable || mask & !field.full() != 0 {
        return Err(Fault::new(mask_code(field), "a mask that the field cannot have"));
    }
    if value & !mask != 0 {
        return Err(Fault::new(ErrorCode::BadMatchBadWildcards, "value bits outside the mask"));
    }
    Ok(())
}

/// An exact VLAN id without the present bit says "untagged" only as 0 (§7.2.3.7, table 13).
fn bad_vlan(field: OxmField, value: u128, mask: Option<u128>) -> bool {
    field == OxmField::VlanVid
        && mask.is_none()
        && value != 0
        && value & u128::from(VLAN_PRESENT) == 0
}

/// Addresses have mask errors of their own (§7.4.4.5: "unsupported datalink/network address mask").
fn mask_code(field: OxmField) -> ErrorCode {
    match field.spec().format {
        Format::Mac => ErrorCode::BadMatchBadDlAddrMask,
        Format::Ipv4 | Format::Ipv6 => ErrorCode::BadMatchBadNwAddrMask,
        _ => ErrorCode::BadMatchBadMask,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oxm::UnknownOxm;

    fn code(fields: Match) -> Option<ErrorCode> {
        fields.check().err().map(|fault| fault.code)
    }

    #[test]
    fn every_field_needs_exactly_its_prerequisite() {
        for &field in OxmField::ALL {
            let alone = code(Match::default().with(field, 0));
            let expected = match field.spec().prerequisite {
                Prerequisite::None => None,
                _ => Some(ErrorCode::BadMatchBadPrereq),
            };
            assert_eq!(alone, expected, "{field:?}");
        }
    }

    #[test]
    fn prerequisites_are_met_wherever_they_stand() {
        let nd = Match::default()
            .with(OxmField::Ipv6NdSll, 1)
            .with(OxmField::Icmpv6Type, 135)
            .with(OxmField::IpProto, 58)
            .with(OxmField::EthType, 0x86dd);
        assert_eq!(code(nd.clone()), None);
        assert_eq!(code(nd.with(OxmField::Ipv6NdTll, 1)), Some(ErrorCode::BadMatchBadPrereq));
        let tcp = Match::default().with(OxmField::EthType, 0x86dd).with(OxmField::IpProto, 6);
        assert_eq!(code(tcp.with(OxmField::TcpDst, 80)), None);
    }

    #[test]
    fn a_vlan_priority_needs_a_tag() {
        let none = Match::default().with(OxmField::VlanVid, 0);
        assert_eq!(code(none.with(OxmField::VlanPcp, 1)), Some(ErrorCode::BadMatchBadPrereq));
        let any = Match::default().with_masked(OxmField::VlanVid, 0x1000, 0x1000);
        assert_eq!(code(any.with(OxmField::VlanPcp, 1)), None);
    }

    #[test]
    fn a_field_twice_is_a_duplicate() {
        let twice = Match::default().with(OxmField::InPort, 1).with(OxmField::InPort, 1);
        assert_eq!(code(twice), Some(ErrorCode::BadMatchDupField));
    }

    #[test]
    fn the_flow_control_field_and_its_parts_exclude_each_other() {
        let ip = Match::default().with(OxmField::EthType, 0x0800);
        let fcf = ip.with_masked(OxmField::Fcf, 1, 1);
        assert_eq!(code(fcf.clone()), None);
        assert_eq!(code(fcf.clone().with(OxmField::IpEcn, 1)), Some(ErrorCode::BadMatchDupField));
        assert_eq!(code(fcf.with(OxmField::VmId, 1)), Some(ErrorCode::BadMatchBadField));
    }

    #[test]
    fn masks_are_judged_by_the_table() {
        for &field in OxmField::ALL {
            let mut fields = prerequisites(field);
            fields.0.push(Oxm::Known { field, value: 0, mask: Some(0) });
            let expected = (!field.spec().maskable).then(|| mask_code(field));
            assert_eq!(code(fields), expected, "{field:?}");
        }
    }

    #[test]
    fn a_tunnels_address_is_matched_whole_and_once() {
        let exact = |field| Match::default().with(field, 1);
        for &field in OxmField::ENDS {
            assert_eq!(code(exact(field)), None);
            let masked = Match::default().with_masked(field, 0, 1);
            assert_eq!(code(masked), Some(ErrorCode::BadMatchBadNwAddrMask));
        }
        let both = exact(OxmField::TunIpv6Src).with(OxmField::TunIpv4Src, 1);
        assert_eq!(code(both), Some(ErrorCode::BadMatchDupField));
        assert_eq!(code(exact(OxmField::TunIpv4Src).with(OxmField::TunIpv6Dst, 1)), None);
        let none = |field| code(Match::default().with(field, 0));
        assert_eq!(none(OxmField::TunIpv4Src), None);
        assert_eq!(none(OxmField::TunIpv6Dst), Some(ErrorCode::BadMatchBadValue));
    }

    #[test]
    fn values_and_masks_stay_inside_the_field() {
        let wide = |value, mask| Match(vec![Oxm::Known { field: OxmField::VlanVid, value, mask }]);
        assert_eq!(code(wide(0x2000, None)), Some(ErrorCode::BadMatchBadValue));
        assert_eq!(code(wide(0x0005, None)), Some(ErrorCode::BadMatchBadValue));
        assert_eq!(code(wide(0x1000, Some(0x3000))), Some(ErrorCode::BadMatchBadMask));
        assert_eq!(code(wide(0x1001, Some(0x1000))), Some(ErrorCode::BadMatchBadWildcards));
    }

    #[test]
    fn unknown_fields_are_refused_by_name_not_dropped() {
        let unknown = |class| {
            Match(vec![Oxm::Unknown(UnknownOxm {
                class,
                number: 77,
                masked: false,
                body: vec![0],
            })])
        };
        assert_eq!(code(unknown(CLASS_BASIC)), Some(ErrorCode::BadMatchBadField));
        assert_eq!(code(unknown(1)), Some(ErrorCode::BadMatchBadField));
    }

    fn prerequisites(field: OxmField) -> Match {
        let ip = |ether, proto| {
            Match::default().with(OxmField::EthType, ether).with(OxmField::IpProto, proto)
        };
        match field.spec().prerequisite {
            Prerequisite::None => Match::default(),
            Prerequisite::InPort => Match::default().with(OxmField::InPort, 1),
            Prerequisite::Vlan => Match::default().with(OxmField::VlanVid, 0x1001),
            Prerequisite::EthType(types) => {
                Match::default().with(OxmField::EthType, types[0].into())
            }
            Prerequisite::IpProto(proto) => ip(0x0800, proto.into()),
            Prerequisite::Icmpv4 => ip(0x0800, 1),
            Prerequisite::Icmpv6 => ip(0x86dd, 58),
            Prerequisite::NeighbourDiscovery(types) => {
                ip(0x86dd, 58).with(OxmField::Icmpv6Type, types[0].into())
            }
        }
    }
}
