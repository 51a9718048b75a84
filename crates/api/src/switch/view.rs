//! What is shown of a switch, with its controllers.

use super::{FailMode, Rules, SteeringAccess};
use crate::{Dpid, DropView, Fault, Latencies, Netns, Protocol, SwitchName, TlsSpec};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An OpenFlow connection.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct ConnectionView {
    /// The peer.
    pub peer: String,
    /// Whether it is a controller; otherwise a tool such as ovs-ofctl.
    pub controller: bool,
    /// 0 for a main connection, the number of an auxiliary one.
    pub auxiliary: u8,
    /// `equal`, `master` or `slave`.
    pub role: String,
    /// OpenFlow version.
    pub version: String,
    /// Packet-ins sent to it.
    pub packet_ins: u64,
    /// Packet-ins that it was too slow for.
    pub lost_packet_ins: u64,
}

/// What last went wrong at an endpoint.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct TroubleView {
    /// When, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Why.
    pub cause: String,
    /// What to do.
    pub remedy: String,
}

/// A controller that is called, or an address that controllers may call.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct EndpointView {
    /// As it is configured.
    pub target: String,
    /// `resolving`, `connecting`, `tls-handshake`, `hello`, `connected`, `waiting` (for the next attempt) or `listening`.
    pub state: String,
    /// Since when, in nanoseconds since 1970.
    pub since_ns: u64,
    /// OpenFlow version agreed on, of a controller that is connected.
    pub version: Option<String>,
    /// Its role: `equal`, `master` or `slave`.
    pub role: Option<String>,
    /// Auxiliary connections that stand.
    pub auxiliary: usize,
    /// What last went wrong.
    pub last_error: Option<TroubleView>,
}

/// A switch.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
pub struct SwitchView {
    /// Its name.
    pub name: SwitchName,
    /// Its datapath id.
    pub dpid: Dpid,
    /// What happens to unmatched packets without a controller.
    pub fail_mode: FailMode,
    /// Controllers to connect to.
    pub controllers: Vec<String>,
    /// Addresses it waits for controllers on.
    pub listen: Vec<String>,
    /// OpenFlow versions that it speaks.
    pub protocols: Vec<Protocol>,
    /// What each of both is doing.
    pub endpoints: Vec<EndpointView>,
    /// Whether it forwards by itself now: standalone, and no controller is there.
    pub alone: bool,
    /// Seconds without a controller before a standalone switch forwards by itself.
    pub fail_after_s: u32,
    /// What becomes of the rules when a controller comes and none was there.
    pub on_reconnect: Rules,
    /// What becomes of the rules when a standalone switch begins to forward by itself.
    pub on_standalone: Rules,
    /// Seconds of silence before an echo is asked for.
    pub echo_interval_s: u16,
    /// Auxiliary connections wanted to each controller.
    pub aux: u8,
    /// What its controllers may do with the host's steering.
    pub steering: SteeringAccess,
    /// Its certificates, its own or the node's.
    pub tls: Option<TlsSpec>,
    /// The network namespace that its OpenFlow connections are made in; none is the node's own.
    #[serde(default)]
    pub session_netns: Option<Netns>,
    /// Most packets a second sent to controllers.
    pub max_packet_in_per_s: u32,
    /// Copies a second that floods of each port may cause (storm control); none: no bound.
    #[serde(default)]
    pub max_flood_copies_per_s: Option<u32>,
    /// Copies a second beyond those that each frame may make.
    #[serde(default = "super::default_copies")]
    pub max_copies_per_s: u32,
    /// Its management socket, for ovs-ofctl.
    pub management: String,
    /// `file` or `api`: who made it.
    pub origin: String,
    /// Its ports.
    pub ports: usize,
    /// Tables of its pipeline: all that suiro has, unless a controller has taken some out.
    pub tables: usize,
    /// Its rules.
    pub flows: u32,
    /// Frames sent to controllers.
    pub packet_ins: u64,
    /// Frames sent by controllers.
    pub packet_outs: u64,
    /// Frames lost, by reason, its ports' included.
    pub drops: Vec<DropView>,
    /// How long frames stayed that came in here, since the switch was made.
    #[serde(default)]
    pub latency: Latencies,
    /// OpenFlow connections.
    pub connections: Vec<ConnectionView>,
    /// Why it does not listen, if it does not.
    pub fault: Option<Fault>,
}

/// A station that a switch has learned.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub struct MacView {
    /// VLAN id; 0 for untagged frames.
    pub vlan: u16,
    /// Its address, such as `02:00:00:00:00:01`.
    pub mac: String,
    /// Number of the port behind which it is.
    pub port: u32,
    /// Name of that port; none if it is gone.
    pub port_name: Option<String>,
    /// Seconds since its last frame; at 300 it is forgotten.
    pub age_s: u32,
}
