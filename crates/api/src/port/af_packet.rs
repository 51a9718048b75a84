//! `af_packet`: an existing interface, by packet socket. Works everywhere.

use super::shared;
use crate::key::Key;
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
pub const KEYS: &[Key] =
    &[shared::INTERFACE, shared::NETNS, shared::QUEUES, shared::TAKE_OVER, shared::HOST];
