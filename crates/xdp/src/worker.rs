//! The worker stage of one interface: its frames go to AF_XDP sockets.

use crate::abi::{Verdict, VerdictCount};
use crate::error::MapError;
use crate::hook::{Hook, HookError, Lease, Life, Mode, Stage, load, pick, program};
use aya::Ebpf;
use aya::maps::{Map, MapData, PerCpuArray, XskMap};
use aya::programs::{ProgramError, TestRun, TestRunOptions, Xdp};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::time::Duration;

pub(crate) static OBJECT: &[u8] =
    aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/worker.bpf.o"));
pub(crate) static WHOLE_OBJECT: &[u8] =
    aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/worker_whole.bpf.o"));
const PROGRAM: &str = "suiro_worker";
pub(crate) const SOCKETS: &str = "sockets";
pub(crate) const VERDICTS: &str = "verdicts";

/// The program of the worker stage and its maps, on no interface yet.
pub struct WorkerStage {
    ebpf: Ebpf,
}

/// The worker stage of an interface, ours. Dropping it gives the stage back; so does the death of the process, if no other stage is
/// pinned: then what comes is dropped and counted, until the next port of the interface takes it over.
pub struct Worker {
    // Before `ebpf`: fields drop in order, and the program must outlive its stage.
    _lease: Lease,
    mode: Mode,
    stage: WorkerStage,
}

impl WorkerStage {
    /// Loads the program.
    ///
    /// # Errors
    /// No permission, or a kernel without XDP.
    pub fn new() -> Result<Self, HookError> {
        let mut ebpf = load(pick(OBJECT, WHOLE_OBJECT))?;
        program(&mut ebpf, PROGRAM)?.load().map_err(HookError::load("load the program"))?;
        Ok(Self { ebpf })
    }

    /// Sends the frames of `queue` to `socket`.
    ///
    /// # Errors
    /// The queue is beyond [`QUEUES_MAX`](crate::QUEUES_MAX), or the socket is not a bound AF_XDP socket.
    pub fn set_socket(&mut self, queue: u32, socket: impl AsFd) -> Result<(), MapError> {
        let map = self.ebpf.map_mut(SOCKETS).ok_or(MapError::Missing { map: SOCKETS })?;
        let mut sockets = XskMap::try_from(map).map_err(MapError::access(SOCKETS))?;
        sockets.set(queue, socket.as_fd().as_raw_fd(), 0).map_err(MapError::access(SOCKETS))
    }

    /// Takes the worker stage of the interface of that index in the calling thread's network namespace, once its sockets are bound.
    ///
    /// # Errors
    /// As of [`Hook::on`].
    pub fn attach(mut self, index: u32, mode: Mode) -> Result<Worker, HookError> {
        let hook = Hook::on(index, mode)?;
        let lease = hook.lease(Stage::Worker, self.program()?, Life::Process)?;
        Ok(Worker { _lease: lease, mode, stage: self })
    }

    /// The loaded program, for `BPF_PROG_TEST_RUN`.
    ///
    /// # Errors
    /// The embedded object lacks the program: a broken build.
    pub fn program(&mut self) -> Result<&mut Xdp, HookError> {
        program(&mut self.ebpf, PROGRAM)
    }

    /// Runs it `repeat` times on a frame, on the calling thread's core; the mean time of a run.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn run(&mut self, frame: &[u8], repeat: u32) -> Result<Duration, HookError> {
        let options = TestRunOptions { data_in: Some(frame), repeat, ..TestRunOptions::new() };
        let run = self.program()?.test_run(options);
        Ok(run.map_err(HookError::load::<ProgramError>("run the program"))?.duration)
    }

    /// Frames and bytes by verdict, summed over the CPUs.
    ///
    /// # Errors
    /// The kernel refuses to read the map.
    pub fn counts(&self) -> Result<Vec<(Verdict, VerdictCount)>, MapError> {
        counts(&self.ebpf)
    }
}

impl Worker {
    /// Where the kernel calls the hook before it.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// As [`WorkerStage::set_socket`], while frames come.
    ///
    /// # Errors
    /// As there.
    pub fn set_socket(&mut self, queue: u32, socket: impl AsFd) -> Result<(), MapError> {
        self.stage.set_socket(queue, socket)
    }

    /// As [`WorkerStage::counts`].
    ///
    /// # Errors
    /// As there.
    pub fn counts(&self) -> Result<Vec<(Verdict, VerdictCount)>, MapError> {
        self.stage.counts()
    }

    /// One of its maps, anew.
    pub(crate) fn map(&self, name: &str) -> Option<Map> {
        let info = match self.stage.ebpf.map(name)? {
            Map::PerCpuArray(map) | Map::XskMap(map) => map.info(),
            _ => return None,
        };
        Map::from_map_data(MapData::from_id(info.ok()?.id()).ok()?).ok()
    }

    /// Pins its sockets, for a stage that gives frames to them, before its program is loaded.
    pub(crate) fn pin_sockets(&self, path: &Path) -> io::Result<()> {
        let sockets = self.stage.ebpf.map(SOCKETS).ok_or(io::ErrorKind::NotFound)?;
        sockets.pin(path).map_err(io::Error::other)
    }
}

pub(crate) fn counts(ebpf: &Ebpf) -> Result<Vec<(Verdict, VerdictCount)>, MapError> {
    let map = ebpf.map(VERDICTS).ok_or(MapError::Missing { map: VERDICTS })?;
    let verdicts =
        PerCpuArray::<_, VerdictCount>::try_from(map).map_err(MapError::access(VERDICTS))?;
    let total = |verdict: Verdict| {
        let per_cpu = verdicts.get(&(verdict as u32), 0).map_err(MapError::access(VERDICTS))?;
        let sum = per_cpu.iter().fold(VerdictCount::default(), |sum, cpu| VerdictCount {
            frames: sum.frames + cpu.frames,
            bytes: sum.bytes + cpu.bytes,
        });
        Ok((verdict, sum))
    };
    Verdict::ALL.into_iter().map(total).collect()
}
