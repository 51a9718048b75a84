//! What users may ask for, in the one form that the configuration file, the API and the store share.

#[macro_use]
mod text;

mod endpoint;
mod number;
mod port;
mod protocol;
mod queue;
mod rate;
mod sealing;
mod switch;
mod tls;
mod tunnel;

pub use endpoint::{Controller, Host, Listen, OPENFLOW_PORT, Place, Target, Transport};
pub use number::PortNumber;
pub use port::{Fault, PAIRS_MAX, PortKind, PortPatch, PortSpec, QUEUES_MAX, XdpMode};
pub use protocol::Protocol;
pub use queue::{QueueLimits, QueueSpec};
pub use rate::{NewRate, Rate};
pub use sealing::SealCore;
pub use switch::{
    AUXILIARY_MAX, DEFAULT_MISS_SEND_LEN, ECHO_INTERVAL_MAX_S, FAIL_AFTER_MAX_S, FailMode, Rules,
    SteeringAccess, SwitchPatch, SwitchSpec,
};
pub use text::{
    BadText, Dpid, Dscp, IfName, KeyPath, Mac, Netns, Peer, PortName, SocketPath, SteerPoint,
    SwitchName,
};
pub use tls::{Pin, TlsSpec};
pub use tunnel::{Addresses, FlowId, Forwarding, Remote, TunnelKey};
