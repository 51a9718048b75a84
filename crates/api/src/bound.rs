//! What is shown of bounds, and of who has hit them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A bound on what one tenant, caller or guest can take of a node (`docs/reference/limits.md`).
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Copies of frames.
    Copies,
    /// Copies of frames that a bridge floods.
    FloodCopies,
    /// Packet-ins that a switch makes.
    PacketIns,
    /// Packet-ins that a controller does not read.
    UnreadPacketIns,
    /// Replies and changes that a controller does not read.
    UnreadMessages,
    /// Rules, groups, meters and ends of tunnels.
    Rules,
    /// Lists of rules that are being read.
    RuleLists,
    /// OpenFlow connections of one address.
    Connections,
    /// Time for the hello of a caller.
    Hello,
    /// Look-ups of controllers' names.
    NameLookups,
    /// Connections of the API.
    ApiConnections,
    /// Bodies of requests of the API.
    ApiBodies,
    /// Memory that a guest shares, or has the node touch first.
    GuestMemory,
}

impl Bound {
    /// The word that users read.
    pub fn word(self) -> &'static str {
        match self {
            Self::Copies => "copies",
            Self::FloodCopies => "flood_copies",
            Self::PacketIns => "packet_ins",
            Self::UnreadPacketIns => "unread_packet_ins",
            Self::UnreadMessages => "unread_messages",
            Self::Rules => "rules",
            Self::RuleLists => "rule_lists",
            Self::Connections => "connections",
            Self::Hello => "hello",
            Self::NameLookups => "name_lookups",
            Self::ApiConnections => "api_connections",
            Self::ApiBodies => "api_bodies",
            Self::GuestMemory => "guest_memory",
        }
    }

    /// The key that sets it, of a switch or a node; nothing where it is a constant of the program.
    pub fn key(self) -> Option<&'static str> {
        match self {
            Self::Copies => Some("max_copies_per_s"),
            Self::FloodCopies => Some("max_flood_copies_per_s"),
            Self::PacketIns => Some("max_packet_in_per_s"),
            _ => None,
        }
    }
}

/// Who hit a bound, and since when: hits with less than a minute from one to the next.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct BoundHit {
    /// The bound.
    pub bound: Bound,
    /// The switch that hit it, or whose port or controller did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<String>,
    /// Who: a port of the switch, a controller, a caller's host, a socket of the API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// What became of it the last time.
    pub text: String,
    /// The key that sets the bound; nothing where it is a constant of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Since when, in nanoseconds since 1970.
    pub since_ns: u64,
    /// The last time, in nanoseconds since 1970.
    pub last_ns: u64,
    /// How often since then: frames, rules, connections, requests.
    pub times: u64,
    /// Whether it was hit within the last minute.
    pub goes_on: bool,
}
