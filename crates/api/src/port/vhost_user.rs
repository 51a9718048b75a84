//! `vhost-user`: a virtual machine's memory, by the vhost-user protocol.

use crate::key::{Form, Key, stands_for};
use crate::{FileMode, GroupName, Mac, SocketPath, UserName};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Most queue pairs: the protocol names a ring by 8 bits, and a pair has two.
pub const PAIRS_MAX: u16 = 128;

/// A virtual machine's port.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VhostUser {
    /// Socket shared with the guest's front-end.
    pub socket: SocketPath,
    /// Whether suiro listens on the socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<bool>,
    /// User that owns the socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<UserName>,
    /// Group that owns the socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<GroupName>,
    /// Permission bits of the socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<FileMode>,
    /// Most queue pairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queues: Option<u16>,
    /// MAC address that controllers see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<Mac>,
}

/// Keys of a virtual machine's port.
pub const KEYS: &[Key] = &[
    Key::new(
        "socket",
        Form::Text(stands_for::<SocketPath>),
        "PATH",
        "Socket shared with the guest's front-end: QEMU, cloud-hypervisor, DPDK",
    )
    .needed(
        "a vhost-user port needs the socket that it shares with the guest",
        "add socket = \"/run/suiro/NAME.sock\"",
    ),
    Key::new(
        "server",
        Form::Flag,
        "",
        "Listen on the socket; without it suiro calls, and guests outlive its restarts",
    ),
    Key::new(
        "owner",
        Form::Text(stands_for::<UserName>),
        "USER",
        "User that owns the socket, such as libvirt-qemu; the node's own when left out",
    )
    .only_with("server")
    .live(),
    Key::new(
        "group",
        Form::Text(stands_for::<GroupName>),
        "GROUP",
        "Group that owns the socket; the node's own when left out",
    )
    .only_with("server")
    .live(),
    Key::new(
        "mode",
        Form::Text(stands_for::<FileMode>),
        "MODE",
        "Permission bits of the socket, octal; 0660 when left out",
    )
    .only_with("server")
    .live(),
    Key::new(
        "queues",
        Form::Number(1..=PAIRS_MAX as u64),
        "NUMBER",
        "Most queue pairs; one when left out",
    ),
    Key::new(
        "mac",
        Form::Text(stands_for::<Mac>),
        "MAC",
        "MAC address that controllers see, as the guest's own is its front-end's to set; one made from datapath id and number when left out",
    ),
];

impl VhostUser {
    /// Whether suiro listens on the socket, and the front-end calls.
    pub fn is_server(&self) -> bool {
        self.server.unwrap_or(false)
    }
}
