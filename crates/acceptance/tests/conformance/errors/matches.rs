//! `OFPET_BAD_MATCH`: of entries and of statistics requests.

use super::{PERMITTED, Row, entry, never, refuse, refuse_bytes, sent, with_match};
use openflow::{
    ErrorCode as Code, FlowStatsRequest, Match, Message, MultipartRequest, Oxm, OxmField, Part,
};

/// Whoever has this match.
fn with(fields: Match) -> [Message; 2] {
    let request = FlowStatsRequest { fields: fields.clone(), ..Default::default() };
    [
        Message::FlowMod(entry(fields, vec![])),
        Message::MultipartRequest(Part::last(MultipartRequest::Flow(request))),
    ]
}

fn masked(fields: Match, field: OxmField, value: u128, mask: u128) -> Match {
    let mut fields = fields;
    fields.0.push(Oxm::Known { field, value, mask: Some(mask) });
    fields
}

fn neighbour_discovery() -> Match {
    Match::default()
        .with(OxmField::EthType, 0x86dd)
        .with(OxmField::IpProto, 58)
        .with(OxmField::Icmpv6Type, 135)
}

/// The rows.
pub fn rows() -> Vec<Row> {
    vec![
        sent(Code::BadMatchBadType, "a match that is not made of OXM fields", |bench, code| {
            refuse_bytes(bench, code, [with_match(&[0, 0, 0, 4])]);
        }),
        sent(Code::BadMatchBadLen, "a match or field of the wrong length", |bench, code| {
            let short = with_match(&[0, 1, 0, 3]);
            let port_of_one_byte = with_match(&[0, 1, 0, 9, 0x80, 0, 0, 1, 7]);
            refuse_bytes(bench, code, [short, port_of_one_byte]);
        }),
        never(Code::BadMatchBadTag, "every tag that OpenFlow 1.3 names can be matched"),
        sent(
            Code::BadMatchBadDlAddrMask,
            "a mask on an Ethernet address that has none",
            |bench, code| {
                refuse(bench, code, with(masked(neighbour_discovery(), OxmField::Ipv6NdSll, 0, 1)));
            },
        ),
        sent(
            Code::BadMatchBadNwAddrMask,
            "a mask on an IP address that has none, tunnel addresses among them",
            |bench, code| {
                refuse(
                    bench,
                    code,
                    with(masked(neighbour_discovery(), OxmField::Ipv6NdTarget, 0, 1)),
                );
                for &end in OxmField::ENDS {
                    refuse(bench, code, with(masked(Match::default(), end, 0, 1)));
                }
            },
        ),
        sent(Code::BadMatchBadWildcards, "a value with bits outside its mask", |bench, code| {
            refuse(bench, code, with(masked(Match::default(), OxmField::EthDst, 3, 1)));
        }),
        sent(
            Code::BadMatchBadField,
            "a field or field class that suiro does not know",
            |bench, code| {
                let number = with_match(&[0, 1, 0, 9, 0x80, 0, 99 << 1, 1, 7]);
                let class = with_match(&[0, 1, 0, 9, 0x12, 0x34, 0, 1, 7]);
                refuse_bytes(bench, code, [number, class]);
            },
        ),
        sent(Code::BadMatchBadValue, "a value that the field cannot have", |bench, code| {
            let with_value = |field, value| {
                let mut fields = Match::default().with(OxmField::EthType, 0x0800);
                fields.0.push(Oxm::Known { field, value, mask: None });
                fields
            };
            for (field, value) in [
                (OxmField::IpDscp, 64),
                (OxmField::VlanVid, 0x2000),
                (OxmField::VlanVid, 5),
                (OxmField::TunIpv6Src, 0),
            ] {
                refuse(bench, code, with(with_value(field, value)));
            }
        }),
        sent(Code::BadMatchBadMask, "a mask on a field that has none", |bench, code| {
            refuse(bench, code, with(masked(Match::default(), OxmField::InPort, 0, 1)));
            refuse(bench, code, with(masked(Match::default(), OxmField::EthType, 0, 1)));
        }),
        sent(Code::BadMatchBadPrereq, "a field without the field that it needs", |bench, code| {
            for field in [
                OxmField::Ipv4Dst,
                OxmField::TcpDst,
                OxmField::VlanPcp,
                OxmField::InPhyPort,
                OxmField::MplsLabel,
            ] {
                refuse(bench, code, with(Match::default().with(field, 0)));
            }
        }),
        sent(
            Code::BadMatchDupField,
            "a field twice, or a tunnel's address of both families",
            |bench, code| {
                refuse(
                    bench,
                    code,
                    with(Match::default().with(OxmField::InPort, 1).with(OxmField::InPort, 2)),
                );
                let ends = Match::default().with(OxmField::TunIpv4Src, 1);
                refuse(bench, code, with(ends.with(OxmField::TunIpv6Src, 1)));
            },
        ),
        never(Code::BadMatchEperm, PERMITTED),
    ]
}
