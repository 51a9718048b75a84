//! `vlink`: one end of a link to another switch of the node.

use crate::Peer;
use crate::key::{Form, Key, stands_for};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One end of a link to another switch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Vlink {
    /// The other end.
    pub peer: Peer,
}

/// Keys of a vlink.
pub const KEYS: &[Key] = &[Key::new(
    "peer",
    Form::Text(stands_for::<Peer>),
    "SWITCH:PORT",
    "The other end, which names this one as its peer",
)
.needed("a vlink has two ends and one is missing", "add peer = \"SWITCH:PORT\"")];
