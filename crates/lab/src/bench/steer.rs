//! `suiro bench steer`: what the steering program costs a frame, and what frames of one core cost when another one has to process them,
//! beside Linux RPS.
//!
//! The first part runs the program on one frame a million times (`BPF_PROG_TEST_RUN`), in turn with a program that only counts: what the
//! kernel needs to start a program is in both. The second floods a veth whose stack has no socket for the frames, and counts what
//! that stack processed.

use super::Common;
use crate::report::{Peer, Report, Row, Spread};
use anyhow::{Context, Result};
use place::steering::{Field, Target, Unmatched};
use place::{Core, CoreId, CoreTable};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use testbed::machine::placement_class;
use testbed::netns::{Guest, Namespace};
use testbed::sys::{interface_index, pin, unpin};
use testbed::traffic::frames;
use xdp::steer::{Attached, Dissector, Entry, Host, Interface, Match, Options};

const REPEAT: u32 = 1_000_000;
const WINDOW: Duration = Duration::from_secs(2);
/// Flows whose first frames are placed in one round.
const FIRST_FRAMES: u16 = 500;
/// The budget of one hit, ns: `performance.md`.
const BUDGET: f64 = 60.0;

/// A file system for pins, and a guest whose frames come in at `v1` of a namespace of our own.
struct Bed {
    pins: TempDir,
    near: Namespace,
    far: Guest,
    host: Option<Host>,
}

impl Bed {
    fn new() -> Result<Self> {
        let pins = tempfile::tempdir()?;
        mount("bpf", pins.path(), "bpf", MountFlags::empty(), None::<&std::ffi::CStr>)
            .context("mounting a file system for pins failed: run as root")?;
        let near = Namespace::create("near")?;
        let far = Guest::on_veth(&near, 1)?;
        near.ip(&["addr", "add", "10.77.0.254/24", "dev", "v1"])?;
        near.ip(&["link", "set", "v1", "address", "02:00:00:00:00:fe"])?;
        // A veth takes live frames while its end has a program or GRO: the peer has no program.
        let gro = near.command("ethtool").args(["-K", "v1", "gro", "on"]).status()?;
        anyhow::ensure!(gro.success(), "ethtool -K v1 gro on failed: install ethtool");
        let mut bed = Self { pins, near, far, host: None };
        bed.host = Some(Host::open(&bed.root())?);
        Ok(bed)
    }

    fn root(&self) -> PathBuf {
        self.pins.path().join("suiro/steer")
    }

    fn host(&mut self) -> Result<&mut Host> {
        self.host.as_mut().context("the host's programs are loaded")
    }

    fn attach(&mut self, unmatched: Unmatched, entries: &[Entry]) -> Result<Attached> {
        let host = self.host.as_mut().context("the host's programs are loaded")?;
        let options = Options {
            unmatched,
            entries: 131_072,
            cores: vec![CoreId(0), CoreId(1)],
            ..Options::default()
        };
        let mut attached = self.near.enter(|| {
            let interface = Interface { name: "v1".into(), index: interface_index("v1")? };
            Ok(Attached::attach(host, &interface, &options)?)
        })?;
        attached.insert(entries)?;
        attached.settle_now()?;
        Ok(attached)
    }

    fn detach(&mut self, attached: Attached) -> Result<()> {
        Ok(attached.detach(self.host()?)?)
    }

    /// Millions of frames a second that the near end's stack processes while the far end floods it from core 0.
    fn processed(&self) -> Result<f64> {
        let near = Guest {
            namespace: Namespace::create("unused")?,
            address: "10.77.0.254".into(),
            mac: "02:00:00:00:00:fe".into(),
            port: String::new(),
        };
        let frame = frames::udp_frame(&self.far, &near, 10_048, 18);
        let (before, start) = (self.no_ports()?, Instant::now());
        frames::send(&self.far, &frame, WINDOW)?;
        Ok((self.no_ports()? - before) / start.elapsed().as_secs_f64() / 1e6)
    }

    /// Datagrams for which the near end's stack found no socket: all that got so far.
    fn no_ports(&self) -> Result<f64> {
        let output = self.near.command("cat").arg("/proc/net/snmp").output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let counters = text.lines().filter(|line| line.starts_with("Udp:")).nth(1);
        let counter =
            counters.and_then(|line| line.split(' ').nth(2)).context("no UDP counters")?;
        Ok(counter.parse()?)
    }

