//! Sessions as a peer sees them, over socket pairs and loopback, with a scripted client of our own codec.

mod auxiliary;
mod buffers;
mod client;
mod connections;
mod ofctl;
mod queues;
mod steering;
mod tls;
mod v10;

use crate::agent::tests::client::Client;
use crate::agent::{PeerKind, Timing};
use crate::switch::tests::{entry, punt, switch};
use api::Bound;
use flow::PacketIn;
use openflow::{
    Action, AsyncConfig, ErrorCode, ErrorKind, FlowMod, FlowModCommand, FlowModFlags,
    FlowStatsRequest, FragmentMode, GroupId, GroupMod, GroupModCommand, GroupType, Message,
    MeterId, MultipartReply, MultipartRequest, PacketInReason, PacketOut, Part, PortConfig, PortNo,
    Role, RoleMsg, SwitchConfig, TableId,
};
use port::PortFacts;
use std::sync::Arc;
use std::time::Duration;

fn packet_in(switch: &crate::switch::Switch, reason: flow::PacketInReason) {
    let why = PacketIn { reason, table: 0, cookie: 1, max_len: 128 };
    switch.on_packet_in(punt(1, 60, why));
}

#[tokio::test]
async fn the_first_requests_of_a_controller_are_answered() {
    let (switch, _) = switch();
    let mut client = Client::join(&switch, PeerKind::Controller).await;
    let Message::FeaturesReply(features) = client.ask(Message::FeaturesRequest).await else {
        panic!()
    };
    assert_eq!((features.datapath_id, features.tables, features.buffers), (0x1234, 254, 1024));
    let config = SwitchConfig { fragments: FragmentMode::Drop, miss_send_len: 99 };
    client.send(Message::SetConfig(config)).await;
    assert_eq!(client.ask(Message::GetConfigRequest).await, Message::GetConfigReply(config));
    assert_eq!(client.ask(Message::EchoRequest(vec![1, 2])).await, Message::EchoReply(vec![1, 2]));
    assert_eq!(client.ask(Message::BarrierRequest).await, Message::BarrierReply);
    assert_eq!(
        client
            .error(Message::SetConfig(SwitchConfig {
                fragments: FragmentMode::Reassemble,
                ..config
            }))
            .await,
        ErrorCode::SwitchConfigFailedBadFlags
    );
}

#[tokio::test]
async fn every_multipart_of_1_3_has_an_answer_even_when_nothing_is_there() {
    let (switch, _) = switch();
    switch.add_port(PortNo(1), "eth1", &PortFacts::default(), PortConfig::empty());
    let mut client = Client::join(&switch, PeerKind::Controller).await;
    let requests = [
        MultipartRequest::Desc,
        MultipartRequest::Flow(FlowStatsRequest::default()),
        MultipartRequest::Aggregate(FlowStatsRequest::default()),
        MultipartRequest::Table,
        MultipartRequest::PortStats(PortNo::ANY),
        MultipartRequest::Queue { port: PortNo::ANY, queue: openflow::ALL_QUEUES },
        MultipartRequest::Group(GroupId::ALL),
        MultipartRequest::GroupDesc,
        MultipartRequest::GroupFeatures,
        MultipartRequest::Meter(MeterId::ALL),
        MultipartRequest::MeterConfig(MeterId::ALL),
        MultipartRequest::MeterFeatures,
        MultipartRequest::TableFeatures(vec![]),
        MultipartRequest::PortDesc,
    ];
    for request in requests {
        let kind = request.kind();
        let parts = client.ask_all(request).await;
        assert!(parts.iter().all(|part| part.kind() == kind), "{kind:?}");
    }
}

