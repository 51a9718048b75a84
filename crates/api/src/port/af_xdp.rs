//! `af_xdp`: an existing interface, by XDP.

use super::{RX_QUEUES_MAX, shared};
use crate::key::{Form, Key};
use crate::{IfName, Netns};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Which XDP attachment a port may use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum XdpMode {
    /// The best one that works; the port's notes say which faster one is missing and why.
    #[default]
    Auto,
    /// Native, with zero copy.
    ZeroCopy,
    /// Native, with a copy.
    Native,
    /// Generic: any driver.
    Generic,
}

impl XdpMode {
    /// The words users write.
    pub const WORDS: &'static [&'static str] = &["auto", "zero-copy", "native", "generic"];
}

/// A port on an interface, by XDP.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AfXdp {
    /// Interface to use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<IfName>,
    /// Network namespace of the interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub netns: Option<Netns>,
    /// Receive queues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queues: Option<u16>,
    /// XDP attachment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xdp_mode: Option<XdpMode>,
    /// Whether the interface may be the host's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub take_over: Option<bool>,
    /// Whether the host's own stack receives the interface's frames, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<bool>,
}

/// Keys of a port on an interface, by XDP.
pub const KEYS: &[Key] = &[
    shared::INTERFACE,
    shared::NETNS,
    Key::new(
        "queues",
        Form::Number(1..=RX_QUEUES_MAX as u64),
        "NUMBER",
        "Receive queues; all that the interface has when left out",
    ),
    Key::new(
        "xdp_mode",
        Form::Word(XdpMode::WORDS),
        "MODE",
        "XDP attachment; the best one that works when left out",
    ),
    shared::TAKE_OVER,
    shared::HOST,
];
