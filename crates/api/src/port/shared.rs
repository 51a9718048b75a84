//! Keys that ports of several kinds have, and that say the same there.

use super::RX_QUEUES_MAX;
use crate::key::{Form, Key, stands_for};
use crate::{IfName, Netns};

/// The existing interface that a port takes.
pub const INTERFACE: Key = Key::new(
    "interface",
    Form::Text(stands_for::<IfName>),
    "INTERFACE",
    "Interface to use; the one of the port's name when left out",
);

/// Where a port's interface is.
pub const NETNS: Key = Key::new(
    "netns",
    Form::Text(stands_for::<Netns>),
    "NETNS",
    "Network namespace of the interface, a name or a path; the node's own when left out",
);

/// How many cores may receive.
pub const QUEUES: Key = Key::new(
    "queues",
    Form::Number(1..=RX_QUEUES_MAX as u64),
    "NUMBER",
    "Receive queues; one when left out",
);

/// Whether the host may lose the interface.
pub const TAKE_OVER: Key = Key::new(
    "take_over",
    Form::Flag,
    "",
    "Take the interface even where the host uses it: it loses its addresses and routes there",
);

/// Whether the host keeps the interface.
pub const HOST: Key = Key::new(
    "host",
    Form::Flag,
    "",
    "Leave the interface to the host, too: its own stack receives every frame as well",
);
