//! Every OpenFlow message as one value, whatever the version on the wire.

use crate::bytes::Writer;
use crate::error::{EncodeError, ErrorCode, ErrorMsg, Fault};
use crate::flow_mod::{FlowMod, FlowRemoved};
use crate::frame::{HEADER_LEN, Header};
use crate::group::GroupMod;
use crate::ids::PortNo;
use crate::meter::MeterMod;
use crate::multipart::{MultipartReply, MultipartRequest, Part};
use crate::packet::{PacketIn, PacketOut};
use crate::port::{PortMod, PortStatus, QueueConfig};
use crate::switch::{AsyncConfig, Experimenter, Features, Hello, RoleMsg, SwitchConfig, TableMod};
use crate::version::Version;
use crate::{v10, v13};

/// A message (OpenFlow 1.3.5 §7.1, `OFPT_*`).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Message {
    /// First message on a connection.
    Hello(Hello),
    /// Something went wrong.
    Error(ErrorMsg),
    /// Are you there? The answer repeats the bytes.
    EchoRequest(Vec<u8>),
    /// I am.
    EchoReply(Vec<u8>),
    /// An experimenter's message.
    Experimenter(Experimenter),
    /// What are you?
    FeaturesRequest,
    /// What the switch is.
    FeaturesReply(Features),
    /// How are you configured?
    GetConfigRequest,
    /// The switch's configuration.
    GetConfigReply(SwitchConfig),
    /// Configure the switch.
    SetConfig(SwitchConfig),
    /// A packet for the controller.
    PacketIn(PacketIn),
    /// A flow entry went.
    FlowRemoved(FlowRemoved),
    /// A port came, went or changed.
    PortStatus(PortStatus),
    /// A packet to send.
    PacketOut(PacketOut),
    /// Change flow entries.
    FlowMod(FlowMod),
    /// Change a group.
    GroupMod(GroupMod),
    /// Change a port.
    PortMod(PortMod),
    /// Change a table.
    TableMod(TableMod),
    /// Ask for statistics and descriptions.
    MultipartRequest(Part<MultipartRequest>),
    /// Statistics and descriptions.
    MultipartReply(Part<MultipartReply>),
    /// Tell me when everything before this is done.
    BarrierRequest,
    /// Everything before the request is done.
    BarrierReply,
    /// Ask for a port's queues.
    QueueGetConfigRequest(PortNo),
    /// A port's queues.
    QueueGetConfigReply(QueueConfig),
    /// Ask for a role.
    RoleRequest(RoleMsg),
    /// The role.
    RoleReply(RoleMsg),
    /// Which events do I get?
    GetAsyncRequest,
    /// The events that this connection gets.
    GetAsyncReply(AsyncConfig),
    /// Choose the events.
    SetAsync(AsyncConfig),
    /// Change a meter.
    MeterMod(MeterMod),
}

impl Message {
    /// The message's bytes.
    ///
    /// # Errors
    /// [`EncodeError::TooLong`] past 65535 bytes (multipart replies of any length go by [`encode_reply`]), and
    /// [`EncodeError::NotInVersion`].
    pub fn encode(&self, version: Version, xid: u32) -> Result<Vec<u8>, EncodeError> {
        let mut out = Vec::new();
        self.encode_onto(version, xid, &mut out)?;
        Ok(out)
    }

    /// Appends the message's bytes to `out`, for many messages in one buffer.
    ///
    /// # Errors
    /// As [`Message::encode`]; `out` is as before then.
    pub fn encode_onto(
        &self,
        version: Version,
        xid: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let start = out.len();
        let mut writer = Writer(std::mem::take(out));
        let result = match version {
            Version::V1_0 => v10::encode_onto(self, xid, &mut writer),
            Version::V1_3 => v13::encode_onto(self, xid, &mut writer),
        };
        *out = writer.0;
        if result.is_err() {
            out.truncate(start);
        }
        result
    }

    /// Reads one whole message, as [`crate::next_frame`] returns it.
    ///
    /// A hello is read whatever its version; anything else must be of a version that this crate speaks. Reserved and
    /// padding bytes are ignored. Allocates at most a small multiple of the input's length.
    ///
    /// # Errors
    /// The error to answer with. Fields, masks and prerequisites are judged by `check` on the values, not here.
    pub fn decode(bytes: &[u8]) -> Result<(Header, Message), Fault> {
        let short =
            Fault::new(ErrorCode::BadRequestBadLen, "message and its length field disagree");
        let header = Header::peek(bytes).ok_or(short)?;
        if usize::from(header.length) != bytes.len() {
            return Err(short);
        }
        let body = &bytes[HEADER_LEN..];
        let message = match header.known_version() {
            _ if header.kind == v13::HELLO => v13::decode_hello(body),
            Some(Version::V1_0) => v10::decode(header.kind, body),
            Some(Version::V1_3) => v13::decode(header.kind, body),
            None => Err(Fault::new(
                ErrorCode::BadRequestBadVersion,
                "a version that suiro does not speak",
            )),
        }?;
        Ok((header, message))
    }
}

/// A multipart reply as one or more messages of at most 65535 bytes, all but the last marked "more"; the last is marked
/// by `more`, so that a long dump can be encoded batch by batch.
///
/// # Errors
/// [`EncodeError::EntryTooLong`] when a single entry fits no message, and [`EncodeError::NotInVersion`].
pub fn encode_reply(
    version: Version,
    xid: u32,
    reply: &MultipartReply,
    more: bool,
) -> Result<Vec<Vec<u8>>, EncodeError> {
    match version {
        Version::V1_0 => v10::encode_reply(xid, reply, more),
        Version::V1_3 => v13::encode_reply(xid, reply, more),
    }
}
