//! What stands for encryption, and who did the work?
//!
//! The papers' hosts encrypt (VXLAN over IPsec): receive processing costs so much for each byte that one core cannot carry two flows. Not every
//! kernel has ESP, and none has the cipher of 2014. So a program at the underlay's ingress (`bpf/stage.bpf.c`) works through every
//! byte of every tunnel frame, on the core and in the context that the frame is processed in, for so many rounds that a core carries
//! the rate that was asked for. [`Stage::calibrate`] finds that number on this machine, by running the program on a frame.
//!
//! The same program counts frames, bytes and time by core and VM: table 5 of the paper, exactly and not by samples.
//!
//! Two differences to ESP: it works on fragments, where ESP works on the packet put together again (the bytes are the same as long as nothing is
//! lost); and its cost is strictly by byte.

mod counts;

use anyhow::{Context, Result, ensure};
use aya::Ebpf;
use aya::maps::{Array, PerCpuArray};
use aya::programs::tc::{SchedClassifier, TcAttachType, qdisc_add_clsact};
use std::os::fd::AsFd;
use testbed::sys::run_time;

pub use counts::{Count, Counts, max_over_mean};

static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/stage.bpf.o"));

/// Names of the programs in the object.
const STAGE: &str = "stage";
const FORGET: &str = "forget";

/// VMs that are counted apart, from 1; 0 is everything that is not the testbed's tunnel (`STAGE_VMS`).
pub const VMS: usize = 16;

/// Runs of the program for one measurement of its time, and measurements of which the fastest counts.
const REPEAT: u32 = 64;
const TRIES: usize = 7;

/// Work of the stage.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct NsPerByte(pub f64);

impl NsPerByte {
    /// What a byte costs on a core that carries so much of the tunnel's traffic and nothing else.
    pub fn of_capacity(mbps: f64) -> Self {
        Self(8_000.0 / mbps)
    }
}

/// Where a VM's frames are processed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Home {
    /// The core.
    pub core: usize,
    /// How often it was another one than before.
    pub changes: u32,
    /// When the first frame was there, in ns of the monotonic clock.
    pub since_ns: u64,
}

/// The program.
pub struct Stage {
    ebpf: Ebpf,
}

impl Stage {
    /// Loads it; it does no work yet.
    ///
    /// # Errors
    /// No permission, or a kernel before Linux 5.17, which cannot loop in a program.
    pub fn load() -> Result<Self> {
        let mut ebpf =
            Ebpf::load(OBJECT).context("loading the stage's maps failed; run as root")?;
        for name in [STAGE, FORGET] {
            let loaded = program(&mut ebpf, name)?.load();
            loaded
                .with_context(|| format!("loading the program {name} failed (needs Linux 5.17)"))?;
        }
        Ok(Self { ebpf })
    }

    /// Attaches it to an interface of the calling thread's namespace, until the interface is gone.
    ///
    /// # Errors
    /// There is no such interface, or the kernel has no clsact.
    pub fn attach(&mut self, interface: &str) -> Result<()> {
        self.attach_program(STAGE, interface)
    }

    /// Makes what the sender's kernel has noted beside a frame be forgotten where it arrives at an interface, likewise.
    ///
    /// # Errors
    /// As for [`Stage::attach`].
    pub fn attach_forgetting(&mut self, interface: &str) -> Result<()> {
        self.attach_program(FORGET, interface)
    }

    fn attach_program(&mut self, name: &str, interface: &str) -> Result<()> {
        // Kernels before 6.6 want the queueing discipline; with later ones it is in nobody's way.
        qdisc_add_clsact(interface)
            .with_context(|| format!("{interface}: clsact (sch_ingress)"))?;
        let attached = program(&mut self.ebpf, name)?.attach(interface, TcAttachType::Ingress);
        attached
            .with_context(|| format!("{interface}: attaching {name} failed (needs cls_bpf)"))?;
        Ok(())
    }

    /// Sets the work so that `frame` costs so much; returns the rounds.
    ///
    /// # Errors
    /// The kernel does not run the program for a test, or the work cannot be had with any number of rounds.
    pub fn calibrate(&mut self, work: NsPerByte, frame: &[u8]) -> Result<u32> {
        const FEW: u32 = 8;
        const MANY: u32 = 256;
        let (few, many) = (self.time(FEW, frame)?, self.time(MANY, frame)?);
        let per_round = (many - few) / f64::from(MANY - FEW);
        ensure!(
            per_round > 0.0,
            "calibration: {MANY} rounds take no longer than {FEW}; is the machine overloaded?"
        );
        let wanted = work.0 * frame.len() as f64;
        let rounds = ((wanted - few) / per_round + f64::from(FEW)).round();
        ensure!(
            (1.0..1e6).contains(&rounds),
            "calibration: {wanted:.0} ns a frame cannot be reached: {few:.0} ns with {FEW} rounds"
        );
        self.set_rounds(rounds as u32)?;
        Ok(rounds as u32)
    }

    /// Sets the rounds of each 64 bytes; 0 is no work.
    pub fn set_rounds(&mut self, rounds: u32) -> Result<()> {
        let map = self.ebpf.map_mut("config").context("stage: no map config")?;
        Array::<_, [u32; 2]>::try_from(map)?.set(0, [rounds, 0], 0).context("stage: config")
    }

    /// Nanoseconds of one run over `frame`, the fastest of a few averages.
    fn time(&mut self, rounds: u32, frame: &[u8]) -> Result<f64> {
        self.set_rounds(rounds)?;
        let descriptor = program(&mut self.ebpf, STAGE)?.fd().context("stage")?.as_fd();
        let times = (0..TRIES).map(|_| run_time(descriptor, frame, REPEAT));
        times.collect::<Result<Vec<_>>>()?.into_iter().reduce(f64::min).context("no measurement")
    }

    /// Where a VM's frames are processed now.
    pub fn home(&self, vm: u8) -> Result<Home> {
        let map = self.ebpf.map("homes").context("stage: no map homes")?;
        let [core, changes, low, high] =
            Array::<_, [u32; 4]>::try_from(map)?.get(&vm.into(), 0).context("stage: homes")?;
        // A number of 64 bits, as this machine has it in memory.
        let [l, h] = [low, high].map(u32::to_ne_bytes);
        let since_ns = u64::from_ne_bytes([l[0], l[1], l[2], l[3], h[0], h[1], h[2], h[3]]);
        Ok(Home { core: core as usize, changes, since_ns })
    }

    /// What was counted since it was loaded.
    pub fn counts(&self) -> Result<Counts> {
        let map = self.ebpf.map("counts").context("stage: no map counts")?;
        let map = PerCpuArray::<_, [u64; 4]>::try_from(map)?;
        let by_vm =
            (0..VMS as u32).map(|vm| Ok(map.get(&vm, 0)?.iter().copied().map(Count::of).collect()));
        Ok(Counts::by_vm(by_vm.collect::<Result<Vec<Vec<Count>>>>()?))
    }
}

fn program<'e>(ebpf: &'e mut Ebpf, name: &str) -> Result<&'e mut SchedClassifier> {
    let program =
        ebpf.program_mut(name).with_context(|| format!("{name}: no such program in the object"))?;
    program.try_into().with_context(|| format!("{name}: not a classifier"))
}