/// A controller that drops port-status until it has the list, as os-ken does, knows every port all the same.
#[tokio::test]
async fn the_list_of_ports_knows_what_port_status_before_it_said() {
    const PORTS: u32 = 400;
    let (switch, _) = switch();
    let mut client = Client::join(&switch, PeerKind::Controller).await;
    let adds = switch.clone();
    let adding = std::thread::spawn(move || {
        for number in 1..=PORTS {
            let name = format!("eth{number}");
            adds.add_port(PortNo(number), &name, &PortFacts::default(), PortConfig::empty());
        }
    });
    let (mut told, mut listed) = (0, 0);
    let ask = || Message::MultipartRequest(Part::last(MultipartRequest::PortDesc));
    client.send(ask()).await;
    while listed < PORTS {
        match client.next().await.1 {
            Message::PortStatus(status) => told = status.port.number.0,
            Message::MultipartReply(Part { body: MultipartReply::PortDesc(ports), .. }) => {
                listed = ports.len() as u32;
                assert!(listed >= told, "port {told} was told, and is not listed after that");
                client.send(ask()).await;
            }
            other => panic!("{other:?}"),
        }
    }
    adding.join().unwrap();
}

#[tokio::test]
async fn what_cannot_be_is_refused_with_its_own_error() {
    let (switch, _) = switch();
    let mut client = Client::join(&switch, PeerKind::Controller).await;
    let multipart = |body| Message::MultipartRequest(Part::last(body));
    let unknown = GroupMod {
        command: GroupModCommand::Modify,
        kind: GroupType::All,
        id: GroupId(9),
        buckets: vec![],
    };
    let via_group = vec![openflow::Instruction::ApplyActions(vec![Action::Group(GroupId(9))])];
    let cases = [
        (
            Message::FlowMod(FlowMod { table: TableId::ALL, ..entry(1) }),
            ErrorCode::FlowModFailedBadTableId,
        ),
        (
            Message::FlowMod(FlowMod { instructions: via_group, ..entry(1) }),
            ErrorCode::BadActionBadOutGroup,
        ),
        (Message::GroupMod(unknown), ErrorCode::GroupModFailedUnknownGroup),
        (multipart(MultipartRequest::PortStats(PortNo(5))), ErrorCode::BadRequestBadPort),
        (
            multipart(MultipartRequest::Queue { port: PortNo(5), queue: 0 }),
            ErrorCode::QueueOpFailedBadPort,
        ),
        (
            multipart(MultipartRequest::MeterConfig(MeterId(5))),
            ErrorCode::MeterModFailedUnknownMeter,
        ),
        (Message::QueueGetConfigRequest(PortNo(5)), ErrorCode::QueueOpFailedBadPort),
        (Message::BarrierReply, ErrorCode::BadRequestBadType),
    ];
    for (request, code) in cases {
        assert_eq!(client.error(request).await, code);
    }
    assert_eq!(
        client.ask(Message::BarrierRequest).await,
        Message::BarrierReply,
        "the session goes on"
    );
}

#[tokio::test]
async fn a_refused_flow_mod_repeats_its_own_bytes_and_others_of_the_batch_count() {
    let (switch, _) = switch();
    let mut client = Client::join(&switch, PeerKind::Controller).await;
    let bad = Message::FlowMod(FlowMod { table: TableId::ALL, ..entry(2) });
    for (xid, message) in
        [(21, Message::FlowMod(entry(1))), (22, bad.clone()), (23, Message::FlowMod(entry(3)))]
    {
        client.send_as(xid, &message).await;
    }
    client.send_as(24, &Message::BarrierRequest).await;
    let (xid, Message::Error(error)) = client.next().await else { panic!() };
    assert_eq!((xid, error.kind), (22, ErrorKind::Known(ErrorCode::FlowModFailedBadTableId)));
    let sent = bad.encode(openflow::Version::V1_3, 22).unwrap();
    assert_eq!(error.data, sent[..64]);
    assert_eq!(client.next().await, (24, Message::BarrierReply));
    assert_eq!(switch.aggregate(&FlowStatsRequest::default()).unwrap().flow_count, 2);
}

#[tokio::test]
async fn a_barrier_publishes_before_it_is_answered() {
    let (switch, plane) = switch();
    let mut client = Client::join(&switch, PeerKind::Controller).await;
    client.ask(Message::BarrierRequest).await;
    let before = plane.snapshots.load(std::sync::atomic::Ordering::Relaxed);
    client.send(Message::FlowMod(entry(1))).await;
    client.ask(Message::BarrierRequest).await;
    assert_eq!(plane.snapshots.load(std::sync::atomic::Ordering::Relaxed), before + 1);
}

