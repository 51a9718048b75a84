//! A port as the ports' thread wants to know it.

use super::Node;
use super::directory::Member;
use super::ports::label;
use crate::ports::{Door, Wanted};
use api::{Peer, PortName, PortNumber, PortSpec};
use openflow::PortConfig;
use port::Chosen;

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
        let door = self.door(member, number, spec).await;
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

    async fn door(&self, member: &Member, number: u32, spec: &PortSpec) -> Door {
        let mac = own_mac(member.switch.datapath_id(), number);
        if let Some(peer) = spec.peer() {
            let end = Peer::new(member.name(), spec.name.clone()).to_string();
            return Door::Vlink { end, peer: peer.to_string(), mac };
        }
        let chosen = Chosen { mac, seal_on: self.sealing(spec).await };
        Door::Interface(Box::new((spec.clone(), chosen)))
    }
}

/// A locally administered address, the same for a port at each start.
fn own_mac(dpid: u64, number: u32) -> [u8; 6] {
    let [_, _, _, _, _, a, b, c] = dpid.to_be_bytes();
    let [_, _, d, e] = number.to_be_bytes();
    [0x02, a, b, c, d, e]
}
