//! One steered interface: attached, adopted from its pins, detached.

use super::abi::{
    ENTRY_FIRST, FCF_FIRST, FCF_UNITS, GROUPS_MAX, IS_PRIORITY, POLICY_HASH, POLICY_VSE,
    ROUTE_NONE, SENT_BITS, SteerConfig, SteerDone, SteerLook, SteerTable, SteerUnit, UNDECIDED,
    WORDS,
};
use super::entries::Entries;
use super::error::SteerError;
use super::host::{Host, SHARED_MAPS};
use super::maps::{self, Maps, access};
use super::options::{Options, QUEUE_MAX, QUEUE_MIN, groups_of, unmatched_of};
use super::order::Clocks;
use super::pins::{LINK, pin_error, remove};
use crate::hook::{self, Hook, HookError, Life, Mode, Stage};
use crate::sys::mapped::Mapped;
use crate::verified::verified;
use aya::maps::{Array, CpuMap, MapData};
use aya::programs::links::{FdLink, PinnedLink};
use aya::programs::{ProgramFd, ProgramInfo, Xdp};
use aya::{Ebpf, EbpfError, EbpfLoader};
use netlink::{Link, Netlink};
use place::CoreId;
use place::steering::{PolicyKind, Unmatched};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::mem::offset_of;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The interface of that index in the calling thread's namespace; `None` also where the kernel does not answer.
fn link_at(index: u32) -> Option<Link> {
    Netlink::new().and_then(|netlink| netlink.link_at(index)).ok().flatten()
}

fn program_on(index: u32) -> Option<u32> {
    link_at(index).map(|link| link.xdp_program).filter(|&program| program != 0)
}

fn is_virtual(index: u32) -> bool {
    link_at(index).is_some_and(|link| link.is_virtual())
}

pub(crate) static OBJECT: &[u8] =
    aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/steer.bpf.o"));
const STEER: &str = "suiro_steer";
const ARRIVE: &str = "suiro_arrive";
const QUEUES: &str = "queues";
const TABLES: &str = "tables";
/// The interface's own maps.
const MAPS: [&str; 12] = [
    "config",
    "units",
    "done",
    "entries",
    "lines",
    "masks",
    TABLES,
    "fragments",
    QUEUES,
    "rings",
    "received",
    "steered",
];
const EVENTS: &str = "events";
/// For those who look at frames; what was attached by earlier versions has none.
pub(crate) const LOOK: &str = "look";
pub(crate) const FRAMES: &str = "frames";
pub(crate) const SHOWN: &str = "shown";
/// The hook's array of stages.
const STAGES: &str = "stages";
/// What the kernel's queue holds back of its room, in two batches (`ptr_ring` frees places by the cache line).
const QUEUE_SLACK: u32 = 32;

/// An interface by its index in the calling thread's network namespace, and the name that its pins get.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Unique on the host: its own name, unless it is in another namespace.
    pub name: String,
    /// Of the kernel.
    pub index: u32,
}

/// A steered interface. Dropping it changes nothing, nor does the death of the process: all of it is pinned.
pub struct Attached {
    interface: Interface,
    pub(crate) directory: PathBuf,
    pub(crate) config: Mapped<SteerConfig>,
    pub(crate) units: Mapped<SteerUnit>,
    pub(crate) done: Mapped<SteerDone>,
    pub(crate) entries: Entries,
    pub(crate) tables: Array<MapData, SteerTable>,
    pub(crate) maps: Maps,
    pub(crate) clocks: Clocks,
}

impl Attached {
    /// Steers an interface from now on.
    ///
    /// # Errors
    /// It has another XDP program; it takes none; no permission; all slots of the host are taken.
    pub fn attach(
        host: &mut Host,
        interface: &Interface,
        options: &Options,
    ) -> Result<Self, SteerError> {
        let _lock = host.pins.lock()?;
        let directory = host.pins.interface(&interface.name);
        if directory.join(LINK).exists() {
            return Err(SteerError::Steered { interface: interface.name.clone() });
        }
        may_place(interface, options)?;
        remove(&directory)?;
        std::fs::create_dir_all(&directory).map_err(pin_error(&directory, "make it"))?;
        let slot = host.free_slot()?;
        let attached = Self::start(host, interface, options, &directory, slot);
        attached.inspect_err(|_| {
            let _ = remove(&directory);
        })
    }

