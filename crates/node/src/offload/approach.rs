//! The first half of the way of flows that come by a tunnel: through the switch of the underlay, to the tunnel's port.
//!
//! A tunnel's port sees frames without the headers that were around them. Those are seen where packets come in: workers show them, too, and
//! they are kept here until the flow is to leave.

use super::tables::{Tables, grown};
use datapath::{PastWorkers, PortAt};
use flow::{Counted, Nanos};
use offload::{
    Approach, Declined, EditKind, FlowName, FlowProgram, FlowReason, OUTSIDE, PolicyReason,
    PortReason, Refusal, told_apart,
};
use port::{Sent, Wrapping};
use std::collections::HashMap;
use std::sync::Arc;
use wire::tunnel::Vxlan;
use wire::{Field, Head, Key};

/// Flows whose packets are remembered at most. Chosen: as many as the engine knows.
const KNOWN: usize = 4096;

/// Around which flows there were tunnels' headers.
#[derive(Default)]
pub(super) struct Came {
    /// By VNI.
    tunnels: HashMap<u32, Vec<PortAt>>,
    /// By the flow's name at the tunnel's port: where its last packet came in, and that packet's bits that tell flows apart.
    packets: HashMap<FlowName, (PortAt, Key)>,
}

impl Came {
    /// A port is a tunnel's, or not.
    pub(super) fn tunnel_is(&mut self, at: PortAt, wrapping: Option<&Arc<Wrapping>>) {
        self.tunnels.values_mut().for_each(|ports| ports.retain(|port| *port != at));
        self.tunnels.retain(|_, ports| !ports.is_empty());
        let vni = wrapping.map(|wrapping| wrapping.vni());
        vni.into_iter().for_each(|vni| self.tunnels.entry(vni).or_default().push(at));
    }

    fn keep(&mut self, flow: FlowName, packet: (PortAt, Key)) {
        // Of those that still come the next ones are shown.
        if self.packets.len() >= KNOWN && !self.packets.contains_key(&flow) {
            self.packets.clear();
        }
        self.packets.insert(flow, packet);
    }
}

/// VNI of a packet that may be a tunnel's, its key, and the first bytes of the frame inside.
fn opened(at: PortAt, head: &[u8]) -> Option<(u32, Key, &[u8])> {
    let (outer, layers) = wire::parse(&Head::copy_of(head), at.port);
    let payload = head.get(usize::from(layers.payload)..).filter(|_| layers.payload != 0)?;
    let vni = Vxlan::parse(payload)?.vni;
    Some((vni, outer, payload.get(Vxlan::LEN..)?))
}

impl Tables {
    /// A worker showed a frame: maybe a tunnel's packet.
    pub(super) fn saw(&mut self, at: PortAt, head: &[u8]) {
        if self.came.tunnels.is_empty() {
            return;
        }
        let Some((vni, outer, inside)) = opened(at, head) else { return };
        for tunnel in self.tunnels_of(vni, &outer) {
            let (key, _) = wire::parse(&Head::copy_of(inside), tunnel.port);
            let packet = (at, outer.masked(&told_apart(&outer)));
            self.came.keep((tunnel, key.masked(&told_apart(&key))), packet);
        }
    }

    /// The ports that may have packets with this key and VNI.
    fn tunnels_of(&self, vni: u32, outer: &Key) -> Vec<PortAt> {
        let tunnels = self.came.tunnels.get(&vni).into_iter().flatten();
        let is_its = |tunnel: &PortAt| self.wrapping(*tunnel).is_some_and(|of| of.sends(outer));
        tunnels.copied().filter(is_its).collect()
    }

    /// The name of a flow with these bits that comes in packets like this one, which are remembered; `None`: no tunnel has them.
    pub(super) fn came_by(
        &mut self,
        (at, outer): (PortAt, Key),
        vni: u32,
        inside: &Key,
    ) -> Option<FlowName> {
        let tunnel = *self.tunnels_of(vni, &outer).first()?;
        let mut key = *inside;
        key.set(Field::InPort, tunnel.port.into());
        self.came.keep((tunnel, key), (at, outer.masked(&told_apart(&outer))));
        Some((tunnel, key))
    }

