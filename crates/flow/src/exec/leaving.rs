//! Packets of a batch that leave as they are, each by one port, gathered so that the sink hears of many at once.
//!
//! Of whatever else becomes of a packet the sink hears at once, but not before it has heard of the packets ahead: verdicts come in the
//! order of the packets.

use crate::action::PortNo;
use crate::limits::LANES;
use crate::packet::{Packet, Sink};
use std::ops::Range;

/// The ports of packets of which the sink has not heard yet.
pub(crate) struct Leaving<'s, S> {
    sink: &'s mut S,
    ports: [PortNo; LANES],
    /// Packets of which it has heard.
    told: usize,
}

impl<'s, S: Sink> Leaving<'s, S> {
    pub fn new(sink: &'s mut S) -> Self {
        Self { sink, ports: [0; LANES], told: 0 }
    }

    /// These packets leave by this port, which can send; every packet ahead has been named here or in [`Leaving::otherwise`].
    #[inline(always)]
    pub fn by(&mut self, which: Range<usize>, port: PortNo) {
        self.ports[which].fill(port);
    }

    /// The sink, to be told what else becomes of these packets; every packet ahead has been named.
    #[inline]
    pub fn otherwise(&mut self, packets: &[&mut Packet<'_>], which: Range<usize>) -> &mut S {
        self.tell(packets, which.start);
        self.told = which.end;
        self.sink
    }

    /// Every packet has been named.
    pub fn finish(mut self, packets: &[&mut Packet<'_>]) {
        self.tell(packets, packets.len());
    }

    #[inline]
    fn tell(&mut self, packets: &[&mut Packet<'_>], to: usize) {
        if self.told < to {
            self.sink.forward(self.told, &packets[self.told..to], &self.ports[self.told..to]);
        }
    }
}
