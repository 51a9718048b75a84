//! What a worker needs to take a batch through the switches: everything but the queues that batches come from.

use crate::clock::Clock;
use crate::event::EventRing;
use crate::frames::Frames;
use crate::local::{SwitchIx, World};
use crate::pass::{Pass, Scratch, Work};
use crate::pending::Chain;
use crate::touch::{Touch, Touching};
use flow::{Cache, Nanos, PortNo};
use std::sync::Arc;

/// How to make a worker's cache: again after a panic, which may have left it half written.
#[derive(Clone, Copy)]
pub(crate) struct CacheOf {
    pub(crate) worker: u8,
    pub(crate) secret: [u64; 2],
    pub(crate) entries: usize,
}

impl CacheOf {
    fn make(self) -> Cache {
        Cache::new(self.worker, self.secret, self.entries)
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
    cache: Cache,
    cache_of: CacheOf,
}

impl<C: Clock> Engine<C> {
    pub(crate) fn new(
        number: usize,
        cache_of: CacheOf,
        clock: Arc<C>,
        events: Arc<EventRing>,
    ) -> Self {
        Self {
            number,
            clock,
            events,
            world: World::default(),
            scratch: Scratch::default(),
            touching: Touching::default(),
            cache: cache_of.make(),
            cache_of,
        }
    }

    /// Takes the frames, which came in at `in_port` of `switch`, to their destinations; returns the cycles spent on sending.
    pub(crate) fn pass(
        &mut self,
        now: Nanos,
        frames: &mut Frames<'_>,
        (switch, in_port): (SwitchIx, PortNo),
        work: Work<'_>,
    ) -> u64 {
        let (switches, ports) = self.world.parts();
        let mut pass = Pass {
            worker: self.number,
            clock: &*self.clock,
            now,
            switches,
            ports,
            cache: &mut self.cache,
            scratch: &mut self.scratch,
            heads: &mut frames.heads,
            bodies: &frames.bodies,
            offloads: &frames.offloads,
            events: &self.events,
            touching: &self.touching,
            tx_cycles: 0,
        };
        pass.run(switch, in_port, work);
        pass.tx_cycles
    }

    /// Forgets the pass that a panic ended; returns whose code it was. Runs no one else's code.
    pub(crate) fn recover(&mut self) -> Touch {
        self.scratch.reset();
        self.world.ports_mut().for_each(|port| port.chain = Chain::default());
        self.cache = self.cache_of.make();
        self.touching.take()
    }
}
