//! A node with many connected guests that do nothing.

use super::Plan;
use super::rig::listen;
use crate::report::{Peer, Row, Spread};
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::time::Duration;
use testbed::driver::frontend::{Device, Shape};
use testbed::peer::vhost::{Kind, Running};

/// As `--only` may name it.
pub const NAME: &str = "64 idle guests";

const GUESTS: usize = 64;
const PATIENCE: Duration = Duration::from_secs(30);

/// Long enough that the clock's 10 ms are 0.1 %.
const WINDOW: Duration = Duration::from_secs(10);

/// Percent of a core.
const GOAL: f64 = 1.0;

/// Processor time in percent of a core, and memory in MiB.
struct Idle {
    cpu: f64,
    memory: f64,
}

pub fn run(plan: &Plan) -> Result<Vec<Row>> {
    let mut idle = plan.kinds.iter().map(|&kind| measure(kind).map(|idle| (kind, idle)));
    let Some(ours) = idle.next() else { return Ok(Vec::new()) };
    let (ours, peer) = (ours?.1, idle.next().transpose()?);
    let row = |what, unit, of: fn(&Idle) -> f64, goal| Row {
        case: format!("{NAME}: {what}"),
        unit,
        cores: "-".into(),
        ours: Spread::of(vec![of(&ours)]),
        peer: peer
            .as_ref()
            .map(|(kind, idle)| Peer { name: kind.name(), spread: Spread::of(vec![of(idle)]) }),
        ratio: None,
        goal,
    };
    Ok(vec![
        row("CPU of one core", "%", |idle| idle.cpu, Some(GOAL)),
        row("memory", "MiB", |idle| idle.memory, None),
    ])
}

fn measure(kind: Kind) -> Result<Idle> {
    let directory = tempfile::tempdir()?;
    let sockets: [PathBuf; GUESTS] =
        std::array::from_fn(|n| directory.path().join(format!("vm{n}.sock")));
    let listeners = listen(&sockets)?;
    let switch = Running::start(kind, &sockets, 1518)?;
    switch.add_rules(&["actions=NORMAL".into()])?;
    let connect = |listener: &testbed::driver::frontend::Listener| {
        Device::connect(listener.accept(PATIENCE)?, &Shape::default()).with_context(|| kind.name())
    };
    let _devices = listeners.iter().map(connect).collect::<Result<Vec<_>>>()?;
    let before = switch.cpu_time()?;
    std::thread::sleep(WINDOW);
    let used = switch.cpu_time()? - before;
    let cpu = 100.0 * used.as_secs_f64() / WINDOW.as_secs_f64();
    Ok(Idle { cpu, memory: switch.memory_kib()? as f64 / 1024.0 })
}
