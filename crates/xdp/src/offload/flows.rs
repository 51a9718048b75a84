//! The flows of a host that are past the worker: maps that are pinned, and their places.

use super::abi::{
    FLOWS, GIVEN, OffloadFlow, OffloadKey, OffloadLimit, OffloadPort, PORTS, RUNG, WANTED,
};
use super::error::OffloadError;
use super::limit::Places;
use super::sys;
use crate::bpffs;
use crate::hook::{self, Stage};
use crate::mirror::Mirror;
use crate::sys::mapped::Mapped;
use aya::maps::{HashMap, Map, MapData};
use aya::{Ebpf, EbpfLoader};
use offload::ProviderName;
use std::fs;
use std::io;
use std::mem::offset_of;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where everything is pinned unless the user says otherwise.
pub const PIN_ROOT: &str = "/sys/fs/bpf/suiro/offload";

/// What the maps' values look like: a directory of this name lies beside them. Whatever changes their definition changes it.
const LAYOUT: u64 = fnv(include_bytes!("../../bpf/offload.h"));

/// The array of stages of an interface's hook.
pub(super) const STAGES: &str = "stages";

/// A place that no port has.
const NOBODY: OffloadPort = OffloadPort {
    seq: 0,
    orphans: 0,
    flows: 0,
    ifindex: 0,
    netns: 0,
    rung: 0,
    inside: 0,
    reserved: [0; 3],
};

/// Maps of a host, shared by its ports. Dropping it changes nothing: all of it is pinned.
pub struct Flows {
    root: PathBuf,
    pub(super) flows: Mapped<OffloadFlow>,
    pub(super) ports: Mapped<OffloadPort>,
    pub(super) limits: Mapped<OffloadLimit>,
    pub(super) places: Mutex<Places>,
    keys: Mutex<Keys>,
    is_anew: bool,
}

/// What leads to which place.
struct Keys {
    map: HashMap<MapData, OffloadKey, u32>,
    /// Places that no program can hold.
    free: Vec<u32>,
    /// Places that one may hold still, until the kernel has settled.
    left: Vec<u32>,
}

impl Flows {
    /// Takes up what is pinned below `root` ([`PIN_ROOT`]), or makes it. What is of another layout goes first: its flows are the workers' again.
    ///
    /// # Errors
    /// No permission, no file system for pins, a kernel that is too old, or pins that are no longer whole.
    pub fn open(root: &Path) -> Result<Self, OffloadError> {
        bpffs::ready(root).map_err(OffloadError::pin(root, bpffs::STEP))?;
        let is_anew = maps_of(root).exists() && !layout_of(root).exists();
        if is_anew {
            Self::purge(root)?;
        }
        for directory in [layout_of(root), maps_of(root), links_of(root)] {
            fs::create_dir_all(&directory).map_err(OffloadError::pin(&directory, "make it"))?;
        }
        load(root, super::tc::OBJECT, &[("PORT", 0)], &[])?;
        let flows: Mapped<OffloadFlow> = mapped(root, "flows")?;
        let map = HashMap::try_from(map(root, "keys")?).map_err(|_| other_version(root, "keys"))?;
        let taken: Vec<u32> = map.iter().flatten().map(|(_, place)| place).collect();
        let free = (0..FLOWS).rev().filter(|place| !taken.contains(place)).collect();
        let keys = Mutex::new(Keys { map, free, left: Vec::new() });
        let (ports, limits) = (mapped(root, "ports")?, mapped(root, "limits")?);
        let places =
            Mutex::new(Places::left_by(taken.iter().map(|&place| flows.get(place as usize))));
        Ok(Self { root: root.to_owned(), flows, ports, limits, places, keys, is_anew })
    }

    /// Whether pins of another layout were there, and are gone with their flows.
    pub fn is_anew(&self) -> bool {
        self.is_anew
    }

