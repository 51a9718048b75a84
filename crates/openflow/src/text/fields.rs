//! Matches: keywords to fields.
//!
//! Some keywords mean different fields under different protocols (`nw_src`, `tp_dst`, `icmp_type`), so the Ethernet type
//! and the IP protocol are settled first, wherever in the text they stand.

use super::error::TextError;
use super::ports::{Resolve, port};
use super::scan::{Item, Span};
use super::{value, vlan};
use crate::matching::Match;
use crate::oxm::{Oxm, OxmField, Prerequisite, VLAN_PRESENT};

/// Protocols by one word: name, Ethernet type, IP protocol.
const SHORTHANDS: &[(&str, u16, Option<u8>)] = &[
    ("ip", 0x0800, None),
    ("ipv6", 0x86dd, None),
    ("arp", 0x0806, None),
    ("rarp", 0x8035, None),
    ("mpls", 0x8847, None),
    ("mplsm", 0x8848, None),
    ("icmp", 0x0800, Some(1)),
    ("tcp", 0x0800, Some(6)),
    ("udp", 0x0800, Some(17)),
    ("sctp", 0x0800, Some(132)),
    ("icmp6", 0x86dd, Some(58)),
    ("tcp6", 0x86dd, Some(6)),
    ("udp6", 0x86dd, Some(17)),
    ("sctp6", 0x86dd, Some(132)),
];

/// The shorthand for an Ethernet type and IP protocol.
pub(super) fn shorthand(ether: u128, proto: Option<u128>) -> Option<&'static str> {
    let fits = |(_, e, p): &&(&str, u16, Option<u8>)| {
        u128::from(*e) == ether && p.map(u128::from) == proto
    };
    SHORTHANDS.iter().find(fits).map(|(name, ..)| *name)
}

/// Further names of fields, beside each field's own.
const ALIASES: &[(&str, OxmField)] = &[
    ("dl_src", OxmField::EthSrc),
    ("dl_dst", OxmField::EthDst),
    ("dl_type", OxmField::EthType),
    ("dl_vlan_pcp", OxmField::VlanPcp),
    ("nw_src", OxmField::Ipv4Src),
    ("nw_dst", OxmField::Ipv4Dst),
    ("ip_proto", OxmField::IpProto),
    ("ip_ecn", OxmField::IpEcn),
    ("tunnel_id", OxmField::TunnelId),
    ("icmpv4_type", OxmField::Icmpv4Type),
    ("icmpv4_code", OxmField::Icmpv4Code),
    ("ipv6_flabel", OxmField::Ipv6Flabel),
    ("tun_ipv4_src", OxmField::TunIpv4Src),
    ("tun_ipv4_dst", OxmField::TunIpv4Dst),
    ("nw_frag", OxmField::IpFrag),
];

/// The Ethernet type and IP protocol that decide what a keyword means.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Context {
    ether: Option<u16>,
    proto: Option<u8>,
}

impl Context {
    /// What a finished match says.
    pub(super) fn of(fields: &Match) -> Self {
        let ether = fields.exact(OxmField::EthType).map(|v| v as u16);
        Self { ether, proto: fields.exact(OxmField::IpProto).map(|v| v as u8) }
    }

