//! Programs of flows that leave or come by a tunnel: of two switches' programs, one.

use crate::headers::{OUTSIDE, Outside, Tag};
use crate::program::{Approach, Edit, FlowProgram, Underlay};
use crate::{Around, Declined, EditKind, FlowReason, Patch, PortReason};
use flow::PortAt;
use wire::{Field, Key, eth_type, ip_proto};

/// Where the TTL is in the headers.
const TTL: usize = 14 + 8;

impl Outside {
    /// The same after the edits of the underlay's switch.
    fn edited(mut self, rest: &FlowProgram) -> Result<Self, FlowReason> {
        let patch = Patch::of(rest);
        for (byte, (keep, put)) in self.head.iter_mut().zip(patch.keep.iter().zip(&patch.put)) {
            *byte = *byte & keep | put;
        }
        if patch.dec_ttl {
            self.head[TTL] = match self.head[TTL] {
                ttl @ 2.. => ttl - 1,
                _ => return Err(FlowReason::Dropped),
            };
        }
        Ok(Self { tag: patch.push, ..self })
    }
}

impl Underlay {
    pub(crate) fn does_what(&self, other: &Self) -> bool {
        let way = |of: &Self| (of.outside, of.plain, of.tunnel, of.queue, of.from, of.growth);
        way(self) == way(other) && self.credits.is_same(&other.credits)
    }
}

impl Approach {
    pub(crate) fn does_what(&self, other: &Self) -> bool {
        let way = |of: &Self| (of.from, of.key, of.vni, of.door, of.queue, of.growth);
        way(self) == way(other) && self.credits.is_same(&other.credits)
    }
}

impl FlowProgram {
    /// The program of a flow that comes by a tunnel of this identifier, and whose packets came to it by `before`.
    ///
    /// # Errors
    /// What keeps it on the worker.
    pub fn out_of(self, before: Self, vni: u32) -> Result<Self, Declined> {
        let Self { from, key, edits, exit: door, queue, credits, growth, stamp, .. } = before;
        if self.underlay.is_some() {
            return Err(FlowReason::Edits(EditKind::TwoTunnels).into());
        }
        // A meter or a rate there counts other bytes than those in the tunnel.
        if !before.limits.is_empty() || !before.shapes.is_empty() {
            return Err(FlowReason::Lengths.into());
        }
        if edits.iter().any(|edit| *edit != Edit::PopVlan) {
            return Err(FlowReason::Edits(EditKind::Outside).into());
        }
        let is_plain = key.get(Field::EthType) as u16 == eth_type::IPV4
            && key.get(Field::IpProto) as u8 == ip_proto::UDP;
        if !is_plain || Tag::of(&key).is_some() && edits.is_empty() {
            return Err(PortReason::ThroughKernel.into());
        }
        let approach = Approach { from, key, vni, door, queue, credits, growth, stamp };
        Ok(Self { approach: Some(Box::new(approach)), ..self })
    }

    /// Where a rung meets its frames.
    pub fn inlet(&self) -> PortAt {
        self.approach.as_ref().map_or(self.from, |approach| approach.from)
    }

    /// Whether it leaves or comes by a tunnel.
    pub fn is_tunnelled(&self) -> bool {
        self.underlay.is_some() || self.approach.is_some()
    }

    /// The headers that a rung puts around its frames, or takes off.
    pub fn outside(&self) -> Option<Outside> {
        self.around().map(|around| match around {
            Around::On(outside) | Around::Off { outside, .. } => outside,
        })
    }

    /// The same, and which of the two.
    pub fn around(&self) -> Option<Around> {
        let off = |of: &Approach| {
            let (outside, vni) = (Outside::around(&of.key, of.vni), of.vni);
            Around::Off { outside, vni }
        };
        let on = self.underlay.as_ref().map(|of| Around::On(of.outside));
        on.or_else(|| self.approach.as_deref().map(off))
    }

    /// The program of a flow that leaves by a tunnel, and whose packets, with these headers, go on by `rest`.
    ///
    /// # Errors
    /// What keeps it on the worker.
    pub fn through(self, outside: Outside, rest: Self) -> Result<Self, Declined> {
        // A meter or a rate there counts other bytes than those before it.
        let counts_twice = !rest.limits.is_empty() || !self.shapes.is_empty();
        if counts_twice || rest.underlay.is_some() {
            return Err(FlowReason::Lengths.into());
        }
        let plain = outside;
        let outside = plain.edited(&rest)?;
        let room = i64::from(rest.max_len) - OUTSIDE as i64 - i64::from(self.growth);
        let Self { exit, queue, shapes, from: inlet, credits, growth, stamp, .. } = rest;
        let (tunnel, own_queue) = (self.exit, self.queue);
        let underlay = Underlay {
            outside,
            plain,
            tunnel,
            queue: own_queue,
            from: inlet,
            credits,
            growth,
            stamp,
        };
        let max_len = self.max_len.min(room.clamp(0, u32::MAX.into()) as u32);
        Ok(Self { exit, queue, shapes, max_len, underlay: Some(Box::new(underlay)), ..self })
    }

    /// The flow's key as its frames leave its switch.
    pub fn key_out(&self) -> Key {
        let mut key = self.key;
        for edit in &self.edits {
            if let Edit::Set { field, new, .. } = *edit {
                key.set(field, new);
            }
        }
        key
    }

    /// The port by which it leaves its own switch.
    pub fn out(&self) -> PortAt {
        self.underlay.as_ref().map_or(self.exit, |underlay| underlay.tunnel)
    }

    /// The ports on its way.
    pub fn ports(&self) -> impl Iterator<Item = PortAt> {
        let underlay = self.underlay.as_ref();
        let between = underlay.map(|underlay| [underlay.tunnel, underlay.from]);
        let approach = self.approach.as_ref().map(|approach| [approach.from, approach.door]);
        let between = [between, approach].into_iter().flatten().flatten();
        [self.from, self.exit].into_iter().chain(between)
    }
}