    /// Takes everything away: flows go to their workers, and nothing of it is left in the kernel.
    ///
    /// # Errors
    /// A pin cannot be removed.
    pub fn purge(root: &Path) -> Result<(), OffloadError> {
        (0..PORTS).for_each(|place| free_stage(root, place));
        for directory in [links_of(root), maps_of(root)] {
            for pin in fs::read_dir(&directory).into_iter().flatten().flatten() {
                let path = pin.path();
                fs::remove_file(&path).map_err(OffloadError::pin(&path, "remove it"))?;
            }
        }
        let others = fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
        for directory in
            [links_of(root), maps_of(root)].into_iter().chain(others).chain([root.to_owned()])
        {
            match fs::remove_dir(&directory) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(OffloadError::pin(&directory, "remove it")(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// How many flows there may be.
    pub(super) fn capacity(&self) -> u32 {
        FLOWS
    }

    /// The programs of a port, on the host's maps and on those that are pinned elsewhere.
    pub(super) fn load(
        &self,
        object: &[u8],
        port: u32,
        globals: &[(&str, u32)],
        others: &[(&str, PathBuf)],
    ) -> Result<Ebpf, OffloadError> {
        load(&self.root, object, &[globals, &[("PORT", port)]].concat(), others)
    }

    /// Where the link of a port's program is pinned.
    pub(super) fn link(&self, port: u32) -> PathBuf {
        link_of(&self.root, port)
    }

    /// Where a map that the port's program shares with other stages of its hook is pinned.
    pub(super) fn beside(&self, port: u32, map: &str) -> PathBuf {
        beside(&self.root, port, map)
    }

    /// The place of a port: that which its interface had before on the rung, or a free one.
    pub(super) fn port_of(
        &self,
        index: u32,
        netns: u64,
        rung: ProviderName,
    ) -> Result<u32, OffloadError> {
        let rung = number_of(rung);
        let mut taken =
            self.ports().filter(|(_, port)| port.ifindex == index && port.netns == netns);
        if let Some((place, _)) = taken.find(|(_, port)| port.rung != rung) {
            self.release_port(place);
        }
        let _one_at_a_time = self.keys();
        let mut places = self.ports();
        let is_same = |port: &OffloadPort| port.ifindex == index && port.netns == netns;
        let found = self.ports().find(|(_, port)| is_same(port));
        let found = found.or_else(|| places.find(|(_, port)| port.ifindex == 0));
        let (place, port) = found.ok_or(OffloadError::Ports { ports: PORTS })?;
        if port.ifindex == 0 {
            let port = OffloadPort { ifindex: index, netns, rung, ..NOBODY };
            self.ports.set(place as usize, &port);
        }
        Ok(place)
    }

    /// Gives a port's place back, with all flows that come in there.
    pub(super) fn release_port(&self, port: u32) {
        free_stage(&self.root, port);
        for pin in [beside(&self.root, port, STAGES), self.link(port)] {
            // None is pinned where attaching failed.
            let _ = fs::remove_file(pin);
        }
        for (key, place) in self.flows_of(port) {
            self.remove(&key, place);
        }
        self.ports.set(port as usize, &NOBODY);
    }

    fn ports(&self) -> impl Iterator<Item = (u32, OffloadPort)> {
        (0..PORTS).map(|place| (place, self.ports.get(place as usize)))
    }

    /// Places of ports that somebody has on a rung.
    pub(super) fn ports_taken(&self, rung: ProviderName) -> impl Iterator<Item = u32> {
        let is_taken = move |port: &OffloadPort| port.ifindex != 0 && port.rung == number_of(rung);
        self.ports().filter(move |(_, port)| is_taken(port)).map(|(place, _)| place)
    }

    /// The flows that come in at a port.
    pub(super) fn flows_of(&self, port: u32) -> Vec<(OffloadKey, u32)> {
        self.keys().map.iter().flatten().filter(|(key, _)| key.port == port).collect()
    }

    /// Puts a flow in place; `None`: all places are taken.
    pub(super) fn add(&self, flow: &OffloadFlow) -> Result<Option<u32>, aya::maps::MapError> {
        let mut keys = self.keys();
        if keys.free.is_empty() {
            keys.settle();
        }
        let Some(place) = keys.free.pop() else { return Ok(None) };
        self.flows.set(place as usize, flow);
        if let Err(error) = keys.map.insert(flow.key, place, 0) {
            keys.free.push(place);
            return Err(error);
        }
        self.count_flows(&flow.key, 1);
        Ok(Some(place))
    }

    /// Takes a flow out of the map: frames that come now are of no flow.
    pub(super) fn remove(&self, key: &OffloadKey, place: u32) {
        let mut keys = self.keys();
        // Gone before is no error.
        let _ = keys.map.remove(key);
        keys.left.push(place);
        self.count_flows(key, u32::MAX);
    }

    /// Adds to the number of flows of the key's port, modulo 2^32.
    fn count_flows(&self, key: &OffloadKey, more: u32) {
        let add =
            |at| _ = self.ports.u32_at(key.port as usize, at).fetch_add(more, Ordering::Release);
        add(offset_of!(OffloadPort, flows));
        if key.tunnel != 0 {
            add(offset_of!(OffloadPort, inside));
        }
    }

    /// Returns when no program runs by a state older than this call.
    ///
    /// # Errors
    /// The kernel cannot tell.
    pub(super) fn settle(&self) -> io::Result<()> {
        let before = std::mem::take(&mut self.keys().left);
        let settled = sys::settle();
        let mut keys = self.keys();
        match settled {
            Ok(()) => keys.free.extend(before),
            Err(_) => keys.left.extend(before),
        }
        settled
    }

    pub(super) fn gate(&self, place: u32) -> &AtomicU64 {
        self.flows.u64_at(place as usize, offset_of!(OffloadFlow, gate))
    }

    pub(super) fn done(&self, place: u32) -> &AtomicU64 {
        self.flows.u64_at(place as usize, offset_of!(OffloadFlow, done))
    }

    /// Says that nothing of a flow is under way in a worker.
    pub(super) fn set_done(&self, place: u32) {
        self.done(place).store(self.given(place), Ordering::Release);
    }

    pub(super) fn given(&self, place: u32) -> u64 {
        self.gate(place).load(Ordering::Acquire) & GIVEN
    }

    /// Whether a flow shall go up and has not.
    pub(super) fn is_rising(&self, place: u32) -> bool {
        self.gate(place).load(Ordering::Acquire) & (WANTED | RUNG) == WANTED
    }

    /// Whether a flow shall be up, and gives frames to its worker by itself: those that must wait for a greatest rate.
    pub(super) fn may_wait(&self, place: u32) -> bool {
        let is_shaped = self.flows.u32_at(place as usize, offset_of!(OffloadFlow, shapes));
        self.gate(place).load(Ordering::Acquire) & WANTED != 0
            && is_shaped.load(Ordering::Relaxed) != 0
    }

    /// The next frame that finds all others done goes by the rung.
    pub(super) fn want_rung(&self, place: u32) {
        self.gate(place).fetch_or(WANTED, Ordering::AcqRel);
    }

    /// A flow that is not up does not go up.
    pub(super) fn stay(&self, place: u32) {
        let down = |gate| (gate & RUNG == 0).then_some(gate & !WANTED);
        // Refused: it is up.
        let _ = self.gate(place).fetch_update(Ordering::AcqRel, Ordering::Acquire, down);
    }

    /// The next frame goes to the worker.
    pub(super) fn want_worker(&self, place: u32) {
        self.gate(place).fetch_and(!(WANTED | RUNG), Ordering::AcqRel);
    }

    fn keys(&self) -> MutexGuard<'_, Keys> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Keys {
    fn settle(&mut self) {
        if sys::settle().is_ok() {
            self.free.append(&mut self.left);
        }
    }
}

fn layout_of(root: &Path) -> PathBuf {
    root.join(format!("layout-{LAYOUT:016x}"))
}

/// Tells texts apart (FNV-1a, 64 bits).
const fn fnv(mut text: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    while let [first, rest @ ..] = text {
        hash = (hash ^ *first as u64).wrapping_mul(0x100_0000_01b3);
        text = rest;
    }
    hash
}

fn maps_of(root: &Path) -> PathBuf {
    root.join("maps")
}

fn links_of(root: &Path) -> PathBuf {
    root.join("links")
}

fn link_of(root: &Path, port: u32) -> PathBuf {
    links_of(root).join(port.to_string())
}

fn beside(root: &Path, port: u32, map: &str) -> PathBuf {
    links_of(root).join(format!("{port}-{map}"))
}

/// Frees the stage of an interface's hook that a port has; others may keep the hook.
fn free_stage(root: &Path, port: u32) {
    let stages = beside(root, port, STAGES);
    if stages.exists() {
        // A hook that is gone has no stages.
        let _ = hook::free(&stages, Stage::Offload);
    }
}

/// The number of a rung in map `ports`.
fn number_of(rung: ProviderName) -> u32 {
    match rung {
        ProviderName::Tc => super::abi::PORT_TC,
        ProviderName::Xdp => super::abi::PORT_XDP,
        ProviderName::Nic => unreachable!("a card has no port in the kernel's maps"),
    }
}

/// The programs of one port, on the host's maps, which the first one makes.
fn load(
    root: &Path,
    object: &[u8],
    globals: &[(&str, u32)],
    others: &[(&str, PathBuf)],
) -> Result<Ebpf, OffloadError> {
    let maps = maps_of(root);
    let mut loader = EbpfLoader::new();
    loader.default_map_pin_directory(&maps);
    for (name, value) in globals {
        loader.override_global(name, value, true);
    }
    for (name, path) in others {
        loader.map_pin_path(name, path.as_path());
    }
    loader.load(object).map_err(OffloadError::load("load the maps of flows past the worker"))
}

pub(super) fn program<'e, P>(
    ebpf: &'e mut Ebpf,
    name: &'static str,
) -> Result<&'e mut P, OffloadError>
where
    &'e mut P: TryFrom<&'e mut aya::programs::Program>,
{
    let found = ebpf.program_mut(name).and_then(|program| program.try_into().ok());
    found.ok_or(OffloadError::BrokenBuild(name))
}

fn map(root: &Path, name: &str) -> Result<Map, OffloadError> {
    let path = maps_of(root).join(name);
    let data = MapData::from_pin(&path)
        .map_err(|error| OffloadError::pin(&path, "open the map")(io::Error::other(error)))?;
    Map::from_map_data(data).map_err(|_| other_version(root, name))
}

fn mapped<T: Mirror + aya::Pod>(root: &Path, name: &str) -> Result<Mapped<T>, OffloadError> {
    let Map::Array(data) = map(root, name)? else { return Err(other_version(root, name)) };
    // Compares the sizes.
    let array = aya::maps::Array::<_, T>::try_from(Map::Array(data));
    let len = array.map_err(|_| other_version(root, name))?.len();
    let Map::Array(data) = map(root, name)? else { return Err(other_version(root, name)) };
    let path = maps_of(root).join(name);
    Mapped::new(data.fd().as_fd(), len as usize).map_err(OffloadError::pin(&path, "map the map"))
}

fn other_version(root: &Path, name: &str) -> OffloadError {
    OffloadError::Version { path: maps_of(root).join(name) }
}
