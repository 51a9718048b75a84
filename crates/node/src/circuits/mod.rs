//! # Circuits: links to other nodes, proved
//!
//! **Question answered**: does what leaves here by a circuit arrive at its other end as it left, and the other way round?
//!
//! Frames of a circuit take ports and rules as any others. Beside each path goes a second one under the odd tunnel id, by the same ports, for probes:
//! rules of the switch `K` take them from and to the interface [`INTERFACE`]. One thread sends and receives them there ([`prover`]), each end judges
//! ([`mod@end`]), and the link of the circuit's port is held down until both ways are good.
//!
//! ## Invariants
//!
//! * A port that ends a circuit has no link before that is proved, and none when it does not carry what it shall any more.
//! * No controller, no other node's clock and no store is needed. User switches see no probe.
//! * A node sends at most [`prover::RATE`] probes a second, however many circuits it has.
//! * The thread has no privileges: its socket is made by the ports' thread.

mod end;
mod frame;
mod prover;
mod seen;

use crate::feed::Feed;
use crate::ports::Ports;
use crate::roll::Roll;
use api::{CircuitSpec, CircuitView, Fault, PROVE, Peer, StrayView};
use prover::{Prover, Request};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The interface by which probes enter and leave: a TAP port of the switch that carries circuits.
pub const INTERFACE: &str = "su-probe";

/// The handle of the thread.
pub struct Circuits {
    requests: Mutex<Sender<Request>>,
    wake: Arc<OwnedFd>,
    board: Arc<Board>,
    ports: Arc<Ports>,
    wanted: Mutex<Wanted>,
}

/// What is wanted, by part: for ports that must be held before the thread has heard of their circuits.
#[derive(Default)]
struct Wanted {
    parts: BTreeMap<String, Vec<CircuitSpec>>,
    /// Circuits whose ports are held, and which are not wanted yet.
    early: BTreeMap<String, Vec<CircuitSpec>>,
}

impl Wanted {
    fn ends_at(&self, port: Option<&Peer>) -> bool {
        port.is_some() && self.parts.values().flatten().any(|circuit| circuit.port.as_ref() == port)
    }
}

/// A circuit's end: the part that declares it, and its link.
type Key = (String, String);

/// What others read. Its locks are leaves.
#[derive(Default)]
struct Board {
    ends: Mutex<BTreeMap<Key, CircuitView>>,
    strays: Mutex<Vec<StrayView>>,
}

impl Circuits {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system refuses a thread or an eventfd.
    pub fn start(ports: Arc<Ports>, feed: Feed, roll: &Roll) -> io::Result<Arc<Self>> {
        let (requests, inbox) = channel();
        let wake = Arc::new(crate::ports::wake_fd()?);
        let board = Arc::<Board>::default();
        let prover =
            Prover::new(board.clone(), ports.clone(), feed, wake.clone(), requests.clone());
        roll.spawn("suiro-circuits", move |duty| prover.run(&inbox, &duty))?;
        let (requests, wanted) = (Mutex::new(requests), Mutex::default());
        Ok(Arc::new(Self { requests, wake, board, ports, wanted }))
    }

    /// Holds ports down from now on that these circuits of a part will end at, before they are there. [`Circuits::want`] follows.
    pub fn hold<'a>(&self, part: &str, circuits: impl Iterator<Item = &'a CircuitSpec>) {
        let mut wanted = lock(&self.wanted);
        let new: Vec<_> =
            circuits.filter(|new| !wanted.ends_at(new.port.as_ref())).cloned().collect();
        let why = |new| Some((label(new)?, Some(unproved(new, "not proved yet"))));
        self.ports.hold(new.iter().filter_map(why).collect());
        wanted.early.insert(part.to_owned(), new);
    }

    /// Makes the circuits of a part these.
    pub fn want(&self, part: &str, circuits: Vec<CircuitSpec>) {
        let mut wanted = lock(&self.wanted);
        match circuits.is_empty() {
            true => drop(wanted.parts.remove(part)),
            false => drop(wanted.parts.insert(part.to_owned(), circuits.clone())),
        }
        let mut left = wanted.early.remove(part).unwrap_or_default();
        left.retain(|early| !wanted.ends_at(early.port.as_ref()));
        self.ports.hold(left.iter().filter_map(label).map(|left| (left, None)).collect());
        if lock(&self.requests).send(Request::Want(part.to_owned(), circuits)).is_ok() {
            crate::ports::ring(&self.wake);
        }
    }

    /// All circuits, as they are now.
    pub fn views(&self) -> Vec<CircuitView> {
        lock(&self.board.ends).values().cloned().collect()
    }

    /// Probes that come here and have no end here, for seconds after the last.
    pub fn strays(&self) -> Vec<StrayView> {
        lock(&self.board.strays).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The port as the ports' thread calls it. An outside network's interface is no port of a circuit's alone.
fn label(circuit: &CircuitSpec) -> Option<String> {
    let port = circuit.port.as_ref()?;
    Some(format!("port {} of switch {}", port.port(), port.switch()))
}

fn unproved(circuit: &CircuitSpec, why: &str) -> Fault {
    let CircuitSpec { link, near, far, .. } = circuit;
    let thing = format!("link {link} between {near} and {far}");
    let remedy = "see both its ends with: suiro circuit list; compare the rules of K, and the way between the two nodes";
    Fault::new(thing, PROVE, why, remedy)
}

/// Ports and what their links wait for, as the ports' thread takes it.
type Holds = HashMap<String, Option<Fault>>;
