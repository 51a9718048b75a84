//! One verdict: random rules, and random frames, whole or broken. The rung in the kernel, its oracle ([`offload::apply`]) and the
//! worker give the same bytes, the same verdict and the same counts. `SUIRO_RUNG_FRAMES` asks for more frames.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

#[path = "../../offload/tests/oracle/mod.rs"]
mod oracle;

use flow::{Counted, FlowFilter, Pipeline};
use offload::{FlowProgram, Frame, Handle, apply};
use oracle::arrival::{Around, a_way, an_around};
use oracle::play::NOW;
use oracle::tunnel::a_tunnel;
use oracle::{Left, a_broken_frame, a_frame, pipeline, program, rules, worker};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use wire::{Head, checksum};
use xdp::offload::{Flows, OffloadError, PIN_ROOT, Trial};

/// Frames that one flow meets at most.
const FRAMES: usize = 12;
/// Cases between two looks at how many frames there were.
const CASES: u32 = 200;

/// Frames of one run.
fn wanted() -> u64 {
    let frames = std::env::var("SUIRO_RUNG_FRAMES").ok().and_then(|text| text.parse().ok());
    frames.unwrap_or(40_000)
}

/// A rung whose maps go when the test ends.
struct Rung {
    rung: Trial,
    root: PathBuf,
}

impl Rung {
    fn open(name: &str, open: impl FnOnce(&Path) -> Result<Trial, OffloadError>) -> Option<Self> {
        if std::env::var_os("SUIRO_SKIP_PRIVILEGED").is_some_and(|value| value == "1") {
            return None;
        }
        let root = PathBuf::from(PIN_ROOT).join(format!("test-{name}-{}", std::process::id()));
        let rung = open(&root);
        let rung = rung.expect("programs need root (or set SUIRO_SKIP_PRIVILEGED=1 to skip)");
        Some(Self { rung, root })
    }
}

impl Drop for Rung {
    fn drop(&mut self) {
        let _ = Flows::purge(&self.root);
    }
}

/// Packets and bytes of each table's entries.
fn counted(pipeline: &Pipeline) -> [(u64, u64); 2] {
    [0, 1].map(|table| {
        let sum = pipeline.aggregate(&FlowFilter { table: Some(table), ..FlowFilter::default() });
        (sum.packets, sum.bytes)
    })
}

/// Takes a flow away when it is dropped, also by a panic: what is searched for then is the shortest case.
struct Gone<'r>(&'r Trial, Handle);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        self.0.remove(self.1);
    }
}

/// A frame of the first one's flow: its payload and its segments are the other's.
fn sibling(first: &Frame, other: &Frame) -> Frame {
    let mut bytes = first.bytes.clone();
    let (from, to) = (other.bytes.len() - 2, bytes.len() - 2);
    bytes[to..].copy_from_slice(&other.bytes[from..]);
    Frame { bytes, segment: other.segment, ..first.clone() }
}

/// Has a flow meet frames; how many the rung took.
fn meet(
    rung: &Trial,
    [whole, split]: [&mut Pipeline; 2],
    (first, flow): (&Frame, &FlowProgram),
    frames: &[Frame],
) -> u64 {
    let handle = rung.install(flow);
    let _gone = Gone(rung, handle);
    let (mut taken, mut bytes) = (0, 0);
    for frame in frames {
        let left = worker(whole, frame);
        let (mut by_rung, mut by_oracle) = (frame.clone(), frame.clone());
        let is_taken = rung.run(&mut by_rung).unwrap();
        assert_eq!(is_taken, apply(flow, &mut by_oracle), "{flow:?}\n{frame:?}");
        assert_eq!(by_rung, by_oracle, "{flow:?}\n{frame:?}");
        if is_taken {
            assert_eq!(left, Left(vec![(flow.exit.port, by_rung.bytes, None)]), "{frame:?}");
            (taken, bytes) = (taken + 1, bytes + frame.bytes.len() as u64);
        } else {
            assert_eq!(worker(split, frame), left);
        }
    }
    let counts = rung.counts(handle);
    assert_eq!((counts.frames, counts.bytes, counts.limited), (taken, bytes, 0), "{flow:?}");
    assert_eq!(counts.used.0 > 0, taken > 0);
    let credited = Counted { packets: counts.frames, bytes: counts.bytes };
    // Programs know the pipeline that made them.
    let known = program(split, first).unwrap();
    split.snapshot().credit(&known.credits, flow.from.port, (credited, Counted::default()), NOW);
    assert_eq!(counted(whole), counted(split), "{flow:?}");
    taken
}