    fn rps(&self, cores: &str) -> Result<()> {
        let file = "/sys/class/net/v1/queues/rx-0/rps_cpus";
        let done =
            self.near.command("sh").args(["-c", &format!("echo {cores} > {file}")]).status()?;
        anyhow::ensure!(done.success(), "{file}: writing {cores} failed");
        Ok(())
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        let _ = unmount(self.pins.path(), UnmountFlags::DETACH);
    }
}

/// A frame of the flow from that port to port 9.
fn frame(port: u16) -> Vec<u8> {
    use wire::build::{Frame, Ipv4};
    Frame::ethernet([2; 6], [4; 6]).ipv4(Ipv4::default()).udp(port, 9).payload(&[0; 18]).finish()
}

/// An entry to core 0, where the measuring thread is: a hit stays.
fn entry(matching: Match) -> Entry {
    Entry {
        matching,
        target: Target::Core(CoreId(0)),
        is_priority: false,
        wants_own_core: false,
        vm: None,
    }
}

/// `count` exact flows of other addresses, and the measured one.
fn exact(count: usize) -> Result<Vec<Entry>> {
    let measured = Dissector::new()?.dissect(&frame(7))?.key.flow();
    let others = (1..count).map(|at| measured.with(Field::NwSrc, at as u128));
    Ok(others.chain([measured]).map(|key| entry(Match::Flow(key))).collect())
}

/// `count` wildcard entries over `masks` masks; the measured flow's is the last that is tried.
fn wild(count: usize, masks: usize) -> Vec<Entry> {
    let address = u128::from(u32::from_be_bytes([10, 0, 0, 1]));
    let other = |at: usize| {
        let mask = (1_u128 << 32) - (1 << (at % masks));
        entry(Match::fields(
            2,
            [(Field::NwSrc, (at as u128 + 1) << 40 >> 8 | mask & (at as u128 + 77) << 8, mask)],
        ))
    };
    let measured =
        Match::fields(1, [(Field::NwSrc, address, Field::NwSrc.full()), (Field::TpSrc, 7, 0xffff)]);
    let mut entries: Vec<Entry> = Vec::with_capacity(count);
    let mut seen = std::collections::HashSet::new();
    let distinct = (0..).map(other).filter(|entry| seen.insert(entry.matching));
    entries.extend(distinct.take(count - 1));
    entries.push(entry(measured));
    entries
}

/// Nanoseconds that a run takes, measured on core 0.
fn on_core_0(run: impl FnOnce() -> Result<Duration>) -> Result<f64> {
    pin(0);
    let mean = run();
    unpin();
    Ok(mean?.as_nanos() as f64)
}

fn row(case: String, unit: &'static str, figures: Vec<f64>, cores: &str) -> Row {
    let ours = Spread::of(figures);
    Row { case, unit, cores: cores.to_owned(), ours, peer: None, ratio: None, goal: None }
}

/// The program, beside one that only counts.
fn program_rows(bed: &mut Bed, common: &Common) -> Result<Vec<Row>> {
    let mut cases: Vec<(String, Unmatched, Vec<Entry>)> = vec![
        ("no entry, none matches".into(), Unmatched::Stay, vec![]),
        ("flow group, stays".into(), Unmatched::Groups(1024), vec![]),
    ];
    for count in [10, 50, 1000, 100_000] {
        cases.push((format!("exact hit of {count}"), Unmatched::Stay, exact(count)?));
        cases.push((
            format!("wildcard hit of {count}, last of 2 masks"),
            Unmatched::Stay,
            wild(count, 1),
        ));
    }
    cases.push(("wildcard hit, first mask".into(), Unmatched::Stay, wild(1, 1)));
    cases.push(("wildcard hit of 1000, last of 32 masks".into(), Unmatched::Stay, wild(1000, 31)));
    let mut bare = xdp::WorkerStage::new()?;
    let mut rows = Vec::new();
    for (case, missed, entries) in
        cases.into_iter().filter(|(case, ..)| case.contains(&common.only))
    {
        let cores = placement_class();
        let mut attached = bed.attach(missed, &entries)?;
        if let Unmatched::Groups(_) = missed {
            let idle = CoreTable::new(vec![Core::new(CoreId(0))])?;
            attached.set_cores(bed.host()?, &idle)?;
        }
        let run = attached.rehearsal()?;
        let (mut figures, mut base) = (Vec::new(), Vec::new());
        for _ in 0..common.rounds {
            base.push(on_core_0(|| Ok(bare.run(&frame(7), REPEAT)?))?);
            figures.push(on_core_0(|| Ok(run.run(&frame(7), REPEAT)?.1))?);
        }
        let base = Spread::of(base);
        let row = row(case, "ns", figures, cores);
        let added = row.ours.median - base.median;
        eprintln!("  {}: adds {added:.0} ns (budget of a hit: {BUDGET})", row.case);
        let peer = Peer { name: "a program that only counts".into(), spread: base };
        rows.push(Row { peer: Some(peer), ..row });
        bed.detach(attached)?;
    }
    Ok(rows)
}