    fn start(
        host: &mut Host,
        interface: &Interface,
        options: &Options,
        directory: &Path,
        slot: u32,
    ) -> Result<Self, SteerError> {
        let hook = Hook::on(interface.index, Mode::Native).map_err(no_hook(interface))?;
        hook.pin_stages(&directory.join(STAGES)).map_err(no_hook(interface))?;
        let mut ebpf = load(&host.pins.host(), directory, options)?;
        let arrive = program(&mut ebpf, ARRIVE)?;
        let path = directory.join("arrive");
        arrive
            .pin(&path)
            .map_err(|error| pin_error(&path, "pin the program")(io::Error::other(error)))?;
        let own = Maps(directory.to_owned());
        let queues = maps::id(&own.open(QUEUES)?, &directory.join(QUEUES))?;
        host.slots.insert(queues, slot, 0).map_err(access("slots"))?;
        let config = own.mapped("config")?;
        config.set(0, &raw_config(interface, options, slot));
        let started = Self::open(interface.clone(), own, config, host).and_then(|mut attached| {
            attached.prepare_units();
            for &core in &options.cores {
                attached.add_queue(core)?;
            }
            lease(hook, &mut ebpf, interface, directory)?;
            Ok(attached)
        });
        started.inspect_err(|_| host.free(queues, slot))
    }

    /// Takes over an interface that another process, or an earlier life of this one, has left steered.
    ///
    /// # Errors
    /// Nothing of that name is pinned, or it is of another version.
    pub fn adopt(host: &Host, name: &str) -> Result<Self, SteerError> {
        let directory = host.pins.interface(name);
        if !directory.join(LINK).exists() {
            return Err(pin_error(&directory, "adopt it")(io::ErrorKind::NotFound.into()));
        }
        let own = Maps(directory);
        // Whoever looked at frames has ended, in whatever way.
        tell_lookers(&own, SteerLook { bytes: 0, is_gone: 0 });
        let config: Mapped<SteerConfig> = own.mapped("config")?;
        let interface = Interface { name: name.to_owned(), index: config.get(0).ifindex };
        Self::open(interface, own, config, host)
    }

    fn open(
        interface: Interface,
        own: Maps,
        config: Mapped<SteerConfig>,
        host: &Host,
    ) -> Result<Self, SteerError> {
        let clocks = Clocks::open(&Maps(host.pins.host()))?;
        let entries = Entries::read(&own, &config.get(0))?;
        let (units, done) = (own.mapped("units")?, own.mapped("done")?);
        let tables = own.array(TABLES)?;
        Ok(Self {
            interface,
            directory: own.0.clone(),
            config,
            units,
            done,
            entries,
            tables,
            maps: own,
            clocks,
        })
    }

    fn prepare_units(&self) {
        let blank = blank_unit();
        for unit in 0..self.units.len() {
            self.units.set(unit, &blank);
        }
        for fcf in 2..FCF_UNITS {
            let flags = if fcf & 1 == 1 { IS_PRIORITY } else { 0 };
            self.units.set(
                (FCF_FIRST + fcf) as usize,
                &SteerUnit { flags, vm: (fcf >> 1) as u16, ..blank },
            );
        }
    }

    /// Its name and index.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Whether the interface still has the program: one that was deleted and made anew has not. Looks in the calling thread's namespace.
    pub fn is_alive(&self) -> bool {
        let link = PinnedLink::from_pin(self.directory.join(LINK)).map(FdLink::from);
        let pinned = link.and_then(|link| link.info()).map(|info| info.program_id());
        pinned.is_ok_and(|pinned| program_on(self.interface.index) == Some(pinned))
    }

    /// The options now in force; `cores` are those that have a queue.
    ///
    /// # Errors
    /// The kernel refuses to read the queues.
    pub fn options(&self) -> Result<Options, SteerError> {
        let config = self.config.get(0);
        Ok(Options {
            unmatched: unmatched_of(config.groups),
            policy: if config.policy == POLICY_HASH { PolicyKind::Hash } else { PolicyKind::Vse },
            is_fcf: config.is_fcf == 1,
            vxlan_port: config.vxlan_port as u16,
            queue: config.queue + QUEUE_SLACK,
            drain: Duration::from_nanos(config.drain_ns.into()),
            give_up: Duration::from_nanos(config.give_up_ns.into()),
            entries: self.units.len() as u32 - ENTRY_FIRST,
            cores: self.queues()?,
        })
    }

