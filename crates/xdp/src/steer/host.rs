//! What all steered interfaces of a host share: what each core does, and how many units ever came to it.

use super::abi::{CPUS, NO_CLOCK, SteerCore, SteerPlaced, SteerThread};
use super::error::SteerError;
use super::maps::{Maps, access};
use super::pins::{LINK, Pins, pin_error, remove};
use super::times::CoreTimes;
use crate::MapError;
use crate::sys::mapped::Mapped;
use crate::verified::verified;
use aya::maps::{HashMap, MapData};
use aya::programs::BtfTracePoint;
use aya::programs::links::FdLink;
use aya::{Btf, EbpfError, EbpfLoader};
use place::{CoreId, Stage};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

pub(crate) static OBJECT: &[u8] =
    aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/trace.bpf.o"));

/// Each program, its tracepoint, and the pin of its link. The last makes the directory complete.
const PROGRAMS: [(&str, &str, &str); 5] = [
    ("suiro_raise", "softirq_raise", "raise"),
    ("suiro_enter", "softirq_entry", "enter"),
    ("suiro_exit", "softirq_exit", "exit"),
    ("suiro_batch", "xdp_cpumap_kthread", "batch"),
    ("suiro_switch", "sched_switch", LINK),
];
/// Maps that [`OBJECT`] has, then that of the placement, which the first interface's programs bring.
const TRACE_MAPS: [&str; 4] = ["cores", "clocks", "threads", "slots"];
pub(crate) const SHARED_MAPS: [&str; 3] = ["cores", "clocks", "placed"];

/// What the interfaces of one host share. Dropping it changes nothing: all of it is pinned.
pub struct Host {
    pub(crate) pins: Pins,
    pub(crate) cores: Mapped<SteerCore>,
    pub(crate) threads: HashMap<MapData, u32, SteerThread>,
    pub(crate) slots: HashMap<MapData, u32, u32>,
    /// From the first reading on: the first interface brings the map.
    placed: Option<Mapped<SteerPlaced>>,
    /// Units that were ever placed on each core, as of the last reading.
    arrived: Vec<u32>,
}

impl Host {
    /// Adopts what is pinned below `root` ([`PIN_ROOT`](super::PIN_ROOT)), or starts it.
    ///
    /// # Errors
    /// No permission, no file system for pins, a kernel that is too old, or pins of another version.
    pub fn open(root: &Path) -> Result<Self, SteerError> {
        let pins = Pins::at(root)?;
        let _lock = pins.lock()?;
        if !pins.host().join(LINK).exists() {
            start(&pins.host()).inspect_err(|_| {
                let _ = remove(&pins.host());
            })?;
        }
        let maps = Maps(pins.host());
        Ok(Self {
            cores: maps.mapped("cores")?,
            threads: maps.hash("threads")?,
            slots: maps.hash("slots")?,
            placed: None,
            arrived: Vec::new(),
            pins,
        })
    }

    /// True once another process, for which nothing was steered, has removed it.
    pub fn is_gone(&self) -> bool {
        !self.pins.host().join(LINK).exists()
    }

    /// Names under which interfaces are steered now.
    pub fn interfaces(&self) -> Vec<String> {
        self.pins.names()
    }

    /// How many units were ever placed on each core, by all interfaces.
    ///
    /// # Errors
    /// No interface is steered.
    pub fn arrivals(&mut self) -> Result<BTreeMap<CoreId, u32>, SteerError> {
        let placed = match self.placed.take() {
            Some(placed) => placed,
            None => Maps(self.pins.host()).mapped("placed")?,
        };
        self.arrived = (0..placed.len()).map(|cpu| placed.get(cpu).units).collect();
        self.placed = Some(placed);
        let possible = aya::util::nr_cpus().unwrap_or(1);
        let cores = (0..).map(CoreId).zip(self.arrived.iter().copied());
        Ok(cores.take(possible).collect())
    }

    /// Units that were ever placed on each core, as of the last [`Host::arrivals`].
    pub(crate) fn arrived(&mut self) -> Result<&[u32], SteerError> {
        if self.placed.is_none() {
            self.arrivals()?;
        }
        Ok(&self.arrived)
    }

