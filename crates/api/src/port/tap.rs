//! `tap`: an interface that suiro makes, in the node's or in a guest's network namespace.

use super::shared;
use crate::key::{Form, Key, stands_for};
use crate::{IfName, Mac, Netns};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A TAP port.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Tap {
    /// Interface to make.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<IfName>,
    /// Network namespace of the interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub netns: Option<Netns>,
    /// MAC address of the guest's side.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<Mac>,
    /// Receive queues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queues: Option<u16>,
}

/// Keys of a TAP port.
pub const KEYS: &[Key] = &[
    Key::new(
        "interface",
        Form::Text(stands_for::<IfName>),
        "INTERFACE",
        "Interface to make; the one of the port's name when left out",
    ),
    shared::NETNS,
    Key::new(
        "mac",
        Form::Text(stands_for::<Mac>),
        "MAC",
        "MAC address of the guest's side; the kernel's choice when left out",
    ),
    shared::QUEUES,
];
