//! Outputs to ports and to the controller, gathered until the packet changes.

use super::leave::Leaves;
use super::{Kind, Run};
use crate::action::PortNo;
use crate::meter::{CONTROLLER_METER, MeterVerdict};
use crate::packet::{PacketIn, PacketInReason, Sink, Then};
use arrayvec::ArrayVec;
use std::ops::ControlFlow;
use wire::DropReason;

/// Ports gathered before they are told. Chosen: more single outputs than programs have in a row.
const FEW: usize = 8;

/// Where the packet is to leave as it is now: first `few`, then `many`.
#[derive(Default)]
pub(super) struct Pending<'r> {
    few: ArrayVec<PortNo, FEW>,
    many: &'r [PortNo],
}

impl<S: Sink> Run<'_, '_, S> {
    /// Sends by one port, which can send.
    fn send_by(&mut self, port: PortNo) -> ControlFlow<()> {
        self.spend(1)?;
        if self.pending.few.is_full() || !self.pending.many.is_empty() {
            self.flush(Then::More);
        }
        self.pending.few.push(port);
        ControlFlow::Continue(())
    }

    /// `OFPP_CONTROLLER`.
    pub(super) fn send_to_controller(&mut self, max_len: u16) -> ControlFlow<()> {
        if !self.origin.miss {
            return self.packet_in(PacketInReason::Action, max_len);
        }
        match self.env.ports.get(self.packet.in_port()) {
            Some(port) if port.no_packet_in && self.env.for_v10 => {
                self.packet_in(PacketInReason::SilentMiss, max_len)
            }
            Some(port) if port.no_packet_in => self.lose(DropReason::NoMatch),
            _ => self.packet_in(PacketInReason::NoMatch, max_len),
        }
    }

    /// Tells the controller, if its meter allows.
    pub(super) fn packet_in(&mut self, reason: PacketInReason, max_len: u16) -> ControlFlow<()> {
        let verdict = self.env.meters.pass(CONTROLLER_METER, self.packet.frame_len, self.env.now);
        if verdict == MeterVerdict::Drop {
            return self.lose(DropReason::Meter);
        }
        self.spend(1)?;
        let why =
            PacketIn { reason, table: self.origin.table, cookie: self.origin.cookie, max_len };
        self.sink.packet_in(self.index, self.packet, why);
        self.trail.told = true;
        ControlFlow::Continue(())
    }

    /// Tells what was gathered; `then` is about the packet after all of it.
    pub(super) fn flush(&mut self, then: Then) {
        if self.pending.few.is_empty() && self.pending.many.is_empty() {
            return;
        }
        let Pending { few, many } = std::mem::take(&mut self.pending);
        if !few.is_empty() {
            self.tell(&few, if many.is_empty() { then } else { Then::More });
        }
        if !many.is_empty() {
            self.tell(many, then);
        }
    }

    fn tell(&mut self, ports: &[PortNo], then: Then) {
        debug_assert!(
            self.kind == Kind::Original || then == Then::More,
            "a copy is gone after its run"
        );
        self.sink.output(self.index, self.packet, ports, then);
        self.trail.told = true;
    }
}

impl<'r, S: Sink> Run<'r, '_, S> {
    /// Sends where `leaves` says.
    pub(super) fn send(&mut self, leaves: Leaves<'r>) -> ControlFlow<()> {
        match leaves {
            Leaves::By(port) => self.send_by(port),
            Leaves::ByAll(ports) => self.send_by_all(ports),
            Leaves::Nowhere(reason) => self.lose(reason),
        }
    }

    fn send_by_all(&mut self, ports: &'r [PortNo]) -> ControlFlow<()> {
        self.spend(ports.len())?;
        if !self.pending.many.is_empty() {
            self.flush(Then::More);
        }
        self.pending.many = ports;
        ControlFlow::Continue(())
    }
}
