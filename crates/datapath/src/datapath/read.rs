//! Counters and assignments, read.

use super::registry::PortEntry;
use super::{Datapath, Handle};
use crate::counters::{self, Count, DropSums, PortBlock, Sojourns};
use crate::id::{PortAt, SwitchId};
use crate::shared::PastWorkers;
use crate::stats::{
    Assignment, PortCounters, PortLoad, RungCounters, StageCycles, SwitchCounters, WorkerStats,
    WorkerTimes,
};
use api::{Latencies, Latency};
use port::Sent;
use wire::DropReason;

impl Datapath {
    /// Counts frames of a port that no worker saw. Nothing if it is not in service.
    pub fn credit(&self, at: PortAt, past: PastWorkers) {
        // One thread at a time writes to the block that is no worker's: whoever holds the registry.
        let registry = self.registry();
        let Some(entry) = registry.ports.get(&at) else { return };
        if let Some(block) = entry.shared.counters.last() {
            block.rx.add(past.rx);
            block.tx.add(past.tx);
        }
        let queue = entry.queues.as_ref().map(|queues| queues.queue(past.queue));
        if let Some(block) = queue.and_then(|queue| queue.counters.last()) {
            block.tx.add(past.tx);
        }
        let switch = registry.switches.get(&at.switch);
        if let Some(block) = switch.and_then(|entry| entry.shared.counters.last()) {
            block.drops.add(DropReason::Meter, past.metered);
        }
    }

    /// Has a port's counters go on from these: what it counted before the node was started anew.
    pub fn count_before(&self, at: PortAt, before: &PortCounters) {
        // As above: the registry's holder writes to the last block.
        let blocks = self.registry().counters(at);
        let Some(block) = blocks.last() else { return };
        block.rx.add(Sent { frames: before.rx_frames, bytes: before.rx_bytes });
        block.tx.add(Sent { frames: before.tx_frames, bytes: before.tx_bytes });
        before.rx_drops.iter().for_each(|&(reason, count)| block.rx_drops.add(reason, count));
        before.tx_drops.iter().for_each(|&(reason, count)| block.tx_drops.add(reason, count));
    }

    /// A port's counters, over all workers; `None` if it never was in service.
    pub fn port_counters(&self, at: PortAt) -> Option<PortCounters> {
        self.registry().counted.get(&at).map(|blocks| port_counters(blocks))
    }

    /// A switch's counters, over all workers and its ports; `None` if it is not in service.
    pub fn switch_counters(&self, switch: SwitchId) -> Option<SwitchCounters> {
        let registry = self.registry();
        let entry = registry.switches.get(&switch)?;
        let (mut drops, mut counters) = (DropSums::default(), SwitchCounters::default());
        for block in &entry.shared.counters {
            block.drops.add_to(&mut drops);
            counters.packet_ins += block.packet_ins.get();
            counters.packet_outs += block.packet_outs.get();
        }
        let at = |port| PortAt { switch, port };
        for (_, blocks) in registry.counted.range(at(0)..=at(u32::MAX)) {
            for block in blocks.iter() {
                block.rx_drops.add_to(&mut drops);
                block.tx_drops.add_to(&mut drops);
            }
        }
        counters.drops = drops.named();
        Some(counters)
    }

    /// How long frames stayed that came in at a switch, over all workers; `None` if it is not in service.
    pub fn latency_at(&self, switch: SwitchId) -> Option<Latencies> {
        let registry = self.registry();
        let entry = registry.switches.get(&switch)?;
        Some(Sojourns::sum(entry.shared.counters.iter().map(|block| &block.sojourns)))
    }

    /// How long frames stayed, and how long those waited that had to wait in ports' queues, over all workers.
    pub fn latency(&self) -> (Latencies, Latency) {
        let blocks = self.workers.iter().map(|handle| &*handle.mailbox.counters);
        let stayed = Sojourns::sum(blocks.clone().map(|block| &block.sojourns));
        (stayed, counters::sum(blocks.map(|block| &block.queued)))
    }

    /// Every worker: its work, its idleness, and its part of each port's traffic.
    pub fn worker_stats(&self) -> Vec<WorkerStats> {
        (0..self.workers.len()).map(|worker| self.stats_of(worker)).collect()
    }

    /// Frames that a worker has received since it started.
    pub fn received(&self, worker: usize) -> u64 {
        self.workers[worker].mailbox.counters.frames.get()
    }

