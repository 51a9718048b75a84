//! What each request of a peer does, and its answer (OpenFlow 1.3.5 §7.3). One table; the work is done by [`Switch`].

use crate::agent::multipart::{Replies, multipart};
use crate::agent::peer::Peer;
use crate::agent::steering::Question;
use crate::switch::{PACKET_BUFFERS, Switch};
use openflow::{
    Capabilities, ErrorCode, Fault, Features, Message, MultipartReply, MultipartRequest, Part,
    PortDesc, PortNo, QueueConfig, Role, RoleMsg, SwitchConfig, TableId, TableMod,
};
use std::sync::Arc;

/// Most queues that an answer of 64 KiB holds: 16 bytes and two properties of 16 each, behind a head of 16.
const QUEUES_OF_ALL_MAX: usize = (0xffff - 16) / 48;

/// What a request led to besides its effect.
pub enum Outcome {
    /// Nothing more to say.
    Done,
    /// One answer.
    Reply(Message),
    /// An answer in parts, which the session sends as the peer takes them.
    Parts(Replies),
    /// A question for the host's steering, which the session asks.
    Steering(Question),
}

/// Carries out request `xid`; flow-mods go by [`Switch::flow_mods`] and never come here.
///
/// Answers that list ports are queued here, while no port changes. A list that a later port-status had overtaken would be old for good
/// to a controller that hears port-status only once it has the list, as os-ken does.
///
/// # Errors
/// The OpenFlow error to answer with.
pub fn carry_out(
    switch: &Arc<Switch>,
    peer: &Peer,
    xid: u32,
    request: Message,
) -> Result<Outcome, Fault> {
    if peer.role() == Role::Slave && changes_state(&request) {
        return Err(Fault::new(ErrorCode::BadRequestIsSlave, "a slave may only read"));
    }
    match request {
        // A second hello, answers to our own requests and complaints need no answer; any byte was a sign of life.
        Message::Hello(_) | Message::EchoReply(_) => Ok(Outcome::Done),
        Message::Error(error) => {
            tracing::debug!(
                switch = switch.name(),
                peer = peer.name(),
                ?error,
                "the peer reports an error"
            );
            Ok(Outcome::Done)
        }
        Message::EchoRequest(data) => Ok(Outcome::Reply(Message::EchoReply(data))),
        Message::FeaturesRequest => {
            switch.with_ports(|ports| {
                peer.reply(xid, &Message::FeaturesReply(features(switch, peer, ports)));
            });
            Ok(Outcome::Done)
        }
        Message::GetConfigRequest => {
            Ok(Outcome::Reply(Message::GetConfigReply(config(switch, peer))))
        }
        Message::SetConfig(wanted) => set_config(switch, peer, wanted),
        Message::PacketOut(request) => done(switch.packet_out(request)),
        Message::FlowMod(change) => done(switch.flow_mod(&change)),
        Message::GroupMod(change) => done(switch.group_mod(&change)),
        Message::MeterMod(change) => done(switch.meter_mod(&change)),
        Message::PortMod(change) => done(switch.port_mod(&change)),
        Message::TableMod(change) => done(table_mod(switch, change)),
        Message::MultipartRequest(Part {
            body: MultipartRequest::Experimenter(request), ..
        }) => Ok(Outcome::Steering(Question::Request(request))),
        Message::MultipartRequest(Part { body: MultipartRequest::PortDesc, .. }) => {
            switch
                .with_ports(|ports| peer.reply_part(xid, &MultipartReply::PortDesc(ports), false));
            Ok(Outcome::Done)
        }
        // The session has put its parts together.
        Message::MultipartRequest(Part { body, .. }) => multipart(switch, body).map(Outcome::Parts),
        Message::BarrierRequest => {
            switch.settle();
            Ok(Outcome::Reply(Message::BarrierReply))
        }
        Message::QueueGetConfigRequest(port) => queues(switch, port),
        Message::RoleRequest(request) => role(switch, peer, request),
        Message::GetAsyncRequest => Ok(Outcome::Reply(Message::GetAsyncReply(peer.async_config()))),
        Message::SetAsync(config) => {
            peer.set_async_config(&config);
            claim(switch, peer);
            Ok(Outcome::Done)
        }
        Message::Experimenter(message) => Ok(Outcome::Steering(Question::Message(message))),
        Message::FeaturesReply(_)
        | Message::GetConfigReply(_)
        | Message::PacketIn(_)
        | Message::FlowRemoved(_)
        | Message::PortStatus(_)
        | Message::MultipartReply(_)
        | Message::BarrierReply
        | Message::QueueGetConfigReply(_)
        | Message::RoleReply(_)
        | Message::GetAsyncReply(_) => {
            Err(Fault::new(ErrorCode::BadRequestBadType, "a message that only a switch sends"))
        }
    }
}

