//! What a connection hears, and how much of it.

use super::*;
use flow::{PacketIn as Verdict, PacketInReason as Why};
use openflow::{OxmField, TableId};

fn peer(kind: PeerKind) -> Peer {
    Peer::new(1, "test".into(), kind, Version::V1_3, 128)
}

fn hears(peer: &Peer, reason: Why) -> bool {
    let why = Verdict { reason, table: 3, cookie: 9, max_len: 128 };
    let event = PacketInEvent {
        in_port: 5,
        data: &[1; 200],
        total_len: 300,
        why,
        metadata: 0,
        tunnel_id: 7,
        tun_src: "2001:db8::2".parse().ok(),
        tun_dst: "192.0.2.2".parse().ok(),
        buffer_id: None,
    };
    let before = peer.describe().packet_ins;
    peer.hear(Event::PacketIn(&event));
    peer.describe().packet_ins > before
}

#[test]
fn a_visitor_gets_no_event_until_it_asks() {
    let visitor = peer(PeerKind::Visitor);
    assert!(!hears(&visitor, Why::Action));
    visitor.set_miss_send_len(128);
    assert!(hears(&visitor, Why::Action));
    visitor.set_miss_send_len(0);
    assert!(!hears(&visitor, Why::Action));
}

#[test]
fn a_controller_gets_what_the_specification_gives_its_role() {
    let controller = peer(PeerKind::Controller);
    assert!(hears(&controller, Why::NoMatch) && hears(&controller, Why::Action));
    assert!(!hears(&controller, Why::InvalidTtl));
    controller.set_role(Role::Slave);
    assert!(!hears(&controller, Why::Action));
}

#[test]
fn only_a_master_becomes_a_slave_when_another_master_comes() {
    let controller = peer(PeerKind::Controller);
    controller.become_slave();
    assert_eq!(controller.role(), Role::Equal);
    controller.set_role(Role::Master);
    controller.become_slave();
    assert_eq!(controller.role(), Role::Slave);
}

#[tokio::test]
async fn a_packet_in_says_where_the_frame_came_from() {
    let controller = peer(PeerKind::Controller);
    assert!(hears(&controller, Why::Action));
    let mut sent = Vec::new();
    assert!(controller.outbox().take(&mut sent).await);
    let (_, message) = Message::decode(&sent).unwrap();
    let Message::PacketIn(found) = message else { panic!("{message:?}") };
    assert_eq!((found.total_len, found.table, found.cookie), (300, TableId(3), 9));
    assert_eq!(found.fields.exact(OxmField::InPort), Some(5));
    assert_eq!(found.fields.exact(OxmField::TunnelId), Some(7));
    assert_eq!(found.fields.exact(OxmField::TunIpv6Src), Some(0x2001_0db8 << 96 | 2));
    assert_eq!(found.fields.exact(OxmField::TunIpv4Dst), Some(0xc000_0202));
    assert_eq!(found.fields.get(OxmField::Metadata), None);
    assert_eq!(found.data.len(), 200);
}

/// Buffer id and bytes of what a peer gets of a 200-byte frame.
fn shown(peer: &Peer, reason: Why, max_len: u16, buffer_id: Option<u32>) -> (Option<u32>, usize) {
    shown_of(peer, Verdict { reason, table: 0, cookie: 0, max_len }, buffer_id)
}

fn shown_of(peer: &Peer, why: Verdict, buffer_id: Option<u32>) -> (Option<u32>, usize) {
    let event = PacketInEvent {
        in_port: 5,
        data: &[1; 200],
        total_len: 200,
        why,
        metadata: 0,
        tunnel_id: 0,
        tun_src: None,
        tun_dst: None,
        buffer_id,
    };
    let (buffer_id, data) = peer.shown(&event);
    (buffer_id, data.len())
}

#[test]
fn only_a_kept_frame_is_shown_in_part() {
    let controller = peer(PeerKind::Controller);
    let shown = |max_len, buffer| shown(&controller, Why::Action, max_len, buffer);
    assert_eq!(shown(64, Some(9)), (Some(9), 64));
    assert_eq!(shown(0, Some(9)), (Some(9), 0));
    assert_eq!(shown(199, Some(9)), (Some(9), 199));
    assert_eq!(shown(64, None), (None, 200), "no buffer was free");
    assert_eq!(shown(200, Some(9)), (None, 200), "nothing is left to keep");
    assert_eq!(shown(u16::MAX, Some(9)), (None, 200), "OFPCML_NO_BUFFER");
}

#[test]
fn the_miss_send_length_limits_what_no_action_sent() {
    let controller = peer(PeerKind::Controller);
    controller.set_async_config(&AsyncConfig { packet_in: [7, 0], ..AsyncConfig::default() });
    let ttl = |buffer| shown(&controller, Why::InvalidTtl, u16::MAX, buffer);
    assert_eq!(ttl(Some(9)), (Some(9), 128));
    assert_eq!(shown(&controller, Why::NoMatch, 10, Some(9)), (Some(9), 10));
    controller.set_miss_send_len(u16::MAX);
    assert_eq!(ttl(Some(9)), (None, 200));
    let old = Peer::new(1, "test".into(), PeerKind::Controller, Version::V1_0, 128);
    let unasked = Verdict { reason: Why::NoMatch, table: 0, cookie: u64::MAX, max_len: u16::MAX };
    assert_eq!(shown_of(&old, unasked, Some(9)), (Some(9), 128));
    assert_eq!(shown(&old, Why::NoMatch, 10, Some(9)), (Some(9), 10), "1.0: an entry's action");
    assert_eq!(shown(&old, Why::Action, 10, Some(9)), (Some(9), 10));
}

#[test]
fn the_asynchronous_configuration_reads_back_as_set() {
    let controller = peer(PeerKind::Controller);
    let config = AsyncConfig { packet_in: [4, 1], port_status: [1, 2], flow_removed: [8, 15] };
    controller.set_async_config(&config);
    assert_eq!(controller.async_config(), config);
    assert!(hears(&controller, Why::InvalidTtl) && !hears(&controller, Why::Action));
}

#[test]
fn two_callers_of_one_host_are_one_to_who_asks_for_the_greedy() {
    let named = ["tcp:192.0.2.1:4711", "tcp:192.0.2.1:4712"].map(|name| PeerKind::Caller.who(name));
    assert_eq!(named, ["192.0.2.1"; 2]);
    assert_eq!(PeerKind::Caller.who("ssl:[2001:db8::1]:4711"), "[2001:db8::1]");
    assert_eq!(PeerKind::Controller.who("tcp:192.0.2.1:6653"), "tcp:192.0.2.1:6653");
    assert_eq!(PeerKind::Visitor.who("s1.mgmt"), "s1.mgmt");
}
