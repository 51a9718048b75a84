//! # The kernel as an enforcement point
//!
//! **Question answered**: how does what the agent wants become programs, maps and pins?
//!
//! * [`Kernel`]: adopts or attaches interfaces of the network namespace that its thread is in.
//! * [`interface`]: one interface. [`change`]: how entries change while frames flow.
//!
//! All interfaces share one host: clocks, threads, arrivals. It is opened with the first interface and removed with the last, so that a
//! host where nothing is steered has nothing of us.

mod change;
mod interface;

use super::pins::PIN_ROOT;
use super::{Attached, Frames, Host, Interface, Options, SteerError};
use interface::Steered;
use place::steering::{self, Enforcer, OpenError, Opener};
use place::{Core, CoreTable, Stage};
use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};
use std::collections::HashMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What all interfaces of the host share. Only the agent's thread takes the lock; it is there because an enforcer may be sent.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Mutex<State>>);

struct State {
    root: PathBuf,
    host: Option<Host>,
    /// Threads that are watched, by what they do.
    threads: HashMap<u32, Stage>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the host, opened if need be.
    pub(crate) fn with<T>(
        &self,
        work: impl FnOnce(&mut Host) -> Result<T, SteerError>,
    ) -> Result<T, SteerError> {
        let mut state = self.lock();
        if state.host.as_ref().is_none_or(Host::is_gone) {
            // Who opens it tells its threads anew.
            state.threads.clear();
            state.host = Some(Host::open(&state.root)?);
        }
        work(state.host.as_mut().expect("it was just opened"))
    }

    /// Has these threads watched, and no others.
    pub(crate) fn watch(&self, threads: &[(u32, Stage)]) -> Result<(), SteerError> {
        let mut state = self.lock();
        let State { host: Some(host), threads: watched, .. } = &mut *state else { return Ok(()) };
        let wanted: HashMap<u32, Stage> = threads.iter().copied().collect();
        watched
            .keys()
            .filter(|thread| !wanted.contains_key(thread))
            .for_each(|&thread| host.forget(thread));
        watched.retain(|thread, _| wanted.contains_key(thread));
        for (&thread, &stage) in &wanted {
            if watched.get(&thread) != Some(&stage) {
                host.watch(thread, stage)?;
                watched.insert(thread, stage);
            }
        }
        Ok(())
    }

    /// Ends an interface's steering, and the host's part with the last one.
    pub(crate) fn detach(&self, attached: Attached) -> Result<(), SteerError> {
        self.with(|host| attached.detach(host))?;
        self.close()
    }

    /// Gives the host up; its pins go when no interface needs them.
    fn close(&self) -> Result<(), SteerError> {
        let mut state = self.lock();
        // The next one who opens it tells its threads anew.
        state.threads.clear();
        match state.host.take() {
            Some(host) => host.remove_if_unused().map(drop),
            None => Ok(()),
        }
    }

    /// The same after a failure, which is what the user hears of.
    fn close_if_unused(&self) {
        if let Err(error) = self.close() {
            tracing::warn!("what steering pins for the host stays: {error}");
        }
    }
}

/// Opens interfaces of the network namespace of the calling thread.
pub struct Kernel {
    shared: Shared,
}

impl Kernel {
    /// With pins where they are by convention.
    pub fn new() -> Self {
        let root = PathBuf::from(PIN_ROOT);
        Self {
            shared: Shared(Arc::new(Mutex::new(State {
                root,
                host: None,
                threads: HashMap::new(),
            }))),
        }
    }

    /// Removes what is pinned of the interfaces of this network namespace, whether or not they are still there. Returns their names.
    ///
    /// # Errors
    /// Something cannot be removed.
    pub fn purge(&self) -> Result<Vec<String>, OpenError> {
        let mut purged = Vec::new();
        for name in self.pinned()? {
            let Some(interface) = interface_of(&name) else { continue };
            let attached =
                self.shared.with(|host| Attached::adopt(host, &name)).map_err(refused)?;
            self.shared.detach(attached).map_err(refused)?;
            purged.push(interface);
        }
        Ok(purged)
    }

    /// Names under which interfaces are pinned, of every namespace. Opens nothing on a host where nothing is.
    fn pinned(&self) -> Result<Vec<String>, OpenError> {
        if !self.shared.lock().root.exists() {
            return Ok(Vec::new());
        }
        self.shared.with(|host| Ok(host.interfaces())).map_err(refused)
    }
}

impl Default for Kernel {
    fn default() -> Self {
        Self::new()
    }
}

