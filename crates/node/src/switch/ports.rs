//! A switch's ports: what the node adds, removes and observes, what a controller configures, and who is told.

use crate::journal::Change;
use crate::switch::listener::{Event, PortEvent};
use crate::switch::port::SwitchPort;
use crate::switch::translate::{action_fault, actions, no_number, port_desc, port_state, seconds};
use crate::switch::{Control, Emission, Switch};
use api::{Happening, Noun};
use datapath::PortCounters;
use flow::{Action, Output};
use openflow::{ErrorCode, Fault, PacketOut, PortConfig, PortDesc, PortMod, PortNo, PortStats};
use port::PortFacts;
use std::collections::BTreeMap;
use wire::{DropReason, Offload};

/// The bits of `OFPPC_*` that a 1.3 controller may set (OpenFlow 1.3.5 §7.2.1), and 1.0's `OFPPC_NO_FLOOD`.
const SETTABLE: PortConfig = PortConfig::PORT_DOWN
    .union(PortConfig::NO_RECV)
    .union(PortConfig::NO_FWD)
    .union(PortConfig::NO_PACKET_IN)
    .union(PortConfig::NO_FLOOD);

impl Switch {
    /// A port is there from now on, with the configuration that it had when its switch was last stopped.
    pub fn add_port(&self, number: PortNo, name: &str, facts: &PortFacts, config: PortConfig) {
        let port = SwitchPort::new(number.0, name, facts, config, self.now());
        let mut control = self.control();
        control.ports.insert(number.0, port.clone());
        self.ports_changed(&mut control, PortEvent::Added, &port);
    }

    /// A port is gone; entries that name it stay.
    pub fn remove_port(&self, number: PortNo) {
        let mut control = self.control();
        control.queues.remove(&number.0);
        if let Some(port) = control.ports.remove(&number.0) {
            self.ports_changed(&mut control, PortEvent::Removed, &port);
        }
    }

    /// The interface under a port is as `facts` say; controllers hear of it if they can see a difference.
    pub fn port_changed(&self, number: PortNo, facts: &PortFacts) {
        let mut control = self.control();
        let Some(port) = control.ports.get_mut(&number.0) else { return };
        if port.update(facts) {
            let port = port.clone();
            self.ports_changed(&mut control, PortEvent::Changed, &port);
        }
    }

    /// Changes a port's configuration.
    ///
    /// # Errors
    /// `OFPPMFC_*`: no such port, another MAC address, a bit that cannot be set, a link speed to advertise.
    pub fn port_mod(&self, change: &PortMod) -> Result<(), Fault> {
        let mut control = self.control();
        let missing =
            Fault::new(ErrorCode::PortModFailedBadPort, "the switch has no port of that number");
        let port = control.ports.get_mut(&change.number.0).ok_or(missing)?;
        if port.mac != change.hw_addr.0 {
            return Err(Fault::new(
                ErrorCode::PortModFailedBadHwAddr,
                "the port has another MAC address",
            ));
        }
        if !SETTABLE.contains(change.mask) {
            return Err(Fault::new(
                ErrorCode::PortModFailedBadConfig,
                "a configuration bit that cannot be set",
            ));
        }
        if !change.advertise.is_empty() {
            return Err(Fault::new(
                ErrorCode::PortModFailedBadAdvertise,
                "a port that advertises nothing: 0 leaves it so",
            ));
        }
        let config = port.config & !change.mask | change.config & change.mask;
        let changed = port.config ^ config;
        if changed.is_empty() {
            return Ok(());
        }
        port.config = config;
        let port = port.clone();
        if changed.contains(PortConfig::PORT_DOWN) {
            self.plane.set_port_admin(port.number, !config.contains(PortConfig::PORT_DOWN));
        }
        self.record(&control, || Change::PortConfig { port: port.number, bits: config.bits() });
        self.ports_changed(&mut control, PortEvent::Changed, &port);
        Ok(())
    }

    /// Whether the switch has a port of that number.
    pub fn has_port(&self, number: PortNo) -> bool {
        self.control().ports.contains_key(&number.0)
    }

    /// The ports, by number.
    pub fn ports(&self) -> Vec<PortDesc> {
        self.control().ports.values().map(port_desc).collect()
    }

    /// Lists the ports to `told` while none changes: what it queues there is older than no port-status that listeners heard before.
    pub fn with_ports(&self, told: impl FnOnce(Vec<PortDesc>)) {
        let control = self.control();
        told(control.ports.values().map(port_desc).collect());
    }

