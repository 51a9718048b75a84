//! Cycles per packet of classification, case by case (`suiro bench flow`).
//!
//! Pure like the rest of the crate: the caller passes its cycle counter. Keys are computed, not read from memory,
//! and filled in before the clock starts, so that only the switch's own memory is measured. Flows come in random order.

mod cases;
mod rng;

pub use cases::{CASES, Case};

use crate::limits::LANES;
use crate::packet::{Packet, PacketIn, Sink, Then};
use crate::pipeline::Pipeline;
use crate::process::{Workspace, classify, process};
use crate::time::Nanos;
use cases::Traffic;
use rng::Rng;
use wire::{DropReason, Head, Key, Layers, Offload};

/// The time of all packets.
const NOW: Nanos = Nanos(3_000_000_000);

/// Packets per round.
const ROUND: usize = 1 << 18;

/// One case's figures; cycles are those of the caller's counter.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The case.
    pub name: &'static str,
    /// Entries.
    pub rules: usize,
    /// Distinct keys sent.
    pub flows: usize,
    /// Template of table 0.
    pub template: &'static str,
    /// Cycles per packet to look up, count and run the actions: median of the rounds' median batches.
    pub cycles: f64,
    /// The same of the batches that nothing else on the machine disturbed: the fastest twentieth.
    pub cycles_undisturbed: f64,
    /// Cycles per packet to look up and count only, undisturbed.
    pub cycles_to_classify: f64,
    /// Probes per packet, on average.
    pub probes: f64,
    /// Probes one packet may cost.
    pub probe_bound: u32,
    /// Cycles per flow-mod while the entries were added.
    pub cycles_per_flow_mod: f64,
    /// Bytes per entry.
    pub bytes_per_entry: f64,
    /// Cycles of a publication after one more flow-mod.
    pub cycles_per_publication: f64,
}

/// Swallows verdicts.
#[derive(Default)]
struct Swallow(u64);

impl Sink for Swallow {
    fn output(&mut self, index: usize, _: &Packet<'_>, ports: &[u32], _: Then) {
        self.0 = self.0.wrapping_add(index as u64 ^ u64::from(ports[0]));
    }
    fn packet_in(&mut self, index: usize, _: &Packet<'_>, _: PacketIn) {
        self.0 ^= index as u64;
    }
    fn lose(&mut self, index: usize, _: &Packet<'_>, _: DropReason) {
        self.0 = self.0.wrapping_add(!index as u64);
    }
}

/// Runs one case for `rounds` rounds after two to warm up.
pub fn measure(case: &Case, rounds: usize, cycles: &dyn Fn() -> u64) -> Measured {
    let mut rng = Rng(0x5eed);
    let mut pipeline = Pipeline::new(crate::Limits::default(), &crate::Serials::default());
    pipeline.set_ports((1..=4).map(crate::PortState::up).collect());
    let (rules, traffic) = (case.build)(&mut rng);
    let start = cycles();
    for rule in &rules {
        pipeline.flow_mod(rule, Nanos(1)).expect("a benchmark's rules are accepted");
    }
    let per_flow_mod = (cycles() - start) as f64 / rules.len() as f64;
    pipeline.snapshot();
    let publication = publications(&mut pipeline, &rules, cycles);
    let mut bench =
        Bench { pipeline, work: Workspace::new(0, [7, 9], 1 << 16), traffic, rng, cycles };
    bench.send_before();
    let _warm = [bench.round(Part::All), bench.round(Part::All)];
    let whole = Spent::over(rounds, || bench.round(Part::All));
    let classify = Spent::over(rounds, || bench.round(Part::Classify));
    let stats = bench.pipeline.table_stats(0);
    Measured {
        name: case.name,
        rules: rules.len(),
        flows: bench.traffic.flows,
        template: stats.template,
        cycles: whole.median,
        cycles_undisturbed: whole.undisturbed,
        cycles_to_classify: classify.undisturbed,
        probes: stats.probes as f64 / (stats.lookups as f64).max(1.0),
        probe_bound: bench.pipeline.snapshot().probe_bound(),
        cycles_per_flow_mod: per_flow_mod,
        bytes_per_entry: bench.pipeline.memory() as f64 / rules.len() as f64,
        cycles_per_publication: publication,
    }
}