#[test]
fn the_kernel_does_what_worker_and_oracle_do() {
    let Some(Rung { rung, root: _ }) = &Rung::open("agree", Trial::tc) else { return };
    agree(rung, a_broken_frame());
}

#[test]
fn xdp_does_what_worker_and_oracle_do() {
    let Some(Rung { rung, root: _ }) = &Rung::open("xdp", |root| Trial::xdp(root, false)) else {
        return;
    };
    // There are no large segments.
    agree(rung, a_broken_frame().prop_map(|frame| Frame { segment: None, ..frame }));
}

fn agree(rung: &Trial, frames: impl Strategy<Value = Frame>) {
    let (seen, taken) = (Cell::new(0), Cell::new(0));
    let cases = (rules(), vec(frames, 1..FRAMES));
    while seen.get() < wanted() {
        let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
        let done = TestRunner::new(config).run(&cases, |(rules, frames)| {
            let Some(mut whole) = pipeline(&rules) else { return Ok(()) };
            let mut split = pipeline(&rules).unwrap();
            for first in 0..frames.len() {
                let Ok(flow) = program(&mut whole, &frames[first]) else { continue };
                let alike = frames.iter().map(|other| sibling(&frames[first], other));
                let met: Vec<_> = alike.chain(frames.clone()).collect();
                let count = meet(rung, [&mut whole, &mut split], (&frames[first], &flow), &met);
                seen.set(seen.get() + met.len() as u64);
                taken.set(taken.get() + count);
            }
            Ok(())
        });
        done.unwrap();
    }
    println!("{} frames, {} by the rung", seen.get(), taken.get());
    assert!(taken.get() * 10 > seen.get(), "{} of {} frames", taken.get(), seen.get());
}

/// Programs of two switches and a tunnel between them: the rung puts the headers around frames that both switches and the tunnel would.
#[test]
fn xdp_puts_a_tunnels_headers_around_frames_as_the_workers_do() {
    let Some(Rung { rung, root: _ }) = &Rung::open("outside", |root| Trial::xdp(root, false))
    else {
        return;
    };
    let (seen, taken) = (Cell::new(0), Cell::new(0));
    let frames = a_broken_frame().prop_map(|frame| Frame { segment: None, ..frame });
    let cases = ((rules(), rules()), a_tunnel(), vec(frames, 1..FRAMES));
    while seen.get() < wanted() / 2 {
        let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
        let done = TestRunner::new(config).run(&cases, |((inside, underlay), tunnel, frames)| {
            let Some(mut inside) = pipeline(&inside) else { return Ok(()) };
            let Some(mut underlay) = pipeline(&underlay) else { return Ok(()) };
            for first in &frames {
                let both = [&mut inside, &mut underlay];
                let Ok(flow) = tunnel.program(both, first) else { continue };
                let _gone = Gone(rung, rung.install(&flow));
                for frame in frames.iter().map(|other| sibling(first, other)).chain(frames.clone())
                {
                    seen.set(seen.get() + 1);
                    let (mut by_rung, mut by_oracle) = (frame.clone(), frame.clone());
                    let is_taken = rung.run(&mut by_rung).unwrap();
                    prop_assert_eq!(is_taken, apply(&flow, &mut by_oracle), "{:?}", flow);
                    prop_assert_eq!(&by_rung, &by_oracle, "{:?}\n{:?}", flow, frame);
                    if is_taken {
                        let left = Left(vec![(flow.exit.port, by_rung.bytes, None)]);
                        let worker = tunnel.worker([&mut inside, &mut underlay], &frame);
                        prop_assert_eq!(worker, left, "{:?}", frame);
                        taken.set(taken.get() + 1);
                    }
                }
            }
            Ok(())
        });
        done.unwrap();
    }
    println!("{} frames, {} by the rung", seen.get(), taken.get());
    assert!(taken.get() * 20 > seen.get(), "{} of {} frames", taken.get(), seen.get());
}

/// What comes by a tunnel: packets whole or broken, and what both switches and the tunnel would make of them.
#[test]
fn xdp_takes_frames_out_of_a_tunnels_packets_as_the_workers_do() {
    let Some(Rung { rung, root: _ }) = &Rung::open("inside", |root| Trial::xdp(root, false)) else {
        return;
    };
    takes_out(rung, false);
}

