//! One connection as its switch knows it, and the way of events to it (OpenFlow 1.3.5 §6.3.4, §6.3.7, §7.3.10).
//!
//! Shared between the session, which changes it, and whoever distributes events, which reads it. What all connections of one
//! controller have in common is their [`Channel`].

use crate::agent::channel::{Channel, Kind};
use crate::agent::outbox::Outbox;
use crate::switch::translate::{flow_removed, port_desc};
use crate::switch::{Connection, Event, Listener, PacketInEvent, PortEvent};
use flow::PacketInReason as Why;
use openflow::{
    AsyncConfig, Match, Message, OxmField, PacketIn, PacketInReason, PortReason, PortStatus, Role,
    TableId, Version,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Where a connection comes from, which decides what it gets without asking.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PeerKind {
    /// A controller that the switch called: it gets events, and while it is there the switch is not on its own.
    Controller,
    /// Somebody who called the switch (`ptcp:`, `pssl:`), a controller or a tool: no event until it asks by a
    /// miss-send-length or an asynchronous configuration, as in Open vSwitch. From then on, or from a role request on, it
    /// counts as a controller.
    Caller,
    /// Somebody who opened the management socket, as `ovs-ofctl` does: events as a caller, never a controller.
    Visitor,
}

/// One negotiated connection.
pub struct Peer {
    id: u64,
    name: String,
    kind: PeerKind,
    version: Version,
    outbox: Outbox,
    channel: Arc<Channel>,
    /// 0 for a main connection (OpenFlow 1.3.5 §6.3.7).
    auxiliary_id: u8,
    next_xid: AtomicU32,
    packet_ins: AtomicU64,
}

impl Peer {
    /// A connection that has just agreed on a version; `miss_send_len` is a controller's until it says otherwise.
    pub fn new(
        id: u64,
        name: String,
        kind: PeerKind,
        version: Version,
        miss_send_len: u16,
    ) -> Self {
        let called = kind == PeerKind::Controller;
        let channel = Channel::new(id, called, if called { miss_send_len } else { 0 });
        Self::with(id, name, version, (kind, Arc::new(channel), 0))
    }

    /// Auxiliary connection `auxiliary_id` (not 0) beside a main one.
    pub fn auxiliary(
        main: &Self,
        auxiliary_id: u8,
        id: u64,
        name: String,
        version: Version,
    ) -> Self {
        Self::with(id, name, version, (main.kind, main.channel.clone(), auxiliary_id))
    }

    fn with(
        id: u64,
        name: String,
        version: Version,
        (kind, channel, auxiliary_id): (PeerKind, Arc<Channel>, u8),
    ) -> Self {
        Self {
            id,
            name,
            kind,
            version,
            outbox: Outbox::default(),
            channel,
            auxiliary_id,
            next_xid: AtomicU32::new(0x8000_0000),
            packet_ins: AtomicU64::new(0),
        }
    }

    /// What it shares with the other connections of its controller.
    pub fn channel(&self) -> &Channel {
        &self.channel
    }

    /// 0 for a main connection.
    pub fn auxiliary_id(&self) -> u8 {
        self.auxiliary_id
    }

    /// What its channel knows it by.
    pub fn channel_member(&self) -> u64 {
        self.id
    }

    /// Its address, for logs.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What waits to be sent to it.
    pub fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// The version agreed on.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Its role.
    pub fn role(&self) -> Role {
        self.channel.role()
    }

    /// Changes its role.
    pub fn set_role(&self, role: Role) {
        self.channel.set_role(role);
    }

    /// Which events it wants.
    pub fn async_config(&self) -> AsyncConfig {
        self.channel.async_config()
    }

    /// Changes which events it wants; a visitor that does so hears them from now on.
    pub fn set_async_config(&self, config: &AsyncConfig) {
        self.channel.set_async_config(config);
    }

    /// Bytes of a packet that no action limits.
    pub fn miss_send_len(&self) -> u16 {
        self.channel.miss_send_len()
    }

    /// Changes it; a visitor that wants any byte hears events from now on, one that wants none no longer.
    pub fn set_miss_send_len(&self, bytes: u16) {
        self.channel.set_miss_send_len(bytes);
        if self.kind != PeerKind::Controller {
            self.channel.set_hears(bytes > 0);
        }
    }

    /// Queues an answer to transaction `xid`.
    pub fn reply(&self, xid: u32, message: &Message) {
        self.outbox.reply(|out| self.encode(xid, message, out));
    }

    /// Queues a request of ours.
    pub fn request(&self, message: &Message) {
        self.reply(self.next_xid.fetch_add(1, Relaxed), message);
    }

    fn encode(&self, xid: u32, message: &Message, out: &mut Vec<u8>) {
        // Only a frame close to 64 KiB can be too long; the peer misses that one.
        if let Err(error) = message.encode_onto(self.version, xid, out) {
            tracing::warn!(peer = self.name, %error, "a message cannot be sent");
        }
    }

    fn notice(&self, kind: Kind, reason: u8, message: impl FnOnce() -> Message) {
        if self.channel.wants(kind, reason) {
            let xid = self.next_xid.fetch_add(1, Relaxed);
            self.outbox.notice(|out| self.encode(xid, &message(), out));
        }
    }

    /// A packet-in that no entry asked for is only for versions that demand it; in the others an entry would have asked.
    fn wants_packet_in(&self, event: &PacketInEvent<'_>) -> bool {
        self.channel.wants(Kind::PacketIn, reason_of(event.why.reason).wire())
            && (!event.is_unasked() || self.version.sends_misses_to_controller())
    }

    fn packet_in(&self, event: &PacketInEvent<'_>) {
        let reason = reason_of(event.why.reason);
        if !self.wants_packet_in(event) {
            return;
        }
        let (buffer_id, data) = self.shown(event);
        let message = || {
            Message::PacketIn(PacketIn {
                buffer_id,
                total_len: event.total_len.min(u16::MAX.into()) as u16,
                reason,
                table: TableId(event.why.table),
                cookie: event.why.cookie,
                fields: pipeline_fields(event),
                data: data.to_vec(),
            })
        };
        match self.channel.carrier(event.in_port, event.data) {
            Some(auxiliary) => auxiliary.send_packet_in(message),
            None => self.send_packet_in(message),
        }
    }

    fn send_packet_in(&self, message: impl FnOnce() -> Message) {
        if self.outbox.packet_in(|out| {
            let xid = self.next_xid.fetch_add(1, Relaxed);
            self.encode(xid, &message(), out);
        }) {
            self.packet_ins.fetch_add(1, Relaxed);
        }
    }

    /// Bytes that the peer is to get of the frame, 0xffff (`OFPCML_NO_BUFFER`) for all: what the output action said, and without one the
    /// connection's miss-send-length (OpenFlow 1.3.5 §7.3.2). In 1.0 that is any miss (1.0.0 §5.3.3), in 1.3 a miss has an action.
    fn limit(&self, event: &PacketInEvent<'_>) -> u16 {
        match (event.why.reason, self.version) {
            (Why::InvalidTtl, _) => self.miss_send_len(),
            (Why::NoMatch, version) if version.sends_misses_to_controller() => self.miss_send_len(),
            (Why::NoMatch | Why::Action, _) => event.why.max_len,
        }
    }

    /// What the peer gets: the beginning of a frame that is kept, any other in full.
    fn shown<'a>(&self, event: &PacketInEvent<'a>) -> (Option<u32>, &'a [u8]) {
        let buffer_id = event.buffer_id.filter(|_| self.wants_buffer(event));
        let most = match buffer_id {
            Some(_) => usize::from(self.limit(event)).min(LONGEST_PACKET_IN),
            None => LONGEST_PACKET_IN,
        };
        (buffer_id, &event.data[..event.data.len().min(most)])
    }
}

