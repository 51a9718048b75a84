//! Every multipart (OpenFlow 1.3.5 §7.3.5): what is asked is what the frames before made it.

mod ask;
mod features;
mod long;
mod tables;

use crate::harness::{Bench, Suite, entry, output, plain_frame};
use openflow::{
    Action, AggregateStats, ErrorCode, Experimenter, FlowMod, FlowStatsRequest, GroupId,
    Instruction, Match, Message, MultipartReply, MultipartRequest, OxmField, Part, PortConfig,
    PortNo, PortState, TableId,
};

/// An entry of this cookie and table that sends what comes in by a port to port 2.
fn from_port(cookie: u64, table: u8, port: u128) -> FlowMod {
    let fields = Match::default().with(OxmField::InPort, port);
    FlowMod { cookie, table: TableId(table), ..entry(cookie as u16, fields, vec![output(2)]) }
}

fn cookies(bench: &mut Bench, request: FlowStatsRequest) -> Vec<u64> {
    let mut cookies: Vec<u64> = bench.flows(request).iter().map(|flow| flow.cookie).collect();
    cookies.sort_unstable();
    cookies
}

fn refuse(bench: &mut Bench, request: MultipartRequest, code: ErrorCode) {
    bench.session.refuse(&Message::MultipartRequest(Part::last(request)), code);
}

/// The cases.
pub fn cases(suite: &mut Suite) {
    descriptions(suite);
    entries(suite);
    counters(suite);
    features::cases(suite);
    tables::cases(suite);
    long::cases(suite);
}

fn descriptions(suite: &mut Suite) {
    suite.case("multiparts::desc_names_maker_software_and_switch", |bench| {
        let parts = bench.session.ask_parts(&MultipartRequest::Desc);
        let [MultipartReply::Desc(desc)] = &parts[..] else { panic!("{parts:?}") };
        assert_eq!(desc.manufacturer.to_string(), "suiro");
        assert!(desc.software.to_string().starts_with("suiro "));
        assert_eq!(desc.datapath.to_string(), bench.switch);
        assert_eq!(desc.serial_number.to_string().len(), 16);
    });
    suite.case("multiparts::port_desc_lists_every_port_by_number", |bench| {
        let ports = bench.ports();
        let numbers: Vec<u32> = ports.iter().map(|port| port.number.0).collect();
        assert_eq!(numbers, [1, 2, 3, 4]);
        for port in &ports {
            assert_eq!((port.config, port.state), (PortConfig::empty(), PortState::LIVE));
            assert_eq!(port.name.to_string(), format!("p{}", port.number.0));
            assert_ne!(port.hw_addr.0, [0; 6]);
        }
    });
    suite.case("multiparts::an_experimenters_request_is_refused_as_unknown", |bench| {
        let body = Experimenter { experimenter: 0x00ab_cdef, exp_type: 1, body: vec![1; 8] };
        let request = MultipartRequest::Experimenter(body);
        refuse(bench, request, ErrorCode::BadRequestBadExperimenter);
    });
}

