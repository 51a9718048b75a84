//! OpenFlow 1.3 on the wire: message types, and the [`Wire`] trait that every structure implements beside its layout.
//!
//! Layouts are those of OpenFlow 1.3.5 §7; `pad` bytes are written as 0 and skipped when read.

mod action;
mod flow;
mod group;
mod matching;
mod meter;
mod multipart;
mod packet;
mod port;
mod switch;
mod table;

use crate::bytes::{Reader, Writer};
use crate::envelope::{
    self, begin_onto, finish, finish_onto, known, put_buffer, take_buffer, take_list,
};
use crate::error::{EncodeError, ErrorCode, Fault};
use crate::ids::PortNo;
use crate::message::Message;
use crate::version::Version;

pub(crate) use group::can_be_described as group_can_be_described;
pub(crate) use matching::{put_match, take_match};
pub(crate) use multipart::encode_reply;
pub(crate) use switch::{decode_hello, put_hello};

/// A structure with one layout in OpenFlow 1.3.
trait Wire: Sized {
    /// Appends the structure.
    fn put(&self, out: &mut Writer);

    /// Takes the structure off the front.
    fn take(input: &mut Reader<'_>) -> Result<Self, Fault>;
}

/// Appends one after the other.
fn put_all<T: Wire>(items: &[T], out: &mut Writer) {
    for item in items {
        item.put(out);
    }
}

/// Takes structures until nothing is left.
fn take_all<T: Wire>(input: Reader<'_>) -> Result<Vec<T>, Fault> {
    take_list(input, T::take)
}

// `OFPT_*`, §7.1.
pub(crate) const HELLO: u8 = 0;
const ERROR: u8 = 1;
const ECHO_REQUEST: u8 = 2;
const ECHO_REPLY: u8 = 3;
const EXPERIMENTER: u8 = 4;
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
const GROUP_MOD: u8 = 15;
const PORT_MOD: u8 = 16;
const TABLE_MOD: u8 = 17;
const MULTIPART_REQUEST: u8 = 18;
const MULTIPART_REPLY: u8 = 19;
const BARRIER_REQUEST: u8 = 20;
const BARRIER_REPLY: u8 = 21;
const QUEUE_GET_CONFIG_REQUEST: u8 = 22;
const QUEUE_GET_CONFIG_REPLY: u8 = 23;
const ROLE_REQUEST: u8 = 24;
const ROLE_REPLY: u8 = 25;
const GET_ASYNC_REQUEST: u8 = 26;
const GET_ASYNC_REPLY: u8 = 27;
const SET_ASYNC: u8 = 28;
const METER_MOD: u8 = 29;

/// Begins a message: its header with length 0.
fn begin(kind: u8, xid: u32) -> Writer {
    envelope::begin(Version::V1_3, kind, xid)
}

/// Appends the message's bytes; what an error leaves is to be cut off.
pub(crate) fn encode_onto(
    message: &Message,
    xid: u32,
    out: &mut Writer,
) -> Result<(), EncodeError> {
    let start = begin_onto(Version::V1_3, kind(message), xid, out);
    put_body(message, out);
    finish_onto(start, out)
}

fn kind(message: &Message) -> u8 {
    match message {
        Message::Hello(_) => HELLO,
        Message::Error(_) => ERROR,
        Message::EchoRequest(_) => ECHO_REQUEST,
        Message::EchoReply(_) => ECHO_REPLY,
        Message::Experimenter(_) => EXPERIMENTER,
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
        Message::GroupMod(_) => GROUP_MOD,
        Message::PortMod(_) => PORT_MOD,
        Message::TableMod(_) => TABLE_MOD,
        Message::MultipartRequest(_) => MULTIPART_REQUEST,
        Message::MultipartReply(_) => MULTIPART_REPLY,
        Message::BarrierRequest => BARRIER_REQUEST,
        Message::BarrierReply => BARRIER_REPLY,
        Message::QueueGetConfigRequest(_) => QUEUE_GET_CONFIG_REQUEST,
        Message::QueueGetConfigReply(_) => QUEUE_GET_CONFIG_REPLY,
        Message::RoleRequest(_) => ROLE_REQUEST,
        Message::RoleReply(_) => ROLE_REPLY,
        Message::GetAsyncRequest => GET_ASYNC_REQUEST,
        Message::GetAsyncReply(_) => GET_ASYNC_REPLY,
        Message::SetAsync(_) => SET_ASYNC,
        Message::MeterMod(_) => METER_MOD,
    }
}

fn put_body(message: &Message, out: &mut Writer) {
    match message {
        Message::Hello(hello) => hello.put(out),
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
        Message::GroupMod(group) => group.put(out),
        Message::PortMod(port) => port.put(out),
        Message::TableMod(table) => table.put(out),
        Message::MultipartRequest(part) => part.put(out),
        Message::MultipartReply(part) => part.put(out),
        Message::QueueGetConfigRequest(port) => {
            out.u32(port.0);
            out.zeros(4);
        }
        Message::QueueGetConfigReply(queues) => queues.put(out),
        Message::RoleRequest(role) | Message::RoleReply(role) => role.put(out),
        Message::GetAsyncReply(config) | Message::SetAsync(config) => config.put(out),
        Message::MeterMod(meter) => meter.put(out),
        Message::FeaturesRequest
        | Message::GetConfigRequest
        | Message::BarrierRequest
        | Message::BarrierReply
        | Message::GetAsyncRequest => {}
    }
}

/// The message of type `kind` whose bytes after the header are `body`.
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
        HELLO => Message::Hello(Wire::take(input)?),
        ERROR => Message::Error(Wire::take(input)?),
        ECHO_REQUEST => Message::EchoRequest(input.remaining()),
        ECHO_REPLY => Message::EchoReply(input.remaining()),
        EXPERIMENTER => Message::Experimenter(Wire::take(input)?),
        FEATURES_REQUEST => Message::FeaturesRequest,
        FEATURES_REPLY => Message::FeaturesReply(Wire::take(input)?),
        GET_CONFIG_REQUEST => Message::GetConfigRequest,
        GET_CONFIG_REPLY => Message::GetConfigReply(Wire::take(input)?),
        SET_CONFIG => {
            Message::SetConfig(Wire::take(&mut input.all(ErrorCode::SwitchConfigFailedBadLen))?)
        }
        PACKET_IN => Message::PacketIn(Wire::take(input)?),
        FLOW_REMOVED => Message::FlowRemoved(Wire::take(input)?),
        PORT_STATUS => Message::PortStatus(Wire::take(input)?),
        PACKET_OUT => Message::PacketOut(Wire::take(input)?),
        FLOW_MOD => Message::FlowMod(Wire::take(input)?),
        GROUP_MOD => Message::GroupMod(Wire::take(input)?),
        PORT_MOD => Message::PortMod(Wire::take(input)?),
        TABLE_MOD => Message::TableMod(Wire::take(input)?),
        MULTIPART_REQUEST => Message::MultipartRequest(Wire::take(input)?),
        MULTIPART_REPLY => Message::MultipartReply(Wire::take(input)?),
        BARRIER_REQUEST => Message::BarrierRequest,
        BARRIER_REPLY => Message::BarrierReply,
        QUEUE_GET_CONFIG_REQUEST => {
            let port = PortNo(input.u32()?);
            input.skip(4)?;
            Message::QueueGetConfigRequest(port)
        }
        QUEUE_GET_CONFIG_REPLY => Message::QueueGetConfigReply(Wire::take(input)?),
        ROLE_REQUEST => Message::RoleRequest(Wire::take(input)?),
        ROLE_REPLY => Message::RoleReply(Wire::take(input)?),
        GET_ASYNC_REQUEST => Message::GetAsyncRequest,
        GET_ASYNC_REPLY => Message::GetAsyncReply(Wire::take(input)?),
        SET_ASYNC => Message::SetAsync(Wire::take(input)?),
        METER_MOD => Message::MeterMod(Wire::take(input)?),
        _ => {
            return Err(Fault::new(
                ErrorCode::BadRequestBadType,
                "a message type that OpenFlow 1.3 does not define",
            ));
        }
    })
}
