//! Fragments in each mode of the switch's configuration (§7.3.2), and what edits do to them.

use crate::harness::{Bench, Suite, entry, output};
use crate::oracle::{Frame, Framing, Payload, Sample, Transport};
use openflow::{Action, ErrorCode, FragmentMode, Match, Message, Oxm, OxmField, SwitchConfig};

/// Which part of a datagram.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    First,
    Later,
    Whole,
}

const PARTS: [(Part, &str); 3] =
    [(Part::First, "first"), (Part::Later, "later"), (Part::Whole, "whole")];

/// The cases.
pub fn cases(suite: &mut Suite) {
    for sample in Sample::IP {
        for framing in Framing::ALL {
            for (part, name) in PARTS {
                let frame = cut(framing.around(sample), part);
                let case = |what: &str| {
                    format!("fragments::{what}::{name}::{}::{}", sample.name(), framing.name())
                };
                let of = frame.clone();
                suite.case(case("normal_mode_passes"), move |bench| {
                    configure(bench, FragmentMode::Normal);
                    bench.add(&entry(1, Match::default(), vec![output(2)]));
                    bench.send(1, &of.bytes()).is_only(2, &of.bytes());
                });
                let of = frame.clone();
                suite.case(case("drop_mode_drops"), move |bench| dropped(bench, part, &of));
                if frame.get(OxmField::IpProto).is_none() {
                    continue; // below shims and an I-TAG nobody looks
                }
                let of = frame.clone();
                suite.case(case("ports_are_the_first_parts"), move |bench| ports(bench, part, &of));
                suite.case(case("edits_keep_checksums"), move |bench| edits(bench, part, &frame));
            }
        }
    }
    suite.case("fragments::reassembly_is_refused", |bench| {
        let wanted = SwitchConfig { fragments: FragmentMode::Reassemble, miss_send_len: 128 };
        let code = ErrorCode::SwitchConfigFailedBadFlags;
        bench.session.refuse(&Message::SetConfig(wanted), code);
    });
    suite.case("fragments::the_mode_reads_back", |bench| {
        for mode in [FragmentMode::Drop, FragmentMode::Normal] {
            let config = configure(bench, mode);
            let reply = bench.session.ask(&Message::GetConfigRequest);
            assert_eq!(reply, Message::GetConfigReply(config));
        }
    });
}

fn configure(bench: &mut Bench, fragments: FragmentMode) -> SwitchConfig {
    let config = SwitchConfig { fragments, miss_send_len: u16::MAX };
    bench.session.accept(&Message::SetConfig(config));
    config
}

/// A part of a datagram that begins as the sample does, customers' frames included.
fn cut(mut frame: Frame, part: Part) -> Frame {
    match &mut frame.payload {
        Payload::Ip(ip) => match part {
            Part::First => ip.fragment = Some((0, true)),
            Part::Later => {
                ip.fragment = Some((185, false));
                ip.transport = Transport::Rest(ip.transport.proto());
            }
            Part::Whole => {}
        },
        Payload::Pbb(pbb) => *pbb.customer = cut((*pbb.customer).clone(), part),
        Payload::Arp(_) => {}
    }
    frame
}

/// Whatever its headers, a fragment that OpenFlow sees as IP is dropped.
fn dropped(bench: &mut Bench, part: Part, frame: &Frame) {
    configure(bench, FragmentMode::Drop);
    bench.add(&entry(1, Match::default(), vec![output(2)]));
    let outcome = bench.send(1, &frame.bytes());
    if part != Part::Whole && frame.get(OxmField::IpProto).is_some() {
        outcome.is_nothing();
    } else {
        outcome.is_only(2, &frame.bytes());
    }
}

/// A later fragment has no ports: only what does not name them selects it.
fn ports(bench: &mut Bench, part: Part, frame: &Frame) {
    let ip = Match::default()
        .with(OxmField::EthType, frame.eth_type().into())
        .with(OxmField::IpProto, 17);
    bench.add(&entry(1, ip.clone(), vec![output(3)]));
    bench.add(&entry(2, ip.with(OxmField::UdpDst, 53), vec![output(2)]));
    let port = if part == Part::Later { 3 } else { 2 };
    bench.send(1, &frame.bytes()).is_only(port, &frame.bytes());
}

/// Addresses change in every part, the transport's checksum in the part that has it, ports in no later part.
fn edits(bench: &mut Bench, part: Part, frame: &Frame) {
    let source = if frame.eth_type() == 0x0800 { OxmField::Ipv4Src } else { OxmField::Ipv6Src };
    let fields = Match::default()
        .with(OxmField::EthType, frame.eth_type().into())
        .with(OxmField::IpProto, 17);
    let set = |field, value| Action::SetField(Oxm::exact(field, value));
    let actions = vec![set(source, 0x0b16_212c), set(OxmField::UdpDst, 5353), output(2)];
    bench.add(&entry(1, fields, actions));
    let mut wanted = frame.with(source, 0x0b16_212c);
    if part != Part::Later {
        wanted = wanted.with(OxmField::UdpDst, 5353);
    }
    bench.send(1, &frame.bytes()).is_only(2, &wanted.bytes());
}
