//! What is true of an open port now.

/// A port's state, read from the kernel.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PortFacts {
    /// The kernel interface's name.
    pub interface: String,
    /// Its index in its namespace.
    pub index: u32,
    /// Its MAC address.
    pub mac: [u8; 6],
    /// Its MTU: payload bytes of an untagged Ethernet frame.
    pub mtu: u32,
    /// What is longer, the port itself refuses, and tells its sender: no one has to keep it away.
    pub refuses_longer: bool,
    /// Administratively up.
    pub up: bool,
    /// A frame sent now would reach a peer.
    pub carrier: bool,
    /// Mbit/s; 0 when unknown.
    pub speed_mbps: u32,
    /// How frames are exchanged, in words: `af_xdp native copy, 2 queues`.
    pub mode: String,
    /// Which faster door is missing and why, and what was changed on the interface.
    pub notes: Vec<String>,
}

impl PortFacts {
    /// Bytes after the Ethernet header of the longest packet that may be handed to the port.
    pub fn longest(&self) -> u32 {
        if self.refuses_longer || self.mtu == 0 { u32::MAX } else { self.mtu }
    }
}
