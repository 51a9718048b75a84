//! Frames by the rung that took them: the workers together, and each rung past them.

use super::Look;
use super::rates::{pairs, per_second};
use crate::table::{Table, dash, short};
use api::OffloadRung;
use serde::Serialize;

/// What the workers do is one row.
const WORKER: &str = "worker";

/// The load of one rung, or of the workers together.
#[derive(Serialize)]
pub struct RungLoad {
    /// `nic`, `xdp`, `tc` or `worker`.
    pub rung: String,
    /// Frames a second. A large (GSO) frame counts once.
    pub frames_per_s: f64,
    /// Share of the node's frames.
    pub share_percent: f64,
    /// Megabits a second.
    pub mbps: f64,
    /// Frames a second that a limit refused; absent for the workers, whose drops have reasons.
    pub limited_per_s: Option<f64>,
    /// Flows that take it now; absent for the workers, which do not know all of theirs.
    pub flows: Option<u64>,
    /// Flows on their way there or back.
    pub moving: Option<u64>,
}

/// The rungs between two looks, the workers last. Rungs past them are there while offload is on, or has work left.
pub fn between(before: &Look, now: &Look, seconds: f64) -> Vec<RungLoad> {
    let past = pairs(&before.offload.rungs, &now.offload.rungs, |rung| rung.name.clone());
    let mut loads: Vec<_> = past.map(|(before, now)| past_worker(before, now, seconds)).collect();
    let is_idle = |load: &RungLoad| load.frames_per_s == 0.0 && load.flows == Some(0);
    loads.retain(|load| now.offload.on || !is_idle(load));
    let workers = pairs(&before.workers.workers, &now.workers.workers, |worker| worker.core);
    let mut worker = RungLoad {
        rung: WORKER.into(),
        frames_per_s: 0.0,
        share_percent: 0.0,
        mbps: 0.0,
        limited_per_s: None,
        flows: None,
        moving: None,
    };
    for (before, now) in workers {
        worker.frames_per_s += per_second(before.frames, now.frames, seconds);
        for (before, now) in pairs(&before.rungs, &now.rungs, |rung| rung.rung.clone()) {
            worker.mbps += per_second(before.bytes, now.bytes, seconds) * 8.0 / 1e6;
        }
    }
    loads.push(worker);
    let all: f64 = loads.iter().map(|load| load.frames_per_s).sum();
    for load in &mut loads {
        load.share_percent = if all > 0.0 { 100.0 * load.frames_per_s / all } else { 0.0 };
    }
    loads
}

fn past_worker(before: &OffloadRung, now: &OffloadRung, seconds: f64) -> RungLoad {
    let rate = |of: fn(&OffloadRung) -> u64| per_second(of(before), of(now), seconds);
    RungLoad {
        rung: now.name.clone(),
        frames_per_s: rate(|rung| rung.frames),
        share_percent: 0.0,
        mbps: rate(|rung| rung.bytes) * 8.0 / 1e6,
        limited_per_s: Some(rate(|rung| rung.limited)),
        flows: Some(now.flows),
        moving: Some(now.moving),
    }
}

/// Frames a second of the node, and the share of those that no worker saw.
pub fn all_and_past(loads: &[RungLoad]) -> (f64, f64) {
    let past = loads.iter().filter(|load| load.rung != WORKER);
    (loads.iter().map(|load| load.frames_per_s).sum(), past.map(|load| load.share_percent).sum())
}

/// The rungs; nothing while all there is are workers.
pub fn table(loads: &[RungLoad]) -> String {
    let mut table = Table::new(&[
        "RUNG",
        ">FRAMES/S",
        ">SHARE %",
        ">MBIT/S",
        ">LIMITED/S",
        ">FLOWS",
        ">MOVING",
    ]);
    for load in loads {
        table.row(vec![
            load.rung.clone(),
            short(load.frames_per_s),
            format!("{:.1}", load.share_percent),
            format!("{:.1}", load.mbps),
            dash(load.limited_per_s.map(short)),
            dash(load.flows),
            dash(load.moving),
        ]);
    }
    if loads.len() > 1 { table.to_string() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{OffloadView, RungView, WorkerView, WorkersView};

    /// A look at a node whose worker took `worker` and whose rung `tc` took `tc`: frames and bytes.
    fn look(worker: (u64, u64), tc: Option<(u64, u64, u64)>) -> Look {
        let view: WorkerView = serde_json::from_value(serde_json::json!({
            "worker": 0, "core": 1, "frames": worker.0, "taken_over": 0, "rungs": [], "batches": 0, "empty_polls": 0, "sleeps": 0,
            "restarts": 0, "cache": {"hits": 0, "absent": 0, "stale": 0, "compared": 0, "passed_by": 0}, "cycles_rx": 0,
            "cycles_pipeline": 0, "cycles_tx": 0, "cycles_polling": 0, "cycles_per_s": 1, "ports": [],
        }))
        .unwrap();
        let rungs = vec![RungView { rung: "pass".into(), frames: worker.0, bytes: worker.1 }];
        let rung = |(frames, bytes, limited)| OffloadRung {
            name: "tc".into(),
            flows: 2,
            moving: 1,
            slots: 64,
            taken: 3,
            frames,
            bytes,
            limited,
        };
        Look {
            switches: Vec::new(),
            ports: Vec::new(),
            workers: WorkersView {
                at_ns: 0,
                workers: vec![WorkerView { rungs, ..view }],
                latency: Default::default(),
                queue_wait: Default::default(),
            },
            offload: OffloadView {
                on: true,
                rungs: tc.map(rung).into_iter().collect(),
                moves: 0,
                flaps: 0,
                worker_ns_per_frame: 0.0,
                worker_ns_per_byte: 0.0,
                policies: Vec::new(),
            },
            bounds: Vec::new(),
            now_ns: 0,
        }
    }

    #[test]
    fn frames_past_the_worker_and_on_it_make_all() {
        let before = look((100, 10_000), Some((1000, 1_000_000, 10)));
        let now = look((300, 1_010_000), Some((1600, 2_000_000, 30)));
        let loads = between(&before, &now, 2.0);
        let numbers = |load: &RungLoad| (load.frames_per_s, load.share_percent, load.mbps);
        assert_eq!(
            loads.iter().map(numbers).collect::<Vec<_>>(),
            [(300.0, 75.0, 4.0), (100.0, 25.0, 4.0)]
        );
        assert_eq!((loads[0].limited_per_s, loads[1].limited_per_s), (Some(10.0), None));
        assert_eq!(all_and_past(&loads), (400.0, 75.0));
        assert_eq!(table(&loads).lines().count(), 3);
    }

    #[test]
    fn without_offload_there_is_no_table_and_an_idle_node_has_no_shares() {
        let loads = between(&look((5, 500), None), &look((5, 500), None), 1.0);
        assert_eq!(all_and_past(&loads), (0.0, 0.0));
        assert_eq!(table(&loads), "");
    }
}
