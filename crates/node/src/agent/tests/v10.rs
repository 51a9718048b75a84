//! OpenFlow 1.0 as a peer sees it: versions agreed on, its semantics, and two versions at one switch.

use super::Client;
use crate::agent::{PeerKind, Timing};
use crate::switch::Switch;
use crate::switch::tests::{entry, punt, switch};
use flow::PacketInReason as Why;
use openflow::{
    Action, Capabilities, ErrorCode, ErrorKind, ErrorMsg, FlowMod, FlowModCommand, FlowModFlags,
    FlowStats, FlowStatsRequest, FragmentMode, Hello, Instruction, Match, Message, MultipartReply,
    MultipartRequest, Oxm, OxmField, PacketInReason, Part, PortConfig, PortNo, SwitchConfig,
    TableId, Version, VersionSet,
};
use port::PortFacts;
use std::sync::Arc;
use tokio::net::UnixStream;

const V1_0: VersionSet = VersionSet(1 << 1);
const V1_3: VersionSet = VersionSet(1 << 4);

/// What a node says of a packet that no entry sent to the controller.
const NO_COOKIE: u64 = u64::MAX;

/// A client that speaks 1.0.
struct Client10(Client<UnixStream>);

impl Client10 {
    async fn join(switch: &Arc<Switch>, kind: PeerKind) -> Self {
        let mut client = Client::connect(switch, kind, Timing::default());
        client.send_bytes(&[1, 0, 0, 8, 0, 0, 0, 1]).await;
        assert!(matches!(client.next().await.1, Message::Hello(_)));
        let mut client = Self(client);
        assert_eq!(client.ask(&Message::BarrierRequest).await, Message::BarrierReply);
        client
    }

    async fn send(&mut self, message: &Message) {
        self.0.send_bytes(&message.encode(Version::V1_0, 7).unwrap()).await;
    }

    async fn ask(&mut self, message: &Message) -> Message {
        self.send(message).await;
        self.0.next().await.1
    }

    async fn ask_stats(&mut self, request: MultipartRequest) -> MultipartReply {
        match self.ask(&Message::MultipartRequest(Part::last(request))).await {
            Message::MultipartReply(part) => part.body,
            other => panic!("{other:?}"),
        }
    }

    /// Sends a flow-mod that is to be taken.
    async fn change(&mut self, change: FlowMod) {
        self.send(&Message::FlowMod(change)).await;
        assert_eq!(self.ask(&Message::BarrierRequest).await, Message::BarrierReply);
    }

    async fn refusal(&mut self, message: &Message) -> ErrorCode {
        match self.ask(message).await {
            Message::Error(ErrorMsg { kind: ErrorKind::Known(code), .. }) => code,
            other => panic!("{other:?}"),
        }
    }
}

/// An entry of 1.0 for what goes to an address, with these actions.
fn entry10(to: u32, actions: Vec<Action>) -> FlowMod {
    FlowMod {
        instructions: vec![Instruction::ApplyActions(actions)],
        version: Version::V1_0,
        ..entry(to)
    }
}

fn all(switch: &Arc<Switch>) -> Vec<FlowStats> {
    switch.flows(&FlowStatsRequest::default()).unwrap().collect()
}

/// The hello that a client sends first: its newest version, and perhaps a list.
fn hello(newest: u8, listed: Option<u32>) -> Vec<u8> {
    let body = Message::Hello(Hello { versions: listed.map(VersionSet) });
    let mut bytes = body.encode(Version::V1_3, 1).unwrap();
    bytes[0] = newest;
    bytes
}

#[tokio::test]
async fn versions_are_agreed_on_by_list_or_by_the_smaller() {
    let both = VersionSet(V1_0.0 | V1_3.0);
    for (ours, theirs, agreed) in [
        (both, hello(1, None), 1),
        (both, hello(4, None), 4),
        (both, hello(6, None), 4),
        (both, hello(6, Some(0x72)), 4),
        (both, hello(6, Some(0x62)), 1),
        (V1_0, hello(4, None), 1),
        (V1_0, hello(4, Some(0x12)), 1),
        (V1_3, hello(6, Some(0x72)), 4),
    ] {
        let (switch, _) = switch();
        switch.set_versions(ours);
        let mut client = Client::connect(&switch, PeerKind::Visitor, Timing::default());
        client.send_bytes(&theirs).await;
        assert!(matches!(client.next().await.1, Message::Hello(_)));
        client.send_bytes(&[agreed, 2, 0, 8, 0, 0, 0, 9]).await;
        assert_eq!(client.next().await, (9, Message::EchoReply(vec![])), "{ours:?} {theirs:?}");
        assert_eq!(switch.connections()[0].version, if agreed == 1 { "1.0" } else { "1.3" });
    }
}

