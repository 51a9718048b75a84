//! The machine a figure was taken on, and how far apart its cores were at that moment.
//!
//! Virtual cores move: the host places two of them on siblings, in one last-level cache or in two, and changes that every few
//! seconds. A pointer chase over lines that the other core has just written tells which (docs/benchmarks/README.md).

use crate::driver::flows::Random;
use serde::Serialize;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Instant;

/// Facts for the head of a report.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// Processor model.
    pub cpu: String,
    /// Cores online.
    pub cores: usize,
    /// Kernel release.
    pub kernel: String,
    /// Memory in GiB.
    pub memory_gib: u64,
    /// TCP's congestion control, which alone changes a throughput by half.
    pub congestion_control: String,
}

impl Machine {
    /// This one.
    pub fn here() -> Self {
        let file = |path| std::fs::read_to_string(path).unwrap_or_default();
        let after = |text: &str, name: &str| {
            let line =
                text.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
            line.split_once(':').map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
        };
        let memory = after(&file("/proc/meminfo"), "MemTotal");
        Self {
            cpu: after(&file("/proc/cpuinfo"), "model name"),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: file("/proc/sys/kernel/osrelease").trim().to_owned(),
            memory_gib: memory
                .split(' ')
                .next()
                .and_then(|kib| kib.parse::<u64>().ok())
                .unwrap_or(0)
                >> 20,
            congestion_control: file("/proc/sys/net/ipv4/tcp_congestion_control").trim().to_owned(),
        }
    }
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}, {} cores, {} GiB, Linux {}, TCP {}",
            self.cpu, self.cores, self.memory_gib, self.kernel, self.congestion_control
        )
    }
}

const LINES: usize = 512;
const ROUNDS: usize = 8;

/// A line with three empty ones after it, so that no prefetcher brings the next one along.
#[repr(align(256))]
struct Line(AtomicU32);

/// Placement class of cores 0 and 1 now: `SMT`, `CCX` (one last-level cache), `FAR`, or `one` on a machine with one core.
///
/// Both ends are threads of their own at real-time priority (if we may), so that a switch that polls on core 1 only makes room for
/// a millisecond, and the caller may be pinned anywhere. Boundaries in ns per line, from the development machines' measured 5, 23
/// and 127: 12 and 60.
pub fn placement_class() -> &'static str {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    if online.trim() == "0" {
        return "one";
    }
    let lines: Vec<Line> = (0..LINES).map(|_| Line(AtomicU32::new(0))).collect();
    let ready = AtomicBool::new(false);
    // Neither may spin at real-time priority before the other is there: it might stand in the way of its start.
    let both = Barrier::new(2);
    let best = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            crate::sys::pin(0);
            both.wait();
            crate::sys::be_urgent();
            for round in 0..ROUNDS {
                wait_for(&ready, false);
                write_cycle(&lines, round);
                ready.store(true, Ordering::Release);
            }
        });
        let reader = scope.spawn(|| {
            crate::sys::pin(1);
            both.wait();
            crate::sys::be_urgent();
            let rounds = (0..ROUNDS).map(|_| {
                wait_for(&ready, true);
                let time = chase(&lines);
                ready.store(false, Ordering::Release);
                time
            });
            rounds.fold(f64::MAX, f64::min)
        });
        writer.join().expect("the writer only stores");
        reader.join().expect("the reader only loads")
    });
    match best {
        ..12.0 => "SMT",
        ..60.0 => "CCX",
        _ => "FAR",
    }
}

fn wait_for(flag: &AtomicBool, value: bool) {
    while flag.load(Ordering::Acquire) != value {
        std::hint::spin_loop();
    }
}

/// Links all lines into one cycle in random order (Sattolo's shuffle), another one each round.
fn write_cycle(lines: &[Line], round: usize) {
    let mut random = Random(round as u64 + 1);
    let mut next: Vec<u32> = (0..LINES as u32).collect();
    for last in (1..LINES).rev() {
        next.swap(last, random.below(last as u32) as usize);
    }
    lines.iter().zip(next).for_each(|(line, next)| line.0.store(next, Ordering::Release));
}

fn chase(lines: &[Line]) -> f64 {
    let start = Instant::now();
    let end = (0..LINES).fold(0, |at, _| lines[at].0.load(Ordering::Relaxed) as usize);
    std::hint::black_box(end);
    start.elapsed().as_nanos() as f64 / LINES as f64
}
