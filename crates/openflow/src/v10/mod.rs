//! OpenFlow 1.0 on the wire: message types, and the [`Wire`] trait that every structure implements beside its layout.
//!
//! Layouts are those of OpenFlow 1.0.0 §5; `pad` bytes are written as 0 and skipped when read.
//!
//! ## What 1.0 has no word for
//!
//! A switch that speaks 1.0 and 1.3 at once must tell each controller of what the other did. Towards 1.0:
//!
//! * Match fields and actions that 1.0 lacks are left out (`matching`, `action`), as Open vSwitch does: an entry then shows wider
//!   than it is. Of the instructions the actions are shown, applied ones first, then written ones; goto, metadata and meter are not.
//! * Ports above 0xff00 (`OFPP_MAX`) are hidden: they are in no list, no action and no match, and a packet from one says `OFPP_NONE`.
//! * A flow-removed has no table, no hard timeout, and says "deleted" when a group took the entry with it.
//! * Groups, meters, roles and table features have no message: encoding one is [`EncodeError::NotInVersion`].
//!
//! Towards suiro nothing is lost: every 1.0 request becomes one value.

mod action;
mod error;
mod flow;
mod matching;
mod packet;
mod port;
mod stats;
mod switch;

use crate::bytes::{Reader, Writer};
use crate::envelope::{
    self, begin_onto, finish, finish_onto, known, put_buffer, take_buffer, take_list,
};
use crate::error::{EncodeError, ErrorCode, Fault};
use crate::message::Message;
use crate::version::Version;

pub(crate) use stats::encode_reply;

/// A structure with one layout in OpenFlow 1.0.
trait Wire: Sized {
    /// Appends the structure.
    fn put(&self, out: &mut Writer);