/// What the first frame of a flow costs more than its second: the choice of a core, of two and of 128.
fn placement_rows(bed: &mut Bed, common: &Common) -> Result<Vec<Row>> {
    let _counting = xdp::steer::count_runs()?;
    let mut rows = Vec::new();
    for cores in [2_u16, 128] {
        let case = format!("placement among {cores} cores");
        if !case.contains(&common.only) {
            continue;
        }
        let class = placement_class();
        let table = CoreTable::new((0..cores).map(|core| Core::new(CoreId(core))).collect())?;
        let mut figures = Vec::new();
        for _ in 0..common.rounds {
            let mut attached = bed.attach(Unmatched::Groups(1024), &[])?;
            attached.set_cores(bed.host()?, &table)?;
            let run = attached.rehearsal()?;
            let mean = || -> Result<f64> {
                let before = run.spent()?;
                pin(0);
                (0..FIRST_FRAMES).try_for_each(|port| run.run(&frame(port), 1).map(drop))?;
                unpin();
                let after = run.spent()?;
                Ok((after.0 - before.0).as_nanos() as f64 / (after.1 - before.1) as f64)
            };
            figures.push(mean()? - mean()?);
            bed.detach(attached)?;
        }
        rows.push(row(case, "ns", figures, class));
    }
    Ok(rows)
}

/// Frames that the stack processes: on the core that received them, and on another one, sent there by us and by RPS.
fn live_rows(bed: &mut Bed, common: &Common) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (case, core, rps) in
        [("stack on the receiving core", 0, "0"), ("stack on the other core", 1, "2")]
    {
        if !case.contains(&common.only) {
            continue;
        }
        let class = placement_class();
        let (mut ours, mut peer) = (Vec::new(), Vec::new());
        for _ in 0..common.rounds {
            let all = Entry {
                target: Target::Core(CoreId(core)),
                ..entry(Match::fields(1, [(Field::NwProto, 17, 0xff)]))
            };
            let attached = bed.attach(Unmatched::Stay, &[all])?;
            ours.push(bed.processed()?);
            bed.detach(attached)?;
            bed.rps(rps)?;
            peer.push(bed.processed()?);
            bed.rps("0")?;
        }
        let name = if core == 0 { "nothing attached" } else { "Linux RPS" };
        let (ours, peer) = (Spread::of(ours), Spread::of(peer));
        eprintln!("  {case}: {:.2} Mpps, {name} {:.2}", ours.median, peer.median);
        rows.push(Row {
            case: case.into(),
            unit: "Mpps",
            cores: class.into(),
            ours,
            ratio: Some(ours.median / peer.median),
            peer: Some(Peer { name: name.into(), spread: peer }),
            goal: None,
        });
    }
    Ok(rows)
}

pub fn run(common: &Common, report: &mut Report) -> Result<()> {
    let mut bed = Bed::new()?;
    report.add(program_rows(&mut bed, common)?)?;
    report.add(placement_rows(&mut bed, common)?)?;
    report.add(live_rows(&mut bed, common)?)?;
    if let Some(host) = bed.host.take() {
        host.remove_if_unused()?;
    }
    Ok(())
}
