//! Keys of every kind of port, in the system's terms.

use crate::netns::NetnsRef;
use api::PortSpec;

/// A port without what only its kind has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Common {
    /// The kernel interface's name; of a port that has none, the port's own.
    pub(crate) interface: String,
    /// The namespace where the interface is (or, for a TAP, shall be), or that a tunnel goes out from; `None` is the node's own.
    pub(crate) netns: Option<NetnsRef>,
    /// Rx queues wanted, of a vhost-user port the most pairs; 0 where nothing is said.
    pub(crate) queues: u16,
    /// MTU to set; `None` leaves the interface's.
    pub(crate) mtu: Option<u32>,
    /// MAC address to set; `None` leaves the interface's.
    pub(crate) mac: Option<[u8; 6]>,
}

impl From<&PortSpec> for Common {
    fn from(spec: &PortSpec) -> Self {
        Self {
            interface: spec.interface().map_or_else(|| spec.name.to_string(), String::from),
            netns: spec.netns().map(NetnsRef::from),
            queues: spec.queues().unwrap_or(0),
            mtu: spec.mtu,
            mac: spec.mac().map(api::Mac::bytes),
        }
    }
}