#[tokio::test]
async fn who_speaks_none_of_the_switchs_versions_is_told_which_and_left() {
    for (ours, theirs, said) in [
        (V1_3, hello(1, None), "this switch speaks OpenFlow 1.3, and you do not"),
        (V1_0, hello(6, Some(0x70)), "this switch speaks OpenFlow 1.0, and you do not"),
        (
            VersionSet(V1_0.0 | V1_3.0),
            hello(2, None),
            "this switch speaks OpenFlow 1.0 and 1.3, and you do not",
        ),
    ] {
        let (switch, _) = switch();
        switch.set_versions(ours);
        let mut client = Client::connect(&switch, PeerKind::Visitor, Timing::default());
        client.send_bytes(&theirs).await;
        assert!(matches!(client.next().await.1, Message::Hello(_)));
        let (_, Message::Error(error)) = client.next().await else { panic!() };
        assert_eq!(error.kind, ErrorKind::Known(ErrorCode::HelloFailedIncompatible));
        assert_eq!(String::from_utf8(error.data).unwrap(), said);
        assert!(client.is_left().await);
    }
}

#[tokio::test]
async fn features_list_the_ports_and_every_statistic_has_an_answer() {
    let (switch, _) = switch();
    switch.add_port(PortNo(1), "eth1", &PortFacts::default(), PortConfig::empty());
    switch.add_port(PortNo(70_000), "far", &PortFacts::default(), PortConfig::empty());
    let mut client = Client10::join(&switch, PeerKind::Visitor).await;
    let Message::FeaturesReply(features) = client.ask(&Message::FeaturesRequest).await else {
        panic!()
    };
    let names: Vec<_> = features.ports.iter().map(|port| port.name.to_string()).collect();
    assert_eq!((names, features.actions), (vec!["eth1".to_owned()], 0xfff), "no port past 0xff00");
    assert!(features.capabilities.contains(Capabilities::ARP_MATCH_IP | Capabilities::FLOW_STATS));
    for request in [
        MultipartRequest::Desc,
        MultipartRequest::Flow(FlowStatsRequest::default()),
        MultipartRequest::Aggregate(FlowStatsRequest::default()),
        MultipartRequest::Table,
        MultipartRequest::PortStats(PortNo::ANY),
        MultipartRequest::Queue { port: PortNo::ANY, queue: openflow::ALL_QUEUES },
    ] {
        let kind = request.kind();
        assert_eq!(client.ask_stats(request).await.kind(), kind);
    }
    let MultipartReply::Table(tables) = client.ask_stats(MultipartRequest::Table).await else {
        panic!()
    };
    assert_eq!(tables[0].max_entries, switch.limits().entries_per_table);
    let config = SwitchConfig { fragments: FragmentMode::Drop, miss_send_len: 99 };
    client.send(&Message::SetConfig(config)).await;
    assert_eq!(client.ask(&Message::GetConfigRequest).await, Message::GetConfigReply(config));
    let queues = client.ask(&Message::QueueGetConfigRequest(PortNo(1))).await;
    assert!(matches!(queues, Message::QueueGetConfigReply(_)), "{queues:?}");
}