/// Median cycles of publishing after one flow-mod.
fn publications(
    pipeline: &mut Pipeline,
    rules: &[crate::FlowMod],
    cycles: &dyn Fn() -> u64,
) -> f64 {
    let mut times: Vec<u64> = (0..31)
        .map(|n| {
            let again = &rules[n * 7919 % rules.len()];
            pipeline.flow_mod(again, Nanos(2)).expect("an entry can be replaced");
            let start = cycles();
            pipeline.snapshot();
            cycles() - start
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2] as f64
}

/// What is timed.
#[derive(Clone, Copy)]
enum Part {
    All,
    Classify,
}

/// Cycles per packet.
#[derive(Clone, Copy)]
struct Spent {
    median: f64,
    undisturbed: f64,
}

impl Spent {
    /// Median of each over rounds.
    fn over(rounds: usize, mut round: impl FnMut() -> Self) -> Self {
        let all: Vec<Self> = (0..rounds.max(1)).map(|_| round()).collect();
        let middle = |part: fn(&Self) -> f64| {
            let mut parts: Vec<f64> = all.iter().map(part).collect();
            parts.sort_by(f64::total_cmp);
            parts[parts.len() / 2]
        };
        Self {
            median: middle(|spent| spent.median),
            undisturbed: middle(|spent| spent.undisturbed),
        }
    }
}

struct Bench<'c> {
    pipeline: Pipeline,
    work: Workspace,
    traffic: Traffic,
    rng: Rng,
    cycles: &'c dyn Fn() -> u64,
}

impl Bench<'_> {
    /// One round.
    fn round(&mut self, part: Part) -> Spent {
        let snapshot = self.pipeline.snapshot();
        let frame = cases::frame();
        let mut heads = vec![Head::default(); LANES];
        let mut sink = Swallow::default();
        let mut spent = Vec::with_capacity(ROUND / LANES);
        for _ in 0..ROUND / LANES {
            let mut packets: Vec<Packet<'_>> =
                heads.iter_mut().map(|head| self.fill(head, &frame)).collect();
            let mut packets: Vec<&mut Packet<'_>> = packets.iter_mut().collect();
            let start = (self.cycles)();
            match part {
                Part::All => process(&snapshot, &mut self.work, &mut packets, NOW, &mut sink),
                Part::Classify => classify(&snapshot, &mut self.work, &packets, NOW),
            }
            spent.push((self.cycles)() - start);
        }
        std::hint::black_box(sink.0);
        spent.sort_unstable();
        let per_packet = |at: usize| spent[at] as f64 / LANES as f64;
        Spent { median: per_packet(spent.len() / 2), undisturbed: per_packet(spent.len() / 20) }
    }

    /// Sends what is to be known before the measurement.
    fn send_before(&mut self) {
        let (snapshot, frame) = (self.pipeline.snapshot(), cases::frame());
        for &key in &self.traffic.before {
            let mut head = Head::default();
            let mut packets = [&mut packet(&mut head, &frame, key)];
            process(&snapshot, &mut self.work, &mut packets, NOW, &mut Swallow::default());
        }
    }

    fn fill<'h>(&mut self, head: &'h mut Head, frame: &[u8]) -> Packet<'h> {
        let flow = self.rng.below(self.traffic.flows as u64);
        packet(head, frame, (self.traffic.key)(flow))
    }
}

fn packet<'h>(head: &'h mut Head, frame: &[u8], key: Key) -> Packet<'h> {
    head.area()[..frame.len()].copy_from_slice(frame);
    head.set_len(frame.len());
    Packet { head, key, layers: LAYERS, offload: Offload::default(), frame_len: 64, queue: 0 }
}

/// The layers of [`cases::frame`].
const LAYERS: Layers = Layers { l3: 14, vlans: 0, labels: 0, ip: 14, l4: 34, payload: 42 };
