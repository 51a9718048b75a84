//! # hook: one XDP program on an interface, and the stages behind it
//!
//! **Question answered**: how do steering and an `af_xdp` port live on one interface, each coming and going by itself?
//!
//! * [`Hook`]: the program `suiro_hook` on an interface. Found if it is there already, made if nothing is.
//! * [`Stage`], [`Lease`]: a place behind it, and whoever has it. Stages run in order; each decides or hands on (`bpf/stages.h`).
//! * [`Life`]: whether a lease ends with its process, or is pinned and outlives it.
//!
//! ## Invariants
//!
//! * The hook is there while somebody has a lease: each holds its link, by descriptor or by pin. The last one takes it away.
//! * A program of another owner is refused and named, never replaced.
//! * A lease replaces what is in its stage: its taker has made sure that the owner before is gone. Ports do that by their sockets, of which
//!   the kernel allows one for each queue; steering by the lock on its pins.
//! * A hook is never changed but by its stages: what runs on an interface has one name, whoever came first.
//! * A killed process leaves its stage behind if another lease is pinned. The worker stage then drops and counts: its sockets are gone.
//!   The next port of the interface takes it over, or whoever looks after the other lease frees it ([`Hook::orphan`]).

mod error;
mod lease;
mod orphan;
mod sys;

pub use error::HookError;
pub use lease::{Lease, Life};

use aya::maps::{MapData, MapInfo};
use aya::programs::links::FdLink;
use aya::programs::{ProgramInfo, Xdp, XdpMode, loaded_links, loaded_programs};
use aya::util::KernelVersion;
use aya::{Ebpf, EbpfError};
use netlink::{Link, Netlink, XdpAttached};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use sys::{ProgramArray, link_by_id, pin};

static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/hook.bpf.o"));
static WHOLE_OBJECT: &[u8] =
    aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/hook_whole.bpf.o"));
const PROGRAM: &str = "suiro_hook";
const STAGES: &str = "stages";

/// Where the kernel calls the hook.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// In the driver, before a socket buffer exists.
    Native,
    /// After the driver, on any interface.
    Generic,
}

impl Mode {
    /// The name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Generic => "generic",
        }
    }
}

/// The stages of a hook, in the order that frames meet them (`SUIRO_STAGE_…`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Stage {
    /// Flows that never reach a worker.
    Offload = 0,
    /// Frames of the host's stack, each on the core of its flow.
    Steer = 1,
    /// The port of a switch.
    Worker = 2,
}

impl Stage {
    /// The name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Offload => "offload",
            Self::Steer => "steer",
            Self::Worker => "worker",
        }
    }
}

/// The program on an interface, held by its link.
pub struct Hook {
    link: OwnedFd,
    stages: ProgramArray,
    program: u32,
}

impl Hook {
    /// The hook of the interface of that index in the calling thread's network namespace, made if there is no XDP program.
    ///
    /// # Errors
    /// Another program is there; the hook is there in another mode; the driver or the kernel refuses.
    pub fn on(index: u32, mode: Mode) -> Result<Self, HookError> {
        if let Some(found) = Self::look(index)? {
            return found.in_mode(mode);
        }
        match Self::attach(index, mode) {
            // Somebody came in between: it may be one of us.
            Err(HookError::Occupied { .. }) => match Self::look(index)? {
                Some(found) => found.in_mode(mode),
                None => Self::attach(index, mode),
            },
            attached => attached,
        }
    }

    /// The stages that are taken on an interface, of those without a hook none.
    ///
    /// # Errors
    /// Another program is there, or the kernel refuses to tell.
    pub fn taken(index: u32) -> Result<Vec<Stage>, HookError> {
        let Some(Found { hook, .. }) = Self::look(index)? else { return Ok(Vec::new()) };
        let all = [Stage::Offload, Stage::Steer, Stage::Worker];
        let mut taken = Vec::new();
        for stage in all {
            if hook.program_of(stage)?.is_some() {
                taken.push(stage);
            }
        }
        Ok(taken)
    }

    /// The kernel's number of the program in a stage of an interface.
    ///
    /// # Errors
    /// As of [`Hook::taken`].
    pub(crate) fn program_at(index: u32, stage: Stage) -> Result<Option<u32>, HookError> {
        Self::look(index)?.map_or(Ok(None), |found| found.hook.program_of(stage))
    }

    /// The hook that is on the interface now.
    fn look(index: u32) -> Result<Option<Found>, HookError> {
        let link = Netlink::new().and_then(|netlink| netlink.link_at(index));
        let link = link.map_err(HookError::system("ask for its XDP program"))?;
        let link = link.ok_or(HookError::NoInterface)?;
        if link.xdp_program == 0 {
            return Ok(None);
        }
        let program = loaded_programs().flatten().find(|info| info.id() == link.xdp_program);
        // One that went in between.
        let Some(program) = program else { return Ok(None) };
        if program.name_as_str() != Some(PROGRAM) {
            return Err(HookError::occupied(&link));
        }
        Self::of_program(&program, &link)
    }