#[tokio::test]
async fn a_packet_without_a_match_goes_to_1_0_and_one_that_an_entry_sends_to_both() {
    let (switch, _) = switch();
    let mut old = Client10::join(&switch, PeerKind::Controller).await;
    let mut new = Client::join(&switch, PeerKind::Controller).await;
    let send = |cookie, length| {
        let why = flow::PacketIn { reason: Why::NoMatch, table: 0, cookie, max_len: 0xffff };
        switch.on_packet_in(punt(1, length, why));
    };
    send(NO_COOKIE, 60);
    send(5, 61);
    let mut heard = Vec::new();
    for _ in 0..2 {
        let (_, Message::PacketIn(packet)) = old.0.next().await else { panic!() };
        heard.push((packet.total_len, packet.reason));
    }
    // 1.0 has no table-miss entries.
    assert_eq!(heard, [(60, PacketInReason::NoMatch), (61, PacketInReason::Action)]);
    let (_, Message::PacketIn(packet)) = new.next().await else { panic!() };
    let told = (packet.total_len, packet.cookie, packet.reason);
    assert_eq!(told, (61, 5, PacketInReason::NoMatch));
}

#[tokio::test]
async fn a_port_without_packet_ins_of_misses_tells_1_0_alone_of_an_entry_that_matches_all() {
    let (switch, _) = switch();
    let mut old = Client10::join(&switch, PeerKind::Controller).await;
    let mut new = Client::join(&switch, PeerKind::Controller).await;
    for (reason, length) in [(Why::SilentMiss, 61), (Why::Action, 62)] {
        let why = flow::PacketIn { reason, table: 0, cookie: 5, max_len: 0xffff };
        switch.on_packet_in(punt(1, length, why));
    }
    for length in [61, 62] {
        let (_, Message::PacketIn(packet)) = old.0.next().await else { panic!() };
        assert_eq!((packet.total_len, packet.reason), (length, PacketInReason::Action));
    }
    let (_, Message::PacketIn(packet)) = new.next().await else { panic!() };
    assert_eq!(packet.total_len, 62, "to 1.3 the other one is a table miss");
}

#[tokio::test]
async fn a_miss_is_cut_to_the_miss_send_length_of_its_connection() {
    let (switch, _) = switch();
    let mut client = Client10::join(&switch, PeerKind::Controller).await;
    let config = SwitchConfig { fragments: FragmentMode::Normal, miss_send_len: 40 };
    client.send(&Message::SetConfig(config)).await;
    client.ask(&Message::BarrierRequest).await;
    let why = flow::PacketIn { reason: Why::NoMatch, table: 0, cookie: NO_COOKIE, max_len: 0xffff };
    switch.on_packet_in(punt(1, 90, why));
    let (_, Message::PacketIn(packet)) = client.0.next().await else { panic!() };
    assert_eq!((packet.total_len, packet.data.len()), (90, 40));
    assert!(packet.buffer_id.is_some(), "the switch keeps the rest");
}

#[tokio::test]
async fn misses_are_sent_while_a_1_0_controller_is_there_and_dropped_without() {
    let (switch, _) = switch();
    let misses = || switch.audience().takes_misses;
    let new = Client::join(&switch, PeerKind::Controller).await;
    assert!(!misses(), "1.3 has table-miss entries");
    let old = Client10::join(&switch, PeerKind::Controller).await;
    assert!(misses());
    drop(old);
    while misses() {
        tokio::task::yield_now().await;
    }
    drop(new);
}

#[tokio::test]
async fn a_modify_that_finds_nothing_adds_and_one_that_finds_something_adds_nothing() {
    let (switch, _) = switch();
    let mut client = Client10::join(&switch, PeerKind::Controller).await;
    for command in [FlowModCommand::Modify, FlowModCommand::ModifyStrict] {
        let change =
            |to, port| FlowMod { command, ..entry10(to, vec![Action::output(PortNo(port))]) };
        client.change(change(1, 1)).await;
        client.change(change(1, 2)).await;
        let flows = all(&switch);
        assert_eq!(flows.len(), 1, "{command:?}");
        let sends = vec![Instruction::ApplyActions(vec![Action::output(PortNo(2))])];
        assert_eq!(flows[0].instructions, sends);
        client.change(FlowMod { command: FlowModCommand::Delete, ..change(1, 2) }).await;
    }
    let other = FlowMod {
        command: FlowModCommand::ModifyStrict,
        priority: 7,
        ..entry10(1, vec![Action::output(PortNo(1))])
    };
    client.change(entry10(1, vec![])).await;
    client.change(other).await;
    assert_eq!(all(&switch).len(), 2, "another priority is another entry");
}