    /// What each worker's time went into, by worker: a few loads, for those who ask often.
    pub fn worker_times(&self) -> Vec<WorkerTimes> {
        let (per_s, since_start_ns) =
            (u128::from(self.started.cycles_per_s().max(1)), self.started.age());
        let ns = |count: &Count| (u128::from(count.get()) * 1_000_000_000 / per_s) as u64;
        let times = |handle: &Handle| {
            let counters = &handle.mailbox.counters;
            WorkerTimes {
                core: handle.core,
                rx_ns: ns(&counters.cycles_rx),
                pipeline_ns: ns(&counters.cycles_pipeline),
                tx_ns: ns(&counters.cycles_tx),
                since_start_ns,
            }
        };
        self.workers.iter().map(times).collect()
    }

    /// Frames and bytes that all workers took, and the nanoseconds of their cores that these cost: a few loads.
    pub fn work(&self) -> (u64, u64, u64) {
        let per_s = u128::from(self.started.cycles_per_s().max(1));
        self.workers.iter().fold((0, 0, 0), |(frames, bytes, ns), handle| {
            let counters = &handle.mailbox.counters;
            let cycles = [&counters.cycles_rx, &counters.cycles_pipeline, &counters.cycles_tx];
            let busy: u64 = cycles.map(|count| count.get()).iter().sum();
            let (more, size) = counters.rungs.iter().fold((0, 0), |(frames, bytes), taken| {
                let taken = taken.get();
                (frames + taken.frames, bytes + taken.bytes)
            });
            (frames + more, bytes + size, ns + (u128::from(busy) * 1_000_000_000 / per_s) as u64)
        })
    }

    /// Which workers poll a port's receive queues; `None` if the port is not in service.
    pub fn assignments(&self, at: PortAt) -> Option<Vec<Assignment>> {
        let registry = self.registry();
        let workers = registry.ports.get(&at)?.workers.iter().enumerate();
        Some(
            workers
                .map(|(queue, &worker)| Assignment {
                    queue,
                    worker,
                    core: self.workers[worker].core,
                })
                .collect(),
        )
    }

    fn stats_of(&self, worker: usize) -> WorkerStats {
        let handle = &self.workers[worker];
        let counters = &handle.mailbox.counters;
        let load = |(&at, entry): (&PortAt, &PortEntry)| {
            let block = &entry.shared.counters[worker];
            PortLoad {
                at,
                rx_queues: entry.workers.iter().filter(|&&of| of == worker).count(),
                rx_frames: block.rx.frames.get(),
                tx_frames: block.tx.frames.get(),
            }
        };
        WorkerStats {
            worker,
            core: handle.core,
            frames: counters.frames.get(),
            taken_over: counters.taken_over.get(),
            went_on: counters.went_on.get(),
            rungs: counters.rungs.each_ref().map(|taken| {
                let Sent { frames, bytes } = taken.get();
                RungCounters { frames, bytes }
            }),
            batches: counters.batches.get(),
            empty_polls: counters.empty_polls.get(),
            sleeps: counters.sleeps.get(),
            restarts: counters.restarts.get(),
            cache: counters.cache.get(),
            cycles: StageCycles {
                rx: counters.cycles_rx.get(),
                pipeline: counters.cycles_pipeline.get(),
                tx: counters.cycles_tx.get(),
            },
            cycles_polling: counters.cycles_polling.get(),
            cycles_per_s: self.started.cycles_per_s(),
            ports: self.registry().ports.iter().map(load).collect(),
        }
    }
}

fn port_counters(blocks: &[PortBlock]) -> PortCounters {
    let (mut rx_drops, mut tx_drops) = (DropSums::default(), DropSums::default());
    let sum = |of: fn(&PortBlock) -> Sent| {
        blocks.iter().map(of).fold(Sent::default(), |sum, part| Sent {
            frames: sum.frames + part.frames,
            bytes: sum.bytes + part.bytes,
        })
    };
    for block in blocks {
        block.rx_drops.add_to(&mut rx_drops);
        block.tx_drops.add_to(&mut tx_drops);
    }
    let (rx, tx) = (sum(|block| block.rx.get()), sum(|block| block.tx.get()));
    PortCounters {
        rx_frames: rx.frames,
        rx_bytes: rx.bytes,
        tx_frames: tx.frames,
        tx_bytes: tx.bytes,
        rx_drops: rx_drops.named(),
        tx_drops: tx_drops.named(),
    }
}
