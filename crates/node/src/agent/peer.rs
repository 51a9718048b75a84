//! One connection as its switch knows it, and the way of events to it (OpenFlow 1.3.5 §6.3.4, §6.3.7, §7.3.10).
//!
//! Shared between the session, which changes it, and whoever distributes events, which reads it. What all connections of one
//! controller have in common is their [`Channel`].

mod packet_in;

#[cfg(test)]
mod tests;

use crate::agent::channel::{Channel, Kind};
use crate::agent::outbox::Outbox;
use crate::room::Part;
use crate::switch::translate::port_desc;
use crate::switch::{Connection, Event, Listener, PacketInEvent, PortEvent};
use openflow::{
    AsyncConfig, Message, MultipartReply, PacketInReason, PortReason, PortStatus, Role, Version,
    encode_reply,
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

impl PeerKind {
    /// Who is behind a peer of this name: of a caller the host alone, whose port is another one each time.
    pub fn who(self, name: &str) -> &str {
        let address = name.split_once(':').and_then(|(_, address)| address.rsplit_once(':'));
        match (self, address) {
            (Self::Caller, Some((host, _))) => host,
            _ => name,
        }
    }
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

    /// The same, and what waits for it takes this part of the node's room.
    #[must_use]
    pub fn within(self, part: Part) -> Self {
        Self { outbox: Outbox::new(part), ..self }
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

    /// Who is behind it.
    pub fn who(&self) -> &str {
        self.kind.who(&self.name)
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

    /// Queues a part of the answer to multipart request `xid`, in as many messages as it needs.
    pub fn reply_part(&self, xid: u32, part: &MultipartReply, more: bool) {
        match encode_reply(self.version, xid, part, more) {
            Ok(messages) => {
                self.outbox.reply(|out| messages.iter().for_each(|bytes| out.extend(bytes)));
            }
            Err(error) => {
                tracing::warn!(peer = self.name, %error, "an entry is missing from an answer");
            }
        }
    }

    /// Queues a request of ours.
    pub fn request(&self, message: &Message) {
        self.reply(self.next_xid.fetch_add(1, Relaxed), message);
    }

    /// Queues news that it asked for; a peer too far behind loses its connection instead.
    pub fn tell(&self, message: &Message) {
        let xid = self.next_xid.fetch_add(1, Relaxed);
        self.outbox.notice(|out| self.encode(xid, message, out));
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
                self.notice(Kind::FlowRemoved, removed.reason.wire(), || {
                    Message::FlowRemoved(removed.clone())
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
            who: self.who().to_owned(),
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
