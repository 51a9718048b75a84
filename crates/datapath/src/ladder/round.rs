//! Facts of a batch and of its ingress port, found once.

use crate::counters::PortBlock;
use crate::engine::Engine;
use crate::exit::Exit;
use crate::frames::{ETHERNET_HEADER, Frames};
use crate::id::SwitchIx;
use crate::local::World;
use crate::rung::{Rung, Rungs};
use crate::shared::PortShared;
use arc_swap::Guard;
use flow::{Nanos, PortNo, Snapshot};
use port::{Lengths, RxBatch, RxQueue, Sent};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use wire::DropReason;

/// One round of a receive queue at a switch: its tables are loaded once, for all of its frames.
pub(crate) struct Round<'a> {
    pub(crate) tables: Guard<Arc<Snapshot>>,
    pub(crate) from: &'a PortShared,
    pub(crate) switch: SwitchIx,
    pub(crate) now: Nanos,
    /// Vlinks that its frames have crossed.
    pub(super) hops: u32,
    /// The lowest rung that has decided about them before.
    pub(super) above: Rung,
    is_up: bool,
    /// Rungs that are switched on.
    on: Rungs,
    may: Rungs,
}

impl<'a> Round<'a> {
    /// Begins a round of frames that come in `from` a port; `on` are the rungs that are switched on.
    /// `None`: the switch is out of service.
    #[inline]
    pub(crate) fn begin(
        world: &World,
        (from, switch): (&'a PortShared, SwitchIx),
        now: Nanos,
        on: Rungs,
    ) -> Option<Self> {
        let tables = world.switch(switch)?.shared.tables.load();
        let is_up = from.up.load(Relaxed);
        let may = match () {
            () if !is_up => Rungs::PASS,
            () if !tables.admits(from.at.port) => on.and(Rungs::BY_FRAME),
            () => on,
        };
        Some(Self { tables, from, switch, now, hops: 0, above: Rung::Port, is_up, on, may })
    }

    /// Goes on behind a vlink with frames that come in there by `from`; `rung` has sent them over it.
    #[inline]
    pub(super) fn behind<'b>(
        &self,
        world: &World,
        (from, switch): (&'b PortShared, SwitchIx),
        rung: Rung,
    ) -> Option<Round<'b>> {
        let round = Round::begin(world, (from, switch), self.now, self.on)?;
        Some(Round { hops: self.hops + 1, above: self.above.max(rung), ..round })
    }

    /// Tells if the rung may be tried with unread frames.
    #[inline]
    pub(super) fn may(&self, rung: Rung) -> bool {
        self.may.has(rung)
    }

    /// Number of the ingress port.
    #[inline]
    pub(super) fn in_port(&self) -> PortNo {
        self.from.at.port
    }

    /// Counters of the ingress port at a worker.
    #[inline]
    pub(super) fn counters(&self, worker: usize) -> &PortBlock {
        &self.from.counters[worker]
    }

    /// Finds out what is true of a received batch.
    #[inline]
    pub(super) fn batch(&self, received: &RxBatch) -> Batch {
        let short = received.has_tunnel_ids() || self.may.and(Rungs::BY_BATCH).is_pass();
        if short {
            let may = self.may.and(Rungs::BY_FRAME);
            return Batch { may, sum: Sent::default(), longest: 0 };
        }
        let Lengths { bytes, shortest, longest } =
            received.lengths().unwrap_or_else(|| lengths(received));
        let has_runts = (shortest as usize) < ETHERNET_HEADER;
        let may = if has_runts { Rungs::PASS } else { self.may };
        Batch { may, sum: Sent { frames: received.frames().len() as u64, bytes }, longest }
    }
}

impl<C> Engine<C> {
    /// Takes a batch apart for rungs that decide frame by frame, and counts it in. False: the port is down, and the frames are lost.
    #[inline]
    pub(crate) fn receive<'f>(
        &mut self,
        round: &Round<'_>,
        frames: &mut Frames<'f>,
        received: &'f mut RxBatch,
        source: &'f dyn RxQueue,
    ) -> bool {
        let counters = &round.from.counters[self.number];
        let drops = self.scratch.drops.at(round.from.at);
        frames.take(received, Some(source), round.in_port(), drops);
        if round.is_up {
            counters.rx.add(frames.received);
        } else {
            frames.lose(DropReason::PortDown, drops);
        }
        counters.rx_drops.take(drops);
        round.is_up
    }
}

/// Facts of a received batch.
pub(super) struct Batch {
    may: Rungs,
    /// Its frames and bytes.
    pub(super) sum: Sent,
    longest: u32,
}

impl Batch {
    /// Tells if the rung may be tried.
    #[inline]
    pub(super) fn may(&self, rung: Rung) -> bool {
        self.may.has(rung)
    }

    /// Tells if every frame leaves by this exit as it came.
    #[inline]
    pub(super) fn fits(&self, exit: &Exit, received: &RxBatch) -> bool {
        self.longest <= exit.surely_takes()
            || received
                .frames()
                .iter()
                .all(|slot| exit.check(&slot.head, &slot.offload, slot.frame_len() as u32).is_ok())
    }
}

/// The lengths of a batch whose port did not tell them.
#[inline]
fn lengths(received: &RxBatch) -> Lengths {
    let mut lengths = Lengths::default();
    received.frames().iter().for_each(|slot| lengths.count(slot.frame_len()));
    lengths
}
