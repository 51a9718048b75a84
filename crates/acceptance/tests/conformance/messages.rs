//! Messages (OpenFlow 1.3.5 §7.3 to §7.5): what each does, on frames where frames matter.

mod ports;
mod roles;

use crate::harness::{Bench, Suite, entry, output, plain_frame};
use openflow::{
    Action, AsyncConfig, Capabilities, ErrorCode, FlowMod, FragmentMode, Match, Message, Oxm,
    OxmField, PacketInReason, PortNo, QueueConfig, SwitchConfig, TableId, TableMod,
};

fn frame() -> Vec<u8> {
    plain_frame("message")
}

/// Frames of ports, in order.
fn ports_of(outcome: &crate::harness::Outcome) -> Vec<u32> {
    outcome.frames.iter().map(|(port, _)| *port).collect()
}

/// An IPv4 datagram of UDP with these flags and fragment offset; checksums are the tests' of other cases.
fn ipv4(fragment: u16) -> Vec<u8> {
    let mut frame = frame()[..12].to_vec();
    frame.extend([8, 0, 0x45, 0, 0, 36, 0, 1]);
    frame.extend(fragment.to_be_bytes());
    frame.extend([64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([0x30, 0x39, 0, 7, 0, 16, 0, 0]);
    frame.resize(60, 0);
    frame
}

/// An IPv6 datagram of UDP, behind a fragment header when it is one.
fn ipv6(fragment: Option<u16>) -> Vec<u8> {
    let mut frame = frame()[..12].to_vec();
    let (next, len) = if fragment.is_some() { (44, 24) } else { (17, 16) };
    frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, len, next, 64]);
    frame.extend([0xfd; 32]);
    if let Some(fragment) = fragment {
        frame.extend([17, 0]);
        frame.extend(fragment.to_be_bytes());
        frame.extend([0, 0, 0, 1]);
    }
    frame.extend([0x30, 0x39, 0, 7, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    frame
}

/// The cases.
pub fn cases(suite: &mut Suite) {
    symmetric(suite);
    configuration(suite);
    packet_ins(suite);
    packet_outs(suite);
    order(suite);
    ports::cases(suite);
    roles::cases(suite);
}

fn symmetric(suite: &mut Suite) {
    suite.case("messages::an_echo_repeats_its_bytes", |bench| {
        for data in [vec![], vec![7], vec![9; 60_000]] {
            let answer = bench.session.ask(&Message::EchoRequest(data.clone()));
            assert_eq!(answer, Message::EchoReply(data));
        }
    });
    suite.case("messages::a_second_hello_changes_nothing", |bench| {
        bench.session.accept(&Message::Hello(openflow::Hello::default()));
    });
    suite.case("messages::an_error_from_the_controller_is_taken_note_of", |bench| {
        let error = openflow::ErrorMsg::answer(ErrorCode::BadRequestBadLen, &[0; 8]);
        bench.session.accept(&Message::Error(error));
    });
    suite.case("messages::an_error_repeats_the_first_64_bytes_of_its_request", |bench| {
        let body = openflow::Experimenter { experimenter: 9, exp_type: 8, body: vec![7; 100] };
        let request = Message::Experimenter(body);
        let answer = bench.session.ask(&request);
        let Message::Error(error) = answer else { panic!("{answer:?}") };
        let sent = request.encode(openflow::Version::V1_3, 0).unwrap();
        assert_eq!(error.data.len(), 64);
        assert_eq!((&error.data[..4], &error.data[8..]), (&sent[..4], &sent[8..64]));
    });
}

fn configuration(suite: &mut Suite) {
    suite.case("messages::features_tell_what_the_switch_is", |bench| {
        let answer = bench.session.ask(&Message::FeaturesRequest);
        let Message::FeaturesReply(features) = answer else { panic!("{answer:?}") };
        assert_ne!(features.datapath_id, 0);
        assert_eq!((features.tables, features.auxiliary_id), (254, 0));
        let counters = Capabilities::FLOW_STATS
            | Capabilities::TABLE_STATS
            | Capabilities::PORT_STATS
            | Capabilities::GROUP_STATS;
        assert!(features.capabilities.contains(counters), "{:?}", features.capabilities);
        assert!(!features.capabilities.contains(Capabilities::IP_REASM));
    });
    suite.case("messages::a_configuration_reads_back", |bench| {
        for fragments in [FragmentMode::Drop, FragmentMode::Normal] {
            let config = SwitchConfig { fragments, miss_send_len: 99 };
            bench.session.accept(&Message::SetConfig(config));
            assert_eq!(
                bench.session.ask(&Message::GetConfigRequest),
                Message::GetConfigReply(config)
            );
        }
    });
    suite.case("messages::fragments_are_dropped_when_told_and_only_they", |bench| {
        bench.add(&entry(1, Match::default(), vec![output(2)]));
        // More fragments follow; the last fragment; both with an offset or without.
        let fragments =
            [ipv4(0x2000), ipv4(0x2001), ipv4(0x0001), ipv6(Some(1)), ipv6(Some(9)), ipv6(Some(8))];
        let whole = [ipv4(0), ipv4(0x4000), ipv6(None), frame()];
        assert_eq!(bench.send_all(1, &fragments).frames.len(), fragments.len());
        let drop = SwitchConfig { fragments: FragmentMode::Drop, miss_send_len: u16::MAX };
        bench.session.accept(&Message::SetConfig(drop));
        bench.send_all(1, &fragments).is_nothing();
        let all: Vec<_> = whole.iter().map(|frame| (2, frame)).collect();
        bench.send_all(1, &whole).is_exactly(&all);
    });
    suite.case("messages::a_fragment_after_the_first_has_no_ports", |bench| {
        let ports = Match::default().with(OxmField::EthType, 0x0800).with(OxmField::IpProto, 17);
        bench.add(&entry(2, ports.with(OxmField::UdpDst, 7), vec![output(2)]));
        bench.add(&entry(1, Match::default(), vec![output(3)]));
        bench.send(1, &ipv4(0x2000)).is_only(2, &ipv4(0x2000));
        bench.send(1, &ipv4(0x2001)).is_only(3, &ipv4(0x2001));
    });
    suite.case("messages::a_table_mod_takes_what_1_3_deprecates_and_changes_nothing", |bench| {
        for (table, config) in [(TableId(0), 0), (TableId(253), 3), (TableId::ALL, 1)] {
            bench.session.accept(&Message::TableMod(TableMod { table, config }));
        }
        bench.send(1, &frame()).is_nothing();
    });
    suite.case("messages::queue_configurations_come_for_one_port_and_for_all", |bench| {
        for port in [PortNo(1), PortNo::ANY] {
            let answer = bench.session.ask(&Message::QueueGetConfigRequest(port));
            let Message::QueueGetConfigReply(QueueConfig { port: told, .. }) = answer else {
                panic!("{answer:?}")
            };
            assert_eq!(told, port);
        }
    });
}

fn packet_ins(suite: &mut Suite) {
    let ask = |max_len| Action::Output { port: PortNo::CONTROLLER, max_len };
    suite.case("messages::a_packet_in_has_as_many_bytes_as_its_action_wants", move |bench| {
        let mut long = frame();
        long.resize(1000, 9);
        for (max_len, wanted) in
            [(0, 0), (1, 1), (100, 100), (1000, 1000), (0xffe5, 1000), (0xffff, 1000)]
        {
            bench.add(&entry(5, Match::default(), vec![ask(max_len)]));
            let packet = bench.send(1, &long).one_packet_in();
            assert_eq!(
                (packet.data.as_slice(), packet.total_len),
                (&long[..wanted], 1000),
                "{max_len}"
            );
        }
    });
    suite.case("messages::a_packet_in_shows_the_frame_as_it_is_at_that_point", move |bench| {
        let edit = |value| Action::SetField(Oxm::exact(OxmField::EthDst, value));
        let actions = vec![edit(0x0200_0000_0001), ask(0xffff), edit(0x0200_0000_0002), output(2)];
        bench.add(&FlowMod { cookie: 0xfeed, ..entry(5, Match::default(), actions) });
        let outcome = bench.send(1, &frame());
        assert_eq!((outcome.frames[0].1[5], outcome.frames.len()), (2, 1));
        let [packet] = &outcome.packet_ins[..] else { panic!("{outcome:?}") };
        assert_eq!((packet.data[5], packet.cookie, packet.table), (1, 0xfeed, TableId(0)));
    });
    suite.case("messages::a_packet_in_tells_metadata_and_tunnel_that_are_not_0", move |bench| {
        use openflow::Instruction as Do;
        let tunnel = Action::SetField(Oxm::exact(OxmField::TunnelId, 77));
        let list = vec![
            Do::ApplyActions(vec![tunnel]),
            Do::WriteMetadata { value: 0xbeef, mask: 0xffff },
            Do::GotoTable(TableId(1)),
        ];
        bench.add(&FlowMod { instructions: list, ..entry(5, Match::default(), vec![]) });
        bench.add(&FlowMod { table: TableId(1), ..entry(5, Match::default(), vec![ask(0xffff)]) });
        let packet = bench.send(3, &frame()).one_packet_in();
        let found = [OxmField::InPort, OxmField::Metadata, OxmField::TunnelId]
            .map(|field| packet.fields.exact(field));
        assert_eq!(found, [Some(3), Some(0xbeef), Some(77)]);
    });
    suite.case(
        "messages::a_ttl_that_runs_out_is_told_to_whom_wants_it_with_miss_send_len_bytes",
        |bench| {
            let ip = Match::default().with(OxmField::EthType, 0x0800);
            bench.add(&FlowMod { cookie: 6, ..entry(5, ip, vec![Action::DecNwTtl, output(2)]) });
            let mut dying = ipv4(0);
            dying[22] = 1;
            bench.send(1, &dying).is_nothing();
            let before = bench.session.ask(&Message::GetAsyncRequest);
            let Message::GetAsyncReply(config) = before else { panic!("{before:?}") };
            let all = AsyncConfig { packet_in: [0b111, 0], ..config };
            bench.session.accept(&Message::SetAsync(all));
            let packet = bench.send(1, &dying).one_packet_in();
            assert_eq!((packet.reason, packet.cookie), (PacketInReason::InvalidTtl, 6));
            assert_eq!((packet.data.len(), packet.total_len), (60, 60));
            bench.session.accept(&Message::SetAsync(config));
        },
    );
}

fn packet_outs(suite: &mut Suite) {
    let out = |bench: &mut Bench, in_port, port| {
        bench.packet_out(in_port, vec![Action::output(port)], &frame())
    };
    suite.case("messages::a_packet_out_leaves_by_its_port_alone", move |bench| {
        for port in 1..=4 {
            out(bench, PortNo::CONTROLLER, PortNo(port)).is_only(port, &frame());
        }
        out(bench, PortNo::ANY, PortNo(3)).is_only(3, &frame());
        out(bench, PortNo(3), PortNo(3)).is_nothing();
        out(bench, PortNo::CONTROLLER, PortNo(77)).is_nothing();
    });
    suite.case("messages::a_packet_out_by_in_port_goes_back", move |bench| {
        out(bench, PortNo(3), PortNo::IN_PORT).is_only(3, &frame());
        out(bench, PortNo::CONTROLLER, PortNo::IN_PORT).is_nothing();
    });
    suite.case(
        "messages::a_packet_out_by_all_and_flood_leaves_by_every_port_but_its_own",
        move |bench| {
            for port in [PortNo::ALL, PortNo::FLOOD] {
                assert_eq!(ports_of(&out(bench, PortNo(2), port)), [1, 3, 4]);
                assert_eq!(ports_of(&out(bench, PortNo::CONTROLLER, port)), [1, 2, 3, 4]);
            }
        },
    );
    suite.case("messages::a_packet_out_by_normal_floods_what_is_not_known", move |bench| {
        assert_eq!(ports_of(&out(bench, PortNo(2), PortNo::NORMAL)), [1, 3, 4]);
    });
    suite.case("messages::a_packet_out_by_local_is_dropped_without_a_local_port", move |bench| {
        out(bench, PortNo::CONTROLLER, PortNo::LOCAL).is_nothing();
    });
    suite.case("messages::a_packet_out_to_the_controller_comes_back", move |bench| {
        let packet = out(bench, PortNo(2), PortNo::CONTROLLER).one_packet_in();
        assert_eq!((packet.reason, packet.data), (PacketInReason::Action, frame()));
        assert_eq!(packet.fields.exact(OxmField::InPort), Some(2));
    });
    suite.case("messages::a_packet_out_by_table_goes_through_the_entries", move |bench| {
        let from = |port| Match::default().with(OxmField::InPort, port);
        bench.add(&FlowMod { cookie: 1, ..entry(1, from(2), vec![output(4)]) });
        out(bench, PortNo(2), PortNo::TABLE).is_only(4, &frame());
        assert_eq!(bench.flow(1).packet_count, 1);
        out(bench, PortNo(3), PortNo::TABLE).is_nothing();
        let up = vec![Action::output(PortNo::CONTROLLER)];
        bench.add(&FlowMod { cookie: 2, ..entry(0, Match::default(), up) });
        let packet = out(bench, PortNo::CONTROLLER, PortNo::TABLE).one_packet_in();
        assert_eq!((packet.reason, packet.cookie), (PacketInReason::NoMatch, 2));
    });
    suite.case("messages::a_packet_out_does_its_actions_in_order", move |bench| {
        let edit = Action::SetField(Oxm::exact(OxmField::EthDst, 0x0200_0000_0009));
        let actions = vec![output(1), edit, output(2), Action::PushVlan(0x8100), output(3)];
        let outcome = bench.packet_out(PortNo::CONTROLLER, actions, &frame());
        let mut edited = frame();
        edited[5] = 9;
        let mut tagged = edited.clone();
        tagged.splice(12..12, [0x81, 0, 0, 0]);
        outcome.is_exactly(&[(1, &frame()), (2, &edited), (3, &tagged)]);
    });
    suite.case("messages::a_packet_out_without_actions_is_dropped", move |bench| {
        bench.packet_out(PortNo::CONTROLLER, vec![], &frame()).is_nothing();
    });
}

fn order(suite: &mut Suite) {
    suite.case("messages::after_a_barrier_every_frame_obeys_what_was_before_it", |bench| {
        for round in 0..30 {
            let port = 2 + round % 3;
            bench.session.send(&Message::FlowMod(entry(1, Match::default(), vec![output(port)])));
            bench.session.barrier();
            bench.send(1, &frame()).is_only(port, &frame());
        }
    });
    suite.case("messages::answers_come_in_the_order_of_their_requests", |bench| {
        let requests = [
            Message::EchoRequest(vec![1]),
            Message::BarrierRequest,
            Message::FeaturesRequest,
            Message::BarrierRequest,
            Message::GetConfigRequest,
        ];
        let sent = requests.map(|request| bench.session.send(&request));
        let answered = sent.map(|_| bench.session.read().0);
        assert_eq!(answered, sent);
    });
    suite.case("messages::the_error_of_a_change_comes_before_the_barriers_answer", |bench| {
        let change = FlowMod { table: TableId(254), ..entry(1, Match::default(), vec![]) };
        let refused = bench.session.send(&Message::FlowMod(change));
        let barrier = bench.session.send(&Message::BarrierRequest);
        let (first, error) = bench.session.read();
        assert!(matches!(error, Message::Error(_)), "{error:?}");
        assert_eq!((first, bench.session.read().0), (refused, barrier));
    });
}
