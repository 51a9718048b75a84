//! What a user may ask of a switch.

use super::protocol::Protocol;
use super::text::{Controller, Dpid, Listen, SwitchName};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a switch does with packets that no rule matches while no controller is connected (OpenFlow 1.3.5 §6.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailMode {
    /// Forward as a learning switch, also what a table-miss entry would send to a controller that is configured and gone.
    #[default]
    Standalone,
    /// Drop: only rules decide.
    Secure,
}

impl FailMode {
    /// The words users write.
    pub const WORDS: &'static [&'static str] = &["standalone", "secure"];

    /// The mode of that word.
    pub fn of(word: &str) -> Option<Self> {
        match word {
            "standalone" => Some(Self::Standalone),
            "secure" => Some(Self::Secure),
            _ => None,
        }
    }

    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Standalone => "standalone",
            Self::Secure => "secure",
        }
    }
}

/// A switch as a user wants it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SwitchSpec {
    /// Its name, unique on the node.
    pub name: SwitchName,
    /// Its datapath id, unique on the node; derived from node and name when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpid: Option<Dpid>,
    /// What happens to unmatched packets while no controller is there.
    #[serde(default)]
    pub fail_mode: FailMode,
    /// Controllers to connect to.
    #[serde(default)]
    pub controllers: Vec<Controller>,
    /// Addresses to wait for controllers on.
    #[serde(default)]
    pub listen: Vec<Listen>,
    /// OpenFlow versions that it speaks; every one that suiro knows when left out.
    #[serde(default = "Protocol::all")]
    pub protocols: Vec<Protocol>,
    /// Bytes of a packet that a controller gets until it asks for another length (`miss_send_len`, OpenFlow 1.3.5 §7.3.2; 65535: all).
    #[serde(default = "default_miss_send_len")]
    pub miss_send_len: u16,
    /// Most packets a second sent to controllers; the rest is dropped as `packet_in_full`.
    #[serde(default = "default_packet_ins")]
    pub max_packet_in_per_s: u32,
}

/// OpenFlow's own default (OpenFlow 1.3.5 §7.3.2).
pub const DEFAULT_MISS_SEND_LEN: u16 = 128;
/// Chosen: far above what a learning controller needs, far below what would hurt its neighbours.
pub const DEFAULT_PACKET_INS: u32 = 10_000;

fn default_miss_send_len() -> u16 {
    DEFAULT_MISS_SEND_LEN
}

fn default_packet_ins() -> u32 {
    DEFAULT_PACKET_INS
}

impl SwitchSpec {
    /// A switch with every default.
    pub fn named(name: SwitchName) -> Self {
        Self {
            name,
            dpid: None,
            fail_mode: FailMode::default(),
            controllers: Vec::new(),
            listen: Vec::new(),
            protocols: Protocol::all(),
            miss_send_len: DEFAULT_MISS_SEND_LEN,
            max_packet_in_per_s: DEFAULT_PACKET_INS,
        }
    }
}

/// Changes to a switch; what is left out stays.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SwitchPatch {
    /// See [`SwitchSpec::fail_mode`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_mode: Option<FailMode>,
    /// See [`SwitchSpec::controllers`]; replaces the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controllers: Option<Vec<Controller>>,
    /// See [`SwitchSpec::listen`]; replaces the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<Vec<Listen>>,
    /// See [`SwitchSpec::protocols`]; replaces the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocols: Option<Vec<Protocol>>,
    /// See [`SwitchSpec::max_packet_in_per_s`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_packet_in_per_s: Option<u32>,
}

impl SwitchPatch {
    /// The switch after the changes.
    #[must_use]
    pub fn applied_to(&self, spec: &SwitchSpec) -> SwitchSpec {
        SwitchSpec {
            name: spec.name.clone(),
            dpid: spec.dpid.clone(),
            miss_send_len: spec.miss_send_len,
            fail_mode: self.fail_mode.unwrap_or(spec.fail_mode),
            controllers: self.controllers.clone().unwrap_or_else(|| spec.controllers.clone()),
            listen: self.listen.clone().unwrap_or_else(|| spec.listen.clone()),
            protocols: self.protocols.clone().unwrap_or_else(|| spec.protocols.clone()),
            max_packet_in_per_s: self.max_packet_in_per_s.unwrap_or(spec.max_packet_in_per_s),
        }
    }
}