    /// Changes how undecided units are placed. Those that are decided stay.
    pub fn set_policy(&self, policy: PolicyKind) {
        self.config.u32_at(0, offset_of!(SteerConfig, policy)).store(raw_policy(policy), Relaxed);
    }

    /// Lets flows be sent to that core. It has a queue already: nothing changes.
    ///
    /// # Errors
    /// There is no such core.
    pub fn add_queue(&mut self, core: CoreId) -> Result<(), SteerError> {
        if self.queues()?.contains(&core) {
            return Ok(());
        }
        let length = self.config.get(0).queue + QUEUE_SLACK;
        let arrive = self.arrive()?;
        let mut queues = self.cpu_map()?;
        let set = queues.set(core.0.into(), length, Some(&arrive), 0);
        set.map_err(|error| {
            pin_error(&self.directory.join(QUEUES), "make a queue for the core")(io::Error::other(
                error,
            ))
        })
    }

    /// Cores that flows can be sent to.
    ///
    /// # Errors
    /// The kernel refuses to read them.
    pub fn queues(&self) -> Result<Vec<CoreId>, SteerError> {
        let queues = self.cpu_map()?;
        let possible = 0..(aya::util::nr_cpus().unwrap_or(1) as u32).min(queues.len());
        Ok(possible
            .filter(|&core| queues.get(core, 0).is_ok())
            .map(|core| CoreId(core as u16))
            .collect())
    }

    fn cpu_map(&self) -> Result<CpuMap<MapData>, SteerError> {
        let map = self.maps.map(QUEUES)?;
        CpuMap::try_from(map).map_err(|_| self.maps.other_version(QUEUES))
    }

    fn arrive(&self) -> Result<ProgramFd, SteerError> {
        let path = self.directory.join("arrive");
        let info = ProgramInfo::from_pin(&path).and_then(|info| info.fd());
        info.map_err(|error| pin_error(&path, "open the program")(io::Error::other(error)))
    }

    /// Steers the interface no more. Frames on their way arrive; flows may be reordered this once.
    ///
    /// # Errors
    /// A pin cannot be removed.
    pub fn detach(self, host: &mut Host) -> Result<(), SteerError> {
        let _lock = host.pins.lock()?;
        let queues = maps::id(&self.maps.open(QUEUES)?, &self.directory.join(QUEUES))?;
        let stages = self.directory.join(STAGES);
        hook::free(&stages, Stage::Steer).map_err(pin_error(&stages, "free its stage"))?;
        let link = self.directory.join(LINK);
        // The link's last holder removes the program from the interface at once; the pin alone would wait.
        let pinned = PinnedLink::from_pin(&link)
            .map_err(|error| pin_error(&link, "open the link")(io::Error::other(error)))?;
        drop(pinned.unpin().map_err(pin_error(&link, "remove it"))?);
        host.free(queues, self.config.get(0).slot);
        tell_lookers(&self.maps, SteerLook { bytes: 0, is_gone: 1 });
        remove(&self.directory)
    }
}

/// Where there is such a map: programs of earlier versions have none.
fn tell_lookers(own: &Maps, what: SteerLook) {
    if let Ok(look) = own.mapped::<SteerLook>(LOOK) {
        look.set(0, &what);
    }
}

fn load(host: &Path, directory: &Path, options: &Options) -> Result<Ebpf, SteerError> {
    let paths: Vec<(&str, PathBuf)> = MAPS
        .iter()
        .chain([&EVENTS, &STAGES, &LOOK, &FRAMES, &SHOWN])
        .map(|map| (*map, directory.join(map)))
        .chain(SHARED_MAPS.iter().map(|map| (*map, host.join(map))))
        .collect();
    let entries = options.entries.clamp(1, super::ENTRIES_MAX);
    let mut loader = EbpfLoader::new();
    for (map, path) in &paths {
        loader.map_pin_path(map, path.as_path());
    }
    // The kernel refuses more queues than it has processors.
    loader.map_max_entries(QUEUES, aya::util::nr_cpus().map_or(1, |cpus| cpus as u32));
    for map in ["units", "done"] {
        loader.map_max_entries(map, ENTRY_FIRST + entries);
    }
    // The kernel makes no queues for processors that cannot be.
    loader.map_max_entries(QUEUES, (aya::util::nr_cpus().unwrap_or(1) as u32).min(super::CPUS));
    loader.map_max_entries("entries", entries);
    loader.map_max_entries("lines", entries.next_power_of_two());
    let step = |step| move |error: EbpfError| SteerError::Load { step, source: Box::new(error) };
    let mut ebpf = loader.load(OBJECT).map_err(step("load the maps of an interface"))?;
    for name in [ARRIVE, STEER] {
        let program = program(&mut ebpf, name)?;
        let loaded = verified(|| program.load());
        loaded.map_err(|error| step("load the program of an interface")(error.into()))?;
    }
    Ok(ebpf)
}

