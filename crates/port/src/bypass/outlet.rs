//! A tunnel's way to a TAP's side entrance.

use super::{Door, Injected, Place};
use crate::underlay::{NextHop, NoHop, Watched};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use wire::DropReason;
use wire::tunnel::Outer;

/// What a tunnel's way past the kernel did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OutletFacts {
    /// Packets that left by it.
    pub past: u64,
    /// Packets that left through the kernel, which had to find the way, or to refuse them.
    pub through: u64,
    /// Why packets go through the kernel now, if they do.
    pub hindrance: Option<String>,
}

/// What all packets of a tunnel have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    /// The other end, and its UDP port.
    pub(crate) to: IpAddr,
    pub(crate) port: u16,
    pub(crate) ttl: u8,
    /// Whether UDP has a checksum.
    pub(crate) checksum: bool,
}

/// Datagrams of one length, but for the last.
#[derive(Clone, Copy)]
pub(crate) struct Datagrams<'a> {
    pub(crate) bytes: &'a [u8],
    /// Length of the first.
    pub(crate) segment: usize,
    pub(crate) count: usize,
    /// Outer DS field.
    pub(crate) ds: u8,
}

/// A tunnel's way past the kernel.
pub struct Outlet {
    place: Arc<Place>,
    ends: Ends,
    /// Of each of this end's addresses, which flows take by turns.
    ways: Vec<Watched>,
    /// Source ports by flow.
    ports: Vec<u16>,
    /// Packets that went this way.
    past: AtomicU64,
    /// Packets that went through the kernel.
    through: AtomicU64,
}

impl Outlet {
    pub(crate) fn new(place: Arc<Place>, ends: Ends, ways: Vec<Watched>, ports: Vec<u16>) -> Self {
        let (past, through) = Default::default();
        Self { place, ends, ways, ports, past, through }
    }

    /// Sends datagrams of a flow. `None`: they have to go through the kernel, which knows why.
    pub(crate) fn send(
        &self,
        flow: usize,
        datagrams: Datagrams<'_>,
    ) -> Option<Result<(), DropReason>> {
        let sent = self.try_send(flow, datagrams);
        let counter = if sent.is_some() { &self.past } else { &self.through };
        counter.fetch_add(datagrams.count as u64, Relaxed);
        sent
    }

    fn try_send(&self, flow: usize, datagrams: Datagrams<'_>) -> Option<Result<(), DropReason>> {
        let Datagrams { bytes, segment, count, ds } = datagrams;
        let way = &self.ways[flow % self.ways.len()];
        way.used();
        let hop = way.next_hop();
        let hop: &NextHop = hop.as_ref().as_ref().ok()?;
        let door = self.place.door(hop.interface)?;
        let outer = self.outer(hop);
        if outer.overhead() + segment > hop.mtu as usize {
            return None;
        }
        let port = self.ports[flow];
        let inject = |payload: &[u8], segment| {
            let mut frame = door.buffer();
            frame.resize(outer.len(), 0);
            frame.extend_from_slice(payload);
            let offload = outer.write(&mut frame, (port, ds), payload.len(), segment);
            door.inject(flow, Injected { bytes: frame, offload })
        };
        // Nobody cuts large ones that have no checksums.
        let is_sent = match self.ends.checksum && count > 1 {
            true => inject(bytes, Some(u16::try_from(segment).ok()?)),
            false => bytes.chunks(segment.max(1)).all(|datagram| inject(datagram, None)),
        };
        Some(if is_sent { Ok(()) } else { Err(DropReason::TxFull) })
    }

    /// The headers of packets of such entropy now, their source port, the entrance that they take, and what the way carries; `None`: they go
    /// through the kernel.
    pub(super) fn headers(&self, entropy: u32) -> Option<(Outer, u16, Arc<Door>, u32)> {
        let flow = entropy as usize % self.ports.len();
        let hop = self.ways[flow % self.ways.len()].next_hop();
        let hop: &NextHop = hop.as_ref().as_ref().ok()?;
        Some((self.outer(hop), self.ports[flow], self.place.door(hop.interface)?, hop.mtu))
    }

    /// Packets of such entropy went this way past the worker, too.
    pub(super) fn went(&self, entropy: u32, packets: u64) {
        let flow = entropy as usize % self.ports.len();
        self.ways[flow % self.ways.len()].used();
        self.past.fetch_add(packets, Relaxed);
    }

    /// Has the kernel look for the neighbours that packets go to.
    pub(super) fn find(&self) {
        self.ways.iter().for_each(Watched::find);
    }

    fn outer(&self, hop: &NextHop) -> Outer {
        let Ends { to, port, ttl, checksum } = self.ends;
        let NextHop { mac, from_mac, source: from, .. } = *hop;
        Outer { mac, from_mac, from, to, port, ttl, checksum }
    }

    /// What users may know of it.
    pub fn facts(&self) -> OutletFacts {
        let (past, through) = (self.past.load(Relaxed), self.through.load(Relaxed));
        OutletFacts { past, through, hindrance: self.hindrance() }
    }

    /// Why packets go through the kernel now, if they do.
    pub(crate) fn hindrance(&self) -> Option<String> {
        self.ways.iter().find_map(|way| match way.next_hop().as_ref() {
            Ok(hop) if self.place.door(hop.interface).is_some() => None,
            Ok(hop) => Some(format!(
                "the way to {} leaves by {}, which is no TAP of a switch here",
                self.ends.to, hop.name
            )),
            Err(error) => Some(NoHop::to_string(error)),
        })
    }
}
