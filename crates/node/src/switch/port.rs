//! A port as its switch sees it: number, name, and what OpenFlow calls configuration and state (OpenFlow 1.3.5 §7.2.1).

use flow::PortNo;
use openflow::PortConfig;
use port::PortFacts;

/// A port of a switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SwitchPort {
    /// Number, unique in the switch, 1..=`OFPP_MAX` or `OFPP_LOCAL`.
    pub number: PortNo,
    /// Name, unique in the switch.
    pub name: String,
    /// MAC address.
    pub mac: [u8; 6],
    /// What is wanted of it (`OFPPC_*`).
    pub config: PortConfig,
    /// Whether a frame sent now would reach a peer.
    pub link_up: bool,
    /// Mbit/s; 0 when unknown.
    pub speed_mbps: u32,
    /// Payload bytes of an untagged frame.
    pub mtu: u32,
    /// When the port was added.
    pub added: flow::Nanos,
}

impl SwitchPort {
    /// A port with what is true of its interface.
    pub fn new(
        number: PortNo,
        name: &str,
        facts: &PortFacts,
        config: PortConfig,
        added: flow::Nanos,
    ) -> Self {
        let mut port = Self {
            number,
            name: name.into(),
            mac: facts.mac,
            config,
            link_up: false,
            speed_mbps: 0,
            mtu: 0,
            added,
        };
        port.update(facts);
        port
    }

    /// Takes over new facts; true when one of them is visible to a controller.
    pub fn update(&mut self, facts: &PortFacts) -> bool {
        let visible = |port: &Self| (port.mac, port.link_up, port.speed_mbps);
        let before = visible(self);
        self.mac = facts.mac;
        self.link_up = facts.up && facts.carrier;
        self.speed_mbps = facts.speed_mbps;
        self.mtu = facts.mtu;
        visible(self) != before
    }

    /// Its state in a few words.
    pub fn condition(&self) -> &'static str {
        match (self.config.contains(PortConfig::PORT_DOWN), self.link_up) {
            (true, _) => "set down",
            (false, true) => "link up",
            (false, false) => "link down",
        }
    }

    /// Whether a fast-failover bucket may use it: wanted up, and its link is.
    pub fn is_live(&self) -> bool {
        self.link_up && !self.config.contains(PortConfig::PORT_DOWN)
    }
}