    /// What the items say, wherever they stand; nonsense is reported when it is read as a field.
    fn of_items(items: &[Item<'_>]) -> Self {
        let mut context = Self::default();
        for item in items {
            let number = value::integer(item.value.text);
            if let Some((_, ether, proto)) = SHORTHANDS.iter().find(|(name, ..)| item.is(name)) {
                context.ether = Some(*ether);
                context.proto = proto.or(context.proto);
            } else if item.is("dl_type") || item.is("eth_type") {
                context.ether = number.and_then(|n| u16::try_from(n).ok());
            } else if item.is("nw_proto") || item.is("ip_proto") {
                context.proto = number.and_then(|n| u8::try_from(n).ok());
            }
        }
        context
    }

    /// The field that `name` means here.
    pub(super) fn field(self, name: &str) -> Option<OxmField> {
        let named = OxmField::every().find(|f| f.spec().name.eq_ignore_ascii_case(name));
        let alias = || {
            ALIASES
                .iter()
                .find(|(alias, _)| alias.eq_ignore_ascii_case(name))
                .map(|(_, field)| *field)
        };
        named.or_else(alias).map(|field| self.specialise(field)).or_else(|| self.transport(name))
    }

    /// The field that stands for `field` under this protocol.
    fn specialise(self, field: OxmField) -> OxmField {
        match (field, self.ether) {
            (OxmField::Ipv4Src, Some(0x0806 | 0x8035)) => OxmField::ArpSpa,
            (OxmField::Ipv4Dst, Some(0x0806 | 0x8035)) => OxmField::ArpTpa,
            (OxmField::IpProto, Some(0x0806 | 0x8035)) => OxmField::ArpOp,
            (OxmField::Icmpv4Type, Some(0x86dd)) => OxmField::Icmpv6Type,
            (OxmField::Icmpv4Code, Some(0x86dd)) => OxmField::Icmpv6Code,
            _ => field,
        }
    }

    /// `tp_src` and `tp_dst`.
    fn transport(self, name: &str) -> Option<OxmField> {
        let source = match () {
            () if name.eq_ignore_ascii_case("tp_src") => true,
            () if name.eq_ignore_ascii_case("tp_dst") => false,
            () => return None,
        };
        match (self.proto?, source) {
            (6, true) => Some(OxmField::TcpSrc),
            (6, false) => Some(OxmField::TcpDst),
            (17, true) => Some(OxmField::UdpSrc),
            (17, false) => Some(OxmField::UdpDst),
            (132, true) => Some(OxmField::SctpSrc),
            (132, false) => Some(OxmField::SctpDst),
            (1, true) => Some(OxmField::Icmpv4Type),
            (1, false) => Some(OxmField::Icmpv4Code),
            (58, true) => Some(OxmField::Icmpv6Type),
            (58, false) => Some(OxmField::Icmpv6Code),
            _ => None,
        }
    }
}

/// A match from its items, which are all match keywords.
pub(super) fn parse_match(items: &[Item<'_>], resolve: Resolve<'_>) -> Result<Match, TextError> {
    let context = Context::of_items(items);
    let mut found: Vec<(Oxm, Span<'_>)> = Vec::new();
    for item in items {
        for oxm in parse_item(item, context, resolve)? {
            add(&mut found, oxm, item.whole)?;
        }
    }
    imply_vlan(&mut found);
    found.sort_by_key(|(oxm, _)| oxm.field());
    let (fields, words): (Vec<Oxm>, Vec<Span<'_>>) = found.into_iter().unzip();
    let fields = Match(fields);
    check(&fields, &words)?;
    Ok(fields)
}

/// Adds a field once; the same value again, as in `tcp,dl_type=0x0800`, says nothing new.
fn add<'a>(found: &mut Vec<(Oxm, Span<'a>)>, oxm: Oxm, word: Span<'a>) -> Result<(), TextError> {
    if matches!(oxm, Oxm::Known { mask: Some(0), .. }) {
        return Ok(());
    }
    match found.iter().find(|(other, _)| other.field() == oxm.field()) {
        None => found.push((oxm, word)),
        Some((other, _)) if *other == oxm => {}
        Some(_) => return Err(word.error("a second value for one field", "name each field once")),
    }
    Ok(())
}

/// A priority alone means "any tag with this priority".
fn imply_vlan(found: &mut Vec<(Oxm, Span<'_>)>) {
    let has = |field| found.iter().any(|(oxm, _)| oxm.field() == Some(field));
    let pcp =
        found.iter().find(|(oxm, _)| oxm.field() == Some(OxmField::VlanPcp)).map(|(_, word)| *word);
    if let Some(word) = pcp.filter(|_| !has(OxmField::VlanVid)) {
        let present = u128::from(VLAN_PRESENT);
        found.push((Oxm::masked(OxmField::VlanVid, present, present), word));
    }
}

fn parse_item(
    item: &Item<'_>,
    context: Context,
    resolve: Resolve<'_>,
) -> Result<Vec<Oxm>, TextError> {
    if let Some((_, ether, proto)) = SHORTHANDS.iter().find(|(name, ..)| item.is(name)) {
        item.bare()?;
        let ether = Oxm::exact(OxmField::EthType, u128::from(*ether));
        let proto = proto.map(|proto| Oxm::exact(OxmField::IpProto, u128::from(proto)));
        return Ok(std::iter::once(ether).chain(proto).collect());
    }
    if ["*", "ANY"].iter().any(|any| item.value.text.eq_ignore_ascii_case(any))
        && !item.is("in_port")
    {
        return Ok(Vec::new());
    }
    match item.key.text.to_ascii_lowercase().as_str() {
        "dl_vlan" => Ok(vec![vlan::dl_vlan(item.required()?)?]),
        "vlan_tci" => vlan::vlan_tci(item.required()?),
        "nw_tos" => Ok(vec![nw_tos(item.required()?)?]),
        _ => parse_field(item, context, resolve).map(|oxm| vec![oxm]),
    }
}

/// `nw_tos`: the whole byte, whose DSCP is matched and whose ECN bits must be 0.
pub(super) fn nw_tos(word: Span<'_>) -> Result<Oxm, TextError> {
    let tos = value::number(word, 255)?;
    if tos & 3 != 0 {
        return Err(
            word.error("the two low bits are not DSCP", "give a multiple of 4, and ECN as nw_ecn")
        );
    }
    Ok(Oxm::exact(OxmField::IpDscp, u128::from(tos >> 2)))
}

fn parse_field(item: &Item<'_>, context: Context, resolve: Resolve<'_>) -> Result<Oxm, TextError> {
    let field = context.field(item.key.text).ok_or_else(|| unknown(item))?;
    let word = item.required()?;
    if field == OxmField::InPort {
        return Ok(Oxm::exact(field, u128::from(port(word, resolve)?.0)));
    }
    match value::masked(field, word)? {
        (value, None) => Ok(Oxm::exact(field, value)),
        (value, Some(mask)) => Ok(Oxm::masked(field, value, mask)),
    }
}

fn unknown(item: &Item<'_>) -> TextError {
    if item.is("tp_src") || item.is("tp_dst") {
        return item.whole.error(
            "no protocol says which ports are meant",
            "add tcp, udp, sctp, tcp6, udp6 or sctp6",
        );
    }
    item.whole.error("not a match field of OpenFlow 1.3", instead(item.key.text))
}

/// What does here what a field of Open vSwitch's own does there.
fn instead(name: &str) -> &'static str {
    let begins = |words: &[&str]| words.iter().any(|word| name.starts_with(word));
    match name {
        _ if begins(&["reg", "xreg", "xxreg"]) => {
            "registers there are none: match metadata=VALUE/MASK, which write_metadata sets in an earlier table"
        }
        _ if begins(&["ct_"]) => {
            "suiro keeps no state of connections: have a controller write the rules"
        }
        "conj_id" | "recirc_id" | "pkt_mark" | "actset_output" | "packet_type"
        | "tun_metadata0" => {
            "it is Open vSwitch's own; docs/how-to/coming-from-open-vswitch.md has what there is instead"
        }
        _ => "see ovs-fields(7) for the names",
    }
}

/// Judges each field with the word that named it.
fn check(fields: &Match, words: &[Span<'_>]) -> Result<(), TextError> {
    for (oxm, word) in fields.0.iter().zip(words) {
        let Oxm::Known { field, value, mask } = oxm else { continue };
        let spec = field.spec();
        if mask.is_some() && !spec.maskable {
            return Err(word.error(
                "OpenFlow 1.3 has no mask for this field",
                "give the value without a mask",
            ));
        }
        let present = u128::from(VLAN_PRESENT);
        if *field == OxmField::VlanVid && mask.is_none() && *value != 0 && value & present == 0 {
            return Err(word.error(
                "a VLAN id without the bit 0x1000",
                "add 0x1000 to it, or write dl_vlan=ID",
            ));
        }
        if !fields.satisfies(spec.prerequisite) {
            return Err(word.error("its protocol is not matched", needs(spec.prerequisite)));
        }
    }
    Ok(())
}

/// What to add to a match so that it grants a prerequisite.
pub(super) fn needs(prerequisite: Prerequisite) -> &'static str {
    match prerequisite {
        Prerequisite::None => "remove it",
        Prerequisite::InPort => "add in_port=PORT",
        Prerequisite::Vlan => "add dl_vlan=ID or vlan_tci=0x1000/0x1000",
        Prerequisite::EthType([0x0800]) => "add ip",
        Prerequisite::EthType([0x86dd]) => "add ipv6",
        Prerequisite::EthType([0x0806]) => "add arp",
        Prerequisite::EthType([0x88e7]) => "add dl_type=0x88e7",
        Prerequisite::EthType([0x8847, ..]) => "add mpls or mplsm",
        Prerequisite::EthType(_) => "add ip or ipv6",
        Prerequisite::IpProto(6) => "add tcp or tcp6",
        Prerequisite::IpProto(17) => "add udp or udp6",
        Prerequisite::IpProto(_) => "add sctp or sctp6",
        Prerequisite::Icmpv4 => "add icmp",
        Prerequisite::Icmpv6 => "add icmp6",
        Prerequisite::NeighbourDiscovery([135]) => "add icmp6,icmp_type=135",
        Prerequisite::NeighbourDiscovery([136]) => "add icmp6,icmp_type=136",
        Prerequisite::NeighbourDiscovery(_) => "add icmp6,icmp_type=135 or icmp6,icmp_type=136",
    }
}