    /// The program of a flow that comes by a tunnel, from where its packets come to this host.
    pub(super) fn out_of_tunnel(
        &self,
        program: FlowProgram,
        now: Nanos,
    ) -> Result<FlowProgram, Refusal> {
        let note = self.note(program.from).ok_or(PortReason::Gone)?;
        let wrapping = note.wrapping.as_ref().ok_or(PortReason::Gone)?;
        let wrapping = wrapping.as_ref().map_err(Clone::clone)?;
        if !note.is_up {
            return Err(PortReason::Down.into());
        }
        if self.wrapping(program.exit).is_some() {
            return Err(FlowReason::Edits(EditKind::TwoTunnels).into());
        }
        if !wrapping.comes_over_ipv4() {
            return Err(FlowReason::Edits(EditKind::Tunnel).into());
        }
        let packet = self.came.packets.get(&(program.from, program.key));
        let packet = packet.ok_or(PolicyReason::NotSeen)?;
        let out = self.out_of(program, packet, wrapping, now);
        out.map_err(|why| Refusal::beyond(why, packet.0.switch))
    }

    /// The same, of a flow whose packets are like this one.
    fn out_of(
        &self,
        program: FlowProgram,
        packet: &(PortAt, Key),
        wrapping: &Wrapping,
        now: Nanos,
    ) -> Result<FlowProgram, Declined> {
        self.check_port(packet.0)?;
        let before = self.to_door(packet, now)?;
        if !self.is_taken(wrapping, &packet.1, before.exit) {
            return Err(PortReason::ThroughKernel.into());
        }
        wrapping.unwrap(&program.key, &packet.1)?;
        program.out_of(before, wrapping.vni())
    }

    /// Whether a tunnel takes packets that leave by that port for the host.
    fn is_taken(&self, wrapping: &Wrapping, outer: &Key, door: PortAt) -> bool {
        let note = self.note(door).filter(|note| note.is_up);
        let door = note.and_then(|note| note.door.as_ref());
        door.is_some_and(|door| wrapping.takes(outer, door))
    }

    /// Whether a flow's packets come, and are taken, as they were.
    pub(super) fn holds_approach(&self, program: &FlowProgram, now: Nanos) -> bool {
        let Some(approach) = &program.approach else { return true };
        let Approach { from, ref key, door, queue, ref credits, ref stamp, .. } = **approach;
        let is_up = self.note(program.from).is_some_and(|note| note.is_up);
        let wrapping = self.wrapping(program.from);
        let last = self.came.packets.get(&(program.from, program.key));
        is_up
            && last.is_none_or(|last| *last == (from, *key))
            && wrapping.is_some_and(|wrapping| self.is_taken(wrapping, key, door))
            && self.keeps_rates((door, queue), &[])
            && self.tables(from.switch).is_some_and(|tables| {
                tables.holds(stamp, now) && tables.has_learned(credits, from.port, now)
            })
    }

    /// Counts frames of a flow, of so many bytes as they come by the tunnel, from where their packets came in.
    pub(super) fn credit_approach(&self, program: &FlowProgram, (came, used): (Sent, Nanos)) {
        let Some(approach) = &program.approach else { return };
        let Approach { from, door, queue, ref credits, growth, .. } = **approach;
        let taken = Sent { bytes: came.bytes + came.frames * OUTSIDE as u64, ..came };
        let packets = grown(taken, -growth);
        if let Some(tables) = self.tables(from.switch) {
            let counted = Counted { packets: packets.frames, bytes: packets.bytes };
            tables.credit(credits, from.port, (counted, Counted::default()), used);
        }
        self.credit_port(from, PastWorkers { rx: packets, ..Default::default() });
        self.credit_port(door, PastWorkers { tx: taken, queue, ..Default::default() });
    }
}