/// Likewise from a host that leaves the outer checksum to a device.
#[test]
fn xdp_takes_frames_out_of_packets_whose_checksum_is_open() {
    let Some(Rung { rung, root: _ }) = &Rung::open("open", |root| Trial::xdp(root, true)) else {
        return;
    };
    takes_out(rung, true);
}

fn takes_out(rung: &Trial, may_be_open: bool) {
    let (seen, taken) = (Cell::new(0), Cell::new(0));
    let frames = vec((a_broken_frame(), an_around()), 1..FRAMES);
    let cases = ((rules(), a_way()), a_tunnel(), frames);
    while seen.get() < wanted() / 2 {
        let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
        let done = TestRunner::new(config).run(&cases, |((inside, way), tunnel, frames)| {
            let Some(mut inside) = pipeline(&inside) else { return Ok(()) };
            let Some(mut underlay) = pipeline(&way) else { return Ok(()) };
            let packet =
                |frame: &Frame, around: &Around| around.packet(&tunnel, frame, may_be_open);
            for (first, its) in &frames {
                let both = [&mut inside, &mut underlay];
                let Ok(flow) = tunnel.program_of(both, &packet(first, its)) else { continue };
                let _gone = Gone(rung, rung.install(&flow));
                let siblings = frames.iter().map(|(other, around)| {
                    let tag = its.tag;
                    packet(&sibling(first, other), &Around { tag, ..around.clone() })
                });
                let others = frames.iter().map(|(other, around)| packet(other, around));
                for packet in siblings.chain(others) {
                    seen.set(seen.get() + 1);
                    let (mut by_rung, mut by_oracle) = (packet.clone(), packet.clone());
                    let is_taken = rung.run(&mut by_rung).unwrap();
                    prop_assert_eq!(
                        is_taken,
                        apply(&flow, &mut by_oracle),
                        "{:?}\n{:?}",
                        flow,
                        packet
                    );
                    prop_assert_eq!(&by_rung.bytes, &by_oracle.bytes, "{:?}\n{:?}", flow, packet);
                    if is_taken {
                        let left = Left(vec![(flow.exit.port, by_rung.bytes, None)]);
                        let worker = tunnel.worker_of([&mut inside, &mut underlay], &packet);
                        prop_assert_eq!(worker, left, "{:?}", packet);
                        taken.set(taken.get() + 1);
                    }
                }
            }
            Ok(())
        });
        done.unwrap();
    }
    println!("{} packets, {} by the rung", seen.get(), taken.get());
    assert!(taken.get() * 20 > seen.get(), "{} of {} packets", taken.get(), seen.get());
}

#[test]
fn xdp_completes_the_checksums_that_senders_left_to_a_device() {
    let Some(Rung { rung, root: _ }) = &Rung::open("partial", |root| Trial::xdp(root, true)) else {
        return;
    };
    let taken = Cell::new(0);
    // Senders leave open what can be recognised.
    let is_open = |frame: &Frame| {
        let head = Head::copy_of(&frame.bytes);
        let (_, layers) = wire::parse(&head, frame.in_port);
        frame.partial.is_some() && wire::is_partial(&head, &layers) == frame.partial
    };
    let frame = a_frame().prop_filter("a partial checksum", is_open);
    let config = Config { cases: 2000, failure_persistence: None, ..Config::default() };
    let done = TestRunner::new(config).run(&(rules(), frame), |(rules, frame)| {
        let Some(mut pipeline) = pipeline(&rules) else { return Ok(()) };
        let Ok(flow) = program(&mut pipeline, &frame) else { return Ok(()) };
        let _gone = Gone(rung, rung.install(&flow));
        let (mut by_rung, mut by_oracle) = (frame.clone(), frame.clone());
        let open = by_oracle.partial.take().unwrap();
        checksum::complete(&mut by_oracle.bytes, open).unwrap();
        let is_taken = rung.run(&mut by_rung).unwrap();
        prop_assert_eq!(is_taken, apply(&flow, &mut by_oracle));
        if is_taken {
            prop_assert_eq!(by_rung.bytes, by_oracle.bytes, "{:?}\n{:?}", flow, frame);
            taken.set(taken.get() + 1);
        }
        Ok(())
    });
    done.unwrap();
    assert!(taken.get() > 100, "{} by the rung", taken.get());
}
