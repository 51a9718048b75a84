//! What users may ask for, in the one form that the configuration file, the API and the store share.

mod port;
mod protocol;
mod switch;
mod text;

pub use port::{Fault, PORT_NUMBER_MAX, PortKind, PortPatch, PortSpec, QUEUES_MAX, XdpMode};
pub use protocol::Protocol;
pub use switch::{DEFAULT_MISS_SEND_LEN, FailMode, SwitchPatch, SwitchSpec};
pub use text::{BadText, Controller, Dpid, IfName, Listen, Mac, Netns, Peer, PortName, SwitchName};