#[tokio::test]
async fn actions_on_headers_that_no_match_promises_are_taken_from_1_0_alone() {
    let (switch, _) = switch();
    let set = |field, value| Action::SetField(Oxm::exact(field, value));
    let actions = vec![
        Action::PopVlan,
        Action::EnsureVlan,
        set(OxmField::VlanVid, 0x1005),
        set(OxmField::Ipv4Src, 1),
        set(OxmField::TcpDst, 80),
        set(OxmField::UdpDst, 80),
        Action::output(PortNo(2)),
    ];
    let any = |version| FlowMod {
        instructions: vec![Instruction::ApplyActions(actions.clone())],
        version,
        ..FlowMod::default()
    };
    let mut old = Client10::join(&switch, PeerKind::Controller).await;
    old.change(any(Version::V1_0)).await;
    let request = MultipartRequest::Flow(FlowStatsRequest::default());
    let MultipartReply::Flow(listed) = old.ask_stats(request).await else { panic!() };
    assert_eq!(listed[0].instructions, any(Version::V1_0).instructions, "listed as it was said");
    let mut new = Client::join(&switch, PeerKind::Controller).await;
    let code = new.error(Message::FlowMod(any(Version::V1_3))).await;
    assert_eq!(code, ErrorCode::BadActionMatchInconsistent);
}

#[tokio::test]
async fn a_deletion_of_1_0_empties_every_table() {
    let (switch, _) = switch();
    switch.flow_mod(&FlowMod { table: TableId(3), ..entry(1) }).unwrap();
    switch.flow_mod(&entry(2)).unwrap();
    let mut client = Client10::join(&switch, PeerKind::Controller).await;
    let command = FlowModCommand::Delete;
    client.change(FlowMod { command, version: Version::V1_0, ..FlowMod::default() }).await;
    assert!(all(&switch).is_empty());
}

#[tokio::test]
async fn an_entry_that_goes_is_told_to_both_versions_in_their_words() {
    let (switch, _) = switch();
    let mut old = Client10::join(&switch, PeerKind::Controller).await;
    let mut new = Client::join(&switch, PeerKind::Controller).await;
    let told = FlowMod { flags: FlowModFlags::SEND_FLOW_REM, table: TableId(3), ..entry(1) };
    switch.flow_mod(&told).unwrap();
    switch.flow_mod(&FlowMod { command: FlowModCommand::Delete, ..told }).unwrap();
    switch.settle();
    let (_, Message::FlowRemoved(mine)) = old.0.next().await else { panic!() };
    let (_, Message::FlowRemoved(theirs)) = new.next().await else { panic!() };
    assert_eq!((mine.table, theirs.table), (TableId(0), TableId(3)), "1.0 has no table here");
    assert_eq!((mine.fields, mine.reason), (theirs.fields, theirs.reason));
}

#[tokio::test]
async fn refusals_have_codes_of_1_0() {
    let (switch, _) = switch();
    let mut client = Client10::join(&switch, PeerKind::Controller).await;
    let any = FlowMod { version: Version::V1_0, ..FlowMod::default() };
    let to = |port| Message::FlowMod(entry10(1, vec![Action::output(PortNo(port))]));
    assert_eq!(client.refusal(&to(0)).await, ErrorCode::BadActionBadOutPort);
    assert_eq!(client.refusal(&to(PortNo::TABLE.0)).await, ErrorCode::BadActionBadOutPort);
    let vendor = openflow::Experimenter { experimenter: 0x2320, exp_type: 12, body: vec![0; 4] };
    let vendor = Message::Experimenter(vendor);
    assert_eq!(client.refusal(&vendor).await, ErrorCode::BadRequestBadExperimenter);
    let unknown = Message::MultipartRequest(Part::last(MultipartRequest::PortStats(PortNo(9))));
    assert_eq!(client.refusal(&unknown).await, ErrorCode::BadRequestEperm);
    let overlap = FlowModFlags::CHECK_OVERLAP;
    client.change(any.clone()).await;
    let second = FlowMod { flags: overlap, ..entry10(1, vec![]) };
    assert_eq!(client.refusal(&Message::FlowMod(second)).await, ErrorCode::FlowModFailedOverlap);
    // Command, idle and hard timeout, priority, buffer, port; then OFPFF_EMERG.
    let mut emergency = Message::FlowMod(any).encode(Version::V1_0, 8).unwrap();
    emergency[71] = 4;
    client.0.send_bytes(&emergency).await;
    let (xid, Message::Error(error)) = client.0.next().await else { panic!() };
    assert_eq!((xid, error.kind), (8, ErrorKind::Known(ErrorCode::FlowModFailedTableFull)));
}