    /// Takes the structure off the front.
    fn take(input: &mut Reader<'_>) -> Result<Self, Fault>;
}

// `OFPT_*`, §5.1.
const HELLO: u8 = 0;
const ERROR: u8 = 1;
const ECHO_REQUEST: u8 = 2;
const ECHO_REPLY: u8 = 3;
const VENDOR: u8 = 4;
const FEATURES_REQUEST: u8 = 5;
const FEATURES_REPLY: u8 = 6;
const GET_CONFIG_REQUEST: u8 = 7;
const GET_CONFIG_REPLY: u8 = 8;
const SET_CONFIG: u8 = 9;
const PACKET_IN: u8 = 10;
const FLOW_REMOVED: u8 = 11;
const PORT_STATUS: u8 = 12;
const PACKET_OUT: u8 = 13;
const FLOW_MOD: u8 = 14;
const PORT_MOD: u8 = 15;
const STATS_REQUEST: u8 = 16;
const STATS_REPLY: u8 = 17;
const BARRIER_REQUEST: u8 = 18;
const BARRIER_REPLY: u8 = 19;
const QUEUE_GET_CONFIG_REQUEST: u8 = 20;
const QUEUE_GET_CONFIG_REPLY: u8 = 21;

const NOT_IN_1_0: EncodeError = EncodeError::NotInVersion { version: Version::V1_0 };

/// Begins a message: its header with length 0.
fn begin(kind: u8, xid: u32) -> Writer {
    envelope::begin(Version::V1_0, kind, xid)
}

/// The message's bytes.
pub(crate) fn encode_onto(
    message: &Message,
    xid: u32,
    out: &mut Writer,
) -> Result<(), EncodeError> {
    let start = begin_onto(Version::V1_0, kind(message).ok_or(NOT_IN_1_0)?, xid, out);
    put_body(message, out)?;
    finish_onto(start, out)
}

fn kind(message: &Message) -> Option<u8> {
    Some(match message {
        Message::Hello(_) => HELLO,
        Message::Error(_) => ERROR,
        Message::EchoRequest(_) => ECHO_REQUEST,
        Message::EchoReply(_) => ECHO_REPLY,
        Message::Experimenter(_) => VENDOR,
        Message::FeaturesRequest => FEATURES_REQUEST,
        Message::FeaturesReply(_) => FEATURES_REPLY,
        Message::GetConfigRequest => GET_CONFIG_REQUEST,
        Message::GetConfigReply(_) => GET_CONFIG_REPLY,
        Message::SetConfig(_) => SET_CONFIG,
        Message::PacketIn(_) => PACKET_IN,
        Message::FlowRemoved(_) => FLOW_REMOVED,
        Message::PortStatus(_) => PORT_STATUS,
        Message::PacketOut(_) => PACKET_OUT,
        Message::FlowMod(_) => FLOW_MOD,
        Message::PortMod(_) => PORT_MOD,
        Message::MultipartRequest(_) => STATS_REQUEST,
        Message::MultipartReply(_) => STATS_REPLY,
        Message::BarrierRequest => BARRIER_REQUEST,
        Message::BarrierReply => BARRIER_REPLY,
        Message::QueueGetConfigRequest(_) => QUEUE_GET_CONFIG_REQUEST,
        Message::QueueGetConfigReply(_) => QUEUE_GET_CONFIG_REPLY,
        Message::GroupMod(_)
        | Message::TableMod(_)
        | Message::RoleRequest(_)
        | Message::RoleReply(_)
        | Message::GetAsyncRequest
        | Message::GetAsyncReply(_)
        | Message::SetAsync(_)
        | Message::MeterMod(_) => return None,
    })
}

fn put_body(message: &Message, out: &mut Writer) -> Result<(), EncodeError> {
    match message {
        Message::Hello(hello) => crate::v13::put_hello(hello, out),
        Message::Error(error) => error.put(out),
        Message::EchoRequest(bytes) | Message::EchoReply(bytes) => out.bytes(bytes),
        Message::Experimenter(body) => body.put(out),
        Message::FeaturesReply(features) => features.put(out),
        Message::GetConfigReply(config) | Message::SetConfig(config) => config.put(out),
        Message::PacketIn(packet) => packet.put(out),
        Message::FlowRemoved(removed) => removed.put(out),
        Message::PortStatus(status) => status.put(out),
        Message::PacketOut(packet) => packet.put(out),
        Message::FlowMod(flow) => flow.put(out),
        Message::PortMod(port) => port.put(out),
        Message::MultipartRequest(part) => stats::put_request(part, out)?,
        Message::MultipartReply(part) => stats::put_reply(part, out)?,
        Message::QueueGetConfigRequest(port) => {
            port::put_port(*port, out);
            out.zeros(2);
        }
        Message::QueueGetConfigReply(queues) => queues.put(out),
        _ => {}
    }
    Ok(())
}

/// The message of type `kind` whose bytes after the header are `body`; a hello never comes here.
pub(crate) fn decode(kind: u8, body: &[u8]) -> Result<Message, Fault> {
    let mut input = Reader::new(body, ErrorCode::BadRequestBadLen);
    let message = take_body(kind, &mut input)?;
    if !input.is_empty() {
        return Err(input.bad_len("bytes after the message's end"));
    }
    Ok(message)
}

fn take_body(kind: u8, input: &mut Reader<'_>) -> Result<Message, Fault> {
    Ok(match kind {
        ERROR => Message::Error(Wire::take(input)?),
        ECHO_REQUEST => Message::EchoRequest(input.remaining()),
        ECHO_REPLY => Message::EchoReply(input.remaining()),
        VENDOR => Message::Experimenter(Wire::take(input)?),
        FEATURES_REQUEST => Message::FeaturesRequest,
        FEATURES_REPLY => Message::FeaturesReply(Wire::take(input)?),
        GET_CONFIG_REQUEST => Message::GetConfigRequest,
        GET_CONFIG_REPLY => Message::GetConfigReply(Wire::take(input)?),
        SET_CONFIG => Message::SetConfig(Wire::take(input)?),
        PACKET_IN => Message::PacketIn(Wire::take(input)?),
        FLOW_REMOVED => Message::FlowRemoved(Wire::take(input)?),
        PORT_STATUS => Message::PortStatus(Wire::take(input)?),
        PACKET_OUT => Message::PacketOut(Wire::take(input)?),
        FLOW_MOD => Message::FlowMod(Wire::take(input)?),
        PORT_MOD => Message::PortMod(Wire::take(input)?),
        STATS_REQUEST => Message::MultipartRequest(stats::take_request(input)?),
        STATS_REPLY => Message::MultipartReply(stats::take_reply(input)?),
        BARRIER_REQUEST => Message::BarrierRequest,
        BARRIER_REPLY => Message::BarrierReply,
        QUEUE_GET_CONFIG_REQUEST => Message::QueueGetConfigRequest(port::take_queue_port(input)?),
        QUEUE_GET_CONFIG_REPLY => Message::QueueGetConfigReply(Wire::take(input)?),
        _ => {
            return Err(Fault::new(
                ErrorCode::BadRequestBadType,
                "a message type that OpenFlow 1.0 does not define",
            ));
        }
    })
}