fn entries(suite: &mut Suite) {
    suite.case("multiparts::flow_selects_by_table_match_and_cookie", |bench| {
        bench.add(&from_port(1, 0, 1));
        bench.add(&from_port(2, 0, 2));
        bench.add(&from_port(3, 5, 1));
        let all = FlowStatsRequest::default();
        assert_eq!(cookies(bench, all.clone()), [1, 2, 3]);
        assert_eq!(cookies(bench, FlowStatsRequest { table: TableId(5), ..all.clone() }), [3]);
        let fields = Match::default().with(OxmField::InPort, 1);
        assert_eq!(cookies(bench, FlowStatsRequest { fields, ..all.clone() }), [1, 3]);
        let odd = FlowStatsRequest { cookie: 1, cookie_mask: 1, ..all.clone() };
        assert_eq!(cookies(bench, odd), [1, 3]);
        let fields = Match::default().with(OxmField::EthSrc, 1);
        assert!(cookies(bench, FlowStatsRequest { fields, ..all }).is_empty());
    });
    suite.case("multiparts::flow_selects_by_out_port_and_out_group", |bench| {
        crate::groups::add(bench, 7, openflow::GroupType::All, vec![]);
        bench.add(&from_port(1, 0, 1));
        let through = vec![Action::Group(GroupId(7))];
        bench.add(&FlowMod { cookie: 2, ..entry(2, Match::default(), through) });
        let by_port = |out_port| FlowStatsRequest { out_port, ..Default::default() };
        assert_eq!(cookies(bench, by_port(PortNo(2))), [1]);
        assert!(cookies(bench, by_port(PortNo(0))).is_empty(), "port 0 is no wildcard");
        let by_group = |out_group| FlowStatsRequest { out_group, ..Default::default() };
        assert_eq!(cookies(bench, by_group(GroupId(7))), [2]);
        assert!(cookies(bench, by_group(GroupId(8))).is_empty());
    });
    suite.case("multiparts::flow_gives_instructions_as_they_were_given", |bench| {
        let list = vec![
            Instruction::ApplyActions(vec![
                Action::PushVlan(0x88a8),
                Action::SetQueue(0),
                output(2),
            ]),
            Instruction::WriteActions(vec![Action::DecNwTtl, Action::output(PortNo::CONTROLLER)]),
            Instruction::WriteMetadata { value: 5, mask: 7 },
            Instruction::GotoTable(TableId(9)),
        ];
        let fields = Match::default().with(OxmField::EthType, 0x0800).with_masked(
            OxmField::Ipv4Dst,
            0x0a00_0000,
            0xff00_0000,
        );
        let change = FlowMod { cookie: 1, ..entry(1, fields.clone(), vec![]) };
        bench.add(&FlowMod { instructions: list.clone(), ..change });
        let flow = bench.flow(1);
        assert_eq!((flow.fields, flow.instructions), (fields, list));
    });
    suite.case("multiparts::aggregate_sums_what_it_selects", |bench| {
        bench.add(&from_port(1, 0, 1));
        bench.add(&from_port(2, 0, 3));
        bench.add(&from_port(3, 5, 1));
        for (port, frames) in [(1, 3), (3, 2)] {
            bench.send_all(port, &vec![plain_frame("sum"); frames]);
        }
        let odd = FlowStatsRequest {
            cookie: 1,
            cookie_mask: 0xffff_ffff_0000_0001,
            ..Default::default()
        };
        let sums = AggregateStats { packet_count: 3, byte_count: 180, flow_count: 2 };
        assert_eq!(bench.aggregate(odd), sums);
        let nothing = FlowStatsRequest { table: TableId(77), ..Default::default() };
        assert_eq!(bench.aggregate(nothing), AggregateStats::default());
    });
    suite.case("multiparts::a_table_that_is_not_there_is_refused", |bench| {
        let request = FlowStatsRequest { table: TableId(254), ..Default::default() };
        for request in
            [MultipartRequest::Flow(request.clone()), MultipartRequest::Aggregate(request)]
        {
            refuse(bench, request, ErrorCode::BadRequestBadTableId);
        }
    });
}

fn counters(suite: &mut Suite) {
    suite.fresh("multiparts::table_counts_entries_lookups_and_matches_exactly", |bench| {
        let goto = vec![Instruction::GotoTable(TableId(3))];
        bench.add(&FlowMod { instructions: goto, ..from_port(1, 0, 1) });
        bench.add(&from_port(2, 3, 4));
        bench.send_all(1, &vec![plain_frame("table"); 5]);
        let tables = bench.tables();
        assert_eq!(tables.len(), 254);
        let facts = |table: usize| {
            let found = tables[table];
            (found.table.0 as usize, found.active, found.lookups, found.matches)
        };
        // Five frames and the marker, and the marker's entry.
        assert_eq!(facts(0), (0, 2, 6, 6));
        assert_eq!(facts(3), (3, 1, 5, 0));
        assert_eq!(facts(4), (4, 0, 0, 0));
    });
    suite.fresh("multiparts::port_stats_count_frames_and_bytes_both_ways", |bench| {
        bench.add(&from_port(1, 0, 1));
        bench.send_all(1, &vec![plain_frame("port"); 5]);
        // The marker came in by port 1 and went out everywhere.
        let stats = bench.port_stats(PortNo::ANY);
        let facts: Vec<_> =
            stats.iter().map(|port| (port.number.0, port.rx_packets, port.tx_packets)).collect();
        assert_eq!(facts, [(1, 6, 1), (2, 0, 6), (3, 0, 1), (4, 0, 1)]);
        let [port]: [openflow::PortStats; 1] = bench.port_stats(PortNo(2)).try_into().unwrap();
        assert_eq!((port.rx_bytes, port.tx_bytes, port.tx_dropped, port.rx_errors), (0, 360, 0, 0));
    });
    suite.case("multiparts::port_stats_of_an_absent_port_are_refused", |bench| {
        for number in [PortNo(77), PortNo(0), PortNo::ALL] {
            refuse(bench, MultipartRequest::PortStats(number), ErrorCode::BadRequestBadPort);
        }
    });
    suite.case("multiparts::queue_stats_are_of_queues_that_are_there", |bench| {
        let all = MultipartRequest::Queue { port: PortNo::ANY, queue: openflow::ALL_QUEUES };
        let parts = bench.session.ask_parts(&all);
        assert!(matches!(parts[..], [MultipartReply::Queue(_)]), "{parts:?}");
        let absent = |port, queue| MultipartRequest::Queue { port, queue };
        refuse(bench, absent(PortNo(77), 0), ErrorCode::QueueOpFailedBadPort);
        refuse(bench, absent(PortNo(1), 4242), ErrorCode::QueueOpFailedBadQueue);
    });
}
