//! Ports: a switch's port as OpenFlow describes it, and as the tables need it.

use crate::switch::port::SwitchPort;
use openflow::{Mac, PortConfig, PortDesc, PortFeatures, PortName, PortNo, PortState};

/// A port for a controller (OpenFlow 1.3.5 §7.2.1).
pub fn port_desc(port: &SwitchPort) -> PortDesc {
    let link = if port.link_up { PortState::empty() } else { PortState::LINK_DOWN };
    let live = if port.is_live() { PortState::LIVE } else { PortState::empty() };
    let speed_kbps = port.speed_mbps.saturating_mul(1000);
    PortDesc {
        number: PortNo(port.number),
        hw_addr: Mac(port.mac),
        name: PortName::from(port.name.as_str()),
        config: port.config,
        state: link | live,
        current: features(port.speed_mbps),
        advertised: PortFeatures::empty(),
        supported: PortFeatures::empty(),
        peer: PortFeatures::empty(),
        current_speed_kbps: speed_kbps,
        max_speed_kbps: speed_kbps,
    }
}

fn features(speed_mbps: u32) -> PortFeatures {
    match speed_mbps {
        0 => PortFeatures::empty(),
        10 => PortFeatures::FD_10MB,
        100 => PortFeatures::FD_100MB,
        1_000 => PortFeatures::FD_1GB,
        10_000 => PortFeatures::FD_10GB,
        40_000 => PortFeatures::FD_40GB,
        100_000 => PortFeatures::FD_100GB,
        1_000_000 => PortFeatures::FD_1TB,
        _ => PortFeatures::OTHER,
    }
}

/// A port for the tables.
pub fn port_state(port: &SwitchPort) -> flow::PortState {
    flow::PortState {
        number: port.number,
        live: port.is_live(),
        no_flood: port.config.contains(PortConfig::NO_FLOOD),
        no_fwd: port.config.contains(PortConfig::NO_FWD),
        no_recv: port.config.contains(PortConfig::NO_RECV),
        no_packet_in: port.config.contains(PortConfig::NO_PACKET_IN),
        local: port.number == PortNo::LOCAL.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port() -> SwitchPort {
        let facts = port::PortFacts {
            mac: [2, 0, 0, 0, 0, 1],
            up: true,
            carrier: true,
            speed_mbps: 10_000,
            ..Default::default()
        };
        SwitchPort::new(4, "eth1", &facts, PortConfig::empty(), flow::Nanos(0))
    }

    #[test]
    fn a_port_that_is_up_is_live_and_says_its_speed() {
        let desc = port_desc(&port());
        assert_eq!((desc.number, desc.name.to_string()), (PortNo(4), "eth1".into()));
        assert_eq!((desc.state, desc.current), (PortState::LIVE, PortFeatures::FD_10GB));
        assert_eq!(desc.current_speed_kbps, 10_000_000);
    }

    #[test]
    fn a_port_that_is_configured_down_is_not_live_though_its_link_is_up() {
        let down = SwitchPort { config: PortConfig::PORT_DOWN, ..port() };
        assert_eq!(port_desc(&down).state, PortState::empty());
        assert!(!port_state(&down).live);
    }
}
