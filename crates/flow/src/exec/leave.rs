//! Where an output sends a packet, as the ports and the learning table are now.

use super::Env;
use crate::action::{Output, PortNo};
use crate::packet::Packet;
use crate::ports::PortState;
use wire::DropReason;

/// Where a packet leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Leaves<'a> {
    /// By one port, which can send.
    By(PortNo),
    /// By several ports, which can send; not empty.
    ByAll(&'a [PortNo]),
    /// Nowhere.
    Nowhere(DropReason),
}

impl<'a> Env<'a> {
    /// Where `output` sends the packet. What goes to the controller or through the tables leaves by no port.
    #[inline]
    pub(super) fn leaves(&self, packet: &Packet<'_>, output: Output) -> Leaves<'a> {
        match output {
            Output::Normal => self.bridged(packet),
            _ => self.leaves_by_port(packet.in_port(), output),
        }
    }

    /// Where any output but [`Output::Normal`] sends a packet that came in by `in_port`.
    #[inline]
    pub(crate) fn leaves_by_port(&self, in_port: PortNo, output: Output) -> Leaves<'a> {
        match output {
            Output::Port(port) if self.ports.surely_forwards(in_port, port) => Leaves::By(port),
            Output::Port(port) => self.by_another(port, in_port),
            Output::InPort => self.by(in_port),
            Output::All => by_all(self.ports.all_but(in_port)),
            Output::Flood => by_all(self.ports.flood_but(in_port)),
            Output::Local => match self.ports.local() {
                None => Leaves::Nowhere(DropReason::NoPort),
                Some(port) => self.by_another(port, in_port),
            },
            Output::Normal | Output::Controller { .. } | Output::Table => {
                Leaves::Nowhere(DropReason::NoPort)
            }
        }
    }

    /// By a port that is not the ingress: back there only [`Output::InPort`] leads (OpenFlow 1.3.5 §4.5).
    #[inline]
    fn by_another(&self, port: PortNo, in_port: PortNo) -> Leaves<'a> {
        if port == in_port { Leaves::Nowhere(DropReason::NoDestination) } else { self.by(port) }
    }

    /// By one port, whichever it is.
    #[inline]
    fn by(&self, port: PortNo) -> Leaves<'a> {
        self.ports.get(port).map_or(Leaves::Nowhere(DropReason::NoPort), by)
    }
}

/// By this port, if it can send.
#[inline]
pub(super) fn by<'a>(port: &PortState) -> Leaves<'a> {
    match port.egress() {
        Ok(()) => Leaves::By(port.number),
        Err(reason) => Leaves::Nowhere(reason),
    }
}

/// By every port of a list of the port table.
pub(super) fn by_all(ports: &[PortNo]) -> Leaves<'_> {
    if ports.is_empty() { Leaves::Nowhere(DropReason::NoDestination) } else { Leaves::ByAll(ports) }
}
