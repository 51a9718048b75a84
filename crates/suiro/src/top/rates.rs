//! Two looks, and what happened between them.

use super::Look;
use super::queues::{self, QueueLoad};
use super::rungs::{self, RungLoad};
use api::{
    BoundHit, CacheView, DropView, PortLoadView, PortView, Rate, RungView, SwitchView, WorkerView,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// What happens per second.
#[derive(Serialize)]
pub struct Rates {
    /// Seconds between the looks.
    pub seconds: f64,
    /// Each rung past the workers, and the workers together.
    pub rungs: Vec<RungLoad>,
    /// Each core.
    pub workers: Vec<WorkerRates>,
    /// Each switch.
    pub switches: Vec<SwitchRates>,
    /// Each port.
    pub ports: Vec<PortRates>,
    /// Bounds that were hit within the last minute.
    pub bounds: Vec<BoundHit>,
    /// When that was, in nanoseconds since 1970.
    #[serde(skip)]
    pub now_ns: u64,
}

/// A core.
#[derive(Serialize)]
pub struct WorkerRates {
    /// The core.
    pub core: usize,
    /// Share of the time spent on frames.
    pub busy_percent: f64,
    /// Share of the time spent on polls that found nothing.
    pub polling_percent: f64,
    /// Frames received a second.
    pub frames_per_s: f64,
    /// Cycles spent on a frame.
    pub cycles_per_frame: f64,
    /// Frames in a round that had any.
    pub frames_per_round: f64,
    /// Share of the frames that went by the tables whose way was in the flow cache; absent without such frames.
    pub cache_hits_percent: Option<f64>,
    /// Frames a second by the rung of the ladder that took them; only rungs that took any.
    pub frames_per_s_by_rung: Vec<RungRate>,
    /// Receive queues served.
    pub queues: usize,
    /// Panics survived since the start.
    pub restarts: u64,
}

/// Frames that a rung of the ladder took.
#[derive(Serialize)]
pub struct RungRate {
    /// Name of the rung.
    pub rung: String,
    /// Frames a second.
    pub frames_per_s: f64,
}

/// A switch.
#[derive(Serialize)]
pub struct SwitchRates {
    /// Its name.
    pub name: String,
    /// Its rules.
    pub flows: u32,
    /// Its ports.
    pub ports: usize,
    /// Controllers connected.
    pub controllers: usize,
    /// Frames received by all its ports, a second.
    pub frames_per_s: f64,
    /// Frames to controllers a second.
    pub packet_ins_per_s: f64,
    /// How long the middle one of the frames stayed that came in meanwhile, in nanoseconds; `null` without frames.
    pub stay_p50_ns: Option<u64>,
    /// And the longest but one in a hundred.
    pub stay_p99_ns: Option<u64>,
    /// Drops a second, by reason; only those that happened.
    pub drops_per_s: BTreeMap<String, f64>,
}

/// A port.
#[derive(Serialize)]
pub struct PortRates {
    /// Its switch.
    pub switch: String,
    /// Its name.
    pub name: String,
    /// Its number.
    pub number: u32,
    /// Its kind.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// `up`, `down`, `no link` or `fault`.
    pub state: &'static str,
    /// Frames received a second.
    pub rx_frames_per_s: f64,
    /// Megabits received a second.
    pub rx_mbps: f64,
    /// Frames sent a second.
    pub tx_frames_per_s: f64,
    /// Megabits sent a second.
    pub tx_mbps: f64,
    /// Drops a second, both ways.
    pub drops_per_s: f64,
    /// Bit/s that leave by it in all; `null` when it takes what it can.
    pub rate: Option<Rate>,
    /// Its queues, by number.
    pub queue: Vec<QueueLoad>,
    /// Frames received a second by each core.
    pub rx_frames_per_s_by_core: BTreeMap<usize, f64>,
}

impl Rates {
    /// What happened between two looks.
    pub fn between(before: &Look, now: &Look) -> Self {
        let seconds = now.workers.at_ns.saturating_sub(before.workers.at_ns).max(1) as f64 / 1e9;
        let workers = pairs(&before.workers.workers, &now.workers.workers, |worker| worker.core);
        let ports = pairs(&before.ports, &now.ports, |port| (port.switch.clone(), port.number));
        let ports: Vec<_> = ports.map(|(before, now)| port_rates(before, now, seconds)).collect();
        let by_core = by_core(before, now, seconds);
        let switches = pairs(&before.switches, &now.switches, |switch| switch.name.clone());
        let switches =
            switches.map(|(before, now)| switch_rates(before, now, &ports, seconds)).collect();
        let with_cores = |mut port: PortRates| {
            port.rx_frames_per_s_by_core =
                by_core.get(&(port.switch.clone(), port.name.clone())).cloned().unwrap_or_default();
            port
        };
        Self {
            seconds,
            rungs: rungs::between(before, now, seconds),
            workers: workers.map(|(before, now)| worker_rates(before, now, seconds)).collect(),
            switches,
            ports: ports.into_iter().map(with_cores).collect(),
            bounds: now.bounds.iter().filter(|hit| hit.goes_on).cloned().collect(),
            now_ns: now.now_ns,
        }
    }
}

/// Each thing of the second look with itself in the first, or with itself if it is new: its rates are 0 then.
pub fn pairs<'a, T, K: Ord>(
    before: &'a [T],
    now: &'a [T],
    key: impl Fn(&T) -> K,
) -> impl Iterator<Item = (&'a T, &'a T)> {
    let known: BTreeMap<K, &T> = before.iter().map(|thing| (key(thing), thing)).collect();
    now.iter().map(move |thing| (known.get(&key(thing)).copied().unwrap_or(thing), thing))
}