/// Whether a slave must not do this (OpenFlow 1.3.5 §6.3.4).
pub fn changes_state(request: &Message) -> bool {
    match request {
        Message::PacketOut(_)
        | Message::FlowMod(_)
        | Message::GroupMod(_)
        | Message::MeterMod(_)
        | Message::PortMod(_)
        | Message::TableMod(_) => true,
        Message::MultipartRequest(part) => {
            matches!(&part.body, MultipartRequest::TableFeatures(wanted) if !wanted.is_empty())
        }
        _ => false,
    }
}

fn done(result: Result<(), Fault>) -> Result<Outcome, Fault> {
    result.map(|()| Outcome::Done)
}

fn features(switch: &Switch, peer: &Peer, ports: Vec<PortDesc>) -> Features {
    let version = peer.version();
    let lists_ports = version.lists_ports_in_features();
    Features {
        datapath_id: switch.datapath_id(),
        buffers: PACKET_BUFFERS,
        // "Supported by the datapath" (§7.3.1): also those that a controller took out of the pipeline, which it may bring back.
        tables: switch.limits().tables,
        auxiliary_id: peer.auxiliary_id(),
        capabilities: Capabilities::FLOW_STATS
            | Capabilities::TABLE_STATS
            | Capabilities::PORT_STATS
            | Capabilities::QUEUE_STATS
            | if lists_ports { Capabilities::ARP_MATCH_IP } else { Capabilities::GROUP_STATS },
        actions: version.actions_in_features(),
        ports: if lists_ports { ports } else { Vec::new() },
    }
}

fn config(switch: &Switch, peer: &Peer) -> SwitchConfig {
    SwitchConfig { fragments: switch.fragments(), miss_send_len: peer.miss_send_len() }
}

/// The miss-send-length is the connection's own, as in Open vSwitch; a slave leaves the switch's fragment mode alone.
fn set_config(switch: &Switch, peer: &Peer, wanted: SwitchConfig) -> Result<Outcome, Fault> {
    if peer.role() != Role::Slave && switch.fragments() != wanted.fragments {
        match switch.set_fragments(wanted.fragments) {
            Err(fault) if !peer.version().refuses_configurations() => {
                tracing::warn!(switch = switch.name(), peer = peer.name(), %fault, "fragments are handled as before");
            }
            result => result?,
        }
    }
    peer.set_miss_send_len(wanted.miss_send_len);
    if wanted.miss_send_len > 0 {
        claim(switch, peer);
    }
    if peer.version().sends_misses_to_controller() {
        switch.audience_changed();
    }
    Ok(Outcome::Done)
}

/// The peer behaves as a controller, which a caller need not be.
fn claim(switch: &Switch, peer: &Peer) {
    if peer.channel().claim() {
        switch.controllers_changed(peer);
    }
}

/// `OFPTC_*` has no meaning in 1.3 (§7.3.3): a table that exists takes any defined value and stays as it is.
fn table_mod(switch: &Switch, change: TableMod) -> Result<(), Fault> {
    if change.table != TableId::ALL && !switch.has_table(change.table) {
        return Err(Fault::new(ErrorCode::TableModFailedBadTable, "no such table"));
    }
    if change.config > 3 {
        return Err(Fault::new(
            ErrorCode::TableModFailedBadConfig,
            "a configuration that OpenFlow does not define",
        ));
    }
    Ok(())
}

/// The queues of a port or, from 1.2 on, of all (§7.3.6). The answer is one message, and cannot have parts.
fn queues(switch: &Switch, port: PortNo) -> Result<Outcome, Fault> {
    let queues = switch.queues(port)?;
    if queues.len() > QUEUES_OF_ALL_MAX {
        return Err(Fault::new(
            ErrorCode::QueueOpFailedBadPort,
            "more queues than one message can tell: ask for each port",
        ));
    }
    Ok(Outcome::Reply(Message::QueueGetConfigReply(QueueConfig { port, queues })))
}

fn role(switch: &Switch, peer: &Peer, request: RoleMsg) -> Result<Outcome, Fault> {
    let generation_id = switch.claim_role(
        crate::switch::Listener::id(peer),
        request.role,
        request.generation_id,
    )?;
    if request.role != Role::NoChange {
        claim(switch, peer);
    }
    Ok(Outcome::Reply(Message::RoleReply(RoleMsg { role: peer.role(), generation_id })))
}