    fn of_program(program: &ProgramInfo, link: &Link) -> Result<Option<Found>, HookError> {
        let failed = HookError::system("take up the hook that is there");
        let maps = program.map_ids().map_err(|error| failed(io::Error::other(error)))?;
        let is_stages =
            |id: &u32| MapInfo::from_id(*id).is_ok_and(|map| map.name_as_str() == Some(STAGES));
        let stages = maps.unwrap_or_default().into_iter().find(is_stages);
        let stages = stages.and_then(|id| ProgramArray::of(&MapData::from_id(id).ok()?).ok());
        let found = loaded_links().flatten().find(|found| found.program_id() == program.id());
        let (Some(stages), Some(found)) = (stages, found) else { return Ok(None) };
        let mode = match link.xdp_attached {
            XdpAttached::Generic => Mode::Generic,
            _ => Mode::Native,
        };
        let link =
            link_by_id(found.id()).map_err(HookError::system("hold the hook that is there"))?;
        Ok(Some(Found { hook: Self { link, stages, program: program.id() }, mode }))
    }

    fn attach(index: u32, mode: Mode) -> Result<Self, HookError> {
        let mut ebpf = load(pick(OBJECT, WHOLE_OBJECT))?;
        let hook = program(&mut ebpf, PROGRAM)?;
        hook.load().map_err(HookError::load("load the hook"))?;
        let flags = match mode {
            Mode::Native => XdpMode::Driver,
            Mode::Generic => XdpMode::Skb,
        };
        let attached = hook.attach_to_if_index(index, flags).and_then(|id| hook.take_link(id));
        let link = attached.map_err(|error| HookError::refused(index, mode, error))?;
        let held = FdLink::try_from(link).and_then(|link| Ok((link.info()?, link)));
        let (info, _held) =
            held.map_err(|error| HookError::system("hold the hook")(io::Error::other(error)))?;
        let link = link_by_id(info.id()).map_err(HookError::system("hold the hook"))?;
        let stages = ebpf.map(STAGES).ok_or(HookError::BrokenBuild(STAGES))?;
        let aya::maps::Map::ProgramArray(stages) = stages else {
            return Err(HookError::BrokenBuild(STAGES));
        };
        let stages = ProgramArray::of(stages).map_err(HookError::system("hold its stages"))?;
        Ok(Self { link, stages, program: info.program_id() })
    }

    /// Pins the array of stages, for a stage that hands on, before its program is loaded.
    ///
    /// # Errors
    /// The path is not on a file system for pins, or is taken.
    pub fn pin_stages(&self, path: &Path) -> Result<(), HookError> {
        pin(self.stages.0.as_fd(), path).map_err(HookError::system("pin its stages"))
    }

    /// The kernel's number of its program.
    pub fn program(&self) -> u32 {
        self.program
    }

    fn program_of(&self, stage: Stage) -> Result<Option<u32>, HookError> {
        self.stages.get(stage as u32).map_err(HookError::system("read its stages"))
    }
}

/// Frees a stage of a hook whose array of stages is pinned at this path.
///
/// # Errors
/// Nothing is pinned there, or the kernel refuses.
pub fn free(stages: &Path, stage: Stage) -> io::Result<()> {
    let map = MapData::from_pin(stages).map_err(io::Error::other)?;
    ProgramArray::of(&map)?.clear(stage as u32)
}

/// A hook, and the mode that it has.
struct Found {
    hook: Hook,
    mode: Mode,
}

impl Found {
    fn in_mode(self, mode: Mode) -> Result<Hook, HookError> {
        if self.mode == mode {
            return Ok(self.hook);
        }
        Err(HookError::OtherMode { wanted: mode, found: self.mode })
    }
}

/// Programs for frames in several pieces where the kernel knows them (5.18), else for whole ones.
pub(crate) fn pick(pieces: &'static [u8], whole: &'static [u8]) -> &'static [u8] {
    let is_old = |kernel| kernel < KernelVersion::new(5, 18, 0);
    if KernelVersion::current().is_ok_and(is_old) { whole } else { pieces }
}

/// The name of a loaded program, to tell the user whose it is.
pub fn program_name(id: u32) -> Option<String> {
    let program = loaded_programs().flatten().find(|program| program.id() == id)?;
    program.name_as_str().map(str::to_owned)
}

pub(crate) fn load(object: &[u8]) -> Result<Ebpf, HookError> {
    // aya would fall back to netlink there, and the program would outlive suiro.
    if KernelVersion::current().is_ok_and(|kernel| kernel < KernelVersion::new(5, 9, 0)) {
        return Err(HookError::NoLink);
    }
    crate::object::load(object).map_err(HookError::load::<EbpfError>("load its maps"))
}

pub(crate) fn program<'e>(
    ebpf: &'e mut Ebpf,
    name: &'static str,
) -> Result<&'e mut Xdp, HookError> {
    let program = ebpf.program_mut(name).and_then(|program| program.try_into().ok());
    program.ok_or(HookError::BrokenBuild(name))
}

#[cfg(test)]
mod tests;