#[tokio::test]
async fn a_dump_for_1_0_comes_in_parts() {
    let (switch, _) = switch();
    let entries: Vec<FlowMod> = (0..3000).map(entry).collect();
    entries.iter().for_each(|entry| switch.flow_mod(entry).unwrap());
    let mut client = Client10::join(&switch, PeerKind::Visitor).await;
    let request = MultipartRequest::Flow(FlowStatsRequest::default());
    client.send(&Message::MultipartRequest(Part::last(request))).await;
    let (mut count, mut parts) = (0, 0);
    loop {
        let (_, Message::MultipartReply(part)) = client.0.next().await else { panic!() };
        let MultipartReply::Flow(list) = part.body else { panic!() };
        (count, parts) = (count + list.len(), parts + 1);
        if !part.more {
            break;
        }
    }
    assert_eq!(count, 3000);
    assert!(parts > 3);
}

#[tokio::test]
async fn an_entry_of_1_3_is_listed_for_1_0_by_what_1_0_can_say() {
    let (switch, _) = switch();
    let fields = Match::default()
        .with(OxmField::InPort, 1)
        .with(OxmField::EthType, 0x86dd)
        .with(OxmField::IpProto, 6)
        .with(OxmField::TcpDst, 80);
    let instructions = vec![
        Instruction::ApplyActions(vec![Action::PushMpls(0x8847), Action::output(PortNo(2))]),
        Instruction::GotoTable(TableId(1)),
    ];
    let flow = FlowMod { fields: fields.clone(), instructions, ..FlowMod::default() };
    switch.flow_mod(&flow).unwrap();
    let mut client = Client10::join(&switch, PeerKind::Visitor).await;
    let request = MultipartRequest::Flow(FlowStatsRequest::default());
    let MultipartReply::Flow(listed) = client.ask_stats(request).await else { panic!() };
    assert_eq!(listed[0].fields, fields);
    let sends = vec![Instruction::ApplyActions(vec![Action::output(PortNo(2))])];
    assert_eq!(listed[0].instructions, sends);
}

/// Twelve fields without a wildcard, of an untagged frame; a priority that another one overrides.
fn exact_flow() -> Vec<u8> {
    let any = FlowMod { version: Version::V1_0, cookie: 3, ..FlowMod::default() };
    let mut bytes = Message::FlowMod(any).encode(Version::V1_0, 7).unwrap();
    let fields: [u8; 40] = [
        0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2, 2, 4, 4, 4, 4, 4, 4, 0xff, 0xff, 5, 0, 8, 0, 0x20, 17, 0,
        0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 5, 0, 6,
    ];
    bytes[8..48].copy_from_slice(&fields);
    bytes[62..64].copy_from_slice(&100u16.to_be_bytes());
    bytes[71] = 1; // OFPFF_SEND_FLOW_REM
    bytes
}

#[tokio::test]
async fn an_exact_entry_is_told_with_the_match_and_priority_that_were_sent() {
    let (switch, _) = switch();
    let mut client = Client10::join(&switch, PeerKind::Controller).await;
    let sent = exact_flow();
    client.0.send_bytes(&sent).await;
    let request = MultipartRequest::Flow(FlowStatsRequest::default());
    let MultipartReply::Flow(listed) = client.ask_stats(request).await else { panic!() };
    assert_eq!(listed[0].priority, u16::MAX, "in force is the highest");
    let part = Part::last(MultipartReply::Flow(listed));
    let told = Message::MultipartReply(part).encode(Version::V1_0, 7).unwrap();
    assert_eq!((&told[16..56], &told[64..66]), (&sent[8..48], &sent[62..64]));
    switch.flow_mod(&FlowMod { command: FlowModCommand::Delete, ..FlowMod::default() }).unwrap();
    switch.settle();
    let (_, removed) = client.0.next().await;
    let removed = removed.encode(Version::V1_0, 7).unwrap();
    assert_eq!((&removed[8..48], &removed[56..58]), (&sent[8..48], &sent[62..64]));
}

