//! One interface's program: loaded, attached, and its maps.

use crate::abi::{QUEUES_MAX, Verdict, VerdictCount};
use crate::error::{AttachError, MapError};
use aya::maps::{PerCpuArray, XskMap};
use aya::programs::xdp::XdpLink;
use aya::programs::{ProgramError, TestRun, TestRunOptions, Xdp, XdpMode, loaded_programs};
use aya::util::KernelVersion;
use aya::{Ebpf, EbpfLoader};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

pub(crate) static OBJECT: &[u8] =
    aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/suiro.bpf.o"));
const PROGRAM: &str = "suiro_ingress";
const SOCKETS: &str = "sockets";
const VERDICTS: &str = "verdicts";

/// Where the kernel calls the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hook {
    /// In the driver, before a socket buffer exists.
    Native,
    /// After the driver, on any interface.
    Generic,
}

impl Hook {
    /// The name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Generic => "generic",
        }
    }
}

/// The program, loaded but not attached.
pub struct Loaded {
    ebpf: Ebpf,
}

/// The program on an interface. Dropping it detaches; so does the death of the process, because a `bpf_link` holds it.
pub struct Ingress {
    // Before `ebpf`: fields drop in order, and the program must outlive its link.
    _link: XdpLink,
    hook: Hook,
    ebpf: Ebpf,
}

impl Loaded {
    /// Loads the program and its maps for an interface of `queues` rx queues.
    ///
    /// # Errors
    /// No permission, or a kernel without XDP.
    pub fn new(queues: u32) -> Result<Self, AttachError> {
        // aya would fall back to netlink there.
        if KernelVersion::current().is_ok_and(|kernel| kernel < KernelVersion::new(5, 9, 0)) {
            return Err(AttachError::NoLink);
        }
        let mut ebpf = EbpfLoader::new()
            .map_max_entries(SOCKETS, queues.clamp(1, QUEUES_MAX))
            .load(OBJECT)
            .map_err(|source| AttachError::Load {
                step: "load the maps",
                source: Box::new(source),
            })?;
        let loaded = program(&mut ebpf)?.load();
        loaded.map_err(|source| AttachError::Load {
            step: "load the program",
            source: Box::new(source.into()),
        })?;
        Ok(Self { ebpf })
    }

    /// Attaches to the interface of that index in the calling thread's network namespace.
    ///
    /// # Errors
    /// The hook is not there, or another program is.
    pub fn attach(mut self, index: u32, hook: Hook) -> Result<Ingress, AttachError> {
        let link = self.link(index, hook)?;
        Ok(Ingress { _link: link, hook, ebpf: self.ebpf })
    }

    fn link(&mut self, index: u32, hook: Hook) -> Result<XdpLink, AttachError> {
        let mode = match hook {
            Hook::Native => XdpMode::Driver,
            Hook::Generic => XdpMode::Skb,
        };
        let program = program(&mut self.ebpf)?;
        let id = program
            .attach_to_if_index(index, mode)
            .map_err(|error| AttachError::refused(hook, error))?;
        program.take_link(id).map_err(|error| AttachError::refused(hook, error))
    }

    /// The loaded program, for `BPF_PROG_TEST_RUN`.
    ///
    /// # Errors
    /// The embedded object lacks the program: a broken build.
    pub fn program(&mut self) -> Result<&mut Xdp, AttachError> {
        program(&mut self.ebpf)
    }

    /// Runs it `repeat` times on a frame, on the calling thread's core; the mean time of a run.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn run(&mut self, frame: &[u8], repeat: u32) -> Result<Duration, AttachError> {
        let options = TestRunOptions { data_in: Some(frame), repeat, ..TestRunOptions::new() };
        let run = program(&mut self.ebpf)?.test_run(options);
        let refused = |error: ProgramError| AttachError::Load {
            step: "run the program",
            source: Box::new(error.into()),
        };
        Ok(run.map_err(refused)?.duration)
    }

    /// The counters so far.
    ///
    /// # Errors
    /// The kernel refuses to read the map.
    pub fn counts(&self) -> Result<Vec<(Verdict, VerdictCount)>, MapError> {
        counts(&self.ebpf)
    }
}

impl Ingress {
    /// Where the kernel calls it.
    pub fn hook(&self) -> Hook {
        self.hook
    }

    /// Sends the frames of `queue` to `socket`.
    ///
    /// # Errors
    /// The queue is beyond those named at loading, or the socket is not a bound AF_XDP socket.
    pub fn set_socket(&mut self, queue: u32, socket: impl AsFd) -> Result<(), MapError> {
        let map = self.ebpf.map_mut(SOCKETS).ok_or(MapError::Missing { map: SOCKETS })?;
        let mut sockets = XskMap::try_from(map).map_err(MapError::access(SOCKETS))?;
        sockets.set(queue, socket.as_fd().as_raw_fd(), 0).map_err(MapError::access(SOCKETS))
    }

    /// Frames and bytes by verdict, summed over the CPUs.
    ///
    /// # Errors
    /// The kernel refuses to read the map.
    pub fn counts(&self) -> Result<Vec<(Verdict, VerdictCount)>, MapError> {
        counts(&self.ebpf)
    }
}

fn program(ebpf: &mut Ebpf) -> Result<&mut Xdp, AttachError> {
    let program = ebpf.program_mut(PROGRAM).ok_or(AttachError::BrokenBuild)?;
    program.try_into().map_err(|_: ProgramError| AttachError::BrokenBuild)
}

fn counts(ebpf: &Ebpf) -> Result<Vec<(Verdict, VerdictCount)>, MapError> {
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

/// The name of a loaded program, to tell the user whose it is.
pub fn program_name(id: u32) -> Option<String> {
    let program = loaded_programs().flatten().find(|program| program.id() == id)?;
    program.name_as_str().map(str::to_owned)
}
