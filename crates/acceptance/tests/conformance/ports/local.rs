//! The local port (OpenFlow 1.3.5 §4.5, 1.0.0 §5.2.1): an ordinary port in all but its number.

use crate::groups::configure;
use crate::harness::{Answer, Bench, HOST, Node, Session, Suite, entry, output};
use crate::oracle::{Framing, Sample};
use crate::v10::bytes::{Ofp10, flow_mod};
use openflow::{
    Action, FlowMod, Match, Message, MultipartReply, MultipartRequest, OxmField, PortConfig,
    PortNo, PortReason, Version,
};
use serde_json::{Value, json};

/// A case on a switch whose fifth guest is its local port.
fn with_local(
    suite: &mut Suite,
    name: &str,
    test: impl FnOnce(&mut Bench, &Node) + Send + 'static,
) {
    suite.on_node(format!("ports::local::{name}"), |node: &Node| {
        let mut bench = Bench::make(node);
        bench.add_local(node);
        test(&mut bench, node);
        bench.remove(node);
    });
}

fn frame() -> Vec<u8> {
    Framing::Vlan.around(Sample::Ipv4Udp).bytes()
}

fn to(port: PortNo) -> Vec<Action> {
    vec![Action::output(port)]
}

/// Packets that came in by the local port.
fn from_local() -> Match {
    Match::default().with(OxmField::InPort, PortNo::LOCAL.0.into())
}

/// The cases.
pub fn cases(suite: &mut Suite) {
    descriptions(suite);
    packets(suite);
    configuration(suite);
    with_local(suite, "v10_matches_it_and_sends_there", |bench, node| {
        let mut session = Session::open(&node.socket(&bench.switch), Version::V1_0);
        assert_eq!(session.try_bytes(flow_mod(&[], &Ofp10::output(0xfffe))), Answer::Done);
        bench.send(1, &frame()).is_only(HOST, &frame());
        bench.clear();
        session.accept(&Message::FlowMod(FlowMod {
            version: Version::V1_0,
            ..entry(1, from_local(), vec![output(3)])
        }));
        bench.send(HOST, &frame()).is_only(3, &frame());
        let parts = session.ask_parts(&MultipartRequest::PortStats(PortNo::LOCAL));
        let [MultipartReply::PortStats(stats)] = &parts[..] else { panic!("{parts:?}") };
        assert_eq!(stats[0].number, PortNo::LOCAL);
        let Message::FeaturesReply(features) = session.ask(&Message::FeaturesRequest) else {
            panic!("no features")
        };
        assert!(features.ports.iter().any(|port| port.number == PortNo::LOCAL));
    });
}

fn descriptions(suite: &mut Suite) {
    with_local(suite, "is_described_and_counted_by_its_number", |bench, _| {
        let numbers: Vec<PortNo> = bench.ports().iter().map(|port| port.number).collect();
        assert_eq!(numbers, [PortNo(1), PortNo(2), PortNo(3), PortNo(4), PortNo::LOCAL]);
        bench.add(&entry(1, Match::default(), to(PortNo::LOCAL)));
        bench.send(1, &frame()).is_only(HOST, &frame());
        let stats = bench.port_stats(PortNo::LOCAL);
        assert_eq!((stats.len(), stats[0].number), (1, PortNo::LOCAL));
        assert!(stats[0].tx_packets >= 1);
        let all = bench.port_stats(PortNo::ANY);
        assert_eq!(all.iter().map(|stats| stats.number).collect::<Vec<_>>(), numbers);
    });
    with_local(suite, "comes_goes_and_is_told", |bench, node| {
        let ports = format!("/v1/switches/{}/ports", bench.switch);
        let second = json!({ "type": "tap", "name": "other", "number": 0xffff_fffe_u32 });
        let (status, said) = node.try_api("POST", &ports, &second.to_string());
        assert_eq!(status, 409, "{said}");
        for part in ["number LOCAL is already taken by port p5", "a switch has one local port"] {
            assert!(said.contains(part), "{part} is missing: {said}");
        }
        node.api("DELETE", &format!("{ports}/local"), &Value::Null);
        let removed = bench.session.wait(|message| match message {
            Message::PortStatus(news) if news.reason == PortReason::Delete => {
                Some(news.port.number)
            }
            _ => None,
        });
        assert_eq!(removed, PortNo::LOCAL);
        assert_eq!(bench.ports().len(), 4);
    });
}