/// A counter that began anew (its port was opened again) has no rate yet.
pub fn per_second(before: u64, now: u64, seconds: f64) -> f64 {
    now.saturating_sub(before) as f64 / seconds
}

fn busy(worker: &WorkerView) -> u64 {
    worker.cycles_rx + worker.cycles_pipeline + worker.cycles_tx
}

fn worker_rates(before: &WorkerView, now: &WorkerView, seconds: f64) -> WorkerRates {
    let all_cycles = (now.cycles_per_s as f64).max(1.0);
    let share = |before, now| (100.0 * per_second(before, now, seconds) / all_cycles).min(100.0);
    let frames = now.frames.saturating_sub(before.frames) as f64;
    let ratio = |part: u64, whole: f64| if whole > 0.0 { part as f64 / whole } else { 0.0 };
    WorkerRates {
        core: now.core,
        busy_percent: share(busy(before), busy(now)),
        polling_percent: share(before.cycles_polling, now.cycles_polling),
        frames_per_s: frames / seconds,
        cycles_per_frame: ratio(busy(now).saturating_sub(busy(before)), frames),
        frames_per_round: if now.batches > before.batches {
            frames / (now.batches - before.batches) as f64
        } else {
            0.0
        },
        cache_hits_percent: cache_hits_percent(&before.cache, &now.cache),
        frames_per_s_by_rung: by_rung(&before.rungs, &now.rungs, seconds),
        queues: now.ports.iter().map(|port| port.rx_queues).sum(),
        restarts: now.restarts,
    }
}

fn cache_hits_percent(before: &CacheView, now: &CacheView) -> Option<f64> {
    let all = |cache: &CacheView| cache.hits + cache.absent + cache.stale + cache.passed_by;
    let frames = all(now).saturating_sub(all(before));
    let hits = now.hits.saturating_sub(before.hits) as f64;
    (frames > 0).then(|| 100.0 * hits / frames as f64)
}

fn by_rung(before: &[RungView], now: &[RungView], seconds: f64) -> Vec<RungRate> {
    let rate = |(before, now): (&RungView, &RungView)| RungRate {
        rung: now.rung.clone(),
        frames_per_s: per_second(before.frames, now.frames, seconds),
    };
    let rates = pairs(before, now, |rung| rung.rung.clone()).map(rate);
    rates.filter(|rate| rate.frames_per_s > 0.0).collect()
}

fn switch_rates(
    before: &SwitchView,
    now: &SwitchView,
    ports: &[PortRates],
    seconds: f64,
) -> SwitchRates {
    let of = |drops: &[DropView], reason: &str| {
        drops.iter().find(|drop| drop.reason == reason).map_or(0, |drop| drop.frames)
    };
    let drops = now.drops.iter().map(|drop| {
        (drop.reason.clone(), per_second(of(&before.drops, &drop.reason), drop.frames, seconds))
    });
    let stayed = now.latency.all().since(&before.latency.all());
    SwitchRates {
        name: now.name.to_string(),
        flows: now.flows,
        ports: now.ports,
        controllers: now.connections.iter().filter(|connection| connection.controller).count(),
        frames_per_s: ports
            .iter()
            .filter(|port| port.switch == *now.name)
            .map(|port| port.rx_frames_per_s)
            .sum(),
        packet_ins_per_s: per_second(before.packet_ins, now.packet_ins, seconds),
        stay_p50_ns: stayed.quantile_ns(0.5),
        stay_p99_ns: stayed.quantile_ns(0.99),
        drops_per_s: drops.filter(|(_, rate)| *rate > 0.0).collect(),
    }
}

fn port_rates(before: &PortView, now: &PortView, seconds: f64) -> PortRates {
    let (was, is) = (&before.counters, &now.counters);
    let rate = |before, now| per_second(before, now, seconds);
    let dropped = |view: &PortView| -> u64 {
        view.counters.rx_drops.iter().chain(&view.counters.tx_drops).map(|drop| drop.frames).sum()
    };
    PortRates {
        switch: now.switch.to_string(),
        name: now.name.to_string(),
        number: now.number,
        kind: now.kind.word(),
        state: crate::commands::port::state(now),
        rx_frames_per_s: rate(was.rx_frames, is.rx_frames),
        rx_mbps: rate(was.rx_bytes, is.rx_bytes) * 8.0 / 1e6,
        tx_frames_per_s: rate(was.tx_frames, is.tx_frames),
        tx_mbps: rate(was.tx_bytes, is.tx_bytes) * 8.0 / 1e6,
        drops_per_s: rate(dropped(before), dropped(now)),
        rate: now.rate,
        queue: queues::between(&before.queue, &now.queue, seconds),
        rx_frames_per_s_by_core: BTreeMap::new(),
    }
}

/// Frames received a second, by switch and port, then by core.
fn by_core(
    before: &Look,
    now: &Look,
    seconds: f64,
) -> BTreeMap<(String, String), BTreeMap<usize, f64>> {
    let mut rates: BTreeMap<_, BTreeMap<usize, f64>> = BTreeMap::new();
    for (before, now) in pairs(&before.workers.workers, &now.workers.workers, |worker| worker.core)
    {
        let key = |load: &PortLoadView| (load.switch.clone(), load.port.clone());
        for (was, is) in pairs(&before.ports, &now.ports, key) {
            let rate = per_second(was.rx_frames, is.rx_frames, seconds);
            let name = (is.switch.to_string(), is.port.to_string());
            rates.entry(name).or_default().insert(now.core, rate);
        }
    }
    rates
}