#[tokio::test]
async fn the_emergency_table_is_empty_for_1_0_and_no_table_for_1_3() {
    let (switch, _) = switch();
    switch.flow_mod(&entry(1)).unwrap();
    let mut client = Client10::join(&switch, PeerKind::Visitor).await;
    let of_emergency = FlowStatsRequest { table: TableId(0xfe), ..FlowStatsRequest::default() };
    let flows = client.ask_stats(MultipartRequest::Flow(of_emergency.clone())).await;
    assert_eq!(flows, MultipartReply::Flow(vec![]));
    let sums = client.ask_stats(MultipartRequest::Aggregate(of_emergency.clone())).await;
    assert_eq!(sums, MultipartReply::Aggregate(openflow::AggregateStats::default()));
    let mut new = Client::join(&switch, PeerKind::Visitor).await;
    let part = Part::last(MultipartRequest::Flow(of_emergency));
    let code = new.error(Message::MultipartRequest(part)).await;
    assert_eq!(code, ErrorCode::BadRequestBadTableId);
}

#[tokio::test]
async fn what_1_0_has_no_error_for_is_taken() {
    let (switch, _) = switch();
    let facts = PortFacts { mac: [2, 0, 0, 0, 0, 9], ..Default::default() };
    switch.add_port(PortNo(1), "p1", &facts, PortConfig::empty());
    let mut client = Client10::join(&switch, PeerKind::Visitor).await;
    let every_bit = openflow::PortMod {
        number: PortNo(1),
        hw_addr: openflow::Mac(facts.mac),
        config: PortConfig::NO_STP | PortConfig::NO_FLOOD,
        mask: PortConfig::from_bits_retain(0x7f),
        advertise: openflow::PortFeatures::empty(),
    };
    client.send(&Message::PortMod(every_bit)).await;
    let reassemble = SwitchConfig { fragments: FragmentMode::Reassemble, miss_send_len: 99 };
    client.send(&Message::SetConfig(reassemble)).await;
    let Message::GetConfigReply(config) = client.ask(&Message::GetConfigRequest).await else {
        panic!("an error came first")
    };
    assert_eq!((config.fragments, config.miss_send_len), (FragmentMode::Normal, 99));
    assert_eq!(switch.ports()[0].config, PortConfig::NO_FLOOD);
    let mut new = Client::join(&switch, PeerKind::Visitor).await;
    let ask = Message::MultipartRequest(Part::last(MultipartRequest::PortDesc));
    let Message::MultipartReply(Part { body: MultipartReply::PortDesc(told), .. }) =
        new.ask(ask).await
    else {
        panic!()
    };
    assert_eq!(told[0].config, PortConfig::empty(), "1.3 does not have the bit");
}

#[tokio::test]
async fn a_rewritten_tag_is_no_second_tag_in_1_3s_words() {
    let (switch, _) = switch();
    let actions = vec![
        Action::EnsureVlan,
        Action::SetField(Oxm::exact(OxmField::VlanVid, 0x1005)),
        Action::PopVlan,
        Action::EnsureVlan,
        Action::SetField(Oxm::exact(OxmField::VlanVid, 0x1006)),
    ];
    let tagged = FlowMod {
        fields: Match::default().with(OxmField::VlanVid, 0x1003),
        ..entry10(1, actions.clone())
    };
    switch.flow_mod(&tagged).unwrap();
    let mut new = Client::join(&switch, PeerKind::Visitor).await;
    let ask = MultipartRequest::Flow(FlowStatsRequest::default());
    let Message::MultipartReply(Part { body: MultipartReply::Flow(told), .. }) =
        new.ask(Message::MultipartRequest(Part::last(ask))).await
    else {
        panic!()
    };
    let mut shown = actions[1..].to_vec();
    shown[2] = Action::PushVlan(0x8100); // after the tag is gone
    assert_eq!(told[0].instructions, vec![Instruction::ApplyActions(shown)]);
}