fn packets(suite: &mut Suite) {
    with_local(suite, "what_the_host_sends_is_matched_by_in_port", |bench, _| {
        bench.add(&entry(1, from_local(), vec![output(2)]));
        bench.send(HOST, &frame()).is_only(2, &frame());
        bench.send(1, &frame()).is_nothing();
        bench.add(&entry(2, from_local(), to(PortNo::CONTROLLER)));
        let packet = bench.send(HOST, &frame()).one_packet_in();
        assert_eq!((packet.fields, packet.data), (from_local(), frame()));
    });
    with_local(suite, "what_goes_there_reaches_the_host", |bench, _| {
        bench.add(&entry(1, Match::default(), to(PortNo::LOCAL)));
        bench.send(1, &frame()).is_only(HOST, &frame());
        bench.send(HOST, &frame()).is_nothing();
        bench.add(&entry(1, Match::default(), to(PortNo::IN_PORT)));
        bench.send(HOST, &frame()).is_only(HOST, &frame());
    });
    with_local(suite, "is_flooded_to_and_floods_as_any_port", |bench, _| {
        for port in [PortNo::FLOOD, PortNo::ALL] {
            bench.add(&entry(1, Match::default(), to(port)));
            bench.send(1, &frame()).is_exactly(&[2, 3, 4, HOST].map(|port| (port, frame())));
            bench.send(HOST, &frame()).is_exactly(&[1, 2, 3, 4].map(|port| (port, frame())));
        }
    });
    with_local(suite, "normal_learns_what_is_behind_it", |bench, _| {
        bench.add(&entry(1, Match::default(), to(PortNo::NORMAL)));
        let there = Framing::Untagged.around(Sample::Ipv4Udp);
        let mut back = there.clone();
        (back.src, back.dst) = (there.dst, there.src);
        let (there, back) = (there.bytes(), back.bytes());
        bench.send(HOST, &there).is_exactly(&[1, 2, 3, 4].map(|port| (port, &there)));
        bench.send(2, &back).is_only(HOST, &back);
        bench.send(HOST, &there).is_only(2, &there);
    });
    with_local(suite, "packet_outs_come_from_it_and_go_there", |bench, _| {
        let frame = frame();
        bench.packet_out(PortNo::CONTROLLER, to(PortNo::LOCAL), &frame).is_only(HOST, &frame);
        bench.packet_out(PortNo::LOCAL, to(PortNo::IN_PORT), &frame).is_only(HOST, &frame);
        let others = [1, 2, 3, 4].map(|port| (port, &frame));
        bench.packet_out(PortNo::LOCAL, to(PortNo::ALL), &frame).is_exactly(&others);
        bench.add(&entry(1, from_local(), vec![output(3)]));
        bench.packet_out(PortNo::LOCAL, to(PortNo::TABLE), &frame).is_only(3, &frame);
    });
}

fn configuration(suite: &mut Suite) {
    with_local(suite, "a_port_mod_configures_it", |bench, _| {
        let number = PortNo::LOCAL.0;
        bench.add(&entry(1, Match::default(), to(PortNo::ALL)));
        bench.shut.insert(HOST);
        configure(bench, number, PortConfig::NO_FWD, PortConfig::NO_FWD);
        assert_eq!(bench.port(number).config, PortConfig::NO_FWD);
        bench.send(1, &frame()).is_exactly(&[2, 3, 4].map(|port| (port, frame())));
        configure(bench, number, PortConfig::empty(), PortConfig::NO_FWD);
        bench.shut.clear();
        bench.send(1, &frame()).is_exactly(&[2, 3, 4, HOST].map(|port| (port, frame())));
    });
}