fn reason_of(why: Why) -> PacketInReason {
    match why {
        Why::NoMatch => PacketInReason::NoMatch,
        Why::Action => PacketInReason::Action,
        Why::InvalidTtl => PacketInReason::InvalidTtl,
    }
}

/// Bytes of a frame that fit a packet-in of 65535 bytes beside its header and match.
const LONGEST_PACKET_IN: usize = 65_535 - 128;

/// What a packet-in's match says: the ingress port always, the others where they are not 0 (OpenFlow 1.3.5 §7.4.1).
fn pipeline_fields(event: &PacketInEvent<'_>) -> Match {
    let always = Match::default().with(OxmField::InPort, event.in_port.into());
    let others = [(OxmField::Metadata, event.metadata), (OxmField::TunnelId, event.tunnel_id)];
    let present = others.into_iter().filter(|(_, value)| *value != 0);
    present.fold(always, |fields, (field, value)| fields.with(field, value.into()))
}

impl Listener for Peer {
    fn id(&self) -> u64 {
        self.id
    }

    fn is_controller(&self) -> bool {
        match self.kind {
            PeerKind::Controller => true,
            PeerKind::Caller => self.channel.is_claimed(),
            PeerKind::Visitor => false,
        }
    }

    fn controller_id(&self) -> u64 {
        self.channel.id()
    }

