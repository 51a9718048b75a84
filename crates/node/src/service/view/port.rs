//! A port as it is shown.

use super::guest::view_guest;
use super::view_drops;
use crate::service::Node;
use crate::service::directory::{Member, MemberPort};
use api::{
    ForwardingView, Kind, Mac, PortCountersView, PortName, PortView, QueueView, SaView, SealingView,
};
use datapath::PortCounters;
use openflow::PortConfig;
use port::{OutletFacts, PortDetail, SaFacts, Sealing};
use std::collections::HashMap;

impl Node {
    pub(in crate::service) fn view_port(
        &self,
        member: &Member,
        name: &PortName,
        port: &MemberPort,
        configs: &HashMap<u32, PortConfig>,
    ) -> PortView {
        let at = member.at(port.number);
        let status = self.ports.status(at).unwrap_or_default();
        let facts = status.facts;
        let config = configs.get(&port.number).copied().unwrap_or_default();
        let queues = self.datapath.assignments(at).unwrap_or_default();
        let cores = queues.iter().map(|found| (found.queue, found.core)).collect();
        let PortDetail { guest, sas, sealing, forwarding } = self.ports.detail(at);
        let spec = match &port.spec.kind {
            Kind::VhostUser(spec) => Some(spec),
            _ => None,
        };
        PortView {
            switch: member.name(),
            name: name.clone(),
            number: port.number,
            kind: port.spec.kind.kind(),
            spec: Some(port.spec.clone()),
            interface: port.spec.interface(),
            netns: port.spec.netns().cloned(),
            peer: port.spec.peer().cloned(),
            mac: Mac::new(facts.mac),
            mtu: facts.mtu,
            admin_up: !config.contains(PortConfig::PORT_DOWN),
            up: facts.up,
            carrier: facts.carrier,
            speed_mbps: facts.speed_mbps,
            mode: facts.mode,
            notes: facts.notes,
            origin: port.owner.to_string(),
            queues: queues
                .into_iter()
                .map(|found| QueueView { queue: found.queue, core: found.core })
                .collect(),
            rate: port.spec.rate,
            queue: self.view_port_queues(at, &port.spec),
            counters: view_counters(&self.datapath.port_counters(at).unwrap_or_default()),
            guest: guest
                .zip(spec)
                .map(|(guest, spec)| view_guest(spec, (guest, facts.carrier), &cores)),
            sas: sas.into_iter().map(view_sa).collect(),
            sealing: sealing.map(view_sealing),
            forwarding: forwarding.map(view_forwarding),
            fault: status.fault,
        }
    }
}

fn view_counters(counters: &PortCounters) -> PortCountersView {
    PortCountersView {
        rx_frames: counters.rx_frames,
        rx_bytes: counters.rx_bytes,
        tx_frames: counters.tx_frames,
        tx_bytes: counters.tx_bytes,
        rx_drops: view_drops(&counters.rx_drops),
        tx_drops: view_drops(&counters.tx_drops),
    }
}

fn view_forwarding(OutletFacts { past, through, hindrance }: OutletFacts) -> ForwardingView {
    ForwardingView { past, through, hindrance }
}

fn view_sealing(Sealing { on, packets, lost }: Sealing) -> SealingView {
    let lost: Vec<_> = lost.iter().collect();
    SealingView { core: on.core, why: on.why, packets, lost: view_drops(&lost) }
}

fn view_sa(facts: SaFacts) -> SaView {
    let SaFacts { sends, spi, packets, sequence, replayed, bad_icv, malformed } = facts;
    let direction = if sends { "out" } else { "in" }.into();
    SaView { direction, spi, packets, sequence, replayed, bad_icv, malformed }
}
