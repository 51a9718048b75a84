//! Answers longer than a message and requests in parts (`OFPMPF_REPLY_MORE`, `OFPMPF_REQ_MORE`; OpenFlow 1.3.5 §7.3.5).

use super::{from_port, refuse};
use crate::harness::{Bench, Suite, entry, output};
use openflow::{
    Action, ErrorCode, FlowMod, FlowStatsRequest, GroupType, Header, Instruction, Match, Message,
    MultipartReply, MultipartRequest, Oxm, OxmField, Part, PortNo, SwitchDesc, TableId,
};

/// Entries whose dump needs several messages of at most 65535 bytes.
const ENTRIES: u64 = 2000;

/// Lengths of the messages of an answer, all of one transaction and all but the last marked "more".
fn lengths(bench: &mut Bench, request: MultipartRequest) -> Vec<usize> {
    let parts = bench.session.ask_parts(&request);
    let version = openflow::Version::V1_3;
    let length = |part: MultipartReply| {
        let message = Message::MultipartReply(Part::last(part));
        Header::peek(&message.encode(version, 0).unwrap()).unwrap().length.into()
    };
    parts.into_iter().map(length).collect()
}

/// The cases.
pub fn cases(suite: &mut Suite) {
    suite.case("multiparts::a_long_flow_dump_comes_in_parts_with_every_entry_once", |bench| {
        for cookie in 1..=ENTRIES {
            let fields = Match::default().with(OxmField::EthSrc, cookie.into());
            let change = FlowMod { cookie, ..entry(1, fields, vec![output(2)]) };
            bench.session.send(&Message::FlowMod(change));
        }
        bench.session.barrier();
        assert_eq!(bench.cookies(), Vec::from_iter(1..=ENTRIES));
        let lengths = lengths(bench, MultipartRequest::Flow(FlowStatsRequest::default()));
        assert!(lengths.len() > 1 && lengths.iter().sum::<usize>() > 65_535, "{lengths:?}");
    });
    suite.case("multiparts::entries_of_the_most_actions_have_a_part_each", |bench| {
        // 512 actions a list are allowed, and a set-field under a mask is the longest: 48 bytes.
        let masked = Oxm::masked(OxmField::Ipv6Src, 4, u128::MAX - 1);
        let list = vec![Action::SetField(masked); 512];
        let fields = Match::default().with(OxmField::EthType, 0x86dd);
        let instructions =
            vec![Instruction::ApplyActions(list.clone()), Instruction::WriteActions(list)];
        for cookie in 1..=3 {
            let priority = 10 - cookie as u16;
            let (fields, instructions) = (fields.clone(), instructions.clone());
            bench.add(&FlowMod { cookie, priority, fields, instructions, ..FlowMod::default() });
        }
        let parts = bench.session.ask_parts(&MultipartRequest::Flow(FlowStatsRequest::default()));
        for part in &parts {
            let MultipartReply::Flow(flows) = part else { panic!("{part:?}") };
            assert_eq!((flows.len(), &flows[0].instructions), (1, &instructions));
        }
        assert_eq!(bench.cookies(), [1, 2, 3]);
        let lengths = lengths(bench, MultipartRequest::Flow(FlowStatsRequest::default()));
        assert_eq!(lengths, [49_248; 3]);
    });
    suite.case("multiparts::table_features_come_in_parts", |bench| {
        let lengths = lengths(bench, MultipartRequest::TableFeatures(vec![]));
        assert!(lengths.len() > 1 && lengths.iter().sum::<usize>() > 65_535, "{lengths:?}");
    });
    suite.case("multiparts::group_descriptions_and_statistics_come_in_parts", |bench| {
        let bucket = || crate::groups::bucket(vec![output(2)]);
        for id in 1..=30 {
            crate::groups::add(bench, id, GroupType::All, (0..200).map(|_| bucket()).collect());
        }
        for request in
            [MultipartRequest::GroupDesc, MultipartRequest::Group(openflow::GroupId::ALL)]
        {
            let kind = request.kind();
            let lengths = lengths(bench, request);
            assert!(lengths.len() > 1, "{kind:?}: {lengths:?}");
        }
    });
    suite.case("multiparts::a_request_without_a_body_may_come_in_parts", |bench| {
        let part = |more| Message::MultipartRequest(Part { more, body: MultipartRequest::Desc });
        bench.session.send_as(77, &part(true));
        bench.session.barrier();
        bench.session.send_as(77, &part(false));
        let answer = bench.session.answer(77);
        let Message::MultipartReply(Part { more: false, body: MultipartReply::Desc(desc) }) =
            answer
        else {
            panic!("{answer:?}")
        };
        assert_ne!(desc, SwitchDesc::default());
    });
    suite.case("multiparts::a_request_that_goes_on_after_its_end_is_refused", |bench| {
        let part = |more| {
            Message::MultipartRequest(Part { more, body: MultipartRequest::PortStats(PortNo(1)) })
        };
        bench.session.send_as(77, &part(true));
        bench.session.send_as(77, &part(false));
        let answer = bench.session.answer(77);
        let Message::Error(error) = answer else { panic!("{answer:?}") };
        assert_eq!(error.kind, openflow::ErrorKind::Known(ErrorCode::BadRequestBadLen));
    });
    suite.case("multiparts::a_dump_of_nothing_is_one_empty_part", |bench| {
        bench.add(&from_port(1, 0, 1));
        let request = FlowStatsRequest { table: TableId(9), ..Default::default() };
        let parts = bench.session.ask_parts(&MultipartRequest::Flow(request));
        assert_eq!(parts, [MultipartReply::Flow(vec![])]);
        let unknown = FlowStatsRequest {
            fields: Match::default().with(OxmField::TcpDst, 80),
            ..Default::default()
        };
        refuse(bench, MultipartRequest::Flow(unknown), ErrorCode::BadMatchBadPrereq);
    });
}