impl Opener for Kernel {
    fn adopt(&self, interface: &str) -> Result<Option<Box<dyn Enforcer>>, OpenError> {
        let name = pin_name(interface);
        if !self.pinned()?.contains(&name) {
            return Ok(None);
        }
        let attached = self.shared.with(|host| Attached::adopt(host, &name)).map_err(refused)?;
        if attached.is_alive() {
            return Ok(Some(Box::new(
                Steered::new(self.shared.clone(), attached).map_err(refused)?,
            )));
        }
        // What is pinned was on an interface that is gone.
        self.shared.detach(attached).map_err(refused)?;
        Ok(None)
    }

    fn attach(
        &self,
        interface: &str,
        asked: &steering::Options,
        table: &CoreTable,
    ) -> Result<Box<dyn Enforcer>, OpenError> {
        let index = index(interface).map_err(|_| OpenError::NoInterface)?;
        let interface = Interface { name: pin_name(interface), index };
        let options = options(asked, table);
        let attached = self.shared.with(|host| Attached::attach(host, &interface, &options));
        let attached = attached.map_err(|error| {
            self.shared.close_if_unused();
            refused(error)
        })?;
        Ok(Box::new(Steered::new(self.shared.clone(), attached).map_err(refused)?))
    }
}

/// The frames of an interface of this namespace, as its programs see them.
///
/// # Errors
/// It is not steered, or by a version that shows none.
pub fn frames_of(interface: &str) -> Result<Frames, OpenError> {
    index(interface).map_err(|_| OpenError::NoInterface)?;
    Frames::open(Path::new(PIN_ROOT), &pin_name(interface)).map_err(refused)
}

fn options(asked: &steering::Options, table: &CoreTable) -> Options {
    Options {
        unmatched: asked.unmatched,
        is_fcf: asked.is_fcf,
        entries: asked.entries,
        cores: table.cores().iter().map(Core::id).collect(),
        ..Options::default()
    }
}

fn index(interface: &str) -> io::Result<u32> {
    let (family, flags) = (AddressFamily::INET, SocketFlags::CLOEXEC);
    let socket = socket_with(family, SocketType::DGRAM, flags, None)?;
    Ok(netdevice::name_to_index(&socket, interface)?)
}

/// The interface's own name and its namespace's number: two namespaces may both have an `eth0`, and pins are the host's.
fn pin_name(interface: &str) -> String {
    // The number is the same for every process, as long as the namespace lives; without it a host has one namespace.
    let number = std::fs::metadata("/proc/thread-self/ns/net").map_or(0, |file| file.ino());
    format!("{interface}@{number}")
}

/// The interface of a pin's name, if it is in this namespace.
fn interface_of(pin: &str) -> Option<String> {
    let interface = pin.split('@').next()?;
    (pin_name(interface) == pin).then(|| interface.to_owned())
}

/// An error of crate `xdp` as a user meets it.
fn refused(error: SteerError) -> OpenError {
    let (step, remedy) = match &error {
        SteerError::Occupied { program, .. } => {
            let program = program.clone().unwrap_or_else(|| "its name is not known".into());
            return OpenError::Occupied { program };
        }
        SteerError::Steered { .. } => (
            "attaching the program",
            "it is attached already: see `suiro steer list` of the node that did it",
        ),
        SteerError::OfPort { .. } => (
            "attaching the program",
            "leave those frames to the port: --unmatched stay, without --fcf",
        ),
        SteerError::Generic { .. } => (
            "attaching the program",
            "give its port xdp_mode = \"native\", if its driver runs XDP programs",
        ),
        SteerError::Hook { .. } => ("attaching the program", "run as root, and see `suiro doctor`"),
        SteerError::Refused { .. } => (
            "attaching the program",
            "see `suiro doctor`; for a driver without XDP use RPS (/sys/class/net/INTERFACE/queues/rx-*/rps_cpus)",
        ),
        SteerError::Load { .. } => ("loading the programs", "run as root, and see `suiro doctor`"),
        SteerError::Pin { .. } => (
            "pinning",
            "run as root, and see that /sys/fs/bpf can be written: mount -t bpf bpf /sys/fs/bpf",
        ),
        SteerError::Version { .. } => (
            "taking up what is pinned",
            "detach with the version of suiro that attached it, or remove /sys/fs/bpf/suiro/steer",
        ),
        SteerError::Full => ("finding room", "detach an interface"),
        SteerError::Map(_) | SteerError::BrokenBuild(_) => {
            ("reading its maps", "please report this with the node's log")
        }
    };
    OpenError::Refused { step, remedy: remedy.into(), source: Box::new(error) }
}
