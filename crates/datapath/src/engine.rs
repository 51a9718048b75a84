//! What a worker needs to take a batch through the switches: everything but the queues that batches come from.

use crate::clock::Clock;
use crate::counters::WorkerBlock;
use crate::event::EventRing;
use crate::id::{PortIx, SwitchIx};
use crate::local::World;
use crate::pending::Chain;
use crate::rung::Rung;
use crate::scratch::Scratch;
use crate::shape::{Sending, Shaper, dissolve};
use crate::taps::Taps;
use crate::touch::{Touch, Touching};
use flow::{Nanos, Workspace};
use port::Lost;
use std::cell::Cell;
use std::sync::Arc;
use wire::DropReason;

/// How to make a worker's cache: again after a panic, which may have left it half written.
#[derive(Clone, Copy)]
pub(crate) struct CacheOf {
    pub(crate) worker: u8,
    pub(crate) secret: [u64; 2],
    pub(crate) entries: usize,
}

impl CacheOf {
    fn make(self) -> Workspace {
        Workspace::new(self.worker, self.secret, self.entries)
    }
}

/// Switches, ports, cache and memory of one worker.
pub(crate) struct Engine<C> {
    pub(crate) number: usize,
    pub(crate) clock: Arc<C>,
    pub(crate) events: Arc<EventRing>,
    pub(crate) world: World,
    pub(crate) scratch: Scratch,
    pub(crate) touching: Touching,
    /// Who sees its frames.
    pub(crate) taps: Arc<Taps>,
    pub(crate) workspace: Workspace,
    /// The rung that took the last batch.
    pub(crate) last: Cell<Option<Rung>>,
    /// Frames that a destination takes from their source's memory just now.
    pub(crate) in_hand: u64,
    /// The worker's counters.
    pub(crate) counters: Arc<WorkerBlock>,
    cache_of: CacheOf,
}

impl<C: Clock> Engine<C> {
    pub(crate) fn new(
        cache_of: CacheOf,
        clock: Arc<C>,
        events: Arc<EventRing>,
        counters: Arc<WorkerBlock>,
        taps: Arc<Taps>,
    ) -> Self {
        Self {
            number: usize::from(cache_of.worker),
            clock,
            events,
            world: World::default(),
            scratch: Scratch::new(&taps),
            touching: Touching::default(),
            taps,
            workspace: cache_of.make(),
            last: Cell::new(None),
            in_hand: 0,
            counters,
            cache_of,
        }
    }

    /// Frames of a switch left by the worker that received them, so long after their round began.
    #[inline]
    pub(crate) fn stayed(&self, switch: SwitchIx, frames: u64, ns: u64) {
        if let Some(switch) = self.world.switch(switch) {
            switch.counters(self.number).sojourns.received.note(ns, frames);
            self.counters.sojourns.received.note(ns, frames);
        }
    }

    /// Frames of a switch left that others had received, so long after they came in.
    pub(crate) fn stayed_handed(&self, switch: SwitchIx, frames: u64, ns: u64) {
        if let Some(switch) = self.world.switch(switch) {
            switch.counters(self.number).sojourns.handed.note(ns, frames);
            self.counters.sojourns.handed.note(ns, frames);
        }
    }

    /// Sends what waited in ports' queues and may leave by now.
    #[inline]
    pub(crate) fn depart(&mut self, now: Nanos) {
        if self.scratch.backlog.next().is_some_and(|next| next <= now) {
            self.depart_now(now);
        }
    }

    #[inline(never)]
    fn depart_now(&mut self, now: Nanos) {
        let (_, ports) = self.world.parts();
        let Scratch { backlog, drops, .. } = &mut self.scratch;
        let (worker, touching, taps) = (self.number, &self.touching, &*self.taps);
        let queued = &self.counters.queued;
        let mut cx = Sending { worker, now, drops, touching, taps, queued };
        backlog.depart(ports, &mut cx);
    }

    /// Gives a port other queues, or none; what waits goes on waiting in those of the same number. Returns the queues that it had.
    pub(crate) fn set_shaper(
        &mut self,
        ix: PortIx,
        shaper: Option<Box<Shaper>>,
    ) -> Option<Box<Shaper>> {
        let now = self.clock.now();
        self.scratch.backlog.forget(ix);
        self.scratch.backlog.reserve(self.world.ports());
        let port = self.world.port_mut(ix)?;
        let Some(mut next) = shaper else {
            if let Some((mut departure, before)) = port.departure(ix) {
                let (worker, drops) = (self.number, &mut self.scratch.drops);
                let (touching, taps) = (&self.touching, &*self.taps);
                let queued = &self.counters.queued;
                let mut cx = Sending { worker, now, drops, touching, taps, queued };
                dissolve(before, &mut departure, &mut cx);
            }
            return port.shaper.take();
        };
        if let Some(before) = &mut port.shaper {
            let drops = self.scratch.drops.at(port.shared.at);
            next.inherit(before, drops);
            port.shared.counters[self.number].tx_drops.take(drops);
        }
        if !next.is_idle() {
            self.scratch.backlog.list(ix, &mut next);
        }
        port.shaper.replace(next)
    }

    /// Forgets the pass that a panic ended; returns whose code it was. Runs no one else's code.
    pub(crate) fn recover(&mut self) -> Touch {
        self.scratch.reset();
        for port in self.world.ports_mut() {
            port.chain = Chain::default();
            let caught = port.shaper.as_mut().map_or(0, |shaper| shaper.take_in_flight());
            let drops = self.scratch.drops.at(port.shared.at);
            drops.lose(DropReason::WorkerFault, Lost::Elsewhere(caught));
            port.shared.counters[self.number].tx_drops.take(drops);
        }
        self.workspace = self.cache_of.make();
        self.touching.take()
    }
}