    fn take_role(&self, role: Role) {
        self.set_role(role);
    }

    fn takes_misses(&self) -> bool {
        self.version.sends_misses_to_controller()
            && self.channel.wants(Kind::PacketIn, PacketInReason::NoMatch.wire())
    }

    fn wants_buffer(&self, event: &PacketInEvent<'_>) -> bool {
        let limit = self.limit(event);
        self.wants_packet_in(event) && limit != u16::MAX && event.total_len > u32::from(limit)
    }

    fn hear(&self, event: Event<'_>) {
        // The main connection hears for its controller.
        if self.auxiliary_id != 0 {
            return;
        }
        match event {
            Event::PacketIn(event) => self.packet_in(event),
            Event::FlowRemoved(removed) => {
                let message = flow_removed(removed);
                self.notice(Kind::FlowRemoved, message.reason.wire(), || {
                    Message::FlowRemoved(message)
                });
            }
            Event::Port(event, port) => {
                let reason = match event {
                    PortEvent::Added => PortReason::Add,
                    PortEvent::Removed => PortReason::Delete,
                    PortEvent::Changed => PortReason::Modify,
                };
                let message = || Message::PortStatus(PortStatus { reason, port: port_desc(port) });
                self.notice(Kind::PortStatus, reason.wire(), message);
            }
        }
    }

    fn become_slave(&self) {
        if self.role() == Role::Master {
            self.set_role(Role::Slave);
        }
    }

    fn describe(&self) -> Connection {
        Connection {
            peer: self.name.clone(),
            controller: self.is_controller(),
            auxiliary: self.auxiliary_id,
            role: match self.role() {
                Role::Master => "master",
                Role::Slave => "slave",
                Role::Equal | Role::NoChange => "equal",
            },
            version: self.version.name(),
            packet_ins: self.packet_ins.load(Relaxed),
            lost_packet_ins: self.outbox.lost_packet_ins(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::PacketIn as Verdict;

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
        assert_eq!(found.fields.get(OxmField::Metadata), None);
        assert_eq!(found.data.len(), 200);
    }

    /// Buffer id and bytes of what a peer gets of a 200-byte frame.
    fn shown(
        peer: &Peer,
        reason: Why,
        max_len: u16,
        buffer_id: Option<u32>,
    ) -> (Option<u32>, usize) {
        let why = Verdict { reason, table: 0, cookie: 0, max_len };
        let event = PacketInEvent {
            in_port: 5,
            data: &[1; 200],
            total_len: 200,
            why,
            metadata: 0,
            tunnel_id: 0,
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
        assert_eq!(shown(&old, Why::NoMatch, u16::MAX, Some(9)), (Some(9), 128));
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
}
