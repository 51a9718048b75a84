//! The second half of the way of flows that leave by a tunnel: through the switch of the underlay.

use super::PortNote;
use super::tables::{Tables, grown};
use datapath::{PastWorkers, PortAt};
use flow::{Counted, Nanos};
use offload::{FlowProgram, OUTSIDE, PortReason, Refusal, Underlay};
use port::{Door, Sent, Wrapped, Wrapping};
use std::sync::Arc;

impl Tables {
    /// How a port wraps flows, if it is a tunnel's.
    pub(super) fn wrapping(&self, at: PortAt) -> Option<&Arc<Wrapping>> {
        self.note(at)?.wrapping.as_ref()?.as_ref().ok()
    }

    /// The port of the underlay's switch where a tunnel's packets come in.
    fn inlet(&self, wrapped: &Wrapped) -> Result<PortAt, Refusal> {
        let is_it = |door: &Arc<Door>| Arc::ptr_eq(door, &wrapped.door);
        let (at, note) = self
            .notes()
            .find(|(_, note)| note.door.as_ref().is_some_and(is_it))
            .ok_or(PortReason::NoWay)?;
        if note.is_up { Ok(at) } else { Err(Refusal::beyond(PortReason::Down, at.switch)) }
    }

    /// Whether all tunnels that go past the kernel have their way, and switches know it.
    pub(super) fn have_ways(&self) -> bool {
        let is_live = |at: PortAt| {
            let tables = self.tables(at.switch);
            tables.is_some_and(|tables| tables.ports().get(at.port).is_some_and(|port| port.live))
        };
        let has_way = |(at, note): (PortAt, &PortNote)| match &note.wrapping {
            Some(Ok(wrapping)) => is_live(at) && wrapping.has_way(),
            _ => true,
        };
        self.notes().all(has_way)
    }

    /// Has the kernel look for the neighbours of all tunnels.
    pub(super) fn find_ways(&self) {
        let wrappings = self.notes().filter_map(|(_, note)| note.wrapping.as_ref()?.as_ref().ok());
        wrappings.for_each(|wrapping| wrapping.find_way());
    }

    /// A flow's program to the port by which it leaves the host, if it leaves its switch by a tunnel; else as it is.
    pub(super) fn through_tunnel(
        &self,
        program: FlowProgram,
        now: Nanos,
    ) -> Result<FlowProgram, Refusal> {
        let Some(wrapping) = self.wrapping(program.exit) else { return Ok(program) };
        let wrapped = wrapping.wrap(&program.key_out())?;
        let inlet = self.inlet(&wrapped)?;
        let packet = (inlet, wrapped.outside.key(inlet.port));
        let rest = self.through_switch(&packet, &[], now);
        let through = rest.and_then(|mut rest| {
            rest.max_len = rest.max_len.min(wrapped.longest + OUTSIDE as u32);
            program.through(wrapped.outside, rest)
        });
        through.map_err(|why| Refusal::beyond(why, inlet.switch))
    }

    /// Whether a tunnel and the switch behind it do what they did with a flow.
    pub(super) fn holds_underlay(&self, program: &FlowProgram, now: Nanos) -> bool {
        let Some(underlay) = &program.underlay else { return true };
        let is_up = self.note(underlay.tunnel).is_some_and(|note| note.is_up);
        is_up
            && self.keeps_headers(program, underlay)
            && self.tables(underlay.from.switch).is_some_and(|tables| {
                tables.holds(&underlay.stamp, now)
                    && tables.has_learned(&underlay.credits, underlay.from.port, now)
            })
    }

    /// Whether a flow's packets have the headers, and come in, that they had.
    fn keeps_headers(&self, program: &FlowProgram, underlay: &Underlay) -> bool {
        let Some(wrapping) = self.wrapping(underlay.tunnel) else { return false };
        wrapping.wrap(&program.key_out()).is_ok_and(|wrapped| {
            wrapped.outside == underlay.plain && self.inlet(&wrapped) == Ok(underlay.from)
        })
    }

    /// Counts frames of a flow, of so many bytes as they leave their switch, from the tunnel to the exit; returns what they are there.
    pub(super) fn credit_underlay(
        &self,
        program: &FlowProgram,
        underlay: &Underlay,
        (left, used): (Sent, Nanos),
    ) -> Sent {
        let Sent { frames, bytes } = left;
        let packets = Sent { frames, bytes: bytes + frames * OUTSIDE as u64 };
        if let Some(tables) = self.tables(underlay.from.switch) {
            let counted = Counted { packets: frames, bytes: packets.bytes };
            let counted = (counted, Counted::default());
            tables.credit(&underlay.credits, underlay.from.port, counted, used);
        }
        if let Some(wrapping) = self.wrapping(underlay.tunnel) {
            wrapping.went(&program.key_out(), frames);
        }
        let queue = underlay.queue;
        self.credit_port(underlay.tunnel, PastWorkers { tx: left, queue, ..Default::default() });
        self.credit_port(underlay.from, PastWorkers { rx: packets, ..Default::default() });
        grown(packets, underlay.growth)
    }
}