fn program<'a>(ebpf: &'a mut Ebpf, name: &'static str) -> Result<&'a mut Xdp, SteerError> {
    let program = ebpf.program_mut(name).and_then(|program| program.try_into().ok());
    program.ok_or(SteerError::BrokenBuild(name))
}

/// Takes the hook's steering stage; the pin of its link comes last.
fn lease(
    hook: Hook,
    ebpf: &mut Ebpf,
    interface: &Interface,
    directory: &Path,
) -> Result<(), SteerError> {
    let steer = program(ebpf, STEER)?;
    let path = directory.join("steer");
    steer
        .pin(&path)
        .map_err(|error| pin_error(&path, "pin the program")(io::Error::other(error)))?;
    let lease = hook.lease(Stage::Steer, steer, Life::Pinned(&directory.join(LINK)));
    lease.map(drop).map_err(no_hook(interface))
}

/// Frames that no entry matches are a port's where the interface is one.
fn may_place(interface: &Interface, options: &Options) -> Result<(), SteerError> {
    let takes_all = options.unmatched != Unmatched::Stay || options.is_fcf;
    let taken = Hook::taken(interface.index).map_err(no_hook(interface))?;
    if takes_all && taken.contains(&Stage::Worker) {
        return Err(SteerError::OfPort { interface: interface.name.clone() });
    }
    Ok(())
}

/// In the driver only, see [`SteerError::Refused`].
fn no_hook(interface: &Interface) -> impl Fn(HookError) -> SteerError {
    let interface = interface.name.clone();
    move |error| match error {
        HookError::Occupied { name, .. } => {
            SteerError::Occupied { interface: interface.clone(), program: name }
        }
        HookError::Refused { source, .. } => {
            SteerError::Refused { interface: interface.clone(), source }
        }
        HookError::OtherMode { .. } => SteerError::Generic { interface: interface.clone() },
        error => SteerError::Hook { interface: interface.clone(), source: error },
    }
}

fn raw_policy(policy: PolicyKind) -> u32 {
    match policy {
        PolicyKind::Hash => POLICY_HASH,
        PolicyKind::Vse => POLICY_VSE,
    }
}

fn raw_config(interface: &Interface, options: &Options, slot: u32) -> SteerConfig {
    let nanos = |time: Duration| u32::try_from(time.as_nanos()).unwrap_or(u32::MAX);
    let random = RandomState::new();
    let secrets: [u64; WORDS + 1] = std::array::from_fn(|at| random.hash_one(at));
    SteerConfig {
        slot,
        groups: groups_of(options.unmatched),
        policy: raw_policy(options.policy),
        is_fcf: u32::from(options.is_fcf),
        vxlan_port: options.vxlan_port.into(),
        queue: options.queue.clamp(QUEUE_MIN, QUEUE_MAX) - QUEUE_SLACK,
        drain_ns: nanos(options.drain),
        give_up_ns: nanos(options.give_up),
        exact: 0,
        masks: 0,
        change: 1,
        tag: random.hash_one("tag") as u32,
        ifindex: interface.index,
        may_be_unfinished: u32::from(is_virtual(interface.index)),
        table: 0,
        last_line: options.entries.clamp(1, super::ENTRIES_MAX).next_power_of_two() - 1,
        secrets,
    }
}

/// A unit that no frame was of yet.
pub(crate) fn blank_unit() -> SteerUnit {
    SteerUnit {
        state: u64::from(ROUTE_NONE) << SENT_BITS,
        wanted: UNDECIDED,
        flags: 0,
        wanted_ns: 0,
        moved_ns: 0,
        dropped: 0,
        moves: 0,
        table: 0,
        latch: 0,
        hash: 0,
        vm: 0,
        reason: 0,
        reserved: [0; 5],
    }
}

const _: () = assert!(GROUPS_MAX == FCF_FIRST && FCF_FIRST + FCF_UNITS == ENTRY_FIRST);
const _: () = assert!(POLICY_VSE == 1);
