//! # openflow: messages as values, and the ovs-ofctl syntax for them
//!
//! **Question answered**: what does this message say, which bytes say that, and what does a person write for it?
//!
//! Pure: no I/O, clock, thread, `unsafe` or global state. Uses no other crate of suiro.
//!
//! ## Shape
//!
//! * [`Message`] and everything in it are **version-neutral values**. [`Message::encode`] and [`Message::decode`] are the
//!   only doors to bytes; one private module per version (`v10`, `v13`) knows layouts and numbers. A new version is a new
//!   module and a new [`Version`], not a change of values.
//! * [`next_frame`] cuts a stream into messages; [`encode_reply`] cuts a long multipart reply into messages.
//! * [`OxmField`] is a table: one row says all that is known of a match field.
//! * Reading has two steps with different strictness. **Decoding** refuses only what has no meaning as a structure
//!   (lengths, unknown types). **Checking** ([`Match::check`], [`FlowMod::check`], [`GroupMod::check`], [`MeterMod::check`],
//!   [`PacketOut::check`]) refuses what a switch must refuse. Both report a [`Fault`]: the exact error code to answer with.
//! * [`text`] reads and prints flows, groups and meters as `ovs-ofctl` does.
//! * [`steering`] holds suiro's own messages: what [`Experimenter`] messages and multiparts with the id [`SUIRO`] say.
//!
//! ## Invariants
//!
//! * decode ∘ encode = identity on every value that the version has words for and whose fields fit their width on the wire;
//!   parse ∘ print likewise. What 1.0 has no word for it leaves out, as `v10` says.
//! * Nothing panics on input, and nothing allocates more than a small multiple of the input's length.
//! * What is not understood is kept: unknown match fields and experimenters' parts survive a round trip.
//!
//! Sources: OpenFlow Switch Specification 1.3.5 (ONF TS-023), cited by section, and 1.0.0 with 1.0.1, cited as such.

mod action;
mod bytes;
mod check;
mod envelope;
mod error;
mod fixed_text;
mod flow_mod;
mod frame;
mod group;
mod ids;
mod kinds;
mod matching;
mod message;
mod meter;
mod multipart;
mod oxm;
mod packet;
mod port;
pub mod steering;
mod switch;
mod table;
pub mod text;
mod v10;
mod v13;
mod version;
mod wire_enum;
mod wording;

pub use action::{Action, Instruction};
pub use error::{ERROR_ECHO, EncodeError, ErrorCode, ErrorKind, ErrorMsg, Fault};
pub use fixed_text::{FixedText, PortName};
pub use flow_mod::{
    DEFAULT_PRIORITY, FlowMod, FlowModCommand, FlowModFlags, FlowRemoved, FlowRemovedReason,
};
pub use frame::{BadFrame, HEADER_LEN, Header, next_frame};
pub use group::{
    Bucket, Counter, GroupCapabilities, GroupDesc, GroupFeatures, GroupMod, GroupModCommand,
    GroupStats, GroupType,
};
pub use ids::{GroupId, MeterId, PortNo, TableId, WHOLE_PACKET};
pub use matching::Match;
pub use message::{Message, encode_reply};
pub use meter::{
    BandKind, MeterBand, MeterConfig, MeterFeatures, MeterFlags, MeterMod, MeterModCommand,
    MeterStats,
};
pub use multipart::{
    AggregateStats, FlowStats, FlowStatsRequest, MultipartKind, MultipartReply, MultipartRequest,
    Part, SwitchDesc,
};
pub use oxm::{
    CLASS_BASIC, CLASS_EXPERIMENTER, CLASS_NXM_1, FieldSpec, Format, ONF, Oxm, OxmField, OxmId,
    Prerequisite, SUIRO, UnknownOxm, VLAN_PRESENT,
};
pub use packet::{PacketIn, PacketInReason, PacketOut};
pub use port::{
    ALL_QUEUES, Mac, PortConfig, PortDesc, PortFeatures, PortMod, PortReason, PortState, PortStats,
    PortStatus, Queue, QueueConfig, QueueProperty, QueueStats,
};
pub use switch::{
    AsyncConfig, Capabilities, Experimenter, Features, FragmentMode, Hello, Role, RoleMsg,
    SwitchConfig, TableMod,
};
pub use table::{EntryScope, TableFeatures, TableProperty, TableStats, TypeId};
pub use version::{Version, VersionSet};
pub use wording::Wording;
