//! Long multipart replies are cut into messages, and nothing else is.

use openflow::{
    Action, Bucket, EncodeError, ErrorCode, FlowModFlags, FlowStats, GroupDesc, GroupId, GroupMod,
    GroupModCommand, GroupType, Header, Match, Message, MultipartKind, MultipartReply, PortNo,
    TableId, Version, Wording, encode_reply,
};

fn flow(priority: u16) -> FlowStats {
    FlowStats {
        wording: Wording::default(),
        table: TableId(0),
        duration_s: 0,
        duration_ns: 0,
        priority,
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        flags: FlowModFlags::empty(),
        cookie: 0,
        packet_count: 0,
        byte_count: 0,
        fields: Match::default(),
        instructions: Vec::new(),
    }
}

/// Every flow of the messages, and the "more" flag of each message.
fn read(messages: &[Vec<u8>]) -> (Vec<FlowStats>, Vec<bool>) {
    let mut flows = Vec::new();
    let mut more = Vec::new();
    for message in messages {
        match Message::decode(message) {
            Ok((Header { xid: 5, .. }, Message::MultipartReply(part))) => {
                more.push(part.more);
                let MultipartReply::Flow(list) = part.body else { panic!("another kind") };
                flows.extend(list);
            }
            other => panic!("{other:?}"),
        }
    }
    (flows, more)
}

#[test]
fn ten_thousand_flows_arrive_in_order_and_only_the_last_message_ends_them() {
    let flows: Vec<FlowStats> = (0..10_000).map(flow).collect();
    let messages =
        encode_reply(Version::V1_3, 5, &MultipartReply::Flow(flows.clone()), false).unwrap();
    assert_eq!(messages.len(), (10_000 * 56usize).div_ceil(65_519 / 56 * 56));
    let (read_flows, more) = read(&messages);
    assert_eq!(read_flows, flows);
    assert_eq!(more.iter().filter(|more| !**more).count(), 1);
    assert_eq!(more.last(), Some(&false));
}

#[test]
fn a_batch_of_a_longer_dump_never_ends_it() {
    let messages =
        encode_reply(Version::V1_3, 5, &MultipartReply::Flow(vec![flow(1)]), true).unwrap();
    assert_eq!(read(&messages).1, [true]);
}

#[test]
fn an_empty_reply_is_one_message() {
    let messages = encode_reply(Version::V1_3, 5, &MultipartReply::Flow(vec![]), false).unwrap();
    assert_eq!(messages, [[4, 19, 0, 16, 0, 0, 0, 5, 0, 1, 0, 0, 0, 0, 0, 0]]);
}

#[test]
fn a_group_is_taken_exactly_if_its_description_fits_a_message() {
    let group = |spare_actions: usize| {
        let bucket = |actions| Bucket {
            weight: 0,
            watch_port: PortNo::ANY,
            watch_group: GroupId::ANY,
            actions,
        };
        let mut buckets = vec![bucket(vec![Action::output(PortNo(2)); 3]); 1023];
        buckets.push(bucket(vec![Action::PopVlan; 2 + spare_actions]));
        (GroupType::All, GroupId(1), buckets)
    };
    for (spare_actions, fits) in [(0, true), (1, false)] {
        let (kind, id, buckets) = group(spare_actions);
        let command = GroupModCommand::Add;
        let change = GroupMod { command, kind, id, buckets: buckets.clone() };
        let bytes = Message::GroupMod(change.clone()).encode(Version::V1_3, 1).unwrap();
        assert_eq!(bytes.len(), 65_520 + 8 * spare_actions);
        let described = MultipartReply::GroupDesc(vec![GroupDesc { kind, id, buckets }]);
        assert_eq!(encode_reply(Version::V1_3, 5, &described, false).is_ok(), fits);
        let refused = change.check().err().map(|fault| fault.code);
        assert_eq!(refused, (!fits).then_some(ErrorCode::GroupModFailedOutOfBuckets));
    }
}

#[test]
fn what_fits_no_message_is_refused() {
    let bucket =
        Bucket { weight: 0, watch_port: PortNo::ANY, watch_group: GroupId::ANY, actions: vec![] };
    let group = GroupDesc { kind: GroupType::All, id: GroupId(1), buckets: vec![bucket; 5000] };
    let error =
        encode_reply(Version::V1_3, 5, &MultipartReply::GroupDesc(vec![group]), false).unwrap_err();
    assert_eq!(error, EncodeError::EntryTooLong { kind: MultipartKind::GroupDesc });
    let long = Message::EchoRequest(vec![0; 65_528]).encode(Version::V1_3, 1);
    assert_eq!(long, Err(EncodeError::TooLong { len: 65_536 }));
}