    /// Where each core's time went so far; the cores that the kernel has.
    pub fn times(&self) -> Vec<(CoreId, CoreTimes)> {
        let now = super::times::now();
        let possible = aya::util::nr_cpus().unwrap_or(1).min(self.cores.len());
        let core = |cpu: usize| (CoreId(cpu as u16), CoreTimes::read(&self.cores, cpu, now));
        (0..possible).map(core).collect()
    }

    /// The time of that thread counts as that stage from now on: vhost workers and virtual CPUs.
    ///
    /// # Errors
    /// The kernel refuses; there are 4096 such threads at most.
    pub fn watch(&mut self, thread: u32, stage: Stage) -> Result<(), MapError> {
        let stage = super::times::of_stage(stage);
        let value = SteerThread { stage, clock: NO_CLOCK };
        self.threads.insert(thread, value, 0).map_err(access("threads"))
    }

    /// It counts as "other" again. Not known is no error.
    pub fn forget(&mut self, thread: u32) {
        let _ = self.threads.remove(&thread);
    }

    /// Removes everything if no interface is steered any more; whether it did.
    ///
    /// # Errors
    /// A pin cannot be removed.
    pub fn remove_if_unused(self) -> Result<bool, SteerError> {
        let _lock = self.pins.lock()?;
        if !self.pins.names().is_empty() {
            return Ok(false);
        }
        self.pins.remove()?;
        Ok(true)
    }

    /// A slot that no living interface has. Slots of map ids that are gone are freed.
    pub(crate) fn free_slot(&mut self) -> Result<u32, SteerError> {
        let mut taken = Vec::new();
        for (map, slot) in self.slots.iter().flatten().collect::<Vec<_>>() {
            match MapData::from_id(map) {
                Ok(_) => taken.push(slot),
                Err(_) => self.free(map, slot),
            }
        }
        (0..super::SLOTS).find(|slot| !taken.contains(slot)).ok_or(SteerError::Full)
    }

    /// Forgets the queues of an interface and their threads.
    pub(crate) fn free(&mut self, map: u32, slot: u32) {
        let _ = self.slots.remove(&map);
        let own = slot * CPUS..(slot + 1) * CPUS;
        let threads: Vec<_> = self.threads.iter().flatten().collect();
        for (thread, _) in threads.iter().filter(|(_, value)| own.contains(&value.clock)) {
            let _ = self.threads.remove(thread);
        }
    }
}

/// Loads the tracing programs and pins them.
fn start(directory: &Path) -> Result<(), SteerError> {
    remove(directory)?;
    std::fs::create_dir_all(directory).map_err(pin_error(directory, "make it"))?;
    let load = |step| move |error: EbpfError| SteerError::Load { step, source: Box::new(error) };
    let paths: Vec<PathBuf> = TRACE_MAPS.iter().map(|map| directory.join(map)).collect();
    let mut loader = EbpfLoader::new();
    for (map, path) in TRACE_MAPS.iter().zip(&paths) {
        loader.map_pin_path(map, path.as_path());
    }
    let mut ebpf = loader.load(OBJECT).map_err(load("load the maps of the cores"))?;
    let btf = Btf::from_sys_fs().map_err(|error| load("read the kernel's types")(error.into()))?;
    for (name, tracepoint, pin) in PROGRAMS {
        let program: &mut BtfTracePoint = ebpf
            .program_mut(name)
            .and_then(|program| program.try_into().ok())
            .ok_or(SteerError::BrokenBuild(name))?;
        let step = "trace what cores do";
        verified(|| program.load(tracepoint, &btf)).map_err(|error| load(step)(error.into()))?;
        let link = program.attach().and_then(|id| program.take_link(id));
        let link = FdLink::from(link.map_err(|error| load(step)(error.into()))?);
        let path = directory.join(pin);
        link.pin(&path)
            .map_err(|error| pin_error(&path, "pin the link")(io::Error::other(error)))?;
    }
    Ok(())
}