#[tokio::test]
async fn a_long_dump_comes_in_parts_that_are_complete() {
    let (switch, _) = switch();
    let entries: Vec<FlowMod> = (0..5000).map(entry).collect();
    entries.iter().for_each(|entry| switch.flow_mod(entry).unwrap());
    let mut client = Client::join(&switch, PeerKind::Visitor).await;
    let parts = client.ask_all(MultipartRequest::Flow(FlowStatsRequest::default())).await;
    assert!(parts.len() > 5);
    let count: usize = parts
        .iter()
        .map(|part| if let MultipartReply::Flow(list) = part { list.len() } else { 0 })
        .sum();
    assert_eq!(count, 5000);
}

#[tokio::test]
async fn a_slave_reads_and_hears_of_ports_but_changes_nothing() {
    let (switch, _) = switch();
    let mut slave = Client::join(&switch, PeerKind::Controller).await;
    let mut master = Client::join(&switch, PeerKind::Controller).await;
    let claim = |role, generation_id| Message::RoleRequest(RoleMsg { role, generation_id });
    let granted = |role, generation_id| Message::RoleReply(RoleMsg { role, generation_id });
    assert_eq!(slave.ask(claim(Role::Master, 1)).await, granted(Role::Master, 1));
    assert_eq!(master.ask(claim(Role::Master, 2)).await, granted(Role::Master, 2));
    assert_eq!(slave.ask(claim(Role::NoChange, 0)).await, granted(Role::Slave, 2));
    assert_eq!(slave.error(claim(Role::Master, 1)).await, ErrorCode::RoleRequestFailedStale);
    assert_eq!(slave.error(Message::FlowMod(entry(1))).await, ErrorCode::BadRequestIsSlave);
    let frame = PacketOut {
        buffer_id: None,
        in_port: PortNo::CONTROLLER,
        actions: vec![],
        data: vec![0; 60],
    };
    assert_eq!(slave.error(Message::PacketOut(frame)).await, ErrorCode::BadRequestIsSlave);
    assert_eq!(
        slave.ask_all(MultipartRequest::Flow(FlowStatsRequest::default())).await,
        [MultipartReply::Flow(vec![])]
    );
    packet_in(&switch, flow::PacketInReason::Action);
    switch.add_port(PortNo(1), "eth1", &PortFacts::default(), PortConfig::empty());
    assert!(matches!(slave.next().await.1, Message::PortStatus(_)));
    assert!(matches!(master.next().await.1, Message::PacketIn(_)));
}

#[tokio::test]
async fn events_go_to_whom_they_are_wanted_by() {
    let (switch, _) = switch();
    let mut controller = Client::join(&switch, PeerKind::Controller).await;
    let mut visitor = Client::join(&switch, PeerKind::Visitor).await;
    packet_in(&switch, flow::PacketInReason::NoMatch);
    let (_, Message::PacketIn(found)) = controller.next().await else { panic!() };
    assert_eq!((found.reason, found.data.len()), (PacketInReason::NoMatch, 60));
    assert_eq!(
        visitor.ask(Message::BarrierRequest).await,
        Message::BarrierReply,
        "and nothing before"
    );

    let quiet = AsyncConfig { packet_in: [0, 0], ..AsyncConfig::default() };
    controller.send(Message::SetAsync(quiet)).await;
    assert_eq!(controller.ask(Message::GetAsyncRequest).await, Message::GetAsyncReply(quiet));
    visitor
        .send(Message::SetConfig(SwitchConfig {
            fragments: FragmentMode::Normal,
            miss_send_len: 65535,
        }))
        .await;
    visitor.ask(Message::BarrierRequest).await;
    packet_in(&switch, flow::PacketInReason::NoMatch);
    assert!(matches!(visitor.next().await.1, Message::PacketIn(_)));
    assert_eq!(controller.ask(Message::BarrierRequest).await, Message::BarrierReply);
}

#[tokio::test]
async fn a_deleted_entry_is_told_with_its_reason() {
    let (switch, _) = switch();
    let mut client = Client::join(&switch, PeerKind::Controller).await;
    client
        .send(Message::FlowMod(FlowMod {
            flags: FlowModFlags::SEND_FLOW_REM,
            cookie: 77,
            ..entry(1)
        }))
        .await;
    client.send(Message::FlowMod(FlowMod { command: FlowModCommand::Delete, ..entry(1) })).await;
    client.send(Message::BarrierRequest).await;
    let (_, Message::FlowRemoved(removed)) = client.next().await else { panic!() };
    assert_eq!((removed.cookie, removed.reason), (77, openflow::FlowRemovedReason::Delete));
    assert!(matches!(client.next().await.1, Message::BarrierReply), "told before the answer");
}