    /// The state of each port in a few words, by number.
    pub fn conditions(&self) -> BTreeMap<u32, &'static str> {
        self.control().ports.iter().map(|(&at, port)| (at, port.condition())).collect()
    }

    /// Counters of one port, or of all ([`PortNo::ANY`]).
    ///
    /// # Errors
    /// `OFPBRC_BAD_PORT`.
    pub fn port_stats(&self, number: PortNo) -> Result<Vec<PortStats>, Fault> {
        self.plane.refresh();
        let now = self.now();
        let control = self.control();
        let asked = |port: &&SwitchPort| number == PortNo::ANY || port.number == number.0;
        let stats: Vec<_> = control
            .ports
            .values()
            .filter(asked)
            .map(|port| {
                port_stats(port, now.since(port.added), &self.plane.port_counters(port.number))
            })
            .collect();
        if stats.is_empty() && number != PortNo::ANY {
            return Err(Fault::new(
                ErrorCode::BadRequestBadPort,
                "the switch has no port of that number",
            ));
        }
        Ok(stats)
    }

    /// Sends a controller's frame, or one that was kept for it.
    ///
    /// # Errors
    /// The OpenFlow error to answer with.
    pub fn packet_out(&self, request: PacketOut) -> Result<(), Fault> {
        request.check()?;
        if request.buffer_id.is_none() && request.data.len() < 14 {
            return Err(Fault::new(
                ErrorCode::BadRequestBadPacket,
                "a frame shorter than an Ethernet header",
            ));
        }
        let actions = self.named(&mut self.control(), |share| {
            let refused = |full| no_number(ErrorCode::BadActionTooMany, full);
            actions(&request.actions, share).map_err(refused)
        })?;
        let in_port = self.check_packet_out(request.in_port, &actions)?;
        // Last, so that a refused message does not use the buffer up.
        let (frame, offload) = match request.buffer_id {
            Some(id) => self.take_buffer(id)?.frame.into_sendable(),
            None => (request.data, Offload::default()),
        };
        if actions.contains(&Action::Output(Output::Table)) {
            // The frame is to meet what its sender changed before it, also without a barrier.
            self.publish();
        }
        self.plane.packet_out(Emission { in_port, frame, offload, actions });
        Ok(())
    }

    /// What a packet-out names must be there: its groups, and the port that its frame is said to have come by (§7.3.7); no port at
    /// all (`OFPP_ANY`, 1.0's `OFPP_NONE`) is the controller.
    fn check_packet_out(&self, in_port: PortNo, actions: &[flow::Action]) -> Result<u32, Fault> {
        let control = self.control();
        flow::validate_packet_out(actions, |group| control.pipeline.groups().contains(group))
            .map_err(action_fault)?;
        match in_port {
            PortNo::CONTROLLER | PortNo::ANY => Ok(PortNo::CONTROLLER.0),
            PortNo(number) if control.ports.contains_key(&number) => Ok(number),
            _ => Err(Fault::new(ErrorCode::BadRequestBadPort, "an ingress port that is not there")),
        }
    }

    /// Hands the ports to the tables, and once workers see them, tells the listeners: who hears that a port is up may send to it.
    fn ports_changed(&self, control: &mut Control, event: PortEvent, port: &SwitchPort) {
        let states = control.ports.values().map(port_state).collect();
        control.pipeline.set_ports(states);
        control.dirty = true;
        self.publish_locked(control);
        let change = match event {
            PortEvent::Added => Happening::Added,
            PortEvent::Removed => Happening::Removed,
            PortEvent::Changed => Happening::State,
        };
        self.tell((Noun::Port, &port.name), change, port.condition());
        self.listeners.tell(Event::Port(event, port));
    }
}

fn port_stats(port: &SwitchPort, age_ns: u64, counters: &PortCounters) -> PortStats {
    let (duration_s, duration_ns) = seconds(age_ns);
    PortStats {
        number: PortNo(port.number),
        rx_packets: counters.rx_frames,
        tx_packets: counters.tx_frames,
        rx_bytes: counters.rx_bytes,
        tx_bytes: counters.tx_bytes,
        rx_dropped: sum(&counters.rx_drops, |reason| !is_error(reason)),
        tx_dropped: sum(&counters.tx_drops, |reason| !is_error(reason)),
        rx_errors: sum(&counters.rx_drops, is_error),
        tx_errors: sum(&counters.tx_drops, is_error),
        duration_s,
        duration_ns,
        ..PortStats::default()
    }
}

/// Whether a frame was lost because it or the interface was bad, not because there was no room or no permission.
fn is_error(reason: DropReason) -> bool {
    matches!(
        reason,
        DropReason::Runt | DropReason::BadOffload | DropReason::TxError | DropReason::BadSource
    )
}

fn sum(drops: &[(DropReason, u64)], which: impl Fn(DropReason) -> bool) -> u64 {
    drops.iter().filter(|(reason, _)| which(*reason)).map(|(_, count)| count).sum()
}
