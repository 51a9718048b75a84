//! A received batch, sorted: own frames stay in it, others' leave it for rings and holds.

use super::units::{NOWHERE, UnitBlock};
use super::{Handover, NO_HOLD, Steered, key};
use crate::counters::Count;
use crate::frames::Frames;
use crate::id::SwitchIx;
use crate::steering::record::{self, Label};
use flow::{Nanos, PortNo};
use place::steering::{Field, FlowKey};
use place::{Facts, UnitId};
use port::{Drops, Lost};
use wire::DropReason;

/// Where a batch came in.
pub(crate) struct Arrival<'a> {
    pub(crate) ix: SwitchIx,
    pub(crate) in_port: PortNo,
    pub(crate) now: Nanos,
    /// What is lost on the way to other workers.
    pub(crate) drops: &'a mut Drops,
}

/// What becomes of a frame.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Destination {
    Own,
    To(u16),
    Hold(u8),
}

impl Handover {
    /// Parses the frames and keeps those that this worker is to process.
    pub(crate) fn sort(&mut self, frames: &mut Frames<'_>, mut arrival: Arrival<'_>) {
        let at = arrival.ix.0 as usize;
        // Taken out, so that rings and switch can be borrowed apart.
        let Some(mut switch) = self.switches.get_mut(at).and_then(Option::take) else { return };
        let mut own = 0_u64;
        let mut told = 0_u64;
        for index in 0..frames.packets.len() {
            if self.sort_one(&mut switch, frames, index, &mut arrival, &mut told) {
                own |= 1 << index;
            }
        }
        self.switches[at] = Some(switch);
        self.tell(told);
        frames.keep(own);
        frames.parsed = wire::Depth::Full;
    }

    /// Whether the frame stays.
    fn sort_one(
        &mut self,
        switch: &mut Steered,
        frames: &mut Frames<'_>,
        index: usize,
        arrival: &mut Arrival<'_>,
        told: &mut u64,
    ) -> bool {
        let (packet, body) = (&mut frames.packets[index], &frames.bodies[index]);
        let key = key::key_of(packet, &mut self.inner);
        let found = switch.classifier.unit(&without_ports_of_fragments(key));
        let me = usize::from(self.me);
        let Some((unit, hash)) = found else {
            switch.shared.workers[me].unsteered.add(1);
            return true;
        };
        let destination = self.destination(switch, (arrival.ix, arrival.now), unit, hash);
        let counters = &switch.shared.workers[me];
        let block = &counters.units[unit.0 as usize];
        let label = Label {
            ix: arrival.ix,
            switch: switch.id,
            unit,
            in_port: arrival.in_port,
            tunnel_id: packet.key.get(wire::Field::TunnelId) as u32,
            tun_src: packet.key.get(wire::Field::TunSrc) as u16,
            offload: packet.offload,
            since: arrival.now,
        };
        let count = |given: &Count| {
            given.add(1);
            block.frames.add(1);
            block.bytes.add(packet.frame_len.into());
        };
        let lost = Lost::Frame { head: packet.head.bytes(), body: *body };
        match destination {
            Destination::Own => {
                switch.units[unit.0 as usize].last = self.passes + 1;
                switch.last[me] = self.passes + 1;
                count(&counters.given[me].frames);
                true
            }
            Destination::To(place) => {
                let to = usize::from(place);
                let Some(writer) = &mut self.out[to] else { return true };
                if record::put(writer, &label, packet, body) {
                    switch.units[unit.0 as usize].last = writer.position();
                    switch.last[to] = writer.position();
                    *told |= 1 << (to % 64);
                    count(&counters.given[to].frames);
                } else {
                    dropped(block, &counters.given[to].full);
                    arrival.drops.lose(DropReason::HandoverFull, lost);
                }
                false
            }
            Destination::Hold(hold) => {
                if !record::put(&mut self.holds[usize::from(hold)].writer, &label, packet, body) {
                    let place = usize::from(switch.units[unit.0 as usize].place);
                    dropped(block, &counters.given[place].held_out);
                    arrival.drops.lose(DropReason::HoldFull, lost);
                }
                false
            }
        }
    }

    /// Where a frame of the unit goes; moves the unit if it is to move and may.
    fn destination(
        &mut self,
        switch: &mut Steered,
        (ix, now): (SwitchIx, Nanos),
        id: UnitId,
        hash: u32,
    ) -> Destination {
        let index = id.0 as usize;
        let unit = switch.units[index];
        if unit.hold != NO_HOLD {
            return Destination::Hold(unit.hold);
        }
        let wish = switch.shared.wish(id);
        let wanted = wish.place().or_else(|| self.decide(switch, now, id, hash));
        // An undecided unit stays where it is, or where it arrives.
        let wanted = wanted.unwrap_or(if unit.place == NOWHERE { self.me } else { unit.place });
        if wanted == unit.place {
            return self.to(unit.place);
        }
        if unit.place == NOWHERE || self.is_through(unit.place, unit.last) {
            self.settle_at(switch, id, wanted, now);
            return self.to(wanted);
        }
        if wish.holds()
            && unit.given_up != Some(wish)
            && let Some(hold) = self.free_hold()
        {
            self.holds[hold].take(ix, id, now);
            switch.units[index].hold = hold as u8;
            return Destination::Hold(hold as u8);
        }
        self.to(unit.place)
    }

    fn to(&self, place: u16) -> Destination {
        if place == self.me { Destination::Own } else { Destination::To(place) }
    }

    /// The unit's frames go there from now on.
    pub(super) fn settle_at(&self, switch: &mut Steered, id: UnitId, place: u16, now: Nanos) {
        let unit = &mut switch.units[id.0 as usize];
        if unit.place != NOWHERE {
            switch.shared.moved(id, now.0);
        }
        (unit.place, unit.given_up) = (place, None);
        let block = &switch.shared.workers[usize::from(self.me)].units[id.0 as usize];
        block.place.set(u64::from(place) + 1);
    }

    /// Has an undecided unit placed; `None`: not now.
    fn decide(&self, switch: &mut Steered, now: Nanos, id: UnitId, hash: u32) -> Option<u16> {
        let table = switch.shared.table();
        let unit = &mut switch.units[id.0 as usize];
        if unit.asked == table {
            return None;
        }
        let known = switch.classifier.facts(id);
        let facts = Facts {
            hash,
            vm: known.vm,
            is_priority: known.is_priority,
            wants_own_core: known.wants_own_core,
            rx_core: switch.shared.cores[usize::from(self.me)],
        };
        let place = switch.shared.decide(id, known.is_hashed, &facts, now.0);
        if place.is_none() {
            unit.asked = table;
        }
        place
    }

    /// Publishes what was put into the rings of these workers, and wakes who sleeps. Of workers beyond the 64th, all with the same bit.
    pub(super) fn tell(&mut self, told: u64) {
        if told == 0 {
            return;
        }
        for (to, writer) in self.out.iter_mut().enumerate() {
            if told & 1 << (to % 64) != 0
                && let Some(writer) = writer
            {
                writer.publish();
                self.peers[to].wake();
            }
        }
    }
}

fn dropped(block: &UnitBlock, cause: &Count) {
    block.dropped.add(1);
    cause.add(1);
}

/// Fragments of one packet go the same way, though only the first has ports.
fn without_ports_of_fragments(mut key: FlowKey) -> FlowKey {
    if key.get(Field::IpFrag) != 0 {
        key.set(Field::TpSrc, 0);
        key.set(Field::TpDst, 0);
    }
    key
}