#[tokio::test]
async fn a_controller_that_never_reads_loses_packet_ins_and_stalls_nobody() {
    let (switch, _) = switch();
    let mut deaf = Client::join(&switch, PeerKind::Controller).await;
    let mut other = Client::join(&switch, PeerKind::Controller).await;
    deaf.ask(Message::BarrierRequest).await;
    let reader = tokio::spawn(async move {
        let mut got = 0;
        while got < 20_000 {
            got += usize::from(matches!(other.next().await.1, Message::PacketIn(_)));
        }
    });
    for round in 0..20_000 {
        packet_in(&switch, flow::PacketInReason::Action);
        if round % 64 == 0 {
            tokio::task::yield_now().await;
        }
    }
    tokio::time::timeout(Duration::from_secs(30), reader)
        .await
        .expect("the other gets all")
        .unwrap();
    let lost: Vec<u64> =
        switch.connections().iter().map(|connection| connection.lost_packet_ins).collect();
    assert!(lost[0] > 0 && lost[1] == 0, "{lost:?}");
}

#[tokio::test]
async fn a_flood_of_flow_mods_on_one_connection_leaves_others_their_turn() {
    let (switch, _) = switch();
    let mut flooder = Client::join(&switch, PeerKind::Controller).await;
    let mut other = Client::join(&switch, PeerKind::Controller).await;
    let flood: Vec<u8> = (0..50_000)
        .flat_map(|to| Message::FlowMod(entry(to)).encode(openflow::Version::V1_3, to).unwrap())
        .collect();
    let flooding = tokio::spawn(async move {
        flooder.send_bytes(&flood).await;
        flooder.ask(Message::BarrierRequest).await;
    });
    let mut turns = 0;
    while !flooding.is_finished() {
        assert_eq!(other.ask(Message::EchoRequest(vec![])).await, Message::EchoReply(vec![]));
        turns += 1;
    }
    flooding.await.unwrap();
    assert!(turns > 50, "one thread served both: {turns} echoes during the flood");
}

#[tokio::test]
async fn a_client_of_another_version_is_told_why_and_left() {
    let (switch, _) = switch();
    for (hello, said) in [
        (vec![3, 0, 0, 8, 0, 0, 0, 1], "this switch speaks OpenFlow 1.0 and 1.3, and you do not"),
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "an OpenFlow hello comes first"),
        (vec![4, 2, 0, 8, 0, 0, 0, 1], "an OpenFlow hello comes first"),
    ] {
        let mut client = Client::connect(&switch, PeerKind::Visitor, Timing::default());
        client.send_bytes(&hello).await;
        assert!(matches!(client.next().await.1, Message::Hello(_)));
        let (_, Message::Error(error)) = client.next().await else { panic!() };
        assert_eq!(error.kind, ErrorKind::Known(ErrorCode::HelloFailedIncompatible));
        assert_eq!(String::from_utf8(error.data).unwrap(), said);
        assert!(client.is_left().await);
    }
    assert!(switch.connections().is_empty());
}

#[tokio::test]
async fn newer_versions_agree_on_1_3_with_and_without_a_bitmap() {
    let (switch, _) = switch();
    for hello in
        [vec![6, 0, 0, 8, 0, 0, 0, 1], vec![6, 0, 0, 16, 0, 0, 0, 1, 0, 1, 0, 8, 0, 0, 0, 0x72]]
    {
        let mut client = Client::connect(&switch, PeerKind::Visitor, Timing::default());
        client.send_bytes(&hello).await;
        assert!(matches!(client.next().await.1, Message::Hello(_)));
        assert_eq!(client.ask(Message::BarrierRequest).await, Message::BarrierReply);
    }
}

