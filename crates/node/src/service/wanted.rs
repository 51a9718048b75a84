//! A port as the ports' thread and the port crate want to know it.

use super::Node;
use super::directory::Member;
use super::ports::label;
use crate::ports::{Door, Wanted};
use api::{
    FlowId, Forwarding, Kind, Peer, PortName, PortNumber, PortSpec, VhostUser, Vxlan, XdpMode,
};
use openflow::PortConfig;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

impl Node {
    /// The port as its thread wants to know it.
    pub(super) async fn wanted(
        &self,
        member: &Member,
        name: &PortName,
        spec: &PortSpec,
        config: PortConfig,
    ) -> Wanted {
        let number = spec.number.map_or(0, PortNumber::get);
        let mut door = door(member, number, spec);
        if let Door::Interface(wanted) = &mut door {
            wanted.seal_on = self.sealing(spec).await;
        }
        Wanted {
            at: member.at(number),
            label: label(&member.name(), name),
            name: name.to_string(),
            door,
            config,
            queues: spec.port_queues(),
            switch: member.switch.clone(),
        }
    }
}

fn door(member: &Member, number: u32, spec: &PortSpec) -> Door {
    let own_mac = || own_mac(member.switch.datapath_id(), number);
    if let Some(peer) = spec.peer() {
        let end = Peer::new(member.name(), spec.name.clone()).to_string();
        return Door::Vlink { end, peer: peer.to_string(), mac: own_mac() };
    }
    let mut wanted = interface_of(spec);
    if matches!(spec.kind, Kind::VhostUser(_) | Kind::Vxlan(_)) {
        wanted.mac.get_or_insert_with(own_mac);
    }
    Door::Interface(wanted.into())
}

/// A port's interface as the port crate wants to know it.
pub fn interface_of(spec: &PortSpec) -> port::PortSpec {
    // Without an interface, the port's own name stands for it in messages.
    let interface = spec.interface().map_or_else(|| spec.name.to_string(), |name| name.to_string());
    let wanted = |kind| port::PortSpec {
        netns: spec.netns().map(|netns| (&**netns).into()),
        queues: spec.queues().unwrap_or(0),
        mtu: spec.mtu,
        mac: spec.mac().map(api::Mac::bytes),
        ..port::PortSpec::new(kind, interface)
    };
    match &spec.kind {
        Kind::Tap(_) => wanted(port::PortKind::Tap),
        Kind::Vlink(_) => wanted(port::PortKind::AfPacket),
        Kind::AfPacket(packet) => port::PortSpec {
            take_over: packet.take_over.unwrap_or_default(),
            host: packet.host.unwrap_or_default(),
            ..wanted(port::PortKind::AfPacket)
        },
        Kind::AfXdp(xdp) => port::PortSpec {
            xdp_mode: xdp_mode(xdp.xdp_mode.unwrap_or_default()),
            take_over: xdp.take_over.unwrap_or_default(),
            host: xdp.host.unwrap_or_default(),
            ..wanted(port::PortKind::AfXdp)
        },
        Kind::VhostUser(guest) => port::PortSpec {
            socket: (&*guest.socket).into(),
            role: role(guest),
            ..wanted(port::PortKind::VhostUser)
        },
        Kind::Vxlan(tunnel) => port::PortSpec {
            tunnel: Some(lowered(tunnel)),
            encrypt: tunnel.encrypt.as_deref().map(Into::into),
            ..wanted(port::PortKind::Vxlan)
        },
    }
}

fn role(guest: &VhostUser) -> port::Role {
    if guest.is_server() { port::Role::Server(port::Rights::default()) } else { port::Role::Client }
}

fn lowered(spec: &Vxlan) -> port::Tunnel {
    let local = spec.local.as_ref().map_or_else(Vec::new, |local| local.get().to_vec());
    let (remote, from) = match spec.remote.addresses().and_then(<[IpAddr]>::split_first) {
        Some((first, from)) => (*first, from),
        // Each frame's own, of the family of this end's addresses if it has any.
        None if local.first().is_some_and(IpAddr::is_ipv6) => {
            (Ipv6Addr::UNSPECIFIED.into(), &[][..])
        }
        None => (Ipv4Addr::UNSPECIFIED.into(), &[][..]),
    };
    let usual = port::Tunnel::new(remote, 0);
    let dscp = || spec.dscp.as_ref().map_or(usual.dscp, api::Dscp::get);
    port::Tunnel {
        from: from.to_vec(),
        local,
        vni: spec.key.vni(),
        port: spec.udp_port.unwrap_or(usual.port),
        dscp: match spec.flow_id {
            Some(FlowId::Dscp) => wire::tunnel::Dscp::Identity,
            Some(FlowId::Tos) => wire::tunnel::Dscp::WholeByte,
            Some(FlowId::Underlay) | None => dscp(),
        },
        ttl: spec.ttl.unwrap_or(usual.ttl),
        mss_clamp: spec.mss_clamp.unwrap_or(usual.mss_clamp),
        checksum: spec.outer_checksum.unwrap_or(usual.checksum),
        zone: spec.zone().map(ToString::to_string),
        forwarding: match spec.forwarding {
            Some(Forwarding::Own) => port::Forwarding::Own,
            Some(Forwarding::Kernel) | None => port::Forwarding::Kernel,
        },
        ..usual
    }
}

fn xdp_mode(mode: XdpMode) -> port::XdpMode {
    match mode {
        XdpMode::Auto => port::XdpMode::Auto,
        XdpMode::ZeroCopy => port::XdpMode::ZeroCopy,
        XdpMode::Native => port::XdpMode::Native,
        XdpMode::Generic => port::XdpMode::Generic,
    }
}

/// A locally administered address, the same for a port at each start.
fn own_mac(dpid: u64, number: u32) -> [u8; 6] {
    let [_, _, _, _, _, a, b, c] = dpid.to_be_bytes();
    let [_, _, d, e] = number.to_be_bytes();
    [0x02, a, b, c, d, e]
}
