//! The workers as they are shown.

use crate::service::Node;
use api::{CacheView, PortLoadView, RungView, WorkerView, WorkersView};
use datapath::{Rung, RungCounters, WorkerStats};
use std::time::{SystemTime, UNIX_EPOCH};

impl Node {
    /// The workers as they are now.
    pub fn workers(&self) -> WorkersView {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let workers =
            self.datapath.worker_stats().into_iter().map(|stats| self.view_worker(stats)).collect();
        let (latency, queue_wait) = self.datapath.latency();
        WorkersView { at_ns: now.as_nanos() as u64, workers, latency, queue_wait }
    }

    fn view_worker(&self, stats: WorkerStats) -> WorkerView {
        let load = |load: &datapath::PortLoad| {
            let member = self.directory.by_id(load.at.switch)?;
            let (port, _) = member.port(&load.at.port.to_string())?;
            let (rx_queues, rx_frames, tx_frames) =
                (load.rx_queues, load.rx_frames, load.tx_frames);
            Some(PortLoadView { switch: member.name(), port, rx_queues, rx_frames, tx_frames })
        };
        WorkerView {
            worker: stats.worker,
            core: stats.core,
            frames: stats.frames,
            taken_over: stats.taken_over,
            went_on: stats.went_on,
            rungs: Rung::ALL.into_iter().zip(stats.rungs).map(view_rung).collect(),
            batches: stats.batches,
            empty_polls: stats.empty_polls,
            sleeps: stats.sleeps,
            restarts: stats.restarts,
            cache: view_cache(stats.cache),
            cycles_rx: stats.cycles.rx,
            cycles_pipeline: stats.cycles.pipeline,
            cycles_tx: stats.cycles.tx,
            cycles_polling: stats.cycles_polling,
            cycles_per_s: stats.cycles_per_s,
            ports: stats.ports.iter().filter_map(load).collect(),
        }
    }
}

fn view_cache(counts: flow::CacheCounts) -> CacheView {
    let flow::CacheCounts { hits, absent, stale, compared, passed_by } = counts;
    CacheView { hits, absent, stale, compared, passed_by }
}

fn view_rung((rung, taken): (Rung, RungCounters)) -> RungView {
    RungView { rung: rung.name().into(), frames: taken.frames, bytes: taken.bytes }
}