#[tokio::test]
async fn garbage_after_the_hello_is_answered_and_ends_only_its_own_session() {
    let (switch, _) = switch();
    let mut good = Client::join(&switch, PeerKind::Visitor).await;
    let mut bad = Client::join(&switch, PeerKind::Visitor).await;
    bad.send_bytes(&[4, 99, 0, 8, 0, 0, 0, 5]).await;
    let (xid, Message::Error(error)) = bad.next().await else { panic!() };
    assert_eq!((xid, error.kind), (5, ErrorKind::Known(ErrorCode::BadRequestBadType)));
    bad.send_bytes(&[1, 2, 0, 8, 0, 0, 0, 6]).await;
    let (_, Message::Error(error)) = bad.next().await else { panic!() };
    assert_eq!(error.kind, ErrorKind::Known(ErrorCode::BadRequestBadVersion));
    bad.send_bytes(&[4, 2, 0, 3, 0, 0, 0, 7]).await;
    let (xid, Message::Error(error)) = bad.next().await else { panic!() };
    assert_eq!((xid, error.kind), (7, ErrorKind::Known(ErrorCode::BadRequestBadLen)));
    assert!(bad.is_left().await);
    assert_eq!(good.ask(Message::BarrierRequest).await, Message::BarrierReply);
    assert_eq!(switch.connections().len(), 1);
}

#[tokio::test]
async fn a_silent_peer_is_asked_and_then_left() {
    let (switch, _) = switch();
    let timing = Timing {
        probe_after: Duration::from_millis(20),
        dead_after: Duration::from_millis(80),
        ..Timing::default()
    };
    let mut client = Client::greet(Client::connect(&switch, PeerKind::Controller, timing)).await;
    let (xid, Message::EchoRequest(data)) = client.next().await else { panic!() };
    client.send_as(xid, &Message::EchoReply(data)).await;
    assert!(matches!(client.next().await.1, Message::EchoRequest(_)), "an answer is life");
    assert!(client.is_left().await);
    assert!(!switch.has_controller());
}

#[tokio::test]
async fn bytes_that_wait_are_a_sign_of_life_however_late_a_node_reads_that_stood_still() {
    let (switch, _) = switch();
    let timing = Timing {
        probe_after: Duration::from_millis(10),
        dead_after: Duration::from_millis(30),
        ..Timing::default()
    };
    let mut client = Client::greet(Client::connect(&switch, PeerKind::Controller, timing)).await;
    for round in 0..10 {
        client.send(Message::EchoRequest(vec![round])).await;
        // Everybody stands still: this is the only thread.
        std::thread::sleep(2 * timing.dead_after);
        while client.next().await.1 != Message::EchoReply(vec![round]) {}
    }
    assert!(switch.has_controller());
}

#[tokio::test]
async fn a_peer_that_never_says_hello_is_left() {
    let (switch, _) = switch();
    let timing = Timing { hello_within: Duration::from_millis(20), ..Timing::default() };
    let mut client = Client::connect(&switch, PeerKind::Visitor, timing);
    assert!(matches!(client.next().await.1, Message::Hello(_)));
    assert!(client.is_left().await);
    assert_eq!(switch.hits().show()[0].bound, Bound::Hello);
}

#[tokio::test]
async fn who_does_not_read_what_it_must_not_miss_is_left_and_noted() {
    let (switch, _) = switch();
    let _deaf = Client::join(&switch, PeerKind::Controller).await;
    let most = 2 * crate::bounds::BoundsSpec::default().unread / 64;
    for _ in 0..most {
        switch.add_port(PortNo(7), "p", &PortFacts::default(), PortConfig::empty());
        switch.remove_port(PortNo(7));
    }
    while switch.has_controller() {
        tokio::task::yield_now().await;
    }
    let hits = switch.hits().show();
    assert_eq!((hits.len(), hits[0].bound, hits[0].times), (1, Bound::UnreadMessages, 1));
}

#[tokio::test]
async fn only_controllers_end_a_switch_being_on_its_own() {
    let (switch, _) = switch();
    let visitor = Client::join(&switch, PeerKind::Visitor).await;
    assert!(!switch.has_controller());
    let controller = Client::join(&switch, PeerKind::Controller).await;
    assert!(switch.has_controller());
    drop((visitor, controller));
    while switch.has_controller() {
        tokio::task::yield_now().await;
    }
    assert_eq!(Arc::strong_count(&switch), 1, "no session keeps the switch");
}
