//! # The offload thread
//!
//! **Question answered**: how does the node know which flows leave its workers, tell when tables and ports change, and learn what came of them?
//!
//! One thread owns the engine (crate `offload`) and the rungs. Like the ports' thread it keeps privileges: eBPF programs and maps need them. It
//! turns each [`TURN`] while offload is on, and sleeps while it is off.
//!
//! ## Invariants
//!
//! * **A barrier covers every rung.** [`Offload::settle`] returns when no frame runs by tables older than the published ones. Where no
//!   flow is on a rung, it costs a load.
//! * **Counts first.** Whoever shows or judges counts calls [`Offload::refresh`] before.
//! * A switch's flows come back before it is steered ([`Offload::steers`]).
//! * Flows that a capture shows come back before it begins ([`Offload::capture_begins`]).
//! * A port's flows come back before its queues go ([`Offload::port_goes`]), unless the node ends: then they go on ([`Offload::leave`]).
//! * The thread takes no lock of a switch, so all this may be called under none or any but those that it takes: the datapath's.

mod approach;
mod desk;
mod kept;
mod seen;
mod tables;
mod underlay;
mod words;

pub use desk::purge;
pub use kept::{Desired, restore};
pub use seen::Seen;
pub use words::{check, matched, policy, shown, words};

use crate::roll::{Duty, Roll};
use crate::store::OffloadRecords;
use api::Fault;
use datapath::{CaptureId, Datapath, PortAt, PortQueues, Publisher, Steers, SwitchId};
use desk::Desk;
use offload::{
    Declined, Explained, FlowLine, FlowName, Moved, PerFrame, Policy, PortReason, RungLine,
};
use port::{Door, Wrapping};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use wire::Key;
use xdp::offload::{Flows, PIN_ROOT, Passage, Past};

/// How often the thread looks. Chosen: a flow leaves within some 50 ms of being heavy, and 50 looks a second cost nothing.
pub const TURN: Duration = Duration::from_millis(20);

/// How long it sleeps while offload is off.
const IDLE: Duration = Duration::from_secs(3600);

/// Where a node pins its maps and programs: each has a place of its own, by where its state is.
pub fn root(state_dir: &Path) -> PathBuf {
    let name = wire::checksum::crc32c(state_dir.as_os_str().as_encoded_bytes());
    Path::new(PIN_ROOT).join(format!("{name:08x}"))
}

/// A port as flows meet it.
#[derive(Clone)]
pub struct PortNote {
    /// Its kind, as users write it.
    pub kind: &'static str,
    /// Who takes its flows past the worker, or why nobody does; `None`: ports of its kind have no such thing.
    pub past: Option<Result<Past, PortReason>>,
    /// Why flows cannot leave by it, if they cannot.
    pub exit: Result<(), PortReason>,
    /// Of a tunnel: how flows are wrapped, or why they cannot be.
    pub wrapping: Option<Result<Arc<Wrapping>, Declined>>,
    /// Of a TAP: where tunnels' packets come in.
    pub door: Option<Arc<Door>>,
    /// Longest packet after Ethernet header and tags.
    pub mtu: u32,
    /// Whether frames pass it.
    pub is_up: bool,
    /// Its queues and rates.
    pub queues: PortQueues,
    /// Frames that wait in them, at workers.
    pub held: Option<Arc<AtomicU64>>,
}

impl PortNote {
    /// What of tunnels' packets lies between this port and another switch.
    fn passage(&self) -> Option<&Arc<Passage>> {
        let off = || self.wrapping.as_ref()?.as_ref().ok().map(|wrapping| wrapping.passage());
        self.door.as_ref().map(|door| door.passage()).or_else(off)
    }
}

/// All of it at one moment.
#[derive(Clone, Debug)]
pub struct Look {
    /// Whether offload is on.
    pub is_on: bool,
    /// The rungs.
    pub rungs: Vec<RungLine>,
    /// Moves up since the start.
    pub moves: u64,
    /// Of those flaps.
    pub flaps: u64,
    /// What workers take for a frame.
    pub worker: PerFrame,
}

