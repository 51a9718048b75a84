//! `af_packet`: an existing interface, by packet socket. Works everywhere.

use super::RX_QUEUES_MAX;
use crate::key::{Form, Key, stands_for};
use crate::{IfName, Netns};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A port on an interface, by packet socket.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AfPacket {
    /// Interface to use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<IfName>,
    /// Network namespace of the interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub netns: Option<Netns>,
    /// Receive queues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queues: Option<u16>,
    /// Whether the interface may be the host's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub take_over: Option<bool>,
    /// Whether the host's own stack receives the interface's frames, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<bool>,
}

/// Keys of a port on an interface, by packet socket.
pub const KEYS: &[Key] = &[
    Key::new(
        "interface",
        Form::Text(stands_for::<IfName>),
        "INTERFACE",
        "Interface to use; the one of the port's name when left out",
    ),
    Key::new(
        "netns",
        Form::Text(stands_for::<Netns>),
        "NETNS",
        "Network namespace of the interface, a name or a path; the node's own when left out",
    ),
    Key::new(
        "queues",
        Form::Number(1..=RX_QUEUES_MAX as u64),
        "NUMBER",
        "Receive queues; one when left out",
    ),
    Key::new(
        "take_over",
        Form::Flag,
        "",
        "Take the interface even where the host uses it: it loses its addresses and routes there",
    ),
    Key::new(
        "host",
        Form::Flag,
        "",
        "Leave the interface to the host, too: its own stack receives every frame as well",
    ),
];