enum Message {
    Serve(Arc<Datapath>),
    SwitchCame(SwitchId, Arc<Publisher>),
    SwitchGoes(SwitchId),
    Steers(SwitchId, Steers, Sender<()>),
    CaptureBegins(CaptureId, Box<Seen>, Sender<()>),
    CaptureEnded(CaptureId),
    PortIs(PortAt, PortNote),
    PortGoes(PortAt, Sender<()>),
    Published(SwitchId),
    Settle(SwitchId, Sender<()>),
    Refresh(Sender<()>),
    Ask(Box<dyn FnOnce(&mut Desk) + Send>),
    Stop,
}

/// The thread's handle.
pub struct Offload {
    messages: Sender<Message>,
    thread: Mutex<Option<JoinHandle<()>>>,
    state: Arc<State>,
}

/// What callers look at before they disturb the thread.
#[derive(Default)]
struct State {
    is_on: AtomicBool,
    has_stays: AtomicBool,
}

impl Offload {
    /// Starts the thread, which has the capabilities of its caller and keeps them.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn start(root: PathBuf, roll: &Roll) -> io::Result<Arc<Self>> {
        let (messages, inbox) = channel();
        let state = Arc::<State>::default();
        let desk = Desk::new(root, state.clone());
        let thread = roll.spawn("suiro-offload", move |duty| run(&inbox, desk, &duty))?;
        Ok(Arc::new(Self { messages, thread: Mutex::new(Some(thread)), state }))
    }

    /// The workers whose flows may leave.
    pub fn serve(&self, datapath: Arc<Datapath>) {
        self.send(Message::Serve(datapath));
    }

    /// A switch is in service.
    pub fn switch_came(&self, id: SwitchId, publisher: Arc<Publisher>) {
        self.send(Message::SwitchCame(id, publisher));
    }

    /// A switch goes out of service; its ports have gone.
    pub fn switch_goes(&self, id: SwitchId) {
        self.send(Message::SwitchGoes(id));
    }

    /// Workers are about to hand each other frames of a switch: returns when none of its flows is on a rung. Or they do no more: its flows may
    /// leave from here on.
    pub fn steers(&self, id: SwitchId, change: Steers) {
        self.wait(|done| Message::Steers(id, change, done));
    }

    /// A capture is there: returns when workers have all flows that it shows. They stay there until it [has ended](Self::capture_ended).
    pub fn capture_begins(&self, id: CaptureId, seen: Seen) {
        self.wait(|done| Message::CaptureBegins(id, Box::new(seen), done));
    }

    /// A capture is over: flows that it kept may leave.
    pub fn capture_ended(&self, id: CaptureId) {
        self.send(Message::CaptureEnded(id));
    }

    /// A port is open, or other than it was.
    pub fn port_is(&self, at: PortAt, note: PortNote) {
        self.send(Message::PortIs(at, note));
    }

    /// A port is about to close; returns when no flow goes past its worker.
    pub fn port_goes(&self, at: PortAt) {
        self.wait(|done| Message::PortGoes(at, done));
    }

    /// Other tables are published.
    pub fn published(&self, switch: SwitchId) {
        if self.state.is_on.load(Relaxed) {
            self.send(Message::Published(switch));
        }
    }

    /// Returns when no frame of a switch runs by other tables than those published before.
    pub fn settle(&self, switch: SwitchId) {
        if self.state.has_stays.load(Relaxed) {
            self.wait(|done| Message::Settle(switch, done));
        }
    }

    /// Returns when all that rungs took by now is counted.
    pub fn refresh(&self) {
        if self.state.has_stays.load(Relaxed) {
            self.wait(Message::Refresh);
        }
    }

    /// Makes ready to switch on: the maps that ports and rungs share.
    ///
    /// # Errors
    /// The kernel does not let it.
    pub async fn prepare(&self) -> Result<Arc<Flows>, Fault> {
        self.ask(Desk::prepare).await?
    }

    /// Switches on or off; off, it returns when all flows are back.
    ///
    /// # Errors
    /// The thread has ended.
    pub async fn set_on(&self, on: bool) -> Result<(), Fault> {
        self.ask(move |desk| desk.set_on(on)).await
    }

    /// Takes up what an earlier node left.
    ///
    /// # Errors
    /// The thread has ended.
    pub async fn adopt(&self) -> Result<(), Fault> {
        self.ask(Desk::adopt).await
    }

    /// Takes away what an earlier node left.
    ///
    /// # Errors
    /// The thread has ended.
    pub async fn purge(&self) -> Result<(), Fault> {
        self.ask(|desk| desk.purge()).await
    }

    /// Makes ready for the node's end: flows on rungs stay there for the next start.
    ///
    /// # Errors
    /// The thread has ended.
    pub async fn leave(&self) -> Result<(), Fault> {
        self.ask(Desk::leave).await
    }

    /// `tell` hears of each flow that moves, on the thread: it must not wait.
    pub fn tell_moves(&self, tell: impl Fn(Moved) + Send + 'static) {
        self.send(Message::Ask(Box::new(move |desk| desk.tell_moves(Box::new(tell)))));
    }

    /// Puts policies in force, before whatever is asked next.
    pub fn set_policies(&self, policies: Vec<Policy>) {
        self.send(Message::Ask(Box::new(move |desk| desk.set_policies(policies))));
    }

    /// All of it.
    ///
    /// # Errors
    /// The thread has ended.
    pub async fn look(&self) -> Result<Look, Fault> {
        self.ask(|desk| desk.look()).await
    }

    /// The flows of a switch that `key` under `mask` fits, or of all switches.
    ///
    /// # Errors
    /// The thread has ended.
    pub async fn flows(
        &self,
        switch: Option<SwitchId>,
        (key, mask): (Key, Key),
    ) -> Result<Vec<FlowLine>, Fault> {
        let is_asked = move |line: &FlowLine| {
            switch.is_none_or(|id| line.name.0.switch == id) && key.matches(&mask, &line.name.1)
        };
        self.ask(move |desk| desk.list().into_iter().filter(is_asked).collect()).await
    }

    /// Why a flow is where it is, and what the tables and the rungs say of it now.
    ///
    /// # Errors
    /// The thread has ended.
    pub async fn why(&self, name: FlowName) -> Result<(Option<Explained>, desk::Verdict), Fault> {
        self.ask(move |desk| desk.why(&name)).await
    }

    /// Ends the thread. What is on rungs stays there for the next start.
    pub async fn stop(&self) {
        self.send(Message::Stop);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A thread that panicked has said so already.
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }

    async fn ask<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&mut Desk) -> T + Send + 'static,
    ) -> Result<T, Fault> {
        let (answer, answered) = oneshot::channel();
        self.send(Message::Ask(Box::new(move |desk| {
            // Who asked may have gone; what was asked is done all the same.
            let _ = answer.send(ask(desk));
        })));
        answered.await.map_err(|_| {
            let remedy = "restart suiro; please report its last log lines";
            Fault::new("offload", "ask its thread", "it has ended", remedy)
        })
    }

    /// Sends a message and waits until it has been taken care of, or the thread has ended.
    fn wait(&self, message: impl FnOnce(Sender<()>) -> Message) {
        let (done, told) = channel();
        self.send(message(done));
        let _ = told.recv();
    }

    fn send(&self, message: Message) {
        // An ended thread shows by missing answers.
        let _ = self.messages.send(message);
    }
}

fn run(inbox: &Receiver<Message>, mut desk: Desk, duty: &Duty) {
    let mut next = Instant::now() + TURN;
    loop {
        let now = Instant::now();
        if desk.is_at_work() && now >= next {
            desk.turn();
            next = Instant::now() + TURN;
        }
        let limit = if desk.is_at_work() { next.saturating_duration_since(now) } else { IDLE };
        duty.waits();
        let heard = inbox.recv_timeout(limit);
        duty.works();
        match heard {
            Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => break,
            Ok(message) => desk.take(message),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Keeps what was asked for.
pub struct Journal(pub OffloadRecords);
